// SPDX-License-Identifier: Apache-2.0
#include "stage/stage.h"

#include <fmt/format.h>
#include <signal.h>

#include <utility>

namespace firebreak::stage {

Result<std::unique_ptr<Stage>> Stage::create(os::Kernel& kernel, const Clock& clock) {
  auto loop = os::EventLoop::create();
  if (!loop) return propagate(loop);
  std::unique_ptr<Stage> stage(new Stage(kernel, clock, std::move(*loop)));
  // Signals are held so that whoever ends us in the middle finds nothing left behind.
  auto signals = stage->loop_->on_signals({SIGINT, SIGTERM, SIGHUP}, [raw = stage.get()](int) {
    raw->interrupted_ = true;
    raw->unheard_ = true;
  });
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

Status Stage::wait(const std::string& what, Milliseconds timeout, const std::function<bool()>& done) {
  const Monotonic deadline = clock_.now() + timeout;
  while (!done()) {
    if (std::exchange(unheard_, false)) return fail(ErrorCode::Unavailable, "interrupted");
    const auto left = std::chrono::ceil<Milliseconds>(deadline - clock_.now());
    if (left <= Milliseconds(0)) {
      std::string ended;
      for (const auto& actor : actors_) {
        const ActorRecord& record = actor->record();
        if (!record.exit || record.exit->clean()) continue;
        ended += fmt::format("; {} ({}) has ended: {}", record.name, record.role, record.last_words);
      }
      return fail(ErrorCode::Timeout,
                  fmt::format("{} did not happen within {} s{}", what, timeout.count() / 1000, ended));
    }
    loop_->run_once(left);
  }
  // Lines that were written before the condition came true may still be on their way.
  while (loop_->run_once(Milliseconds(0))) {
  }
  return {};
}

}  // namespace firebreak::stage
