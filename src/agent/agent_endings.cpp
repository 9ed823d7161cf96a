// SPDX-License-Identifier: Apache-2.0
/// Processes and whole tenants that are told to end, and who waits for it.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include <algorithm>

#include "agent/agent.h"
#include "hold/gpu_descriptors.h"

namespace firebreak::agent {
namespace {

constexpr Milliseconds longest_grace{60'000};
/// From the moment when a process's connection closes, on a busy machine.
constexpr Milliseconds ending_takes{50};

}  // namespace

Status Agent::end_process(const abi::EndProcess& request) {
  const auto pid = static_cast<pid_t>(request.pid);
  const auto found = processes_.find(pid);
  if (!is_ours(pid) || found->second.tenant != request.tenant) {
    return fail(ErrorCode::NotFound, fmt::format("tenant '{}' has no process {}", request.tenant, pid));
  }
  end_orderly(pid, "its operator wants it", options_.end_grace);
  return {};
}

void Agent::end_tenant(Connection& connection, const abi::EndTenant& request) {
  const auto found = tenants_.find(request.tenant);
  if (found == tenants_.end()) {
    return answer(connection,
                  fail(ErrorCode::NotFound, fmt::format("there is no tenant '{}'", request.tenant)));
  }
  Farewell farewell{connection.asker(), {}, {}};
  for (const auto& [pid, process] : processes_) {
    if (process.tenant == request.tenant) farewell.waiting.insert(pid);
  }
  for (const auto& [pid, dying] : dying_) {
    if (dying.process.tenant == request.tenant) farewell.waiting.insert(pid);
  }
  const bool nobody_is_left = farewell.waiting.empty();
  if (!nobody_is_left) farewells_.push_back(std::move(farewell));
  end_whole(*found->second, "its operator wants it", std::min(Milliseconds(request.grace_ms), longest_grace));
  if (!nobody_is_left) return;
  forget_if_empty(request.tenant);
  save();
  connection.answer(abi::Ended{"none of its processes was left"});
}

/// With its standby, which is not to take over.
void Agent::end_whole(Tenant& tenant, const std::string& why, Milliseconds grace) {
  tenant.ended_by_us = true;
  advance(tenant, pair::EventType::ActiveFinished);
  std::vector<pid_t> pids;
  for (const auto& [pid, process] : processes_) {
    if (process.tenant == tenant.name()) pids.push_back(pid);
  }
  for (const pid_t pid : pids) end_orderly(pid, why, grace);
}

void Agent::end_orderly(pid_t pid, const std::string& why, Milliseconds grace) {
  const auto found = processes_.find(pid);
  if (found == processes_.end() || found->second.end) return;
  Process& process = found->second;
  EndPlan plan;
  plan.pid = pid;
  plan.domain = process.domain;
  plan.fault_lasts = fault_lasts(process.domain);
  plan.grace = grace;
  auto end = OrderlyEnd::begin(loop_, kernel_, domains_, std::move(plan),
                               [this, pid] { detectors_.expect_exit(pid); });
  if (!end) {
    // Its exit is about to be told.
    return spdlog::info("process {} of {} cannot be ended: {}", pid, process.tenant, to_string(end.error()));
  }
  process.end = std::move(*end);
  abi::Event event;
  event.what = "ending";
  event.tenant = process.tenant;
  event.domain = process.domain;
  event.pid = pid;
  event.text = why;
  tell(std::move(event));
}

/// A process that becomes another program lives on without us and without the GPU, and nobody would take over
/// before that program ends. Most often it is just about to end, and then nothing is left to do.
void Agent::end_unless_it_serves(pid_t pid) {
  const auto process = processes_.find(pid);
  if (process == processes_.end()) return;
  auto look = loop_.after(ending_takes, [this, pid] {
    const auto found = processes_.find(pid);
    if (found == processes_.end() || found->second.end) return;
    const auto tenant = tenants_.find(found->second.tenant);
    if (tenant == tenants_.end() || tenant->second->pair.phase == pair::Phase::Finished) return;
    const Member& active = tenant->second->active;
    if (active.pid != pid || active.connection != 0) return;
    const auto on_gpu = hold::gpu_descriptors_of(kernel_, pid);
    if (on_gpu && on_gpu->empty())
      end(active, "it is its tenant's active no more: it has neither us nor the GPU");
  });
  if (!look) return spdlog::error("process {} is not looked at: {}", pid, to_string(look.error()));
  process->second.look = std::move(*look);
}

/// A fault is under way for as long as a pair would wait for its last word.
Nanoseconds Agent::fault_lasts(const std::string& domain) const {
  const auto last = last_fault_.find(domain);
  if (last == last_fault_.end()) return Nanoseconds(0);
  return last->second + Milliseconds(pair::suspicion_ms) - clock_.now();
}

void Agent::say_farewell(pid_t pid, const std::string& how) {
  for (Farewell& farewell : farewells_) {
    if (farewell.waiting.erase(pid) == 0) continue;
    farewell.ends.push_back(fmt::format("process {}: {}", pid, how.empty() ? "ended by itself" : how));
    if (!farewell.waiting.empty()) continue;
    server_->answer(farewell.asker, abi::Ended{fmt::format("{}", fmt::join(farewell.ends, "; "))});
  }
  std::erase_if(farewells_, [](const Farewell& farewell) { return farewell.waiting.empty(); });
}

}  // namespace firebreak::agent
