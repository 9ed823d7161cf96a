// SPDX-License-Identifier: Apache-2.0
#include "ground/os/event_loop.h"

#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstring>
#include <limits>

#include "ground/base/clock.h"
#include "ground/os/fd.h"

namespace firebreak::os {

// --- event loop

namespace {

constexpr std::uint64_t wake_id = 0;
constexpr std::uint64_t alarm_id = 1;
constexpr std::uint64_t first_id = 2;
constexpr int most_events = 32;
/// Posted callbacks are served for so long in one turn: a thread that posts much keeps nothing else waiting.
constexpr Nanoseconds longest_posted = std::chrono::milliseconds(20);
/// Longer delays come to the same, and do not fit into a time.
constexpr Nanoseconds longest_delay = std::chrono::hours(24 * 365);

timespec to_timespec(Monotonic time) {
  const std::int64_t ns = to_ns(time);
  return {static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
}

int tell_epoll(const Fd& epoll, int operation, int fd, std::uint64_t id, std::uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = id;
  return ::epoll_ctl(epoll.get(), operation, fd, &event);
}

int add_to_epoll(const Fd& epoll, int fd, std::uint64_t id) {
  return tell_epoll(epoll, EPOLL_CTL_ADD, fd, id, EPOLLIN);
}

void drain_counter(int fd) {
  std::uint64_t count = 0;
  // Empty is fine: somebody else may have drained it.
  [[maybe_unused]] const ssize_t size = ::read(fd, &count, sizeof(count));
}

void wake_up(int fd) {
  const std::uint64_t one = 1;
  // A full counter means that the loop will wake anyway.
  [[maybe_unused]] const ssize_t size = ::write(fd, &one, sizeof(one));
}

}  // namespace

Watch& Watch::operator=(Watch&& other) noexcept {
  if (this != &other) {
    cancel();
    loop_ = std::exchange(other.loop_, nullptr);
    id_ = other.id_;
  }
  return *this;
}

void Watch::cancel() {
  if (loop_ != nullptr) std::exchange(loop_, nullptr)->remove(id_);
}

void Watch::expect_writable(bool expected) {
  if (loop_ != nullptr) loop_->expect_writable(id_, expected);
}

Result<std::unique_ptr<EventLoop>> EventLoop::create(const Clock* clock) {
  Fd epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll) return fail_errno("make an event loop", errno);
  Fd first(::epoll_create1(EPOLL_CLOEXEC));
  if (!first || add_to_epoll(epoll, first.get(), first_id) != 0)
    return fail_errno("make an event loop", errno);
  Fd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake || add_to_epoll(epoll, wake.get(), wake_id) != 0) return fail_errno("make an event loop", errno);
  Fd alarm(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  if (!alarm || add_to_epoll(epoll, alarm.get(), alarm_id) != 0)
    return fail_errno("make an event loop", errno);
  std::unique_ptr<EventLoop> loop(
      new EventLoop(std::move(epoll), std::move(first), std::move(wake), std::move(alarm)));
  loop->clock_ = clock;
  return loop;
}

Result<Watch> EventLoop::add(Entry entry) {
  const std::uint64_t id = next_id_++;
  if (add_to_epoll(epoll_of(entry), entry.fd, id) != 0) {
    if (errno == EPERM) return fail(ErrorCode::Unsupported, "this kind of file cannot be waited for");
    return fail_errno("watch a descriptor", errno);
  }
  entries_[id] = std::make_shared<Entry>(std::move(entry));
  return Watch(this, id);
}

void EventLoop::remove(std::uint64_t id) {
  if (const auto timer = timers_.find(id); timer != timers_.end()) {
    due_.erase({timer->second->at, id});
    timers_.erase(timer);
    (void)set_alarm();  // one that rings for nobody does no harm
    return;
  }
  const auto found = entries_.find(id);
  if (found == entries_.end()) return;
  ::epoll_ctl(epoll_of(*found->second).get(), EPOLL_CTL_DEL, found->second->fd, nullptr);
  entries_.erase(found);
}

void EventLoop::expect_writable(std::uint64_t id, bool expected) {
  const auto found = entries_.find(id);
  if (found == entries_.end() || !found->second->writable) return;
  if (std::exchange(found->second->is_to_be_writable, expected) == expected) return;
  tell_epoll(epoll_, EPOLL_CTL_MOD, found->second->fd, id, expected ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

Result<Watch> EventLoop::watch(int fd, Callback readable, Callback writable) {
  Entry entry;
  entry.fd = fd;
  entry.readable = std::move(readable);
  entry.writable = std::move(writable);
  return add(std::move(entry));
}

Result<Watch> EventLoop::watch_first(int fd, Callback callback) {
  Entry entry;
  entry.fd = fd;
  entry.readable = std::move(callback);
  entry.is_first = true;
  return add(std::move(entry));
}

Result<Watch> EventLoop::add_timer(Nanoseconds first, Nanoseconds period, Callback callback) {
  const std::uint64_t id = next_id_++;
  const Monotonic at = now() + std::clamp(first, Nanoseconds(0), longest_delay);
  timers_[id] = std::make_shared<Timer>(Timer{at, period, std::move(callback)});
  due_.emplace(at, id);
  Watch watch(this, id);  // the destructor takes it away again
  if (auto set = set_alarm(); !set) return propagate(set);
  return watch;
}

/// Sets the alarm for the first timer that is due, where that has changed.
Status EventLoop::set_alarm() {
  if (clock_ != nullptr) return {};
  const auto first = due_.empty() ? std::nullopt : std::optional(due_.begin()->first);
  if (first == alarm_at_) return {};
  itimerspec times{};  // a time of zeros does not ring
  if (first) times.it_value = to_timespec(*first);
  if (::timerfd_settime(alarm_.get(), TFD_TIMER_ABSTIME, &times, nullptr) != 0)
    return fail_errno("set a timer", errno);
  alarm_at_ = first;
  return {};
}

Result<Watch> EventLoop::after(Nanoseconds delay, Callback callback) {
  return add_timer(delay, Nanoseconds(0), std::move(callback));
}

Watch EventLoop::after_or_now(Nanoseconds delay, Callback callback) {
  auto timer = after(delay, callback);
  if (timer) return std::move(*timer);
  post(std::move(callback));
  return {};
}

Result<Watch> EventLoop::every(Nanoseconds period, Callback callback) {
  const Nanoseconds at_least_one = std::max(period, Nanoseconds(1));
  return add_timer(at_least_one, at_least_one, std::move(callback));
}

namespace {

sigset_t set_of(const std::vector<int>& signals) {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : signals) sigaddset(&set, signal);
  return set;
}

}  // namespace

Status hold_signals(const std::vector<int>& signals) {
  const sigset_t set = set_of(signals);
  const int error = ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  return error == 0 ? Status{} : fail_errno("block signals", error);
}

Result<Watch> EventLoop::on_signals(const std::vector<int>& signals, std::function<void(int)> callback) {
  if (auto held = hold_signals(signals); !held) return propagate(held);
  const sigset_t set = set_of(signals);
  Entry entry;
  entry.owned = Fd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!entry.owned) return fail_errno("wait for signals", errno);
  entry.fd = entry.owned.get();
  entry.readable = [fd = entry.fd, callback = std::move(callback)] {
    signalfd_siginfo info{};
    if (::read(fd, &info, sizeof(info)) == sizeof(info)) callback(static_cast<int>(info.ssi_signo));
  };
  return add(std::move(entry));
}

void EventLoop::post(Callback callback) {
  {
    const std::lock_guard lock(mutex_);
    posted_.push_back(std::move(callback));
  }
  wake_up(wake_.get());
}

void EventLoop::stop() noexcept {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_up(wake_.get());
}

void EventLoop::run_posted() {
  drain_counter(wake_.get());
  std::vector<Callback> batch;
  {
    const std::lock_guard lock(mutex_);
    batch.swap(posted_);
  }
  const Monotonic until = std::chrono::steady_clock::now() + longest_posted;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    serve_first();
    batch[i]();
    if (i + 1 < batch.size() && std::chrono::steady_clock::now() >= until)
      return put_off(std::span(batch).subspan(i + 1));
  }
}

