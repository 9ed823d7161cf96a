// SPDX-License-Identifier: Apache-2.0
/// These stand around an agent in its tests: detectors, domains and a service manager that are not there.
/// They do without GoogleTest, so that the fuzzer has them, too.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/loop/server.h"
#include "agent/loop/surroundings.h"
#include "agent/service/service_manager.h"
#include "ground/os/fd.h"
#include "shared/guard_page/guard_view.h"

namespace firebreak::agent {

/// The handler of a server whose requests nobody hears.
struct DeafHandler final : ServerHandler {
  void on_message(Connection&, abi::Message, std::vector<os::Fd>) override {}
  void on_closed(Connection&) override {}
};

struct FakeDetectors final : Detectors {
  Callbacks callbacks;
  std::vector<pid_t> followed;
  std::map<pid_t, watch::Target> targets;  ///< of those
  std::map<pid_t, watch::ReadProgress> progress;
  std::vector<pid_t> expected;  ///< to end
  std::map<pid_t, std::string> output;

  std::map<pid_t, strays::Summary> straying;

  std::vector<std::string> start(Callbacks given) override {
    callbacks = std::move(given);
    return {};
  }
  std::vector<std::string> not_heard() const override { return missing; }
  std::vector<std::string> missing;
  Status follow(const watch::Target& target) override {
    followed.push_back(target.pid);
    targets[target.pid] = target;
    if (guard_at_once) callbacks.on_guard(target.pid, *guard_at_once);
    return {};
  }
  void place(pid_t pid, const std::string& domain) override { targets[pid].domain = domain; }
  std::optional<strays::GuardReport> guard_at_once;  ///< A process that is followed has it already.
  Status follow_progress(pid_t pid, watch::ReadProgress read) override {
    progress[pid] = std::move(read);
    return {};
  }
  void look_again(pid_t pid) override { looked_again.push_back(pid); }
  std::vector<pid_t> looked_again;
  void note_clients(const std::string& domain, const mps::ClientList& list) override {
    clients[domain] = list.pids;
  }
  std::map<std::string, std::vector<pid_t>> clients;  ///< MPS has named them so.
  void note_own_client(pid_t pid) override { own_clients.insert(pid); }
  std::set<pid_t> own_clients;
  void note_output(pid_t pid, std::string_view text) override { output[pid] += text; }
  void note_exception(pid_t pid, const fault::CoreDumpException& exception) override {
    exceptions.emplace_back(pid, exception.type);
  }
  std::vector<std::pair<pid_t, std::string>> exceptions;
  void expect_exit(pid_t pid) override { expected.push_back(pid); }
  std::shared_ptr<const guard::GuardView> guard_of(pid_t pid) const override {
    const auto found = guards.find(pid);
    return found == guards.end() ? nullptr : found->second;
  }
  std::map<pid_t, std::shared_ptr<const guard::GuardView>> guards;
  void look_for_remains(pid_t pid, std::function<void(const std::string&)> tell) override {
    remains[pid] = std::move(tell);
  }
  std::map<pid_t, std::function<void(const std::string&)>> remains;
  strays::Summary straying_of(pid_t pid) const override {
    const auto found = straying.find(pid);
    return found == straying.end() ? strays::Summary{} : found->second;
  }
};

struct FakeDomains final : Domains {
  static constexpr pid_t server_of_a = 1000001;
  Callbacks callbacks;

