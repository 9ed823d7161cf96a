// SPDX-License-Identifier: Apache-2.0
/// Questions to the API server, word for word, and what its answers say. Pure.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "commands/cluster/pods.h"
#include "ground/base/clock.h"
#include "shared/link/status_view.h"

namespace firebreak::cluster {

struct ApiCall {
  std::string method;  ///< "GET", "POST", "PATCH"
  std::string path;    ///< includes what follows the question mark
  std::string body = {};
  std::string content_type = {};
  std::string accept = "application/json";
};

struct ApiAnswer {
  int status = 0;       ///< HTTP's; 0: none came
  std::string body;     ///< body of the answer, or why none came
  Nanoseconds wait{0};  ///< the server wants to be left alone for so long
  /// One line for a person: what the server, or whoever could not reach it, said.
  std::string described() const;
};

/// The same moment by both clocks.
struct Instant {
  Monotonic monotonic{};
  std::chrono::system_clock::time_point wall{};
  /// Translates a moment of CLOCK_MONOTONIC by the wall clock of now.
  std::chrono::system_clock::time_point wall_of(std::int64_t at_ns) const;
};

struct Condition {
  static constexpr const char* type = "FirebreakDomainFault";
  std::string status;  ///< "True", "False", "Unknown"
  std::string reason = {};
  std::string message = {};
  bool operator==(const Condition&) const = default;
};

/// Reads the condition from the agent's status: True while a domain takes no clients.
Condition condition_of(const link::StatusView& status);
Condition condition_without_agent();

/// A condition as the API server has it.
struct KnownCondition {
  std::string status;   ///< empty: it has none
  std::string changed;  ///< its lastTransitionTime
};
/// Empty: that is no node.
std::optional<KnownCondition> known_condition_in(const std::string& node);

ApiCall get_node(const std::string& node);
/// `changed`: when its status became another one, as the server writes times.
ApiCall set_condition(const std::string& node, const Condition& condition, const std::string& changed,
                      Instant now);
/// The names of pods of that node, without what else there is of them.
ApiCall list_pods(const std::string& node);

/// The same for the same fault, whoever asks how often: what was told already is refused as being there
/// (409). `of`: "node", "pod".
std::string event_name(const std::string& of, const std::string& node, const link::FaultView& fault);
/// `pod`: the culprit's; null: it is of none, or not known.
ApiCall tell_of_node(const std::string& node, const link::FaultView& fault, const Pod* pod, Instant now);
ApiCall tell_of_pod(const std::string& node, const link::FaultView& fault, const Pod& pod, Instant now);
/// Annotates by the subresource `status`: a caller that may write only that may change no image of a pod.
/// Refused (409) where a different pod has the name by now.
ApiCall annotate(const link::FaultView& fault, const Pod& pod, Instant now);

/// "misaligned-load (sm) in domain a, caused by pod x/y (tenant rogue): a standby went on".
std::string described(const link::FaultView& fault, const Pod* pod);

}  // namespace firebreak::cluster
