// SPDX-License-Identifier: Apache-2.0
#include "program/redo/redo_decision.h"

#include <algorithm>
#include <array>
#include <optional>
#include <unordered_map>

namespace firebreak::redo {
namespace {

constexpr std::size_t streams_max = 32;
constexpr std::size_t none = ~std::size_t{0};

// Clocks by stream: how many of its operations have come before.
using StreamClock = std::array<std::uint32_t, streams_max>;

bool is_operation(abi::RedoKind kind) {
  return kind != abi::RedoKind::EventRecord && kind != abi::RedoKind::EventWait &&
         kind != abi::RedoKind::RegionStart;
}

class Decider {
 public:
  explicit Decider(const RedoLog& log) : log_(log) {}

  RedoDecision run() {
    if (log_.has_gap) return refuse(RedoRefusal::Damaged, 0);
    find_start();
    if (decision_.first == none) return refuse(RedoRefusal::Overrun, 0);
    check_region();
    return std::move(decision_);
  }

 private:
  RedoDecision refuse(RedoRefusal refusal, std::size_t entry) {
    decision_ = {};
    decision_.refusal = refusal;
    decision_.refused_at = entry;
    return decision_;
  }

  bool is_complete(const abi::RedoMark& mark) const { return log_.completed[mark.count] >= mark.value; }

  // The last place before which all has completed: a marker that the GPU has passed, or where nothing was
  // before.
  void find_start() {
    decision_.first = log_.is_cut ? none : 0;
    decision_.last = log_.entries.size();
    for (std::size_t i = log_.entries.size(); i > 0; --i) {
      const RedoEntry& entry = log_.entries[i - 1];
      if (entry.kind != abi::RedoKind::RegionStart) continue;
      if (is_complete(entry.body.region.before)) {
        decision_.first = i - 1;
        return;
      }
      decision_.last = i - 1;  // the GPU has not come there
    }
  }

  std::optional<std::size_t> index_of(std::uint64_t stream) {
    for (std::size_t i = 0; i < stream_count_; ++i)
      if (streams_[i] == stream) return i;
    if (stream_count_ == streams_max) return std::nullopt;
    streams_[stream_count_] = stream;
    return stream_count_++;
  }

  // Nothing before a start may still run when its marker is passed; nothing after it may run before.
  bool is_ordered(const RedoEntry& entry, std::size_t stream) {
    StreamClock& clock = clocks_[stream];
    bool is_fine = true;
    if (entry.kind == abi::RedoKind::EventRecord) {
      events_[entry.body.event.event] = clock;
    } else if (entry.kind == abi::RedoKind::EventWait) {
      if (const auto found = events_.find(entry.body.event.event); found != events_.end())
        for (std::size_t i = 0; i < streams_max; ++i) clock[i] = std::max(clock[i], found->second[i]);
    } else if (entry.kind == abi::RedoKind::RegionStart) {
      is_fine = clock == totals_;
      clock[stream] = ++totals_[stream];
      start_stream_ = stream;
      start_count_ = totals_[stream];
    } else {
      is_fine = start_stream_ == none || clock[start_stream_] >= start_count_;
      clock[stream] = ++totals_[stream];
    }
    return is_fine;
  }

  // The order matters of what has not begun, too: that rests on it.
  void check_region() {
    bool has_operation = false;
    for (std::size_t i = 0; i < log_.entries.size(); ++i) {
      const RedoEntry& entry = log_.entries[i];
      const auto stream = index_of(entry.stream);
      if (!stream) return void(refuse(RedoRefusal::ManyStreams, i));
      if (!is_ordered(entry, *stream) && i >= decision_.first) return void(refuse(RedoRefusal::Unordered, i));
      if (i < decision_.first || i >= decision_.last) continue;
      if (entry.kind == abi::RedoKind::CannotRedo || entry.kind == abi::RedoKind::Graph) {
        refuse(RedoRefusal::CannotRedo, i);
        decision_.cause = entry.kind == abi::RedoKind::Graph ? abi::RedoCause::Unknown : entry.cause;
        return;
      }
      if (entry.kind == abi::RedoKind::Save && is_complete(entry.body.save.done))
        decision_.restore.push_back(i);
      has_operation = has_operation || is_operation(entry.kind);
    }
    const bool has_more = decision_.last < log_.entries.size();
    decision_.answer = has_operation || has_more ? RedoAnswer::Redo : RedoAnswer::Nothing;
  }

  const RedoLog& log_;
  RedoDecision decision_;
  std::size_t stream_count_ = 0;
  std::array<std::uint64_t, streams_max> streams_{};
  std::array<StreamClock, streams_max> clocks_{};
  StreamClock totals_{};
  std::unordered_map<std::uint64_t, StreamClock> events_;
  std::size_t start_stream_ = none;  ///< stream of the last RegionStart
  std::uint32_t start_count_ = 0;
};

}  // namespace

RedoDecision decide(const RedoLog& log) { return Decider(log).run(); }

const char* to_string(RedoRefusal refusal) {
  switch (refusal) {
    case RedoRefusal::None:
      return "";
    case RedoRefusal::Damaged:
      return "what was noted is damaged";
    case RedoRefusal::Overrun:
      return "what was noted does not reach back to where all is known to have completed";
    case RedoRefusal::CannotRedo:
      return "something is in flight that cannot be done again";
    case RedoRefusal::Unordered:
      return "streams are not in order where a region begins";
    case RedoRefusal::ManyStreams:
      return "more streams than are followed";
  }
  return "";
}

const char* to_string(abi::RedoCause cause) {
  switch (cause) {
    case abi::RedoCause::None:
      return "";
    case abi::RedoCause::Unknown:
      return "it may read what it writes, or nothing is known of it";
    case abi::RedoCause::HostCallback:
      return "a function of the host runs in a stream";
    case abi::RedoCause::HostMemory:
      return "it reads or writes memory of the host";
    case abi::RedoCause::InterProcess:
      return "other processes see its memory or its events";
    case abi::RedoCause::Collective:
      return "it waits for other GPUs";
    case abi::RedoCause::RandomState:
      return "it draws random numbers from a state that it moves on";
    case abi::RedoCause::ManyStreams:
      return "the order of its streams was not noted";
    case abi::RedoCause::GivenBack:
      return "code or memory that it used has been given back";
  }
  return "its cause has no name here";
}

}  // namespace firebreak::redo