/// Puts callbacks back in front of what has been posted since.
void EventLoop::put_off(std::span<Callback> rest) {
  {
    const std::lock_guard lock(mutex_);
    posted_.insert(posted_.begin(), std::make_move_iterator(rest.begin()),
                   std::make_move_iterator(rest.end()));
  }
  wake_up(wake_.get());
}

int EventLoop::urgent() const {
  const bool can_be_put_off = runner_.load() == std::this_thread::get_id() && is_in_background_;
  if (!can_be_put_off) return -1;
  was_asked_if_urgent_ = true;
  return first_.get();
}

/// The bell of the kernel's log is a perf event, which says only once that it has rung, to whoever polls it:
/// the epoll around ours, or who asks whether something is urgent. Then all are called.
void EventLoop::serve_first(bool is_told_of) {
  const bool may_be_taken = std::exchange(was_asked_if_urgent_, false) || is_told_of;
  std::array<epoll_event, most_events> events{};
  const int count = ::epoll_wait(first_.get(), events.data(), most_events, 0);
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events[static_cast<std::size_t>(i)];
    dispatch(event.data.u64, event.events);
  }
  if (count > 0 || !may_be_taken) return;
  std::vector<std::uint64_t> ids;
  for (const auto& [id, entry] : entries_) {
    if (entry->is_first) ids.push_back(id);
  }
  for (const std::uint64_t id : ids) dispatch(id, EPOLLIN);
}