  Status start(Callbacks given) override {
    callbacks = std::move(given);
    return {};
  }
  void end() override { has_ended = true; }
  bool has_ended = false;
  std::vector<std::string> names() const override { return {"a", "b"}; }
  std::map<std::string, std::string> gpus;  ///< This is a list of domains; none means one that is not named.
  std::vector<mps::DomainReport> reports() const override {
    std::vector<mps::DomainReport> all;
    for (const std::string& name : names()) {
      mps::DomainReport report;
      report.name = name;
      const auto state = states.find(name);
      if (state != states.end()) report.state = state->second;
      if (const auto its = gpu_needs.find(name); its != gpu_needs.end()) report.gpu_needs = its->second;
      if (const auto gpu = gpus.find(name); gpu != gpus.end()) report.gpu = gpu->second;
      all.push_back(std::move(report));
    }
    return all;
  }
  void set_gpu_needs(const std::string& domain, const std::string& needs) override {
    gpu_needs[domain] = needs;
  }
  std::map<std::string, std::string> gpu_needs;
  void note_fault(const std::string& domain) override { states[domain] = mps::DomainState::Draining; }
  void note_fall(const std::string& domain) override { fallen.push_back(domain); }
  std::vector<std::string> fallen;
  Environment environment(const std::string& domain) const override {
    return {{"CUDA_MPS_PIPE_DIRECTORY", pipe_directories + domain}};
  }
  std::string pipe_directories = "/mps/";  ///< Each domain has its own in this folder.
  Environment anchor_environment(const std::string&) const override {
    if (!has_anchors) return {};
    return {{"CUDA_MPS_PIPE_DIRECTORY", "/mps/anchor"}};
  }
  bool has_anchors = true;
  std::string log_directory(const std::string& domain) const override { return "/mps-log/" + domain; }
  /// MPS does the same: nobody knows its servers who has not asked for them.
  std::optional<std::string_view> domain_of_server(pid_t pid) override {
    const auto found = known_servers.find(pid);
    return found == known_servers.end() ? std::nullopt : std::optional<std::string_view>(found->second);
  }
  void refresh_servers() override {
    ++asked_for_servers;
    known_servers = servers;
    if (!has_servers) return;
    for (const std::string& name : names())
      callbacks.on_server(name, ::getpid());  // Any process that lives will
                                              // do.
  }
  bool has_servers = true;                                      ///< Each domain serves, and MPS names it at
                                                                ///< once.
  std::map<pid_t, std::string> servers = {{server_of_a, "a"}};  ///< These run, each in its domain.
  std::map<pid_t, std::string> known_servers;
  int asked_for_servers = 0;
  void look_for_clients(const std::string& domain) override { asked_for_clients.push_back(domain); }
  std::vector<std::string> asked_for_clients;
  void look_for_faults() override { ++looks_for_faults; }
  int looks_for_faults = 0;
  void terminate_client(const std::string& domain, pid_t client, Milliseconds,
                        std::function<void(Status)> done) override {
    asked.push_back(domain);
    terminations[client] = std::move(done);
  }
  std::map<std::string, mps::DomainState> states;             ///< These are not serving.
  std::vector<std::string> asked;                             ///< the domain of each request
  std::map<pid_t, std::function<void(Status)>> terminations;  ///< This says how to answer it.
};

/// Keeps what it is given, as systemd does, for the next agent of a test.
struct FakeServiceManager final : ServiceManager {
  std::map<std::string, os::Fd> kept;
  bool is_there = true;

  std::map<std::string, os::Fd> take_descriptors() override {
    std::map<std::string, os::Fd> duplicates;
    for (const auto& [name, descriptor] : kept) duplicates.emplace(name, os::Fd(::dup(descriptor.get())));
    return duplicates;
  }
  const std::map<std::string, os::Fd>& descriptors() override { return kept; }
  Status keep(const std::string& name, int descriptor) override {
    if (!is_there) return fail(ErrorCode::Unsupported, "nobody is there");
    kept.insert_or_assign(name, os::Fd(::dup(descriptor)));
    return {};
  }
  void drop(const std::string& name) override { kept.erase(name); }
  Status room_for(std::span<const std::string>) override { return room; }
  Status room;
  Status give_own_unit(const std::string&, const std::string&, pid_t) override {
    return fail(ErrorCode::Unsupported, "there are no units");
  }
  /// Starts services, on any thread; empty: nobody does.
  std::function<Result<pid_t>(const ApartService&)> starts = nullptr;
  bool can_start_apart() override { return starts != nullptr; }
  Result<pid_t> start_apart(const ApartService& service) override {
    return starts ? starts(service) : ServiceManager::start_apart(service);
  }
  void tell_ready() override {}
  void tell_status(const std::string& line) override { statuses.push_back(line); }
  std::optional<Nanoseconds> ends_the_silent_after() override { return limit; }
  void give_sign() override { ++signs; }
  void end_signs() override { signs_have_ended = true; }
  std::vector<std::string> statuses;
  std::optional<Nanoseconds> limit;
  int signs = 0;
  bool signs_have_ended = false;
};

}  // namespace firebreak::agent
