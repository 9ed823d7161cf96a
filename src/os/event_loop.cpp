// SPDX-License-Identifier: Apache-2.0
#include "os/event_loop.h"

#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>

#include "os/errno_error.h"

namespace firebreak::os {
namespace {

constexpr std::uint64_t wake_id = 0;
constexpr int most_events = 32;

timespec to_timespec(Nanoseconds duration) {
  const auto ns = std::max<std::int64_t>(duration.count(), 0);
  return {static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
}

int add_to_epoll(const Fd& epoll, int fd, std::uint64_t id) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = id;
  return ::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, fd, &event);
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

Result<std::unique_ptr<EventLoop>> EventLoop::create() {
  Fd epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll) return fail_errno("make an event loop", errno);
  Fd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake || add_to_epoll(epoll, wake.get(), wake_id) != 0) return fail_errno("make an event loop", errno);
  return std::unique_ptr<EventLoop>(new EventLoop(std::move(epoll), std::move(wake)));
}

Result<Watch> EventLoop::add(Entry entry) {
  const std::uint64_t id = next_id_++;
  if (add_to_epoll(epoll_, entry.fd, id) != 0) {
    if (errno == EPERM) return fail(ErrorCode::Unsupported, "this kind of file cannot be waited for");
    return fail_errno("watch a descriptor", errno);
  }
  entries_[id] = std::make_shared<Entry>(std::move(entry));
  return Watch(this, id);
}

void EventLoop::remove(std::uint64_t id) {
  const auto found = entries_.find(id);
  if (found == entries_.end()) return;
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, found->second->fd, nullptr);
  entries_.erase(found);
}

Result<Watch> EventLoop::watch_readable(int fd, Callback callback) {
  Entry entry;
  entry.fd = fd;
  entry.callback = std::move(callback);
  return add(std::move(entry));
}

Result<Watch> EventLoop::add_timer(Nanoseconds first, Nanoseconds period, Callback callback) {
  Entry entry;
  entry.owned = Fd(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  if (!entry.owned) return fail_errno("make a timer", errno);
  itimerspec times{};
  // All zeros would disarm the timer instead of firing at once.
  times.it_value = to_timespec(std::max(first, Nanoseconds(1)));
  times.it_interval = to_timespec(period);
  if (::timerfd_settime(entry.owned.get(), 0, &times, nullptr) != 0) return fail_errno("set a timer", errno);
  entry.fd = entry.owned.get();
  entry.once = period.count() == 0;
  entry.drain_counter = true;
  entry.callback = std::move(callback);
  return add(std::move(entry));
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
  entry.callback = [fd = entry.fd, callback = std::move(callback)] {
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
  for (Callback& callback : batch) callback();
}

void EventLoop::dispatch(std::uint64_t id) {
  const auto found = entries_.find(id);
  // An earlier callback of the same round may have cancelled this one.
  if (found == entries_.end()) return;
  const std::shared_ptr<Entry> entry = found->second;
  if (entry->drain_counter) drain_counter(entry->fd);
  if (entry->once) remove(id);
  entry->callback();
}

bool EventLoop::run_once(std::optional<Milliseconds> timeout) {
  std::array<epoll_event, most_events> events{};
  const int wait_ms = timeout ? static_cast<int>(std::max<std::int64_t>(timeout->count(), 0)) : -1;
  const int count = ::epoll_wait(epoll_.get(), events.data(), most_events, wait_ms);
  for (int i = 0; i < count; ++i) {
    const std::uint64_t id = events[static_cast<std::size_t>(i)].data.u64;
    if (id == wake_id) {
      run_posted();
    } else {
      dispatch(id);
    }
  }
  return count > 0;
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

}  // namespace firebreak::os