void EventLoop::dispatch(std::uint64_t id, std::uint32_t events) {
  const auto look = [this, id] {
    const auto found = entries_.find(id);
    return found == entries_.end() ? nullptr : found->second;
  };
  // An earlier callback of the same round may have cancelled this one, and the first of the two the second.
  if ((events & ~std::uint32_t{EPOLLOUT}) != 0) {
    if (const std::shared_ptr<Entry> entry = look()) entry->readable();
  }
  if ((events & EPOLLOUT) != 0) {
    if (const std::shared_ptr<Entry> entry = look(); entry && entry->writable) entry->writable();
  }
}

/// Runs the timers whose time has come by now: a timer that their callbacks ask for at once comes in the next
/// round.
void EventLoop::run_due() {
  drain_counter(alarm_.get());
  alarm_at_.reset();
  std::vector<std::uint64_t> ids;
  const Monotonic by = now();
  for (auto next = due_.begin(); next != due_.end() && next->first <= by; ++next) ids.push_back(next->second);
  for (const std::uint64_t id : ids) {
    serve_first();
    run_timer(id);
  }
  (void)set_alarm();  // the alarm was set before, and nothing in it has changed but the time
}

void EventLoop::run_timer(std::uint64_t id) {
  const auto found = timers_.find(id);
  if (found == timers_.end()) return;
  const std::shared_ptr<Timer> timer = found->second;
  due_.erase({timer->at, id});
  if (timer->period == Nanoseconds(0)) {
    timers_.erase(found);
  } else {
    const auto passed = (now() - timer->at) / timer->period;
    timer->at += timer->period * (passed + 1);
    due_.emplace(timer->at, id);
  }
  timer->callback();
}

bool EventLoop::run_due_by_clock() {
  const bool is_any = clock_ != nullptr && !due_.empty() && due_.begin()->first <= clock_->now();
  if (is_any) run_due();
  return is_any;
}

bool EventLoop::run_once(std::optional<Milliseconds> timeout) {
  runner_ = std::this_thread::get_id();
  std::array<epoll_event, most_events> events{};
  const int wait_ms = timeout ? static_cast<int>(std::max<std::int64_t>(timeout->count(), 0)) : -1;
  const bool was_due = run_due_by_clock();
  const int count = ::epoll_wait(epoll_.get(), events.data(), most_events, was_due ? 0 : wait_ms);
  const Monotonic begun = std::chrono::steady_clock::now();
  for (int i = 0; i < count; ++i) {
    const std::uint64_t id = events[static_cast<std::size_t>(i)].data.u64;
    if (id == wake_id) {
      run_posted();
    } else if (id == alarm_id) {
      run_due();
    } else {
      serve_first(id == first_id);
      if (id == first_id) continue;
      dispatch(id, events[static_cast<std::size_t>(i)].events);
    }
  }
  if (after_turn_) after_turn_(std::chrono::steady_clock::now() - begun);
  return count > 0 || was_due;
}

