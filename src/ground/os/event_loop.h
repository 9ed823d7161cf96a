// SPDX-License-Identifier: Apache-2.0
/// One thread that waits for descriptors, timers and files.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "ground/base/clock.h"
#include "ground/base/result.h"
#include "ground/os/fd.h"

namespace firebreak::os {

// --- event loop
// One thread's event loop: readable and writable descriptors, timers, signals, and work posted by other
// threads. All timers of a loop share one descriptor, so that none is refused when descriptors are scarce.

class EventLoop;

/// One registration; ends with the object. Must not outlive its loop, and is destroyed on the loop's thread
/// (also from inside its own callback) or while the loop does not run.
class Watch {
 public:
  Watch() = default;
  Watch(Watch&& other) noexcept : loop_(std::exchange(other.loop_, nullptr)), id_(other.id_) {}
  Watch& operator=(Watch&& other) noexcept;
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  ~Watch() { cancel(); }

  void cancel();
  explicit operator bool() const { return loop_ != nullptr; }
  /// Sets whether a callback that was given for a descriptor is called as long as the descriptor can be
  /// written to. At first it is not.
  void expect_writable(bool expected);

 private:
  friend class EventLoop;
  Watch(EventLoop* loop, std::uint64_t id) : loop_(loop), id_(id) {}

  EventLoop* loop_ = nullptr;
  std::uint64_t id_ = 0;
};

/// post(), stop() and urgent() may be called from any thread; everything else on the loop's thread, or before
/// it runs.
class EventLoop {
 public:
  using Callback = std::function<void()>;

  /// `clock`: by which timers run, in the place of the system's; it outlives the loop. They are looked at in
  /// run_once() then, which does not wait for them: somebody else lets time pass.
  static Result<std::unique_ptr<EventLoop>> create(const Clock* clock = nullptr);
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;
  ~EventLoop() = default;

  /// Calls back as long as `fd` is readable or hung up. `fd` stays the caller's, and must outlive the Watch.
  /// Unsupported when the descriptor cannot be waited for (a plain file).
  Result<Watch> watch_readable(int fd, Callback callback) { return watch(fd, std::move(callback), {}); }
  /// The same, and `writable` as long as it can be written to, where Watch::expect_writable says so.
  Result<Watch> watch(int fd, Callback readable, Callback writable);
  /// The same as the first, for what nobody may keep waiting: it is served before each of the others, however
  /// many of those there are.
  Result<Watch> watch_first(int fd, Callback callback);
  /// Marks work of a callback that can be put off as long as this lives, where it waits for others who ask
  /// urgent().
  class Background {
   public:
    /// `is_background` false: for a part of it that is not to be put off.
    explicit Background(EventLoop& loop, bool is_background = true)
        : loop_(loop), before_(std::exchange(loop.is_in_background_, is_background)) {}
    Background(const Background&) = delete;
    Background& operator=(const Background&) = delete;
    ~Background() { loop_.is_in_background_ = before_; }

   private:
    EventLoop& loop_;
    bool before_;
  };
  /// A descriptor, the loop's, that is readable as long as something waits that is to be served first. -1:
  /// what the calling thread does is not to be put off for that.
  int urgent() const;

  /// Calls back once, after `delay`.
  Result<Watch> after(Nanoseconds delay, Callback callback);
  /// The same, but rather at once than never: where no timer can be had the callback is posted, and nothing
  /// ends it then.
  Watch after_or_now(Nanoseconds delay, Callback callback);
  /// Calls back every `period`; periods that passed while the loop was busy are made up for by one call.
  Result<Watch> every(Nanoseconds period, Callback callback);
  /// Takes the signals from the whole process's usual handling (they are blocked in this thread, so call it
  /// before other threads start) and calls back with the number.
  Result<Watch> on_signals(const std::vector<int>& signals, std::function<void(int)> callback);

  /// Calls back at the end of each turn, once all that the turn had to serve is served, with how long that
  /// took. One at a time; empty: nobody is called.
  void after_each_turn(std::function<void(Nanoseconds)> callback) { after_turn_ = std::move(callback); }

