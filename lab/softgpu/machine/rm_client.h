// SPDX-License-Identifier: Apache-2.0
/// The file behind a process's "nvidiactl" descriptor: its work on the GPU, as the resource manager counts
/// it. A memfd, so that somebody else who got the descriptor (pidfd_getfd) and the MPS server see the same.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "ground/base/clock.h"
#include "ground/base/result.h"
#include "ground/os/fd.h"
#include "ground/os/memory.h"

namespace firebreak::softgpu {

/// A place in one of the memory files that a client has told its MPS server of, by their order.
struct WordPlace {
  std::uint32_t file = 0;
  std::uint64_t offset_bytes = 0;
};

/// A word that a stream is to write there.
struct FileWord {
  WordPlace place;
  std::uint64_t value = 0;
  std::uint32_t size_bytes = 4;  ///< 4 or 8
};

struct QueuedWord {
  std::atomic<std::uint64_t> order;  ///< place in the order of queueing, from 1; 0: free
  std::atomic<std::uint64_t> offset_bytes;
  std::atomic<std::uint64_t> value;
  std::atomic<std::uint32_t> file;
  std::atomic<std::uint32_t> size_bytes;
};

struct RmClientPage {
  static constexpr std::size_t words_max = 512;
  static constexpr std::size_t stores_max = 256;
  static constexpr std::size_t children_max = 64;
  std::atomic<std::uint32_t> magic;
  std::atomic<std::int32_t> owner_pid;
  std::atomic<std::int32_t> server_pid;
  std::atomic<std::int32_t> in_flight;
  std::atomic<std::int32_t> waiting;
  std::atomic<std::uint32_t> orphaned_work_is_endless;
  std::atomic<std::int64_t> orphaned_work_ns;
  std::atomic<std::uint64_t> words_queued;
  std::array<QueuedWord, words_max> words;
  std::array<std::atomic<std::uint64_t>, stores_max> stores;  ///< addresses in the process; 0: free
  std::array<std::atomic<std::int32_t>, children_max> children;
};

/// Thread safe; the count survives its process.
class RmClient {
 public:
  static constexpr const char* memfd_name = "nvidiactl";
  /// Makes this process's own. `orphaned_work`: how long the GPU works on for it once it has died with a
  /// kernel under way, since nobody can run that kernel then; empty: for ever.
  static Result<RmClient> create(std::optional<Nanoseconds> orphaned_work);
  /// Somebody's duplicate. InvalidArgument when it is none of ours.
  static Result<RmClient> from(int fd);

  /// Returns the descriptor where this process made it; -1 after from().
  int fd() const { return fd_.get(); }
  pid_t owner_pid() const { return page_->owner_pid.load(); }

  void begin_work() { page_->in_flight.fetch_add(1); }
  void end_work() { page_->in_flight.fetch_sub(1); }
  bool is_busy() const { return page_->in_flight.load() > 0; }
  /// Work that waits behind other work: a channel is not idle then.
  void begin_wait() { page_->waiting.fetch_add(1); }
  void end_wait() { page_->waiting.fetch_sub(1); }
  bool has_waiting_work() const;
  /// Its channels belong to this MPS server, and end with it.
  void serve_by(pid_t server) { page_->server_pid.store(server); }
  /// Whatever was counted: nothing runs any more.
  void end_all_work() {
    page_->in_flight.store(0);
    page_->waiting.store(0);
  }
  std::optional<Nanoseconds> orphaned_work() const;

  /// Words that a stream has not come to yet. With more than there is room for, those are left out.
  using Ticket = std::size_t;
  static constexpr Ticket no_ticket = RmClientPage::words_max;
  Ticket queue_word(const FileWord& word);
  void finish_word(Ticket ticket);
  /// Returns them in the order of queueing.
  std::vector<FileWord> queued_words() const;

  /// Notes where a kernel that runs may store, as addresses in this process; those for which there is no room
  /// are left out.
  void begin_stores(std::span<const std::uint64_t> addresses);
  void end_stores(std::span<const std::uint64_t> addresses);
  std::vector<std::uint64_t> stores() const;
  /// A child of fork(), which has this process's memory and descriptors. Called in the child: safe there.
  void add_child(pid_t child);
  std::vector<pid_t> children() const;

 private:
  RmClient(os::Fd fd, os::Mapping mapping)
      : fd_(std::move(fd)), mapping_(std::move(mapping)), page_(mapping_.as<RmClientPage>()) {}

  os::Fd fd_;
  os::Mapping mapping_;
  RmClientPage* page_;
};

/// How much of each place where a dead process's kernel stored it goes on storing, as that is played.
inline constexpr std::size_t stored_again_bytes = 4;

/// How long the resource manager waits for the waiting work of a client whose descriptor is
/// closed, while its address space is still there (2.0 s, seen on an H100). A limit, and
/// no delay: the software GPU's speed does not change it.
inline constexpr Nanoseconds rm_idle_wait = std::chrono::seconds(2);

}  // namespace firebreak::softgpu