void EventLoop::run() {
  while (true) {
    {
      const std::lock_guard lock(mutex_);
      if (std::exchange(stopping_, false)) return;
    }
    run_once(std::nullopt);
  }
}

// --- file watch

namespace {

Result<Fd> watch(const std::string& path, std::uint32_t events) {
  Fd fd(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  if (!fd) return fail_errno("watch " + path, errno);
  if (::inotify_add_watch(fd.get(), path.c_str(), events) >= 0) return fd;
  if (errno == ENOSPC)  // it is no disk that is full
    return fail(ErrorCode::ResourceExhausted, "watch " + path + ": this user watches too many files",
                "raise fs.inotify.max_user_watches");
  return fail_errno("watch " + path, errno);
}

}  // namespace

Result<FileWatch> FileWatch::of(const std::string& directory, const std::string& name) {
  auto fd = watch(directory, IN_MODIFY | IN_CREATE | IN_MOVED_TO);
  if (!fd) return propagate(fd);
  return FileWatch(std::move(*fd), name);
}

Result<FileWatch> FileWatch::of(const Fd& file) {
  auto fd = watch("/proc/self/fd/" + std::to_string(file.get()), IN_MODIFY);
  if (!fd) return propagate(fd);
  return FileWatch(std::move(*fd), {});
}

FileWatch::Changes FileWatch::read() {
  Changes changes;
  alignas(inotify_event) std::array<char, 16 * (sizeof(inotify_event) + NAME_MAX + 1)> buffer;
  while (true) {
    const ssize_t size = ::read(fd_.get(), buffer.data(), buffer.size());
    if (size <= 0) return changes;
    for (ssize_t at = 0; at < size;) {
      inotify_event event;
      std::memcpy(&event, buffer.data() + at, sizeof(event));
      const char* name = buffer.data() + at + sizeof(event);
      // The file may have been written as well where events were lost.
      if ((event.mask & IN_Q_OVERFLOW) != 0) changes.written = true;
      if (name_.empty() && (event.mask & IN_MODIFY) != 0) changes.written = true;
      if (event.len > 0 && name_ == name) {
        changes.written = true;
        changes.replaced |= (event.mask & (IN_CREATE | IN_MOVED_TO)) != 0;
      }
      at += static_cast<ssize_t>(sizeof(event) + event.len);
    }
  }
}

// --- wait

namespace {

int remaining_ms(Monotonic deadline) {
  const auto left = std::chrono::ceil<Milliseconds>(deadline - SystemClock().now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, std::numeric_limits<int>::max()));
}

/// A signal handler of the program must not end a wait early.
int poll_again_after_signals(std::span<pollfd> entries, std::chrono::milliseconds timeout) {
  const Monotonic deadline = SystemClock().now() + timeout;
  while (true) {
    const int wait_ms = timeout.count() < 0 ? -1 : remaining_ms(deadline);
    const int ready = ::poll(entries.data(), entries.size(), wait_ms);
    if (ready >= 0 || errno != EINTR) return ready;
  }
}

}  // namespace

Result<std::vector<std::size_t>> poll_readable(std::span<const int> fds, std::chrono::milliseconds timeout) {
  std::vector<pollfd> entries;
  entries.reserve(fds.size());
  for (const int fd : fds) entries.push_back(pollfd{fd, POLLIN, 0});
  if (poll_again_after_signals(entries, timeout) < 0) return fail_errno("poll", errno);
  std::vector<std::size_t> ready;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (entries[i].revents != 0) ready.push_back(i);
  }
  return ready;
}

Result<bool> poll_writable(int fd, std::chrono::milliseconds timeout) {
  pollfd entry{fd, POLLOUT, 0};
  const int ready = poll_again_after_signals(std::span(&entry, 1), timeout);
  if (ready < 0) return fail_errno("poll", errno);
  return ready > 0;
}

}  // namespace firebreak::os
