// SPDX-License-Identifier: Apache-2.0
#include "softgpu/devices/kmsg_feed.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <span>
#include <utility>

#include "ground/os/self.h"

namespace firebreak::softgpu {

namespace {

// How often a feed looks whether it is still wanted. Rarely: on real machines no thread of ours is needed.
constexpr std::int64_t look_again_ns = 250'000'000;
// How often what did not go out is tried again.
constexpr std::int64_t try_again_ns = 2'000'000;
constexpr int priority_error = 3;

}  // namespace

Result<KmsgFeed::Opened> KmsgFeed::open(std::shared_ptr<SharedGpu> gpu, int flags) {
  os::Fd descriptor;
  auto socket = NodeSocket::open(flags, descriptor);
  if (!socket) return propagate(socket);
  std::unique_ptr<KmsgFeed> feed(new KmsgFeed(std::move(gpu), std::move(*socket)));
  feed->collect();
  feed->deliver();
  feed->thread_ = std::thread(&KmsgFeed::run, feed.get());
  return Opened{std::move(descriptor), std::move(feed)};
}

KmsgFeed::KmsgFeed(std::shared_ptr<SharedGpu> gpu, NodeSocket socket)
    : gpu_(std::move(gpu)), socket_(std::move(socket)), follower_(gpu_->kmsg().oldest_sequence()) {}

KmsgFeed::~KmsgFeed() {
  stopping_.store(true);
  gpu_->wake_kmsg_readers();
  if (thread_.joinable()) thread_.join();
}

void KmsgFeed::run() {
  (void)os::run_as_soon_as_woken();  // Linux itself writes the log, and waits for nobody who computes
  while (!stopping_.load() && !socket_.is_gone()) {
    const std::uint32_t seen = gpu_->kmsg_wake().value();
    collect();
    if (!deliver()) break;
    const std::int64_t now = now_ns();
    const std::int64_t patience_ns = follower_.sleep_ns(look_again_ns);
    const std::int64_t next = std::min(waiting_.next_due_ns().value_or(now + patience_ns), now + patience_ns);
    // A line that is due and did not go out waits for the reader.
    const std::int64_t pause_ns = next <= now ? try_again_ns : next - now;
    if (!stopping_.load()) gpu_->kmsg_wake().wait(seen, std::chrono::nanoseconds(pause_ns));
  }
  ended_.store(true);
}

void KmsgFeed::collect() {
  follower_.collect(gpu_->kmsg(), now_ns(),
                    [this](KmsgLine line) { waiting_.add(line.due_ns, std::move(line.text)); });
}

bool KmsgFeed::deliver() {
  while (const std::string* text = waiting_.due(now_ns())) {
    const std::string record =
        fmt::format("{},{},{},-;{}\n", priority_error, next_record_, now_ns() / 1000, *text);
    const SendOutcome outcome = socket_.send(std::as_bytes(std::span(record)));
    if (outcome == SendOutcome::Full) return true;
    if (outcome == SendOutcome::Gone) return false;
    ++next_record_;
    waiting_.remove_first();
  }
  return true;
}

}  // namespace firebreak::softgpu
