// SPDX-License-Identifier: Apache-2.0
#include "agent/firebreakd/shutdown.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

namespace firebreak::agent {
namespace {

constexpr Milliseconds most_grace{60'000};
/// Time that MPS, a fault that has to pass first, and the agent itself may take beyond the grace. A process
/// that does not end by then hangs inside the driver.
constexpr Milliseconds beyond_grace{10'000};

std::string described(const Stranger& stranger, pid_t pid) {
  return fmt::format("process {} ({}), which nobody has placed", pid, stranger.name);
}

}  // namespace

void OrderlyShutdown::ask(Connection& connection, const abi::Shutdown& request) {
  const std::vector<std::string> there = who_is_there();
  if (!request.force && !is_under_way_ && !there.empty()) {
    return connection.answer(abi::Refused{
        fmt::format("nothing was ended, since tenants are there: {} (firebreak shutdown --force ends them)",
                    fmt::join(there, ", "))});
  }
  askers_.push_back(connection.asker());
  begin(Milliseconds(request.grace_ms));
}

std::vector<std::string> OrderlyShutdown::who_is_there() const {
  std::vector<std::string> there;
  for (const auto& [name, tenant] : at_.tenants.all()) {
    if (tenant->pair.phase != pair::Phase::Finished || has_living(name)) there.push_back(name);
  }
  for (const std::string& name : at_.placements.coming()) there.push_back(name + ", which is just coming");
  for (const Process* each : at_.processes.all_living()) {
    if (each->tenant().empty() && each->stranger) there.push_back(described(*each->stranger, each->pid()));
  }
  return there;
}

/// True when a living process is left. The dead of a tenant that has finished may still be held.
bool OrderlyShutdown::has_living(const std::string& tenant) const {
  return std::ranges::any_of(at_.processes.all_living(),
                             [&](const Process* each) { return each->tenant() == tenant; });
}

void OrderlyShutdown::begin(Milliseconds grace) {
  if (std::exchange(is_under_way_, true)) return;
  grace = std::min(grace, most_grace);
  spdlog::info("everything is shut down");
  patience_ = at_.loop.after_or_now(grace + beyond_grace, [this] {
    spdlog::error("tenants' processes do not end: {}", fmt::join(who_is_there(), ", "));
    tenants_ended("not all have ended: a process that does not even die of SIGKILL hangs inside the driver");
  });
  at_.endings.end_all("the agent is shut down", grace,
                      [this](const std::string& ends) { tenants_ended(ends); });
}

void OrderlyShutdown::tenants_ended(const std::string& ends) {
  if (std::exchange(are_gone_, true)) return;
  patience_.cancel();
  ends_ = ends;
  // Whoever calls has more to do with them.
  at_.loop.post([this] { release_what_is_kept(); });
}

void OrderlyShutdown::release_what_is_kept() {
  at_.memory.forget_all("the agent is shut down");
  at_.shelves.end_all([this] { finish(); });
}

/// Finishes: from here on nothing else is served, which may take seconds.
void OrderlyShutdown::finish() {
  at_.manager.end_signs();
  at_.records.end();
  at_.parking.end();
  at_.domains.end();
  for (const Asker& asker : askers_)
    at_.server.answer(asker, abi::Ended{ends_.empty() ? "no tenant was there" : ends_});
  done_();
}

}  // namespace firebreak::agent
