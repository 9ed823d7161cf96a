// SPDX-License-Identifier: Apache-2.0
#include "agent/domains/mps_domains.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>

#include "agent/domains/mps/leftovers.h"
#include "agent/faults/watch/isolation.h"
#include "ground/os/self.h"

namespace firebreak::agent {
namespace {

constexpr const char* on_each_gpu[] = {"a", "b"};
constexpr const char* anchor = "anchor";
constexpr Milliseconds leftovers_timeout{5'000};
constexpr Milliseconds anchors_asked_every{2'000};

/// Asks one server after the other until one knows the client; NotFound when none does.
Status terminate_at(const mps::Domain& domain, const std::vector<pid_t>& servers, pid_t client,
                    Monotonic deadline) {
  const SystemClock clock;
  for (const pid_t server : servers) {
    const auto left = std::chrono::ceil<Milliseconds>(deadline - clock.now());
    if (left <= Milliseconds(0)) return fail(ErrorCode::Timeout, "MPS did not answer in time");
    Status answer = domain.terminate_client(server, client, left);
    if (answer || answer.error().code != ErrorCode::NotFound) return answer;
  }
  return fail(ErrorCode::NotFound, fmt::format("no MPS server has the client {}", client));
}

/// First at the servers that are known: asking for them takes as long as the rest.
Status terminate(mps::Domain& domain, const std::vector<pid_t>& known, pid_t client, Milliseconds timeout) {
  const Monotonic deadline = SystemClock().now() + timeout;
  Status answer = terminate_at(domain, known, client, deadline);
  if (answer || answer.error().code != ErrorCode::NotFound) return answer;
  auto servers = domain.server_pids();
  if (!servers) return propagate(servers);
  std::erase_if(*servers, [&](pid_t server) { return std::ranges::count(known, server) > 0; });
  return terminate_at(domain, *servers, client, deadline);
}

}  // namespace

MpsDomains::MpsDomains(os::EventLoop& loop, os::Kernel& kernel, Options options)
    : loop_(loop), kernel_(kernel), options_(std::move(options)) {
  std::vector<std::string> gpus = options_.gpus;
  if (gpus.empty()) gpus.emplace_back();
  for (std::size_t number = 0; number < gpus.size(); ++number) {
    const std::string prefix = gpus.size() > 1 ? std::to_string(number) : "";
    for (const char* name : on_each_gpu) plans_.push_back({prefix + name, gpus[number]});
  }
}

MpsDomains::~MpsDomains() {
  for (auto& [id, thread] : terminations_) thread.join();
}

Status MpsDomains::start(Callbacks callbacks) {
  callbacks_ = std::move(callbacks);
  end_forsaken();
  for (const Plan& plan : plans_) {
    if (Status started = start_one(plan); !started) return started;
  }
  return options_.anchors ? start_anchors() : Status();
}

/// Ends what an agent before had, and this one has not: it had other GPUs, or anchors. Nobody will take it
/// up.
void MpsDomains::end_forsaken() {
  const auto folders = kernel_.list_directory(options_.directory);
  if (!folders) return;
  for (const std::string& folder : *folders) {
    const bool is_ours = std::ranges::count(plans_, folder, &Plan::name) > 0;
    if (is_ours || (options_.anchors && folder.ends_with(anchor))) continue;
    const std::string pipe_directory = directory_of(folder) + "/pipe";
    if (!kernel_.list_directory(pipe_directory)) continue;
    const auto left = mps::find_processes(kernel_, options_.control_program, pipe_directory);
    if (left.empty()) continue;
    if (mps::has_clients(kernel_, options_.control_program, pipe_directory)) {
      spdlog::warn(
          "MPS domain {}, of an agent before, is none of this one's: it goes on with its clients, and "
          "ends when an agent starts that finds none there",
          folder);
      continue;
    }
    const Status ended = mps::end_all(kernel_, left, leftovers_timeout);
    if (!ended) spdlog::error("MPS domain {}, of an agent before: {}", folder, to_string(ended.error()));
    if (ended)
      spdlog::warn("MPS domain {}, of an agent before, is none of this one's, and was ended", folder);
  }
}

void MpsDomains::end() {
  for (const auto& keeper : keepers_) keeper->end_for_good();
  for (const auto& [gpu, keeper] : anchors_) keeper->end_for_good();
  keepers_.clear();
  anchors_.clear();
}

/// Nobody works there, so no word of it is told to the agent. But whoever starts needs it.
Status MpsDomains::start_anchors() {
  for (const Plan& plan : plans_) {
    if (anchors_.contains(plan.gpu)) continue;
    const std::string prefix = plan.name.substr(0, plan.name.size() - 1);
    mps::KeeperCallbacks callbacks;
    callbacks.on_news = [](const std::string& news) { spdlog::warn("MPS domain of anchors: {}", news); };
    callbacks.on_server = [this, name = prefix + anchor](pid_t server) { name_server(name, server); };
    mps::KeeperOptions options = keeper_options({prefix + anchor, plan.gpu});
    options.idle_clients_asked_every = anchors_asked_every;
    auto keeper = mps::DomainKeeper::start(kernel_, options, std::move(callbacks));
    if (!keeper) return propagate(keeper, "MPS domain of anchors");
    anchors_[plan.gpu] = std::move(*keeper);
  }
  return {};
}

/// Names the server to a driver that contains faults: it does not end that server for one, nor with it its
/// clients.
void MpsDomains::name_server(const std::string& domain, pid_t server) {
  const Status named = options_.helper ? options_.helper->name_server(domain, server)
                                       : watch::name_mps_server(kernel_, server);
  if (!named && named.error().code != ErrorCode::NotFound)
    spdlog::warn("MPS domain {}: the driver does not take its server's number {}: {}", domain, server,
                 to_string(named.error()));
}

Status MpsDomains::mark_parked(const std::string& domain, bool is_parked) {
  if (!options_.helper) return Domains::mark_parked(domain, is_parked);
  return options_.helper->mark_parked(domain, is_parked);
}

mps::KeeperOptions MpsDomains::keeper_options(const Plan& plan) const {
  mps::KeeperOptions options;
  options.domain.name = plan.name;
  options.domain.directory = directory_of(plan.name);
  options.domain.control_program = options_.control_program;
  options.domain.environment = options_.environment;
  options.domain.gpu = plan.gpu;
  options.domain.outlives_us = options_.outlive_us;
  options.domain.takes_over = true;
  options.domain.log = options_.log;
  options.domain.group = options_.group;
  if (options_.helper) options.domain.host = privileged_daemon_host(options_.helper, plan.name, plan.gpu);
  if (options_.start_apart) {
    options.domain.start_apart = [start = options_.start_apart, name = plan.name](
                                     const mps::DaemonStart& daemon) { return start(name, daemon); };
  }
  if (options_.on_daemon) {
    options.domain.on_daemon = [on_daemon = options_.on_daemon, name = plan.name](pid_t daemon) {
      on_daemon(name, daemon);
    };
  }
  return options;
}

Status MpsDomains::start_one(const Plan& plan) {
  const std::string name = plan.name;
  mps::KeeperCallbacks callbacks;
  callbacks.on_news = [name](const std::string& news) { spdlog::warn("MPS domain {}: {}", name, news); };
  callbacks.on_clients_lost = [this, name] {
    loop_.post([this, name] { callbacks_.on_clients_lost(name); });
  };
  callbacks.on_server = [this, name](pid_t server) {
    name_server(name, server);
    loop_.post([this, name, server] { callbacks_.on_server(name, server); });
  };
  callbacks.on_clients = [this, name](const mps::ClientList& clients) {
    loop_.post([this, name, clients] {
      if (callbacks_.on_clients) callbacks_.on_clients(name, clients);
    });
  };
  auto keeper = mps::DomainKeeper::start(kernel_, keeper_options(plan), std::move(callbacks));
  if (!keeper) return propagate(keeper, fmt::format("MPS domain {}", plan.name));
  keepers_.push_back(std::move(*keeper));
  return {};
}

std::vector<std::string> MpsDomains::names() const {
  std::vector<std::string> names;
  for (const Plan& plan : plans_) names.push_back(plan.name);
  return names;
}

std::vector<mps::DomainReport> MpsDomains::reports() const {
  std::vector<mps::DomainReport> all;
  for (const auto& keeper : keepers_) all.push_back(completed(keeper->report()));
  return all;
}

void MpsDomains::note_fall(const std::string& domain) {
  if (mps::DomainKeeper* const keeper = keeper_of(domain)) keeper->note_fall();
}

void MpsDomains::note_fault(const std::string& domain) {
  if (mps::DomainKeeper* const keeper = keeper_of(domain)) keeper->note_fault();
}

void MpsDomains::set_gpu_needs(const std::string& domain, const std::string& needs) {
  const auto plan = std::ranges::find(plans_, domain, &Plan::name);
  if (plan == plans_.end()) return;
  if (needs.empty()) {
    gpu_needs_.erase(plan->gpu);
  } else {
    gpu_needs_[plan->gpu] = needs;
  }
}

mps::DomainReport MpsDomains::completed(mps::DomainReport report) const {
  const auto found = gpu_needs_.find(report.gpu);
  if (found != gpu_needs_.end()) report.gpu_needs = found->second;
  return report;
}

Environment MpsDomains::environment(const std::string& domain) const {
  const mps::DomainKeeper* const keeper = keeper_of(domain);
  return keeper == nullptr ? Environment{} : keeper->client_environment();
}

Environment MpsDomains::anchor_environment(const std::string& domain) const {
  const auto plan = std::ranges::find(plans_, domain, &Plan::name);
  const auto found = plan == plans_.end() ? anchors_.end() : anchors_.find(plan->gpu);
  return found == anchors_.end() ? Environment{} : found->second->client_environment();
}

std::vector<mps::DomainReport> MpsDomains::anchor_reports() const {
  std::vector<mps::DomainReport> all;
  for (const auto& [gpu, keeper] : anchors_) all.push_back(completed(keeper->report()));
  return all;
}

std::string MpsDomains::directory_of(const std::string& domain) const {
  return fmt::format("{}/{}", options_.directory, domain);
}

std::string MpsDomains::log_directory(const std::string& domain) const {
  return directory_of(domain) + "/log";
}

void MpsDomains::refresh_servers() {
  for (const auto& keeper : keepers_) keeper->look_for_servers();
}

void MpsDomains::look_for_clients(const std::string& domain) {
  if (mps::DomainKeeper* const keeper = keeper_of(domain)) keeper->look_for_clients();
}

void MpsDomains::look_for_faults() {
  for (const auto& keeper : keepers_) keeper->look_for_faults();
}

mps::DomainKeeper* MpsDomains::keeper_of(const std::string& domain) const {
  const auto found =
      std::ranges::find_if(keepers_, [&](const auto& keeper) { return keeper->name() == domain; });
  return found == keepers_.end() ? nullptr : found->get();
}

void MpsDomains::terminate_client(const std::string& domain, pid_t client, Milliseconds timeout,
                                  std::function<void(Status)> done) {
  const mps::DomainKeeper* const keeper = keeper_of(domain);
  const auto found = keeper == nullptr ? nullptr : keeper->domain();
  if (!found) {
    return loop_.post([done = std::move(done)] {
      done(fail(ErrorCode::NotFound, "there is no such MPS domain, or it does not run"));
    });
  }
  const std::uint64_t id = next_termination_++;
  auto termination =
      os::start_thread([this, id, found, known = keeper->report().servers, client, timeout, done] {
        const Status answer = terminate(*found, known, client, timeout);
        loop_.post([this, id, answer, done] {
          const auto ended = terminations_.extract(id);
          if (ended) ended.mapped().join();
          done(answer);
        });
      });
  if (!termination)
    return loop_.post([why = termination.error(), done = std::move(done)] { done(tl::unexpected(why)); });
  terminations_[id] = std::move(*termination);
}

std::optional<std::string_view> MpsDomains::domain_of_server(pid_t pid) {
  for (const auto& keeper : keepers_) {
    if (keeper->is_server(pid)) return keeper->name();
  }
  return std::nullopt;
}

}  // namespace firebreak::agent
