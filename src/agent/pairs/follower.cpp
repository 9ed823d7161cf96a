// SPDX-License-Identifier: Apache-2.0
#include "agent/pairs/follower.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <charconv>

#include "ground/base/text.h"
#include "ground/os/processes.h"

namespace firebreak::agent {
namespace {

/// A chain of parents is short, and one that changes while it is read may be a circle.
constexpr int most_ancestors = 64;

/// A process's own word: it may hold anything.
std::string one_word(std::string text) {
  std::erase(text, '\n');
  return printable(text);
}

}  // namespace

Status Follower::follow(pid_t pid, const std::string& tenant, const std::string& domain,
                        const Whereabouts& where, const IsStillIt& is_still_it) {
  at_.settle_end(pid);
  // First: what it has already, a guard, is told of at once.
  const auto added = at_.processes.add(at_.kernel, pid, tenant, domain);
  if (!added) return propagate(added);
  (*added)->be_in(where);
  if (is_still_it && !is_still_it()) {
    at_.processes.take_living(pid);
    return fail(ErrorCode::NotFound, fmt::format("process {} is another one by now", pid));
  }
  const auto named = tenant.empty() ? std::nullopt : std::optional(tenant);
  watch::Target target{pid, std::nullopt, (*added)->known_domain(), named};
  target.said = domain;
  target.is_told = where.expected.contains(domain);
  if (auto followed = at_.detectors.follow(target); !followed) {
    at_.processes.take_living(pid);
    return followed;
  }
  at_.holder.follow(pid, (*added)->pidfd());
  at_.parking.follow(pid, domain);
  return {};
}

void Follower::follow_progress(const Tenant& tenant) {
  auto read = [this, name = tenant.name(), pid = tenant.active.pid]() -> std::optional<std::uint64_t> {
    Tenant* found = at_.tenants.find(name);
    if (found == nullptr || found->active.pid != pid) return std::nullopt;
    return found->progress();
  };
  if (auto followed = at_.detectors.follow_progress(tenant.active.pid, std::move(read)); !followed)
    spdlog::warn("a hang of {} would not be seen: {}", tenant.name(), to_string(followed.error()));
}

bool Follower::is_ours(pid_t pid) const {
  const Process* process = at_.processes.living(pid);
  return process != nullptr && !process->stranger;
}

bool Follower::on_clients(const std::string& domain, const mps::ClientList& answer) {
  const mps::ClientList clients{answer.asked, at_.parking.without_ours(domain, answer.pids)};
  std::erase_if(not_followed_, [&](const auto& each) {
    return each.second == domain && std::ranges::count(clients.pids, each.first) == 0;
  });
  std::erase_if(gone_, [&](const auto& each) {
    return each.first == domain && std::ranges::count(clients.pids, each.second) == 0;
  });
  for (const pid_t pid : answer.pids) {
    if (std::ranges::count(clients.pids, pid) == 0) at_.detectors.note_own_client(pid);
  }
  bool has_learnt = false;
  // First: who is named for a fault depends on who is watched.
  for (const pid_t pid : clients.pids) {
    if (gone_.contains({domain, pid})) continue;
    const bool is_known = at_.processes.knows(pid) || not_followed_.contains(pid);
    if (!is_known) meet_stranger(domain, pid);
    Process* const process = at_.processes.living(pid);
    if (process != nullptr && learn(*process, domain)) has_learnt = true;
  }
  at_.detectors.note_clients(domain, clients);
  return has_learnt;
}

void Follower::on_exit(const Process& process) {
  for (const std::string& domain : process.whereabouts().known) gone_.emplace(domain, process.pid());
}

/// MPS says where it is, whatever it has said itself.
bool Follower::learn(Process& process, const std::string& domain) {
  if (process.is_known_in(domain)) return false;
  // A spare may be there before its process's own client is.
  const bool was_nowhere = process.known_domain().empty() && !process.is_expected_in(domain);
  process.know_in(domain);
  Tenant* const tenant = at_.tenants.find(process.tenant());
  if (was_nowhere) process.move_to(domain);
  for (Member* member :
       {tenant == nullptr ? nullptr : &tenant->active, tenant == nullptr ? nullptr : &tenant->standby}) {
    if (was_nowhere && member != nullptr && member->pid == process.pid()) member->domain = domain;
  }
  if (!process.known_domain().empty()) at_.detectors.place(process.pid(), process.known_domain());
  at_.parking.on_known(process.pid(), domain);
  return true;
}

void Follower::meet_stranger(const std::string& domain, pid_t pid) {
  Stranger stranger = describe_stranger(pid);
  abi::Event event;
  event.what = abi::EventKind::Foreign;
  event.domain = domain;
  event.pid = pid;
  event.text = fmt::format("{} of user {} is a client of domain {}: {}", stranger.name, stranger.user, domain,
                           stranger.came);
  const Status followed = follow(pid, "", domain, {.known = {domain}});
  if (followed) {
    Process& process = *at_.processes.living(pid);
    process.stranger = std::move(stranger);
    process.become(ProcessState::Running);
  } else {
    at_.processes.take_living(pid);
    not_followed_[pid] = domain;
    event.text += "; it cannot be followed: " + to_string(followed.error());
  }
  spdlog::warn("process {}: {}", pid, event.text);
  at_.teller.tell(std::move(event));
}

Stranger Follower::describe_stranger(pid_t pid) const {
  const auto read = [&](pid_t whose, const char* file) {
    return at_.kernel.read_file(os::proc_folder(whose) + "/" + file).value_or("");
  };
  const std::string name = one_word(read(pid, "comm"));
  const auto user = os::user_in(read(pid, "status"));
  Stranger stranger{name.empty() ? "?" : name, user ? std::to_string(*user) : "?", "not placed by us"};
  pid_t ancestor = pid;
  for (int i = 0; i < most_ancestors && ancestor > 1; ++i) {
    ancestor = os::parent_of(at_.kernel, ancestor);
    if (!is_ours(ancestor)) continue;
    stranger.tenant = at_.processes.living(ancestor)->tenant();
    stranger.came =
        fmt::format("not placed by us, but by process {} of tenant {}", ancestor, stranger.tenant);
    break;
  }
  return stranger;
}

}  // namespace firebreak::agent
