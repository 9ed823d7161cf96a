// SPDX-License-Identifier: Apache-2.0
#include "commands/cli/fault_list.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <cstdio>

#include "commands/cli/fault_text.h"
#include "ground/base/clock.h"
#include "ground/base/utc.h"
#include "ground/os/event_loop.h"

namespace firebreak::cli {
namespace {

using nlohmann::json;

Result<json> faults_in(const json& document) {
  const json counts = document.is_object() ? document.value("counts", json()) : json();
  if (counts.is_object() && counts.contains("past_faults")) return counts["past_faults"];
  return fail(ErrorCode::Protocol,
              "the agent does not tell its faults to tenants, or is older than this program",
              "ask as root, or at the observers' socket");
}

/// On the loop's thread: asks for the list once for all that has come meanwhile.
class ListFollower {
 public:
  ListFollower(os::EventLoop& loop, link::AgentLink& agent, const FaultWords& words)
      : loop_(loop), agent_(agent), words_(words) {}

  void print_news() {
    const auto faults = faults_of(agent_);
    if (!faults) return end(propagate(faults));
    for (const json& each : news_.in(*faults)) fmt::print("{}", words_(each));
    std::fflush(stdout);
  }
  void end(Status why) {
    if (ended_) ended_ = std::move(why);
    loop_.stop();
  }
  const Status& ended() const { return ended_; }

 private:
  os::EventLoop& loop_;
  link::AgentLink& agent_;
  const FaultWords& words_;
  FaultNews news_;
  Status ended_;
};

}  // namespace

std::string moment_in_utc(std::int64_t at_ns) {
  const Nanoseconds ago = SystemClock().now() - from_ns(at_ns);
  return in_utc(std::chrono::system_clock::now() - std::chrono::duration_cast<WallTime::duration>(ago));
}

Result<json> faults_of(link::AgentLink& agent) {
  const auto status = agent.status();
  if (!status) return propagate(status);
  return faults_in(json::parse(*status, nullptr, false));
}

bool is_told_by_agent(const std::string& socket_path, const std::vector<pid_t>& pids) {
  auto agent = link::AgentLink::connect(socket_path);
  if (!agent) return false;
  const auto status = (*agent)->status();
  const json document = status ? json::parse(*status, nullptr, false) : json();
  return faults_in(document) &&
         std::ranges::all_of(pids, [&document](pid_t pid) { return is_known_in(document, pid); });
}

Status follow_faults(const std::string& socket_path, const std::string& head, const FaultWords& words) {
  if (auto held = os::hold_signals({SIGINT, SIGTERM, SIGHUP}); !held) return held;
  const auto loop = os::EventLoop::create();
  if (!loop) return propagate(loop);
  const auto signals =
      (*loop)->on_signals({SIGINT, SIGTERM, SIGHUP}, [raw = loop->get()](int) { raw->stop(); });
  if (!signals) return propagate(signals);
  auto agent = link::AgentLink::connect(socket_path);
  if (!agent) return propagate(agent);
  ListFollower follower(**loop, **agent, words);
  (*agent)->on_lost([&follower, raw = loop->get()] {
    raw->post([&follower] { follower.end(fail(ErrorCode::Unavailable, "the agent is gone")); });
  });
  const auto heard = (*agent)->subscribe([&follower, raw = loop->get()](const abi::Event& event) {
    if (event.what == abi::EventKind::Incident) raw->post([&follower] { follower.print_news(); });
  });
  if (!heard) return heard;
  fmt::print("{}", head);
  follower.print_news();
  if (follower.ended()) (*loop)->run();
  (*agent)->hang_up();
  return follower.ended();
}

Status follow_faults(const std::string& socket_path, bool as_json) {
  const auto as_document = [](const json& fault) {
    return fault.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
  };
  const auto as_line = [](const json& fault) { return fault_line(fault, moment_in_utc); };
  return as_json ? follow_faults(socket_path, "", as_document)
                 : follow_faults(socket_path, fault_head(), as_line);
}

}  // namespace firebreak::cli
