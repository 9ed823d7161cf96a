// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "demo/parked_judge.h"
#include "demo/report.h"
#include "ground/base/clock.h"

namespace firebreak::demo {
namespace {

using nlohmann::json;

json exit_json(const std::optional<os::ExitStatus>& exit) {
  if (!exit) return nullptr;
  if (exit->signal != 0) return {{"signal", exit->signal}};
  return {{"status", exit->exit_code}};
}

json process_json(const ProcessRecord& process) {
  json steps = json::array();
  for (const StepMark& mark : process.steps) steps.push_back({mark.step, mark.at_ns});
  return {{"tenant", process.tenant},
          {"role", process.role},
          {"pid", process.pid},
          {"started_at_ns", process.started_at_ns},
          {"ended_at_ns", process.ended_at_ns},
          {"exit", exit_json(process.exit)},
          {"last_words", process.last_words},
          {"steps", std::move(steps)}};
}

json event_json(const abi::Event& event) {
  return {{"at_ns", event.at_ns},   {"what", abi::to_string(event.what)},
          {"tenant", event.tenant}, {"domain", event.domain},
          {"pid", event.pid},       {"source", event.source},
          {"epoch", event.epoch},   {"step", event.step},
          {"text", event.text}};
}

json outcome_json(const TenantOutcome& outcome) {
  return {{"tenant", outcome.tenant},
          {"output_hash", outcome.output_hash ? json(fmt::format("{:016x}", *outcome.output_hash)) : json()},
          {"output_bytes", outcome.output_bytes},
          {"same_as_reference", outcome.same_as_reference}};
}

json neighbour_json(const Neighbour& neighbour) {
  return {{"name", neighbour.name},
          {"domain", neighbour.domain},
          {"exit", exit_json(neighbour.exit)},
          {"unharmed", is_unharmed(neighbour)},
          {"launches", neighbour.launches},
          {"wrong_words", neighbour.has_counted ? json(neighbour.wrong_words) : json()},
          {"longest_ms", neighbour.longest_ms},
          {"error", neighbour.error}};
}

json mover_json(const Mover& mover) {
  json out = neighbour_json(mover.program);
  out["moved_to"] = mover.moved_to;
  out["moved_at_ns"] = mover.moved_at_ns != 0 ? json(mover.moved_at_ns) : json();
  out["outlived_domain"] = mover.outlived_domain;
  out["protected_again"] = mover.is_protected_again;
  return out;
}

json report_json(const stage::FaultReport& report) {
  return {{"launched_at_ns", report.launched_at_ns},
          {"answered_at_ns", report.answered_at_ns},
          {"error", report.error_name}};
}

json parked_json(const ParkedFault& fault) {
  json out = {{"fault", fault.fault},
              {"domain", fault.domain},
              {"rogue_pid", fault.rogue},
              {"culprits", fault.culprits},
              {"named_at_ns", fault.named_at_ns != 0 ? json(fault.named_at_ns) : json()},
              {"told_to_end_at_ns", fault.told_to_end_at_ns},
              {"rogue", fault.report ? report_json(*fault.report) : json()},
              {"rogue_exit", exit_json(fault.exit)},
              {"newcomer", neighbour_json(fault.newcomer)},
              {"mover", mover_json(fault.mover)}};
  for (const Neighbour& each : fault.neighbours) out["neighbours"].push_back(neighbour_json(each));
  return out;
}

json act_json(const ActRecord& act) {
  json out = {{"act", static_cast<int>(act.act)},
              {"title", title(act.act)},
              {"duration_ms", to_ms(Nanoseconds(act.ended_at_ns - act.began_at_ns))},
              {"problem", act.problem}};
  for (const TenantOutcome& outcome : act.outcomes) out["outcomes"].push_back(outcome_json(outcome));
  for (const ProcessRecord& process : act.processes) out["processes"].push_back(process_json(process));
  for (const abi::Event& event : act.events) out["events"].push_back(event_json(event));
  if (act.rogue) out["rogue"] = report_json(*act.rogue);
  for (const ParkedFault& fault : act.parked) out["parked"].push_back(parked_json(fault));
  return out;
}

json play_json(const Play& play, const std::vector<Check>& checks) {
  json out = {
      {"fault", play.fault}, {"gpu", play.gpu}, {"date", play.date}, {"all_observed", all_observed(checks)}};
  for (const Check& check : checks) {
    out["claims"].push_back({{"claim", check.claim},
                             {"observed", check.observed},
                             {"instead", check.observed ? "" : check.instead}});
  }
  out["recoveries"] = json::array();
  for (const Recovery& recovery : play.recoveries) {
    out["recoveries"].push_back({{"tenant", recovery.tenant},
                                 {"detected_by", recovery.detected_by},
                                 {"fault_to_detection_ms", recovery.detected_ms},
                                 {"fault_to_promotion_ms", recovery.promoted_ms},
                                 {"fault_to_first_kernel_ms", recovery.resumed_ms},
                                 {"steps_lost", recovery.steps_lost}});
  }
  for (const ActRecord& act : play.acts) out["acts"].push_back(act_json(act));
  return out;
}

std::string text_of(const json& document) {
  return document.dump(1, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace

std::string to_json(const Play& play, const std::vector<Check>& checks) {
  return text_of(play_json(play, checks));
}

std::string to_json(const std::vector<Play>& plays, const platform::Machine& machine,
                    const std::string& command) {
  json out = {{"device", machine.gpu},    {"driver", machine.driver}, {"linux", machine.linux_release},
              {"commit", machine.commit}, {"date", machine.date},     {"command", command}};
  for (const Play& play : plays) {
    json one = play_json(play, judge(play));
    for (json& act : one["acts"]) {
      for (json& process : act["processes"]) process.erase("steps");
    }
    out["plays"].push_back(std::move(one));
  }
  return text_of(out);
}

}  // namespace firebreak::demo