  /// Runs `callback` on the loop's thread, in the order of posting. Where many take long, other things are
  /// served between them.
  void post(Callback callback);
  /// Makes run() return after the callback that is being called; a stop before run() makes it return at once.
  void stop() noexcept;

  /// Serves until stop().
  void run();
  /// Waits at most `timeout` (empty: for ever) for something to serve, serves it; returns whether anything
  /// was.
  bool run_once(std::optional<Milliseconds> timeout);

 private:
  friend class Watch;
  struct Entry {
    int fd = -1;
    Fd owned;  ///< signals have a descriptor of their own
    Callback readable;
    Callback writable;
    bool is_to_be_writable = false;
    bool is_first = false;
  };
  struct Timer {
    Monotonic at{};
    Nanoseconds period{};  ///< 0: once
    Callback callback;
  };

  EventLoop(Fd epoll, Fd first, Fd wake, Fd alarm)
      : epoll_(std::move(epoll)),
        first_(std::move(first)),
        wake_(std::move(wake)),
        alarm_(std::move(alarm)) {}
  Result<Watch> add(Entry entry);
  Result<Watch> add_timer(Nanoseconds first, Nanoseconds period, Callback callback);
  Status set_alarm();
  Monotonic now() const { return clock_ == nullptr ? std::chrono::steady_clock::now() : clock_->now(); }
  bool run_due_by_clock();
  void remove(std::uint64_t id);
  void expect_writable(std::uint64_t id, bool expected);
  const Fd& epoll_of(const Entry& entry) const { return entry.is_first ? first_ : epoll_; }
  void serve_first(bool is_told_of = false);
  void dispatch(std::uint64_t id, std::uint32_t events);
  void run_due();
  void run_timer(std::uint64_t id);
  void run_posted();
  void put_off(std::span<Callback> rest);

  Fd epoll_;
  Fd first_;  ///< an epoll of its own, that the other one waits for
  Fd wake_;
  Fd alarm_;  ///< rings for the first of the timers
  const Clock* clock_ = nullptr;
  std::uint64_t next_id_ = 3;
  std::map<std::uint64_t, std::shared_ptr<Entry>> entries_;
  std::map<std::uint64_t, std::shared_ptr<Timer>> timers_;
  std::set<std::pair<Monotonic, std::uint64_t>> due_;  ///< the same by their times
  std::optional<Monotonic> alarm_at_;
  std::function<void(Nanoseconds)> after_turn_;
  std::atomic<std::thread::id> runner_{};
  bool is_in_background_ = false;             ///< the runner's
  mutable bool was_asked_if_urgent_ = false;  ///< the same; since what comes first was last served

  std::mutex mutex_;  ///< guards posted_ and stopping_
  std::vector<Callback> posted_;
  bool stopping_ = false;
};

/// Keeps these signals from ending this process, from now on: they stay pending until a loop that asked for
/// them runs. Called before other threads start.
Status hold_signals(const std::vector<int>& signals);

// --- file watch

/// Says when a file is written (inotify).
class FileWatch {
 public:
  struct Changes {
    bool written = false;
    bool replaced = false;  ///< the name is another file's now
  };

  /// The file of a directory that has this name, also when it appears or is replaced. It need not be there
  /// yet, the directory must.
  static Result<FileWatch> of(const std::string& directory, const std::string& name);
  /// Watches this very file, whatever its name becomes. `file` may be closed afterwards.
  static Result<FileWatch> of(const Fd& file);

  /// Readable when something happened.
  const Fd& fd() const { return fd_; }
  /// Returns what happened since the last call.
  Changes read();

 private:
  FileWatch(Fd fd, std::string name) : fd_(std::move(fd)), name_(std::move(name)) {}

  Fd fd_;
  std::string name_;  ///< empty: the file itself is watched
};

// --- wait
// poll() without its traps; what every Kernel and the leaf helpers wait with.

/// Indices of the descriptors that are readable or hung up; empty after `timeout` (negative: for ever).
Result<std::vector<std::size_t>> poll_readable(std::span<const int> fds, std::chrono::milliseconds timeout);

/// True when `fd` becomes writable within `timeout` (negative: for ever).
Result<bool> poll_writable(int fd, std::chrono::milliseconds timeout);

}  // namespace firebreak::os
