// SPDX-License-Identifier: Apache-2.0
#include "commands/cluster/calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "ground/base/text.h"
#include "ground/base/utc.h"

namespace firebreak::cluster {
namespace {

using Json = nlohmann::json;

constexpr std::size_t longest_line_bytes = 300;
constexpr std::size_t longest_message_bytes = 900;
constexpr const char* json_type = "application/json";
constexpr const char* merge_type = "application/strategic-merge-patch+json";
/// Asks for a list's names alone; servers refuse it for anything else. One that cannot do that sends the
/// whole.
constexpr const char* names_alone =
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1, application/json";
constexpr const char* annotation = "firebreak.dev/last-fault";
constexpr const char* component = "firebreak-k8s";

/// A tenant's words may hold any bytes.
std::string text_of(const Json& document) {
  return document.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string in_one_line(std::string text) {
  if (text.size() > longest_line_bytes) text.resize(longest_line_bytes);
  std::ranges::replace_if(
      text, [](unsigned char byte) { return byte < ' ' || byte == 0x7f; }, ' ');
  return text;
}

std::string node_path(const std::string& node) { return "/api/v1/nodes/" + node; }

struct OutcomeWords {
  const char* reason;
  const char* words;
};

OutcomeWords words_of(const std::string& outcome) {
  static const std::map<std::string, OutcomeWords> all = {
      {"contained", {"GpuFaultContained", "it harmed nobody else"}},
      {"parked", {"GpuFaultParked", "its domain was held, and the others left it"}},
      {"failed_over", {"GpuFaultFailedOver", "a standby went on"}},
      {"lost", {"GpuFaultLost", "somebody else ended, too"}},
  };
  const auto found = all.find(outcome);
  return found == all.end() ? OutcomeWords{"GpuFault", "nobody knows what came of it"} : found->second;
}

std::string place_of(const link::FaultView& fault) {
  const std::string where = fault.domain.empty() ? "" : " in domain " + fault.domain;
  return fmt::format("{} ({}){}", fault.what.empty() ? "a fault" : fault.what, fault.fault_class, where);
}

/// "1mjnajx: ", as `firebreak faults` has it.
std::string id_of(const link::FaultView& fault) { return fault.id.empty() ? "" : fault.id + ": "; }

/// As the agent has it: whoever reckons by a clock of his own may be a second beside it.
std::string time_of(const link::FaultView& fault, Instant now) {
  return fault.at.empty() ? in_utc(now.wall_of(fault.at_ns)) : fault.at;
}

std::string culprit_of(const link::FaultView& fault, const Pod* pod) {
  if (fault.culprit.empty()) return "by nobody who is known";
  const std::string name = fault.culprit.starts_with("process ") ? fault.culprit : "tenant " + fault.culprit;
  if (pod != nullptr) return fmt::format("caused by pod {}/{} ({})", pod->space, pod->name, name);
  const std::string uid = pod_uid_in(fault.control_group);
  return uid.empty() ? "caused by " + name : fmt::format("caused by the pod of uid {} ({})", uid, name);
}

std::string shortened(std::string message) {
  if (message.size() > longest_message_bytes) message.resize(longest_message_bytes);
  return message;
}

/// Makes an event of core/v1, which each server has. `space` is the namespace of what it is about; a node's
/// is the default one.
ApiCall event(const std::string& space, const std::string& of, Json involved, const std::string& node,
              const link::FaultView& fault, const std::string& reason, const std::string& message,
              Instant now) {
  const std::string name = event_name(of, node, fault);
  const std::string time = time_of(fault, now);
  const Json document = {{"apiVersion", "v1"},
                         {"kind", "Event"},
                         {"metadata", {{"name", name}, {"namespace", space}}},
                         {"involvedObject", std::move(involved)},
                         {"reason", reason},
                         {"message", shortened(message)},
                         {"type", "Warning"},
                         {"source", {{"component", component}, {"host", node}}},
                         {"reportingComponent", component},
                         {"reportingInstance", node},
                         {"firstTimestamp", time},
                         {"lastTimestamp", time},
                         {"count", 1}};
  return {"POST", "/api/v1/namespaces/" + space + "/events", text_of(document), json_type};
}

}  // namespace

std::string ApiAnswer::described() const {
  if (status == 0) return in_one_line(body);
  const Json document = Json::parse(body, nullptr, false);
  const bool has_message =
      document.is_object() && document.contains("message") && document["message"].is_string();
  const std::string said = has_message ? document["message"].get<std::string>() : std::string();
  return said.empty() ? fmt::format("HTTP {}", status)
                      : fmt::format("HTTP {}: {}", status, in_one_line(said));
}

std::chrono::system_clock::time_point Instant::wall_of(std::int64_t at_ns) const {
  return wall - std::chrono::duration_cast<std::chrono::system_clock::duration>(monotonic - from_ns(at_ns));
}

Condition condition_of(const link::StatusView& status) {
  std::string message;
  for (const link::DomainView& domain : status.domains) {
    if (link::takes_clients(status, domain)) continue;
    message += fmt::format("{}domain {} is {}", message.empty() ? "" : ", ", domain.name,
                           link::state_of(status, domain));
    if (!domain.gpu_needs.empty()) message += ": " + domain.gpu_needs;
  }
  if (message.empty()) return {"False", "DomainsServe", "each domain takes clients"};
  return {"True", "DomainTakesNoClients", shortened(message)};
}

Condition condition_without_agent() { return {"Unknown", "AgentAway", "firebreakd does not answer"}; }

std::optional<KnownCondition> known_condition_in(const std::string& node) {
  const Json document = Json::parse(node, nullptr, false);
  if (!document.is_object() || document.value("kind", Json()) != "Node") return std::nullopt;
  const Json status = document.value("status", Json());
  const Json conditions = status.is_object() ? status.value("conditions", Json()) : Json();
  for (const Json& each : conditions.is_array() ? conditions : Json::array()) {
    if (!each.is_object() || each.value("type", Json()) != Condition::type) continue;
    const Json its = each.value("status", Json()), changed = each.value("lastTransitionTime", Json());
    if (its.is_string() && changed.is_string()) return KnownCondition{its, changed};
  }
  return KnownCondition();
}

ApiCall get_node(const std::string& node) { return {"GET", node_path(node)}; }

ApiCall set_condition(const std::string& node, const Condition& condition, const std::string& changed,
                      Instant now) {
  const Json entry = {{"type", Condition::type},
                      {"status", condition.status},
                      {"reason", condition.reason},
                      {"message", condition.message},
                      {"lastHeartbeatTime", in_utc(now.wall)},
                      {"lastTransitionTime", changed}};
  const Json document = {{"status", {{"conditions", Json::array({entry})}}}};
  return {"PATCH", node_path(node) + "/status", text_of(document), merge_type};
}

ApiCall list_pods(const std::string& node) {
  ApiCall call{"GET", "/api/v1/pods?fieldSelector=spec.nodeName%3D" + node};
  call.accept = names_alone;
  return call;
}

std::string event_name(const std::string& of, const std::string& node, const link::FaultView& fault) {
  const std::string all =
      fmt::format("{}\n{}\n{}\n{}\n{}", node, fault.at_ns, fault.domain, fault.culprit, fault.fault_class);
  return fmt::format("firebreak-{}.{:016x}", of, fnv1a(all));
}

std::string described(const link::FaultView& fault, const Pod* pod) {
  return fmt::format("{}{}, {}: {}", id_of(fault), place_of(fault), culprit_of(fault, pod),
                     words_of(fault.outcome).words);
}

ApiCall tell_of_node(const std::string& node, const link::FaultView& fault, const Pod* pod, Instant now) {
  // kubectl looks for a node's events by its name as uid, as kubelets write them.
  const Json involved = {{"apiVersion", "v1"}, {"kind", "Node"}, {"name", node}, {"uid", node}};
  return event("default", "node", involved, node, fault, words_of(fault.outcome).reason,
               described(fault, pod), now);
}

ApiCall tell_of_pod(const std::string& node, const link::FaultView& fault, const Pod& pod, Instant now) {
  const Json involved = {
      {"apiVersion", "v1"}, {"kind", "Pod"}, {"namespace", pod.space}, {"name", pod.name}, {"uid", pod.uid}};
  const std::string message =
      fmt::format("{}{}: {}", id_of(fault), place_of(fault), words_of(fault.outcome).words);
  return event(pod.space, "pod", involved, node, fault, "CausedGpuFault", message, now);
}

ApiCall annotate(const link::FaultView& fault, const Pod& pod, Instant now) {
  const std::string value = fmt::format("{} {}{}: {}", time_of(fault, now), id_of(fault), place_of(fault),
                                        words_of(fault.outcome).words);
  const Json document = {{"metadata", {{"uid", pod.uid}, {"annotations", {{annotation, shortened(value)}}}}}};
  return {"PATCH", fmt::format("/api/v1/namespaces/{}/pods/{}/status", pod.space, pod.name),
          text_of(document), merge_type};
}

}  // namespace firebreak::cluster
