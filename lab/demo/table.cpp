// SPDX-License-Identifier: Apache-2.0
#include "demo/table.h"

#include <fmt/format.h>

#include <algorithm>

#include "demo/parked_judge.h"
#include "demo/timeline.h"
#include "ground/base/clock.h"

namespace firebreak::demo {
namespace {

constexpr std::size_t label_columns = 18;
constexpr std::size_t cell_columns = 26;

std::string fit(std::string text, std::size_t columns) {
  if (text.size() > columns) text = text.substr(0, columns - 1) + "~";
  return fmt::format("{:<{}}", text, columns);
}

std::string fate(const ActRecord& act, const std::string& tenant, const std::string& role) {
  const auto found = std::ranges::find_if(act.processes, [&](const ProcessRecord& process) {
    return process.tenant == tenant && process.role == role;
  });
  if (found == act.processes.end()) return "-";
  if (!found->exit) return "did not end";
  if (found->exit->clean())
    return role == "standby" && !found->steps.empty() ? "took over, finished" : "finished";
  if (found->exit->signal != 0) return fmt::format("killed (signal {})", found->exit->signal);
  // `firebreak run` passes a signal on as shells do.
  if (found->exit->exit_code > 128) return fmt::format("killed (signal {})", found->exit->exit_code - 128);
  const std::size_t error = found->last_words.find("CUDA_ERROR_");
  if (error == std::string::npos) return fmt::format("died (status {})", found->exit->exit_code);
  const std::size_t end = found->last_words.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ_", error);
  return "died: " + found->last_words.substr(error + 11, end - error - 11);
}

std::string output_of(const ActRecord& act, const std::string& tenant) {
  const auto found = std::ranges::find(act.outcomes, tenant, &TenantOutcome::tenant);
  if (found == act.outcomes.end() || !found->output_hash) return "none";
  const char* comparison = act.act == Act::Reference  ? ""
                           : found->same_as_reference ? " = act 1"
                                                      : " DIFFERS";
  return fmt::format("{:016x}{}", *found->output_hash, comparison);
}

template <class Cell>
std::string row(const Play& play, const std::string& label, Cell cell) {
  std::string line = fit(label, label_columns);
  for (const ActRecord& act : play.acts) {
    if (act.act != Act::Parked) line += "  " + fit(cell(act), cell_columns);
  }
  while (line.ends_with(' ')) line.pop_back();
  return line + "\n";
}

/// The fourth act has other tenants than the three before it, so it is a table of its own.
std::string parked_table(const ActRecord& act) {
  std::string text = fmt::format("act {}: {}: unmodified programs beside the rogue\n",
                                 static_cast<int>(act.act), title(act.act));
  for (const ParkedFault& fault : act.parked) {
    text += fmt::format("{}  rogue: {}\n", fit(fault.fault, label_columns), fate_of_rogue(fault));
    for (const Neighbour& neighbour : fault.neighbours)
      text += fmt::format("{}  {}: {}\n", fit("", label_columns), neighbour.name, fate_of(neighbour));
    text +=
        fmt::format("{}  {}: {}\n", fit("", label_columns), fault.mover.program.name, fate_of(fault.mover));
    text += fmt::format("{}  {}: {}, in domain {} and not {}\n", fit("", label_columns), fault.newcomer.name,
                        fate_of(fault.newcomer), fault.newcomer.domain, fault.domain);
  }
  return text;
}

}  // namespace

std::string render_table(const Play& play) {
  std::string text = row(play, fmt::format("{} GPU", play.gpu), [](const ActRecord& act) {
    return fmt::format("act {}: {}", static_cast<int>(act.act), title(act.act));
  });
  text += row(play, "rogue",
              [&](const ActRecord& act) { return act.rogue ? play.fault : std::string("no fault"); });
  for (const TenantOutcome& outcome :
       play.acts.empty() ? std::vector<TenantOutcome>{} : play.acts.front().outcomes) {
    for (const char* role : {"active", "standby"}) {
      text += row(play, outcome.tenant + " " + role,
                  [&](const ActRecord& act) { return fate(act, outcome.tenant, role); });
    }
    text += row(play, outcome.tenant + " output",
                [&](const ActRecord& act) { return output_of(act, outcome.tenant); });
  }
  for (const Recovery& recovery : play.recoveries) {
    text += fmt::format(
        "{}: fault seen after {:.2f} ms ({}), standby promoted after {:.2f} ms, its first kernel done after "
        "{:.2f} ms, "
        "{} committed steps lost\n",
        recovery.tenant, recovery.detected_ms, recovery.detected_by, recovery.promoted_ms,
        recovery.resumed_ms, recovery.steps_lost);
  }
  for (const ActRecord& act : play.acts) {
    if (act.act == Act::Parked) text += parked_table(act);
  }
  return text;
}

std::string render_timeline(const Play& play) {
  if (play.acts.size() < 3 || !play.acts[2].rogue) return {};
  constexpr std::size_t columns = 78;
  const Timeline timeline = timeline_of(play.acts[2]);
  const double span_ms = std::max(timeline.end_ms - timeline.begin_ms, 1e-3);
  auto column = [&](double at_ms) {
    const double place = (at_ms - timeline.begin_ms) / span_ms * static_cast<double>(columns - 1);
    return static_cast<std::size_t>(std::clamp(place, 0.0, static_cast<double>(columns - 1)));
  };
  std::string text = fmt::format(
      "act 3, {:.0f} ms before the fault to {:.0f} ms after it:  - alive   o step done   ! fault   P "
      "promoted   "
      "K first kernel   X dead\n",
      -timeline.begin_ms, timeline.end_ms);
  for (const Lane& lane : timeline.lanes) {
    std::string line(columns, ' ');
    for (std::size_t i = column(lane.begin_ms); i <= column(lane.end_ms); ++i) line[i] = '-';
    for (double step_ms : lane.steps_ms) line[column(step_ms)] = 'o';
    for (const Mark& mark : lane.marks) line[column(mark.at_ms)] = mark.letter;
    while (line.ends_with(' ')) line.pop_back();
    text += fit(lane.name, label_columns) + "  " + line + "\n";
  }
  return text;
}

std::string render_verdict(const std::vector<Check>& checks) {
  std::string text;
  for (const Check& check : checks) {
    if (!check.observed) text += fmt::format("NOT OBSERVED: {} - {}\n", check.claim, check.instead);
  }
  const auto observed = std::ranges::count_if(checks, &Check::observed);
  return text + fmt::format("{} of {} claims observed\n", observed, checks.size());
}

}  // namespace firebreak::demo
