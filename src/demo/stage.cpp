// SPDX-License-Identifier: Apache-2.0
#include "demo/stage.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>

namespace firebreak::demo {

Result<std::unique_ptr<Stage>> Stage::create(os::Kernel& kernel, const Clock& clock) {
  auto loop = os::EventLoop::create();
  if (!loop) return propagate(loop);
  std::unique_ptr<Stage> stage(new Stage(kernel, clock, std::move(*loop)));
  // So that whoever ends us in the middle of an act finds nothing left behind.
  auto signals = stage->loop_->on_signals({SIGINT, SIGTERM, SIGHUP},
                                          [raw = stage.get()](int) { raw->interrupted_ = true; });
  if (!signals) return propagate(signals);
  stage->signals_ = std::move(*signals);
  return stage;
}

Stage::~Stage() {
  while (!actors_.empty()) actors_.pop_back();
}

Result<Actor*> Stage::enter(const Casting& casting, Actor::OnLine on_line) {
  auto actor = Actor::start(*loop_, kernel_, clock_, casting, std::move(on_line));
  if (!actor) return propagate(actor);
  actors_.push_back(std::move(*actor));
  return actors_.back().get();
}

Status Stage::listen_to_agent(const std::string& socket_path) {
  auto socket = os::connect(socket_path, Milliseconds(2000));
  if (!socket) return propagate(socket, "agent");
  agent_ = std::make_unique<os::Socket>(std::move(*socket));
  const std::string subscribe = abi::encode(abi::Subscribe{});
  if (auto sent = agent_->send(std::as_bytes(std::span(subscribe)), {}, Milliseconds(2000)); !sent)
    return sent;
  auto watch = loop_->watch_readable(agent_->fd().get(), [this] { read_event(); });
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

Status Stage::wait(const std::string& what, Milliseconds timeout, const std::function<bool()>& done) {
  const Monotonic deadline = clock_.now() + timeout;
  while (!done()) {
    if (interrupted_) return fail(ErrorCode::Unavailable, "interrupted");
    const auto left = std::chrono::ceil<Milliseconds>(deadline - clock_.now());
    if (left <= Milliseconds(0)) {
      std::string ended;
      for (const auto& actor : actors_) {
        const ProcessRecord& record = actor->record();
        if (!record.exit || record.exit->clean()) continue;
        ended += fmt::format("; {} ({}) has ended: {}", record.tenant, record.role, record.last_words);
      }
      return fail(ErrorCode::Timeout,
                  fmt::format("{} did not happen within {} s{}", what, timeout.count() / 1000, ended));
    }
    loop_->run_once(left);
  }
  // What was written before the condition came true may still be on its way.
  while (loop_->run_once(Milliseconds(0))) {
  }
  return {};
}

std::size_t Stage::count(const std::string& what, const std::string& tenant) const {
  return static_cast<std::size_t>(std::ranges::count_if(
      events_, [&](const abi::Event& event) { return event.what == what && event.tenant == tenant; }));
}

void Stage::report(ActRecord& act, const Actor* except) const {
  for (const auto& actor : actors_) {
    if (actor.get() != except) act.processes.push_back(actor->record());
  }
  act.events = events_;
}

}  // namespace firebreak::demo
