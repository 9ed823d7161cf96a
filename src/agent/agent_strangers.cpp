// SPDX-License-Identifier: Apache-2.0
/// Clients of our domains that nobody has placed there: whoever knows a domain's directory can join it. Their
/// faults end our tenants as any neighbour's, so they are followed like one.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <charconv>

#include "agent/agent.h"
#include "os/processes.h"

namespace firebreak::agent {
namespace {

/// A chain of parents is short, and one that changes while it is read may be a circle.
constexpr int most_ancestors = 64;

/// A process's own word: it may hold anything.
std::string printable(std::string text) {
  std::erase(text, '\n');
  std::ranges::replace_if(
      text, [](unsigned char letter) { return letter < 0x20 || letter > 0x7e; }, '?');
  return text;
}

/// The second word of the line that begins with `label`; empty: there is none.
std::string word_after(const std::string& text, const std::string& label) {
  const std::size_t line = text.find("\n" + label);
  if (line == std::string::npos) return {};
  const std::size_t begin = text.find_first_not_of(" \t", line + 1 + label.size());
  if (begin == std::string::npos) return {};
  return text.substr(begin, text.find_first_of(" \t\n", begin) - begin);
}

}  // namespace

bool Agent::is_ours(pid_t pid) const {
  const Process* process = processes_.living(pid);
  return process != nullptr && !process->stranger;
}

void Agent::on_clients(const std::string& domain, const mps::ClientList& clients) {
  std::erase_if(unfollowed_, [&](const auto& each) {
    return each.second == domain && std::ranges::count(clients.pids, each.first) == 0;
  });
  // First: who is named for a fault depends on who is watched.
  for (const pid_t pid : clients.pids) {
    const bool is_known = processes_.knows(pid) || unfollowed_.contains(pid);
    if (!is_known) meet_stranger(domain, pid);
  }
  detectors_.note_clients(domain, clients);
}

void Agent::meet_stranger(const std::string& domain, pid_t pid) {
  Stranger stranger = describe_stranger(pid);
  abi::Event event;
  event.what = abi::EventKind::Foreign;
  event.domain = domain;
  event.pid = pid;
  event.text = fmt::format("{} of user {} is a client of domain {}: {}", stranger.name, stranger.user, domain,
                           stranger.came);
  const Status followed = follow(pid, "", domain);
  if (followed) {
    Process& process = *processes_.living(pid);
    process.stranger = std::move(stranger);
    process.become(ProcessState::Running);
  } else {
    processes_.take_living(pid);
    unfollowed_[pid] = domain;
    event.text += "; it cannot be followed: " + to_string(followed.error());
  }
  spdlog::warn("process {}: {}", pid, event.text);
  teller_.tell(std::move(event));
}

Stranger Agent::describe_stranger(pid_t pid) const {
  const auto read = [&](pid_t whose, const char* file) {
    return kernel_.read_file(os::proc_folder(whose) + "/" + file).value_or("");
  };
  const std::string name = printable(read(pid, "comm"));
  const std::string user = word_after(read(pid, "status"), "Uid:");
  Stranger stranger{name.empty() ? "?" : name, user.empty() ? "?" : user, "not placed by us"};
  pid_t ancestor = pid;
  for (int i = 0; i < most_ancestors && ancestor > 1; ++i) {
    const std::string stat = read(ancestor, "stat");
    const std::string_view parent = os::parent(stat);
    ancestor = 0;
    std::from_chars(parent.data(), parent.data() + parent.size(), ancestor);
    if (!is_ours(ancestor)) continue;
    stranger.came = fmt::format("not placed by us, but by process {} of tenant {}", ancestor,
                                processes_.living(ancestor)->tenant());
    break;
  }
  return stranger;
}

}  // namespace firebreak::agent
