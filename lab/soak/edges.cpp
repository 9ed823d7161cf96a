// SPDX-License-Identifier: Apache-2.0
/// Disturbances at the edges of the promises: links that break while both ends live, starts that fail, and
/// more tenants than there is room for.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "ground/os/processes.h"
#include "ground/os/socket.h"
#include "soak/soak.h"

namespace firebreak::soak {
namespace {

constexpr std::uint64_t visitor_steps = 30;

}  // namespace

void Soak::break_links(const Disturbance& disturbance, const Tenant& tenant) {
  if (disturbance.breaks_active) break_links_of(tenant.view->active);
  if (disturbance.breaks_standby) break_links_of(tenant.view->standby);
}

/// Breaks them at the agent's end, which knows who has the other.
void Soak::break_links_of(pid_t pid) {
  const pid_t agent = agent_->agent();
  if (pid == 0 || agent == 0) return;
  const auto pidfd = platform_.kernel->pidfd_open(agent);
  const std::string folder = os::proc_folder(agent) + "/fd";
  const auto names = platform_.kernel->list_directory(folder);
  if (!pidfd || !names) return;
  for (const std::string& name : *names) {
    const auto target = platform_.kernel->read_link(folder + "/" + name);
    if (!target || !target->starts_with("socket:")) continue;
    auto duplicate = platform_.kernel->pidfd_getfd(*pidfd, std::stoi(name), *target);
    if (!duplicate) continue;
    os::Socket socket(std::move(*duplicate));
    const auto peer = socket.peer_credentials();
    if (!peer || peer->pid != pid) continue;
    socket.hang_up();
    ++record_.broken_links;
  }
}

/// The first processes that are started from now on, whichever they are.
void Soak::starve(const Disturbance& disturbance, Tenant& tenant) {
  const std::string counted = fmt::format("{}/starts-{}", settings_.directory, record_.faults);
  tenant.tight_start = fmt::format(R"(echo >>{0}; test $(wc -l <{0}) -gt {1} || ulimit -n {2}; exec "$@")",
                                   counted, disturbance.tight_starts, disturbance.tight_descriptors);
}

Status Soak::crowd(const Disturbance& disturbance) {
  for (std::uint32_t i = 0; i < disturbance.crowd; ++i) {
    Visitor visitor;
    visitor.name = fmt::format("visitor-{}", visitors_seen_++);
    visitor.workload = "scribble";
    visitor.output_path = fmt::format("{}/{}", settings_.directory, visitor.name);
    auto pair = stage_->enter(
        {visitor.name, "visitor",
         pair_command(visitor.name, visitor.workload, visitor.output_path, "", visitor_steps), environment()},
        [ledger = visitor.ledger.get()](const std::string& line) {
          if (const auto mark = stage::parse_step_mark(line)) ledger->hear(*mark);
        });
    if (!pair) return propagate(pair);
    visitor.pair = *pair;
    visitors_.push_back(std::move(visitor));
  }
  return {};
}

/// A disturbance of others may hit the visitors as well: they are lost then, which is told too.
void Soak::take_note_of_visitors() {
  for (const Visitor& visitor : visitors_) {
    if (!visitor.pair->ended()) continue;
    const stage::ActorRecord& end = visitor.pair->record();
    const auto output = platform_.kernel->read_file(visitor.output_path);
    if (!visitor.ledger->repeated().empty()) violate(visitor.name + ": committed steps were lost");
    if (output && *output != "no stray write\n") violate(visitor.name + ": " + *output);
    if (output) continue;
    if (end.exit->clean()) violate(visitor.name + " ended well and has no output");
    ++record_.refused;
    if (end.last_words.empty()) violate(visitor.name + " was refused without a word");
  }
  std::erase_if(visitors_, [](const Visitor& visitor) { return visitor.pair->ended(); });
}

/// Gives some tenants children by fork, and some more memory than fits into a socket's queue.
std::vector<std::string> Soak::edge_arguments(std::size_t number) const {
  if (!settings_.edges) return {};
  std::vector<std::string> arguments = {"--fork-children", std::to_string(number % 3)};
  if (number % 4 == 0) arguments.insert(arguments.end(), {"--more-memory", "300"});
  return arguments;
}

void Soak::hear(const abi::Event& event) {
  record_.takeovers.hear(event);
  if (const auto wrong = epochs_.hear(event)) violate(*wrong);
}

}  // namespace firebreak::soak
