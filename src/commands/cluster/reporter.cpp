// SPDX-License-Identifier: Apache-2.0
#include "commands/cluster/reporter.h"

#include <fmt/format.h>

#include <algorithm>

#include "ground/base/utc.h"

namespace firebreak::cluster {
namespace {

constexpr Nanoseconds longest_wait = std::chrono::minutes(5);
constexpr int unauthorized = 401, forbidden = 403, not_found = 404, conflict = 409, too_many = 429;
constexpr int unavailable = 503, first_server_error = 500;

bool is_taken(const ApiAnswer& answer) { return answer.status >= 200 && answer.status < 300; }

/// The same words would be refused again.
bool is_refused_for_good(const ApiAnswer& answer) {
  const int status = answer.status;
  return status < first_server_error && status != unauthorized && status != forbidden &&
         status != not_found && status != conflict && status != too_many;
}

}  // namespace

void Pause::begin(Monotonic now, Nanoseconds at_least) {
  until_ = now + std::max(next_, std::min(at_least, longest_wait));
  next_ = std::min(next_ * 2, longest);
}

void Reporter::agent_said(const link::StatusView& status, Instant now) {
  if (!begun_at_) begun_at_ = now.monotonic;
  heard_at_ = now.monotonic;
  wanted_ = condition_of(status);
  std::set<std::string> names;
  for (const link::FaultView& fault : status.faults) {
    const std::string name = event_name("node", node_, fault);
    names.insert(name);
    const bool is_old = now.monotonic - from_ns(fault.at_ns) > fault_lasts;
    if (is_old || known_faults_.contains(name)) continue;
    reports_.push_back(
        {fault, pod_uid_in(fault.control_group).empty() ? Step::TellOfNode : Step::FindPod, {}, {}});
  }
  known_faults_ = std::move(names);
}

void Reporter::agent_is_away(Instant now) {
  if (!heard_at_) heard_at_ = now.monotonic;
  if (now.monotonic - *heard_at_ >= agent_patience_) wanted_ = condition_without_agent();
}

std::optional<ApiCall> Reporter::next(Instant now) {
  if (asked_ != Asked::Nothing || !of_server_.is_over(now.monotonic)) return std::nullopt;
  drop_done(now);
  if (auto call = next_of_condition(now)) return call;
  return next_of_faults(now);
}

std::optional<ApiCall> Reporter::next_of_condition(Instant now) {
  if (!wanted_ || !of_condition_.is_over(now.monotonic)) return std::nullopt;
  if (told_ == wanted_ && now.monotonic - told_at_ < condition_lasts) return std::nullopt;
  if (!known_) {
    asked_ = Asked::Node;
    return get_node(node_);
  }
  asked_ = Asked::Condition;
  being_told_ = *wanted_;
  changed_ = known_->status == wanted_->status ? known_->changed : in_utc(now.wall);
  return set_condition(node_, being_told_, changed_, now);
}

std::optional<ApiCall> Reporter::next_of_faults(Instant now) {
  const auto due = std::ranges::find_if(
      reports_, [now](const Report& report) { return report.pause.is_over(now.monotonic); });
  if (due == reports_.end()) return std::nullopt;
  asked_ = Asked::Fault;
  asked_report_ = static_cast<std::size_t>(due - reports_.begin());
  return call_for(*due, now);
}

ApiCall Reporter::call_for(const Report& report, Instant now) const {
  switch (report.step) {
    case Step::TellOfNode:
      return tell_of_node(node_, report.fault, report.pod ? &*report.pod : nullptr, now);
    case Step::TellOfPod:
      return tell_of_pod(node_, report.fault, *report.pod, now);
    case Step::Annotate:
      return annotate(report.fault, *report.pod, now);
    case Step::FindPod:
    case Step::Done:
      break;
  }
  return list_pods(node_);
}

void Reporter::answered(const ApiAnswer& answer, Instant now) {
  const Asked asked = std::exchange(asked_, Asked::Nothing);
  if (is_trouble_of_server(answer, now)) {
    if (asked == Asked::Fault) look_no_longer_for_pod(reports_.at(asked_report_), now);
    return;
  }
  if (asked == Asked::Node) on_node(answer, now);
  if (asked == Asked::Condition) on_condition(answer, now);
  if (asked == Asked::Fault) on_fault(reports_.at(asked_report_), answer, now);
  drop_done(now);
}

bool Reporter::is_trouble_of_server(const ApiAnswer& answer, Instant now) {
  const int status = answer.status;
  if (status != 0 && status != unauthorized && status != too_many && status != unavailable) {
    of_server_.reset();
    if (said_.contains("server")) say("server", "the API server answers");
    return false;
  }
  of_server_.begin(now.monotonic, answer.wait);
  say("server",
      fmt::format("the API server cannot be told of faults, and is asked again: {}", answer.described()));
  return true;
}

void Reporter::on_node(const ApiAnswer& answer, Instant now) {
  known_ = is_taken(answer) ? known_condition_in(answer.body) : std::nullopt;
  if (known_) return of_condition_.reset();
  of_condition_.begin(now.monotonic, answer.wait);
  const std::string why = is_taken(answer) ? "that is no node" : answer.described();
  say("condition", fmt::format("node {} cannot be read, and is asked for again: {}", node_, why));
}

void Reporter::on_condition(const ApiAnswer& answer, Instant now) {
  if (!is_taken(answer)) {
    known_.reset();  // somebody may have made the node anew
    of_condition_.begin(now.monotonic, answer.wait);
    return say("condition", fmt::format("the condition of node {} cannot be told, and is told again: {}",
                                        node_, answer.described()));
  }
  known_ = {being_told_.status, changed_};
  told_ = being_told_;
  told_at_ = now.monotonic;
  of_condition_.reset();
  say("condition",
      fmt::format("node {} has {}={}: {}", node_, Condition::type, told_->status, told_->message));
}

void Reporter::on_fault(Report& report, const ApiAnswer& answer, Instant now) {
  if (report.step == Step::FindPod) return on_pods(report, answer, now);
  const bool is_there = answer.status == conflict && report.step != Step::Annotate;
  // A pod may have been removed meanwhile, and its namespace with it.
  const bool is_gone = answer.status == not_found && report.step != Step::TellOfNode;
  if (is_taken(answer) || is_there || is_gone) return on_told(report, answer);
  say("fault", fmt::format("a fault cannot be told{}: {}",
                           is_refused_for_good(answer) ? "" : ", and is told again", answer.described()));
  if (is_refused_for_good(answer)) report.step = Step::Done;
  // A different pod has its name, or somebody else has just written to it.
  if (answer.status == conflict) report.step = Step::FindPod;
  report.pause.begin(now.monotonic, answer.wait);
}

void Reporter::on_pods(Report& report, const ApiAnswer& answer, Instant now) {
  report.pod.reset();
  if (!is_taken(answer)) {
    say("pods", fmt::format("the pods of node {} cannot be listed: {}", node_, answer.described()));
    report.pause.begin(now.monotonic, answer.wait);
    return look_no_longer_for_pod(report, now);
  }
  said_.erase("pods");
  report.pause.reset();
  report.step = Step::TellOfNode;
  const std::vector<Pod> pods = pods_in(answer.body);
  if (const Pod* found = find_pod(pods, pod_uid_in(report.fault.control_group))) report.pod = *found;
}

void Reporter::look_no_longer_for_pod(Report& report, Instant now) {
  const bool is_late = now.monotonic - from_ns(report.fault.at_ns) >= name_patience;
  if (is_late && report.step == Step::FindPod) report.step = Step::TellOfNode;
}

void Reporter::on_told(Report& report, const ApiAnswer& answer) {
  report.pause.reset();
  said_.erase("fault");
  if (report.step == Step::TellOfNode) {
    // One from before was told by who was here then.
    if (is_taken(answer) || from_ns(report.fault.at_ns) >= *begun_at_)
      lines_.push_back("told: " + described(report.fault, report.pod ? &*report.pod : nullptr));
    report.step = report.pod ? Step::TellOfPod : Step::Done;
  } else if (report.step == Step::TellOfPod) {
    report.step = is_annotated_later(report) ? Step::Done : Step::Annotate;
  } else {
    annotated_[report.pod->uid] = report.fault.at_ns;
    report.step = Step::Done;
  }
}

bool Reporter::is_annotated_later(const Report& report) const {
  const auto found = annotated_.find(report.pod->uid);
  return found != annotated_.end() && found->second > report.fault.at_ns;
}

void Reporter::drop_done(Instant now) {
  const auto is_old = [&](std::int64_t at_ns) { return now.monotonic - from_ns(at_ns) > fault_lasts; };
  std::erase_if(reports_, [&](const Report& report) {
    if (report.step == Step::Done) return true;
    if (!is_old(report.fault.at_ns)) return false;
    lines_.push_back("not told, and too old by now: " + described(report.fault, nullptr));
    return true;
  });
  std::erase_if(annotated_, [&](const auto& each) { return is_old(each.second); });
}

void Reporter::say(const std::string& of, const std::string& line) {
  if (std::exchange(said_[of], line) != line) lines_.push_back(line);
}

}  // namespace firebreak::cluster
