// SPDX-License-Identifier: Apache-2.0
/// Which request every stream works on, how far it is, and which cache pages it has: the decoder's forward
/// state. Pure: the plan of a step follows from the state after the step before.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ground/base/result.h"
#include "workloads/common/workload.h"
#include "workloads/decode/decode_shape.h"

namespace firebreak::workloads::decode {

/// How long requests are. A prompt and its answer together fit into max_pages_per_stream pages.
struct Traffic {
  std::uint32_t prompt_tokens_min = 1;
  std::uint32_t prompt_tokens_max = 1;
  std::uint32_t answer_tokens_min = 1;
  std::uint32_t answer_tokens_max = 1;
};

struct Request {
  std::uint32_t prompt_tokens = 0;
  std::uint32_t answer_tokens = 0;
};

/// One stream: a queue of requests, worked on one after the other.
struct StreamState {
  std::uint32_t request = 0;     ///< number of the current one, from 0
  std::uint32_t length = 0;      ///< its tokens that are in the cache
  std::uint32_t page_count = 0;  ///< its pages, in order of positions
  std::array<std::uint16_t, max_pages_per_stream> pages = {};
};

/// What a commit carries. Plain bytes: written by one process and read by another of the same build.
struct State {
  std::uint64_t fingerprint = 0;  ///< of the options: a standby started with others refuses it
  std::uint64_t step = 0;         ///< the last step that is part of it
  std::array<StreamState, max_streams> streams = {};
};

class Schedule {
 public:
  /// The shape's pages suffice for all streams at their longest.
  Schedule(const Shape& shape, const Traffic& traffic, std::uint64_t seed);

  /// Goes one step on and says what it does. Steps count from 1; step s writes token slot s - 1.
  StepPlan advance();

  const State& state() const { return state_; }
  std::span<const std::byte> state_bytes() const { return std::as_bytes(std::span(&state_, 1)); }
  /// What of the state the last advance() changed: for each stream its counters, and a page where it got one.
  std::span<const StateRange> changed() const { return changed_; }

  /// Goes to a committed state. Protocol: the bytes are not a state, or one of other options; then nothing
  /// changes.
  Status restore(std::span<const std::byte> bytes);

  Request request(std::uint32_t stream, std::uint32_t number) const;
  std::uint32_t prompt_token(std::uint32_t stream, std::uint32_t number, std::uint32_t position) const;

 private:
  Status check(const State& state) const;
  std::uint16_t find_free_page() const;
  template <class First, class Last>
  void note_change(const First& first, const Last& last);

  Shape shape_;
  Traffic traffic_;
  std::uint64_t seed_;
  State state_;
  std::vector<StateRange> changed_;
};

/// The answers as text, one line a request: "stream 0 request 0 prompt 4: 17 5 211". `tokens` are the slots
/// of steps 1 to steps, [steps][streams].
std::string format_answers(Schedule schedule, const Shape& shape, std::span<const std::uint32_t> tokens);

}  // namespace firebreak::workloads::decode
