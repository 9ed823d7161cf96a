// SPDX-License-Identifier: Apache-2.0
#include "agent/service/shelf_queue.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "ground/os/closer.h"
#include "ground/os/fd.h"
#include "ground/os/self.h"

namespace firebreak::agent {
namespace {

/// Pause before what could not be said is asked again.
constexpr Milliseconds retry_pause{200};

}  // namespace

ShelfQueue::ShelfQueue(os::EventLoop& loop, os::Kernel& kernel, ServiceManager& manager,
                       std::vector<std::string> command, OnSilence on_silence)
    : loop_(loop),
      manager_(manager),
      on_silence_(std::move(on_silence)),
      shelves_(kernel, between_, std::move(command)) {}

ShelfQueue::~ShelfQueue() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void ShelfQueue::put(const std::string& name, int descriptor, std::function<void(const Status&)> done) {
  auto duplicate = os::duplicate(descriptor);
  if (!duplicate) {
    ++under_way_;
    return post([this, why = duplicate.error(), done = std::move(done)] {
      --under_way_;
      done(tl::unexpected(why));
    });
  }
  duplicate->close_by(std::make_shared<os::Closer>());  // the duplicate may outlive all others
  auto kept = std::make_shared<os::Fd>(std::move(*duplicate));
  ask([name, kept, done = std::move(done)](Shelves& shelves) -> Answer {
    const Status put = shelves.put(name, kept->get());
    return [put, done] { done(put); };
  });
}

void ShelfQueue::get(std::vector<std::string> names, std::function<void(std::vector<os::Fd>)> done) {
  ask([names = std::move(names), done = std::move(done)](Shelves& shelves) -> Answer {
    auto got = shelves.get(names);
    if (!got) return {};
    auto found = std::make_shared<std::vector<os::Fd>>(std::move(*got));
    return [found, done] { done(std::move(*found)); };
  });
}

void ShelfQueue::have(std::vector<std::string> names, std::function<void(const std::vector<bool>&)> done) {
  ask([names = std::move(names), done = std::move(done)](Shelves& shelves) -> Answer {
    const auto there = shelves.have(names);
    if (!there) return {};
    return [there = *there, done] { done(there); };
  });
}

/// Told again it is as what is still to be dropped, and not by its name, which may be somebody's by then.
void ShelfQueue::drop(const std::string& name, std::function<void()> done) {
  ask([name, is_first = true, done = std::move(done)](Shelves& shelves) mutable -> Answer {
    if (std::exchange(is_first, false)) shelves.drop(name);
    return shelves.drop_rest() ? done : Answer{};
  });
}

void ShelfQueue::end_all(std::function<void()> done) {
  ask([done = std::move(done)](Shelves& shelves) -> Answer {
    shelves.end_all();
    return done;
  });
}

void ShelfQueue::ask(Question question) {
  ++under_way_;
  if (!thread_.joinable()) {
    // Where there is none, the next question starts it.
    if (auto thread = os::start_background_thread("fb-shelves", [this] { serve(); }))
      thread_ = std::move(*thread);
  }
  {
    const std::lock_guard lock(mutex_);
    questions_.push_back(std::move(question));
  }
  changed_.notify_all();
}

/// Serves to the end, and then what is left, once.
void ShelfQueue::serve() {
  const SystemClock clock;
  std::deque<Question> unanswered;
  Monotonic again_at{};
  for (;;) {
    std::unique_lock lock(mutex_);
    const auto has_news = [this] { return ending_ || !questions_.empty(); };
    if (unanswered.empty()) {
      changed_.wait(lock, has_news);
    } else {
      changed_.wait_until(lock, again_at, has_news);
    }
    if (!ending_ && clock.now() >= again_at) {
      std::ranges::move(unanswered, std::back_inserter(questions_));
      unanswered.clear();
    }
    if (questions_.empty() && !ending_) continue;
    if (questions_.empty()) return;
    Question question = std::move(questions_.front());
    questions_.pop_front();
    lock.unlock();
    Answer answer = question(shelves_);
    tell_silence();
    if (answer) {
      question = nullptr;  // its descriptor is given up before anybody is answered
      post([this, answer = std::move(answer)] {
        --under_way_;
        answer();
      });
    } else {
      if (unanswered.empty()) again_at = clock.now() + retry_pause;
      unanswered.push_back(std::move(question));
    }
  }
}

void ShelfQueue::tell_silence() {
  std::vector<std::string> silent = shelves_.silent();
  const auto tell = [this](const std::string& shelf, bool is_silent) {
    post([this, shelf, is_silent] { on_silence_(shelf, is_silent); });
  };
  for (const std::string& shelf : silent) {
    if (std::ranges::count(silent_, shelf) == 0) tell(shelf, true);
  }
  for (const std::string& shelf : silent_) {
    if (std::ranges::count(silent, shelf) == 0) tell(shelf, false);
  }
  silent_ = std::move(silent);
}

void ShelfQueue::post(std::function<void()> callback) {
  loop_.post([is_there = std::weak_ptr(is_there_), callback = std::move(callback)] {
    if (!is_there.expired()) callback();
  });
}

Status ShelfQueue::Manager::keep(const std::string& name, int descriptor) {
  if (!queue_.is_kept_) return fail(ErrorCode::Unsupported, "nobody keeps anything for us");
  auto duplicate = os::duplicate(descriptor);
  if (!duplicate) return propagate(duplicate);
  auto kept = std::make_shared<os::Fd>(std::move(*duplicate));
  queue_.post([queue = &queue_, name, kept] {
    if (auto done = queue->manager_.keep(name, kept->get()); !done)
      spdlog::error("{} would not outlive the agent: {}", name, to_string(done.error()));
  });
  return {};
}

void ShelfQueue::Manager::drop(const std::string& name) {
  queue_.post([queue = &queue_, name] { queue->manager_.drop(name); });
}

}  // namespace firebreak::agent
