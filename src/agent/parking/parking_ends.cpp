// SPDX-License-Identifier: Apache-2.0
/// How those end whose own kernel raised the exception of a parked domain.
#include <signal.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "agent/parking/parking.h"

namespace firebreak::agent {
namespace {

constexpr Milliseconds culprit_grace{2'000};
/// A culprit that stands still writes the rest of its dump within that.
constexpr Milliseconds dump_limit{1'000};

}  // namespace

/// Kills a process that we follow, while it lives.
void Parking::end_now(pid_t pid) {
  const Process* process = at_.processes.living(pid);
  if (process != nullptr) (void)at_.kernel.send_signal(*process->pidfd(), SIGKILL);
  let_go(pid);
}

/// The process is ended, and its parent is to hear of that.
void Parking::let_go(pid_t pid) {
  for (auto& [who, dumper] : dumpers_) {
    if (who.first == pid) dumper.standstill.reset();
  }
}

/// Somebody else is the domain's client still, whether or not it works elsewhere by now: another culprit,
/// too.
bool Parking::has_others(const InDomain& culprit) const {
  return std::ranges::any_of(dumpers_, [&](const auto& each) {
    const auto& [who, dumper] = each;
    return who.first != culprit.first && who.second == culprit.second && is_client(who, dumper);
  });
}

/// The last ones to complete their dumps.
void Parking::let_culprits_end(const std::string& domain) {
  for (auto& [who, dumper] : dumpers_) {
    if (who.second != domain || !dumper.is_held()) continue;
    const bool is_innocent =
        std::exchange(dumper.dump, Dump::LetOut) == Dump::HeldUnjudged && has_culprit(domain);
    is_innocent ? let_out(who, dumper) : let_culprit_end(who, dumper);
  }
}

/// To stop a process takes the loop's time, and a dump can be made up by anybody: so it is done for one in a
/// turn where there are many.
void Parking::await_turn(const InDomain& who, Dumper& dumper, Turn turn) {
  dumper.turn = turn;
  turns_.put(user_of(who.first), who.first);
}

void Parking::take_turn(pid_t pid) {
  for (auto& [who, dumper] : dumpers_) {
    if (who.first != pid) continue;
    const Turn turn = std::exchange(dumper.turn, Turn::None);
    if (turn == Turn::Stop) (void)stop_but_for_its_dump(who, dumper);
    if (turn != Turn::End) continue;
    let_dump_and_end(who, dumper);
    begin_to_read(who, dumper);
  }
}

/// Its next call would say CUDA_SUCCESS of a kernel that was torn: each time where somebody else is a client
/// still, and in 5 of 7 plays where others with large kernels had left before. After a trap its calls fail by
/// themselves. Where it has been alone it has its own error (H100, docs/how/parking.md).
bool Parking::is_to_be_ended(const InDomain& who, const Dumper& dumper) const {
  return places_.at(who.second).had_others && !dumper.fails_by_itself;
}

void Parking::let_culprit_end(const InDomain& who, Dumper& dumper) {
  is_to_be_ended(who, dumper) || has_others(who) ? await_turn(who, dumper, Turn::End) : let_out(who, dumper);
}

/// Stops a process, which ends at the latest with this agent then, whoever reads its dump.
Status Parking::stop_but_for_its_dump(const InDomain& who, Dumper& dumper) {
  if (dumper.standstill != nullptr) return {};
  auto stopped = at_.kernel.stop_all_but_writers(who.first, dumper.pipe->descriptor());
  if (!stopped) return propagate(stopped);
  dumper.standstill = std::move(*stopped);
  spdlog::info("{} stands still but for its core dump", name_of(who.first));
  return {};
}

/// Lets it write the rest of its dump; it does nothing else before it is ended.
void Parking::let_dump_and_end(const InDomain& who, Dumper& dumper) {
  dumper.is_to_end = true;
  if (const Status stopped = stop_but_for_its_dump(who, dumper); !stopped) {
    spdlog::warn("{} is ended in its core dump: {}", name_of(who.first), to_string(stopped.error()));
    end_now(who.first);
  }
  dumper.pipe->let_end();
  dumper.end_of_dump.start(limits(), dump_limit,
                           {[pid = who.first] { return std::vector<pid_t>{pid}; },
                            [this, who] {
                              const auto its = dumpers_.find(who);
                              return its == dumpers_.end() || !its->second.pipe
                                         ? std::uint64_t{0}
                                         : std::uint64_t{its->second.pipe->came_bytes()};
                            }},
                           [this, pid = who.first] { end_now(pid); });
}

/// Ends culprits, which get their own error, and time to end of it. One hung in the driver after its domain
/// had fallen, and MPS's daemon answered nobody until it was killed (H100).
void Parking::end_culprits(Place& place) {
  std::vector<std::pair<pid_t, std::shared_ptr<const os::Fd>>> culprits;
  for (const pid_t pid : place.state.culprits) {
    const Process* process = at_.processes.living(pid);
    if (process != nullptr) culprits.emplace_back(pid, process->pidfd());
  }
  if (culprits.empty()) return;
  std::vector<pid_t> pids;
  for (const auto& [pid, pidfd] : culprits) pids.push_back(pid);
  place.ending.start(limits(), culprit_grace, {[pids] { return pids; }, {}}, [this, culprits] {
    for (const auto& [pid, pidfd] : culprits) {
      (void)at_.kernel.send_signal(*pidfd, SIGKILL);
      let_go(pid);
    }
  });
}

}  // namespace firebreak::agent
