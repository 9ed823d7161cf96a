// SPDX-License-Identifier: Apache-2.0
#include "characterize/result_json.h"

#include <nlohmann/json.hpp>

#include "characterize/summary_json.h"
#include "inject/catalogue.h"

namespace firebreak::characterize {
namespace {

using json = nlohmann::ordered_json;

constexpr int format = 1;

template <class T>
json optional_json(const std::optional<T>& value) {
  return value ? json(*value) : json();
}

template <class T>
void read(const json& from, const char* key, T& into) {
  from.at(key).get_to(into);
}

template <class T>
void read(const json& from, const char* key, std::optional<T>& into) {
  const json& value = from.at(key);
  if (!value.is_null()) into = value.get<T>();
}

platform::Machine machine_from(const json& from) {
  platform::Machine machine;
  read(from, "gpu", machine.gpu);
  read(from, "driver", machine.driver);
  read(from, "linux", machine.linux_release);
  read(from, "commit", machine.commit);
  read(from, "date", machine.date);
  return machine;
}

Expected expected_from(const json& from) {
  Expected expected;
  read(from, "kind", expected.kind);
  read(from, "summary", expected.summary);
  read(from, "class", expected.fault_class);
  read(from, "faulter", expected.faulter);
  read(from, "co_client", expected.co_client);
  expected.sometimes = from.value("sometimes", "");  // the first results had none
  read(from, "outsider", expected.outsider);
  read(from, "xids", expected.xids);
  read(from, "first_seen_by", expected.first_seen_by);
  read(from, "measured", expected.measured);
  return expected;
}

json participant_json(const Participant& participant) {
  json out{{"pid", participant.pid},
           {"start_ms", participant.start_ms},
           {"error", participant.error},
           {"error_ms", optional_json(participant.error_ms)},
           {"answered_ms", optional_json(participant.answered_ms)},
           {"end", participant.end},
           {"end_ms", optional_json(participant.end_ms)},
           {"kernels", participant.kernels},
           {"longest_stall", nullptr}};
  if (const auto& stall = participant.longest_stall)
    out["longest_stall"] = {{"from_ms", stall->from_ms}, {"to_ms", stall->to_ms}};
  return out;
}

Participant participant_from(const json& from) {
  Participant participant;
  read(from, "pid", participant.pid);
  read(from, "start_ms", participant.start_ms);
  read(from, "error", participant.error);
  read(from, "error_ms", participant.error_ms);
  read(from, "answered_ms", participant.answered_ms);
  read(from, "end", participant.end);
  read(from, "end_ms", participant.end_ms);
  read(from, "kernels", participant.kernels);
  if (const json& stall = from.at("longest_stall"); !stall.is_null())
    participant.longest_stall = Stall{stall.at("from_ms").get<double>(), stall.at("to_ms").get<double>()};
  return participant;
}

json signal_json(const Signal& signal) {
  return {{"source", signal.source},
          {"kind", signal.kind},
          {"after_ms", signal.after_ms},
          {"xid", optional_json(signal.xid)},
          {"names", signal.names}};
}

Signal signal_from(const json& from) {
  Signal signal;
  read(from, "source", signal.source);
  read(from, "kind", signal.kind);
  read(from, "after_ms", signal.after_ms);
  read(from, "xid", signal.xid);
  read(from, "names", signal.names);
  return signal;
}

json attribution_json(const Attribution& attribution) {
  return {{"verdict", key_of(attribution.verdict)},
          {"names", attribution.names},
          {"confidence", attribution.confidence},
          {"evidence", attribution.evidence},
          {"incidents", attribution.incidents}};
}

Attribution attribution_from(const json& from) {
  Attribution attribution;
  const auto verdict = from.at("verdict").get<std::string>();
  for (const Verdict one : {Verdict::Nothing, Verdict::Unknown, Verdict::Right, Verdict::Wrong}) {
    if (verdict == key_of(one)) attribution.verdict = one;
  }
  read(from, "names", attribution.names);
  read(from, "confidence", attribution.confidence);
  read(from, "evidence", attribution.evidence);
  read(from, "incidents", attribution.incidents);
  return attribution;
}

json hold_json(const HoldOutcome& hold) {
  return {{"end_after_share", hold.end_after_share}, {"held_ms", hold.held_ms}, {"end", hold.end}};
}

HoldOutcome hold_from(const json& from) {
  HoldOutcome hold;
  read(from, "end_after_share", hold.end_after_share);
  read(from, "held_ms", hold.held_ms);
  read(from, "end", hold.end);
  return hold;
}

json restart_json(const Restart& restart) {
  return {{"served_ms", optional_json(restart.served_ms)},
          {"asked_ms", optional_json(restart.asked_ms)},
          {"tries", restart.tries},
          {"last_error", restart.last_error}};
}

Restart restart_from(const json& from) {
  Restart restart;
  read(from, "served_ms", restart.served_ms);
  read(from, "asked_ms", restart.asked_ms);
  read(from, "tries", restart.tries);
  read(from, "last_error", restart.last_error);
  return restart;
}

Run run_from(const json& from) {
  Run run;
  read(from, "kind", run.kind);
  read(from, "repeat", run.repeat);
  read(from, "date", run.date);
  read(from, "refused", run.refused);
  read(from, "problem", run.problem);
  read(from, "took_ms", run.took_ms);
  for (const auto& [role, participant] : from.at("participants").items())
    run.participants[role] = participant_from(participant);
  for (const json& signal : from.at("signals")) run.signals.push_back(signal_from(signal));
  run.attribution = attribution_from(from.at("attribution"));
  run.restart = restart_from(from.at("restart"));
  if (const auto hold = from.find("hold"); hold != from.end()) run.hold = hold_from(*hold);
  read(from, "memory_left_bytes", run.memory_left_bytes);
  read(from, "notes", run.notes);
  read(from, "mismatches", run.mismatches);
  return run;
}

/// Older files have older names.
void use_current_names(Results& results) {
  for (Expected& expected : results.expected) {
    const std::string name = inject::current_name(expected.kind, expected.is_contained());
    for (Run& run : results.runs) {
      if (run.kind == expected.kind) run.kind = name;
    }
    expected.kind = name;
  }
}

Results results_from(const json& from) {
  Results results;
  results.machine = machine_from(from.at("machine"));
  read(from, "command", results.command);
  read(from, "seed", results.seed);
  read(from, "repeat", results.repeat);
  read(from, "softgpu_speed", results.softgpu_speed);
  read(from, "finished", results.finished);
  for (const json& expected : from.at("expected")) results.expected.push_back(expected_from(expected));
  for (const json& run : from.at("runs")) results.runs.push_back(run_from(run));
  use_current_names(results);
  return results;
}

}  // namespace

json machine_json(const platform::Machine& machine) {
  return {{"gpu", machine.gpu},
          {"driver", machine.driver},
          {"linux", machine.linux_release},
          {"commit", machine.commit},
          {"date", machine.date}};
}

json expected_json(const Expected& expected) {
  return {{"kind", expected.kind},
          {"summary", expected.summary},
          {"class", expected.fault_class},
          {"faulter", expected.faulter},
          {"co_client", expected.co_client},
          {"outsider", expected.outsider},
          {"sometimes", expected.sometimes},
          {"xids", expected.xids},
          {"first_seen_by", expected.first_seen_by},
          {"measured", expected.measured}};
}

json run_json(const Run& run) {
  json out{{"kind", run.kind},
           {"repeat", run.repeat},
           {"date", run.date},
           {"refused", run.refused},
           {"problem", run.problem},
           {"took_ms", run.took_ms},
           {"participants", json::object()},
           {"signals", json::array()}};
  for (const auto& [role, participant] : run.participants)
    out["participants"][role] = participant_json(participant);
  for (const Signal& signal : run.signals) out["signals"].push_back(signal_json(signal));
  out["attribution"] = attribution_json(run.attribution);
  out["restart"] = restart_json(run.restart);
  if (run.hold) out["hold"] = hold_json(*run.hold);
  out["memory_left_bytes"] = optional_json(run.memory_left_bytes);
  out["notes"] = run.notes;
  out["mismatches"] = run.mismatches;
  return out;
}

std::string to_json(const Results& results) {
  json out{{"what", "firebreak characterize"},
           {"format", format},
           {"machine", machine_json(results.machine)},
           {"command", results.command},
           {"seed", results.seed},
           {"repeat", results.repeat},
           {"softgpu_speed", results.softgpu_speed},
           {"finished", results.finished},
           {"summary", summary_json(summarize(results))},
           {"expected", json::array()},
           {"runs", json::array()}};
  for (const Expected& expected : results.expected) out["expected"].push_back(expected_json(expected));
  for (const Run& run : results.runs) out["runs"].push_back(run_json(run));
  // Lines for people and for diffs, a run on one of them: ten repeats of the catalogue fill megabytes
  // otherwise.
  std::string text = "{\n";
  for (const auto& [key, value] : out.items()) {
    if (text.size() > 2) text += ",\n";
    text += json(key).dump() + ": ";
    if (!value.is_array()) {
      text += value.dump();
      continue;
    }
    text += "[";
    for (std::size_t i = 0; i < value.size(); ++i) text += (i == 0 ? "\n" : ",\n") + value[i].dump();
    text += "\n]";
  }
  return text + "\n}\n";
}

Result<Results> parse_results(const std::string& text) {
  try {
    const json parsed = json::parse(text);
    if (parsed.at("what") != "firebreak characterize" || parsed.at("format") != format)
      return fail(ErrorCode::Protocol,
                  "this is no result of `firebreak-lab characterize`, or one of another version");
    return results_from(parsed);
  } catch (const json::exception& wrong) {
    return fail(ErrorCode::Protocol,
                std::string("this is no result of `firebreak-lab characterize`: ") + wrong.what());
  }
}

}  // namespace firebreak::characterize
