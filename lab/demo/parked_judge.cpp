// SPDX-License-Identifier: Apache-2.0
#include "demo/parked_judge.h"

#include <signal.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "ground/base/clock.h"

namespace firebreak::demo {
namespace {

constexpr std::string_view error_prefix = "CUDA_ERROR_";

std::string end_of(const std::optional<os::ExitStatus>& exit) {
  if (!exit) return "did not end";
  if (exit->signal != 0) return fmt::format("ended by signal {}", exit->signal);
  return fmt::format("ended with status {}", exit->exit_code);
}

bool has_own_error(const ParkedFault& fault) {
  return fault.report && fault.report->error_name.starts_with(error_prefix) && fault.exit &&
         !fault.exit->clean();
}

/// The agent ends the culprit where somebody has moved away: its call could say that all was well
/// (docs/how/parking.md).
bool is_ended(const ParkedFault& fault) {
  const bool has_answer = fault.report && fault.report->answered_at_ns != 0;
  constexpr int killed = 128 + SIGKILL;  // status that `firebreak run` passes on
  return !has_answer && fault.exit && (fault.exit->signal == SIGKILL || fault.exit->exit_code == killed);
}

/// Its call had not returned when the others were told to end.
bool stood_still(const ParkedFault& fault) {
  return fault.told_to_end_at_ns != 0 &&
         (!fault.report || is_ended(fault) || fault.report->answered_at_ns > fault.told_to_end_at_ns);
}

std::string where(const std::string& domain) { return domain.empty() ? "nowhere" : "in domain " + domain; }

Check named(const ParkedFault& fault) {
  return {is_rogue_alone_named(fault), fmt::format("{}: the rogue is named, and nobody else", fault.fault),
          fault.culprits.empty()
              ? "nobody was named"
              : fmt::format("named: {}; the rogue is {}", fmt::join(fault.culprits, ", "), fault.rogue)};
}

void judge_neighbour(const ParkedFault& fault, const Neighbour& neighbour, std::vector<Check>& checks) {
  checks.push_back({!fault.domain.empty() && neighbour.domain == fault.domain,
                    fmt::format("{}: {} is in the rogue's domain", fault.fault, neighbour.name),
                    "it was " + where(neighbour.domain)});
  checks.push_back({is_unharmed(neighbour),
                    fmt::format("{}: {} finishes with every word right", fault.fault, neighbour.name),
                    fate_of(neighbour)});
}

void judge_newcomer(const ParkedFault& fault, std::vector<Check>& checks) {
  const Neighbour& newcomer = fault.newcomer;
  checks.push_back({!newcomer.domain.empty() && newcomer.domain != fault.domain,
                    fmt::format("{}: who comes meanwhile is put into another domain", fault.fault),
                    "it was " + where(newcomer.domain)});
  checks.push_back({is_unharmed(newcomer),
                    fmt::format("{}: who comes meanwhile finishes with every word right", fault.fault),
                    fate_of(newcomer)});
}

void judge_mover(const ParkedFault& fault, std::vector<Check>& checks) {
  const Mover& mover = fault.mover;
  judge_neighbour(fault, mover.program, checks);
  checks.push_back(
      {!mover.moved_to.empty() && mover.moved_to != fault.domain,
       fmt::format("{}: {} goes on in another domain, in the same process", fault.fault, mover.program.name),
       mover.moved_to.empty() ? "it did not move" : "it moved to domain " + mover.moved_to});
  checks.push_back(
      {mover.outlived_domain,
       fmt::format("{}: {} outlives the domain that it has left", fault.fault, mover.program.name),
       "it had ended by then"});
  checks.push_back({mover.is_protected_again,
                    fmt::format("{}: {} has a new spare afterwards", fault.fault, mover.program.name),
                    "it had none"});
}

void judge_fault(const ParkedFault& fault, std::vector<Check>& checks) {
  checks.push_back(named(fault));
  checks.push_back({fault.neighbours.size() >= 2,
                    fmt::format("{}: the rogue has two neighbours", fault.fault),
                    fmt::format("it had {}", fault.neighbours.size())});
  for (const Neighbour& neighbour : fault.neighbours) judge_neighbour(fault, neighbour, checks);
  judge_newcomer(fault, checks);
  judge_mover(fault, checks);
  checks.push_back({stood_still(fault),
                    fmt::format("{}: the rogue's call does not return while the others work", fault.fault),
                    "it did"});
  checks.push_back({has_own_error(fault) || is_ended(fault),
                    fmt::format("{}: the rogue gets no result", fault.fault), fate_of_rogue(fault)});
}

}  // namespace

bool is_unharmed(const Neighbour& neighbour) {
  return neighbour.exit && neighbour.exit->clean() && neighbour.has_counted && neighbour.launches > 0 &&
         neighbour.wrong_words == 0 && neighbour.error.empty();
}

std::string fate_of(const Neighbour& neighbour) {
  if (is_unharmed(neighbour)) return fmt::format("finished, {} launches right", neighbour.launches);
  if (!neighbour.has_counted) return end_of(neighbour.exit);
  return fmt::format("{}, {} wrong words, {}", end_of(neighbour.exit), neighbour.wrong_words,
                     neighbour.error.empty() ? "no error" : neighbour.error);
}

bool is_as_claimed(const Mover& mover) {
  return is_unharmed(mover.program) && !mover.moved_to.empty() && mover.moved_to != mover.program.domain &&
         mover.outlived_domain && mover.is_protected_again;
}

std::string fate_of(const Mover& mover) {
  if (mover.moved_to.empty()) return fate_of(mover.program) + ", did not move";
  return fmt::format("moved to domain {} in the same process, {}{}", mover.moved_to, fate_of(mover.program),
                     mover.is_protected_again ? "" : ", without a new spare");
}

bool is_rogue_alone_named(const ParkedFault& fault) {
  return fault.rogue != 0 && fault.culprits == std::vector<pid_t>{fault.rogue};
}

std::string fate_of_rogue(const ParkedFault& fault) {
  std::string text = is_rogue_alone_named(fault) ? "named" : "NOT NAMED";
  if (fault.named_at_ns != 0 && fault.report)
    text +=
        fmt::format(" after {:.2f} ms", to_ms(Nanoseconds(fault.named_at_ns - fault.report->launched_at_ns)));
  if (is_ended(fault)) return text + ", then ended before its call returned";
  if (!has_own_error(fault)) return text + ", then " + end_of(fault.exit);
  return text + ", then " + fault.report->error_name.substr(error_prefix.size());
}

void judge_parked(const Play& play, const ActRecord& act, std::vector<Check>& checks) {
  for (const std::string& kind : play.parked_faults) {
    const auto fault = std::ranges::find(act.parked, kind, &ParkedFault::fault);
    if (fault != act.parked.end()) {
      judge_fault(*fault, checks);
    } else {
      checks.push_back({false, fmt::format("{}: it is played", kind), "it was not"});
    }
  }
}

}  // namespace firebreak::demo
