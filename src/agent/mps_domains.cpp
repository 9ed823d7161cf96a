// SPDX-License-Identifier: Apache-2.0
#include "agent/mps_domains.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>

namespace firebreak::agent {
namespace {

constexpr const char* domain_names[] = {"a", "b"};

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

MpsDomains::~MpsDomains() {
  if (looking_.joinable()) {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
    }
    wanted_changed_.notify_all();
    looking_.join();
  }
  for (auto& [id, thread] : terminations_) thread.join();
}

Status MpsDomains::start() {
  for (const char* name : domain_names) {
    mps::DomainOptions options;
    options.name = name;
    options.directory = directory_of(name);
    options.control_program = options_.control_program;
    options.environment = options_.environment;
    auto domain = mps::Domain::start(kernel_, options);
    if (!domain) return propagate(domain, fmt::format("MPS domain {}", name));
    environments_[name] = (*domain)->client_environment();
    domains_.push_back(std::move(*domain));
  }
  looking_ = std::thread([this] { look_for_servers(); });
  return {};
}

std::vector<std::string> MpsDomains::names() const {
  return {std::begin(domain_names), std::end(domain_names)};
}

Environment MpsDomains::environment(const std::string& domain) const {
  const auto found = environments_.find(domain);
  return found == environments_.end() ? Environment{} : found->second;
}

std::string MpsDomains::directory_of(const std::string& domain) const {
  return fmt::format("{}/{}", options_.directory, domain);
}

std::string MpsDomains::log_directory(const std::string& domain) const {
  return directory_of(domain) + "/log";
}

void MpsDomains::refresh_servers() {
  {
    const std::lock_guard lock(mutex_);
    wanted_ = true;
  }
  wanted_changed_.notify_all();
}

mps::Domain* MpsDomains::domain_named(const std::string& name) const {
  const auto found =
      std::ranges::find_if(domains_, [&](const auto& domain) { return domain->name() == name; });
  return found == domains_.end() ? nullptr : found->get();
}

std::vector<pid_t> MpsDomains::servers_of(const std::string& domain) {
  const std::lock_guard lock(mutex_);
  std::vector<pid_t> servers;
  for (const auto& [pid, name] : servers_) {
    if (name == domain) servers.push_back(pid);
  }
  return servers;
}

void MpsDomains::terminate_client(const std::string& domain, pid_t client, Milliseconds timeout,
                                  std::function<void(Status)> done) {
  mps::Domain* const found = domain_named(domain);
  if (found == nullptr) {
    return loop_.post(
        [done = std::move(done)] { done(fail(ErrorCode::NotFound, "there is no such MPS domain")); });
  }
  const std::uint64_t id = next_termination_++;
  terminations_[id] =
      std::thread([this, id, found, known = servers_of(domain), client, timeout, done = std::move(done)] {
        const Status answer = terminate(*found, known, client, timeout);
        loop_.post([this, id, answer, done] {
          const auto ended = terminations_.extract(id);
          if (ended) ended.mapped().join();
          done(answer);
        });
      });
}

/// The looking thread. A server starts with its first client, so it is asked for when clients have come up.
void MpsDomains::look_for_servers() {
  std::unique_lock lock(mutex_);
  while (!ending_) {
    wanted_changed_.wait(lock, [this] { return wanted_ || ending_; });
    if (ending_) return;
    wanted_ = false;
    lock.unlock();
    std::map<pid_t, std::string> found;
    for (const auto& domain : domains_) {
      const auto pids = domain->server_pids();
      if (!pids) {
        spdlog::debug("servers of domain {}: {}", domain->name(), pids.error().message);
        continue;
      }
      for (pid_t pid : *pids) found[pid] = domain->name();
    }
    lock.lock();
    servers_.merge(found);
  }
}

std::optional<std::string> MpsDomains::domain_of_server(pid_t pid) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = servers_.find(pid);
    if (found != servers_.end()) return found->second;
  }
  return domain_in_environment_of(pid);
}

/// A server inherits its daemon's environment, and its pipe directory names the domain: known without asking
/// anybody.
std::optional<std::string> MpsDomains::domain_in_environment_of(pid_t pid) {
  const auto environment = kernel_.read_file(fmt::format("/proc/{}/environ", pid));
  if (!environment) return std::nullopt;
  for (const auto& [name, variables] : environments_) {
    for (const auto& [variable, value] : variables) {
      if (variable != "CUDA_MPS_PIPE_DIRECTORY") continue;
      // Entries end with a NUL, so that "/run/a" is not found in "/run/ab".
      const std::string entry = fmt::format("{}={}", variable, value) + '\0';
      if (environment->find(entry) != std::string::npos) return name;
    }
  }
  return std::nullopt;
}

}  // namespace firebreak::agent
