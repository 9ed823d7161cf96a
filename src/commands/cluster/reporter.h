// SPDX-License-Identifier: Apache-2.0
/// Decides what the API server is still to be told, and when to ask it next. Pure: somebody else sends.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "commands/cluster/calls.h"
#include "ground/base/clock.h"
#include "shared/link/status_view.h"

namespace firebreak::cluster {

/// Doubles with each failure.
class Pause {
 public:
  static constexpr Nanoseconds first = std::chrono::seconds(1);
  static constexpr Nanoseconds longest = std::chrono::seconds(60);

  bool is_over(Monotonic now) const { return now >= until_; }
  /// `at_least`: by the server's own word; five minutes at most.
  void begin(Monotonic now, Nanoseconds at_least = Nanoseconds(0));
  void reset() { *this = Pause(); }

 private:
  Monotonic until_{};
  Nanoseconds next_ = first;
};

/// Reports faults, for one thread. A server that is told of something twice has it once: what was told before
/// this program was started again, or in an answer that was lost, is told in the same words.
class Reporter {
 public:
  /// A condition is told again, since somebody may have made the node anew.
  static constexpr Nanoseconds condition_lasts = std::chrono::minutes(5);
  /// An API server forgets events after an hour. What is older is not told, so that no program that was
  /// started again tells of all that the agent remembers.
  static constexpr Nanoseconds fault_lasts = std::chrono::minutes(30);
  /// Time for which a pod's name is looked for where pods cannot be listed. Then the fault is told by its
  /// uid.
  static constexpr Nanoseconds name_patience = std::chrono::minutes(2);

  /// `agent_patience`: so long an agent may be away, as in an upgrade, before the condition says so.
  Reporter(std::string node, Nanoseconds agent_patience)
      : node_(std::move(node)), agent_patience_(agent_patience) {}

  void agent_said(const link::StatusView& status, Instant now);
  void agent_is_away(Instant now);

  /// Gives what to ask now; empty: nothing. Then it waits for what came of it.
  std::optional<ApiCall> next(Instant now);
  void answered(const ApiAnswer& answer, Instant now);

  /// Lines for a person, since they were taken last: what was told, and once what stands in the way.
  std::vector<std::string> take_lines() { return std::exchange(lines_, {}); }

 private:
  enum class Step { FindPod, TellOfNode, TellOfPod, Annotate, Done };
  struct Report {
    link::FaultView fault;
    Step step = Step::FindPod;
    std::optional<Pod> pod;
    Pause pause;
  };
  enum class Asked { Nothing, Node, Condition, Fault };

  std::optional<ApiCall> next_of_condition(Instant now);
  std::optional<ApiCall> next_of_faults(Instant now);
  ApiCall call_for(const Report& report, Instant now) const;
  /// Tells whether the answer is a trouble of the whole server: then nobody asks for a while.
  bool is_trouble_of_server(const ApiAnswer& answer, Instant now);
  void on_node(const ApiAnswer& answer, Instant now);
  void on_condition(const ApiAnswer& answer, Instant now);
  void on_fault(Report& report, const ApiAnswer& answer, Instant now);
  void on_pods(Report& report, const ApiAnswer& answer, Instant now);
  /// Gives a pod up that has been looked for long enough.
  static void look_no_longer_for_pod(Report& report, Instant now);
  void on_told(Report& report, const ApiAnswer& answer);
  bool is_annotated_later(const Report& report) const;
  void drop_done(Instant now);
  /// Says the line once, until there is something else to say of it.
  void say(const std::string& of, const std::string& line);

  std::string node_;
  Nanoseconds agent_patience_;
  std::optional<Monotonic> begun_at_;
  std::optional<Monotonic> heard_at_;  ///< the agent; at first when this program began

  std::optional<Condition> wanted_;  ///< empty: the agent has not been heard
  std::optional<Condition> told_;
  Condition being_told_;
  std::string changed_;  ///< its lastTransitionTime
  Monotonic told_at_{};
  std::optional<KnownCondition> known_;
  Pause of_condition_;

  std::set<std::string> known_faults_;  ///< keyed by their events' names
  std::deque<Report> reports_;
  std::map<std::string, std::int64_t> annotated_;  ///< keyed by the pod's uid: when its last fault was

  Pause of_server_;
  Asked asked_ = Asked::Nothing;
  std::size_t asked_report_ = 0;
  std::vector<std::string> lines_;
  std::map<std::string, std::string> said_;
};

}  // namespace firebreak::cluster
