// SPDX-License-Identifier: Apache-2.0
#include "demo/stage.h"

#include <algorithm>

namespace firebreak::demo {
Result<std::unique_ptr<Stage>> Stage::create(os::Kernel& kernel, const Clock& clock) {
  auto processes = stage::Stage::create(kernel, clock);
  if (!processes) return propagate(processes);
  return std::unique_ptr<Stage>(new Stage(std::move(*processes)));
}

Result<Actor*> Stage::enter(const Casting& casting, Actor::OnLine on_line) {
  std::vector<StepMark>& steps = steps_[processes_->actors().size()];
  return processes_->enter(casting, [&steps, on_line = std::move(on_line)](const std::string& line) {
    if (const auto mark = stage::parse_step_mark(line)) {
      steps.push_back(*mark);
    } else {
      on_line(line);
    }
  });
}

Status Stage::listen_to_agent(const std::string& socket_path) {
  auto socket = os::connect(socket_path, Milliseconds(2000));
  if (!socket) return propagate(socket, "agent");
  agent_ = std::make_unique<os::Socket>(std::move(*socket));
  const std::string subscribe = abi::encode(abi::Subscribe{});
  if (auto sent = agent_->send(std::as_bytes(std::span(subscribe)), {}, Milliseconds(2000)); !sent)
    return sent;
  auto watch = processes_->loop().watch_readable(agent_->fd().get(), [this] { read_event(); });
  if (!watch) return propagate(watch);
  agent_watch_ = std::move(*watch);
  return {};
}

void Stage::read_event() {
  const auto received = agent_->receive(Milliseconds(0));
  if (!received) {
    if (received.error().code != ErrorCode::Timeout) agent_watch_.cancel();
    return;
  }
  const auto* text = reinterpret_cast<const char*>(received->bytes.data());
  const auto message = abi::decode(std::string_view(text, received->bytes.size()));
  if (!message) return;
  if (const auto* event = std::get_if<abi::Event>(&*message)) events_.push_back(*event);
}

std::size_t Stage::count(abi::EventKind what, const std::string& tenant) const {
  return static_cast<std::size_t>(std::ranges::count_if(
      events_, [&](const abi::Event& event) { return event.what == what && event.tenant == tenant; }));
}

const abi::Event* Stage::first(abi::EventKind what, const std::string& tenant) const {
  const auto found = std::ranges::find_if(
      events_, [&](const abi::Event& event) { return event.what == what && event.tenant == tenant; });
  return found == events_.end() ? nullptr : &*found;
}

std::uint64_t Stage::steps_done(const Actor& actor) const {
  const auto& actors = processes_->actors();
  for (const auto& [place, steps] : steps_) {
    if (place < actors.size() && actors[place].get() == &actor) return steps.empty() ? 0 : steps.back().step;
  }
  return 0;
}

void Stage::report(ActRecord& act, const Actor* except) const {
  act.interrupted = processes_->interrupted();
  for (std::size_t place = 0; place < processes_->actors().size(); ++place) {
    const Actor& actor = *processes_->actors()[place];
    if (&actor == except) continue;
    const stage::ActorRecord& seen = actor.record();
    act.processes.push_back({seen.name, seen.role, seen.pid, seen.started_at_ns, seen.ended_at_ns, seen.exit,
                             steps_.at(place), seen.last_words});
  }
  act.events = events_;
}

}  // namespace firebreak::demo
