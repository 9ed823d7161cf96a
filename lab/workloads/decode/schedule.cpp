// SPDX-License-Identifier: Apache-2.0
#include "workloads/decode/schedule.h"

#include <fmt/format.h>

#include <cassert>
#include <cstring>

#include "workloads/common/counter_random.h"
#include "workloads/common/digest.h"

namespace firebreak::workloads::decode {
namespace {

constexpr std::uint64_t length_purpose = 100;
constexpr std::uint64_t prompt_purpose = 101;

std::uint32_t between(std::uint64_t bits, std::uint32_t low, std::uint32_t high) {
  return low + static_cast<std::uint32_t>((bits >> 32) % (high - low + 1));
}

std::uint64_t fingerprint_of(const Shape& shape, const Traffic& traffic, std::uint64_t seed) {
  return mix_bits(digest_of(shape) ^ mix_bits(digest_of(traffic) ^ mix_bits(seed)));
}

}  // namespace

Schedule::Schedule(const Shape& shape, const Traffic& traffic, std::uint64_t seed)
    : shape_(shape), traffic_(traffic), seed_(seed) {
  const std::uint32_t longest = traffic.prompt_tokens_max + traffic.answer_tokens_max;
  [[maybe_unused]] const std::uint32_t longest_pages = (longest + shape.page_tokens - 1) / shape.page_tokens;
  assert(longest_pages <= max_pages_per_stream && longest_pages * shape.streams <= shape.pages);
  assert(shape.streams <= max_streams && shape.pages <= 0xffff);
  state_.fingerprint = fingerprint_of(shape, traffic, seed);
}

Request Schedule::request(std::uint32_t stream, std::uint32_t number) const {
  const std::uint64_t key = random_key(seed_, length_purpose, stream);
  return {between(random_bits(key, number * 2), traffic_.prompt_tokens_min, traffic_.prompt_tokens_max),
          between(random_bits(key, number * 2 + 1), traffic_.answer_tokens_min, traffic_.answer_tokens_max)};
}

std::uint32_t Schedule::prompt_token(std::uint32_t stream, std::uint32_t number,
                                     std::uint32_t position) const {
  const std::uint64_t key = random_key(seed_, prompt_purpose, stream);
  const std::uint64_t counter = (static_cast<std::uint64_t>(number) << 32) | position;
  return between(random_bits(key, counter), 0, shape_.vocabulary - 1);
}

std::uint16_t Schedule::find_free_page() const {
  std::vector<bool> taken(shape_.pages);
  for (const StreamState& stream : state_.streams) {
    for (std::uint32_t i = 0; i < stream.page_count; ++i) taken[stream.pages[i]] = true;
  }
  for (std::uint32_t page = 0; page < shape_.pages; ++page) {
    if (!taken[page]) return static_cast<std::uint16_t>(page);
  }
  assert(false && "the shape has too few pages for its traffic");
  return 0;
}

/// From the first byte of `first` to the last of `last`, both in the state.
template <class First, class Last>
void Schedule::note_change(const First& first, const Last& last) {
  const auto* begin = reinterpret_cast<const std::byte*>(&first);
  const auto* end = reinterpret_cast<const std::byte*>(&last + 1);
  changed_.push_back(
      {static_cast<std::size_t>(begin - state_bytes().data()), static_cast<std::size_t>(end - begin)});
}

StepPlan Schedule::advance() {
  StepPlan plan;
  plan.slot = static_cast<std::uint32_t>(state_.step);
  ++state_.step;
  changed_.clear();
  note_change(state_.step, state_.step);
  for (std::uint32_t i = 0; i < shape_.streams; ++i) {
    StreamState& stream = state_.streams[i];
    Request current = request(i, stream.request);
    // The answer's last token is sampled, never read.
    if (stream.length == current.prompt_tokens + current.answer_tokens - 1) {
      stream = StreamState{.request = stream.request + 1};
      note_change(stream.pages, stream.pages);
      current = request(i, stream.request);
    }
    if (stream.length == stream.page_count * shape_.page_tokens) {
      std::uint16_t& page = stream.pages[stream.page_count];
      page = find_free_page();
      note_change(page, page);
      ++stream.page_count;
    }
    note_change(stream.request, stream.page_count);
    const bool in_prompt = stream.length < current.prompt_tokens;
    plan.token[i] = in_prompt ? prompt_token(i, stream.request, stream.length) : token_of_last_step;
    plan.position[i] = stream.length;
    ++stream.length;
    plan.samples[i] = stream.length >= current.prompt_tokens;  // from the prompt's last token on
    std::memcpy(plan.pages[i], stream.pages.data(), sizeof plan.pages[i]);
  }
  return plan;
}

Status Schedule::restore(std::span<const std::byte> bytes) {
  if (bytes.size() != sizeof(State)) {
    return fail(ErrorCode::Protocol,
                fmt::format("committed state has {} bytes, not {}", bytes.size(), sizeof(State)));
  }
  State state;
  std::memcpy(&state, bytes.data(), sizeof state);
  if (const Status checked = check(state); !checked) return propagate(checked);
  state_ = state;
  return {};
}

Status Schedule::check(const State& state) const {
  if (state.fingerprint != state_.fingerprint) {
    return fail(ErrorCode::Protocol, "committed state belongs to another size or seed",
                "start active and standby with the same options");
  }
  std::vector<bool> taken(shape_.pages);
  for (const StreamState& stream : state.streams) {
    const bool fits =
        stream.page_count <= max_pages_per_stream && stream.length <= stream.page_count * shape_.page_tokens;
    if (!fits) return fail(ErrorCode::Protocol, "committed state has a sequence longer than its pages");
    for (std::uint32_t i = 0; i < stream.page_count; ++i) {
      const std::uint16_t page = stream.pages[i];
      if (page >= shape_.pages || taken[page]) {
        return fail(ErrorCode::Protocol, "committed state has a page that is taken twice or does not exist");
      }
      taken[page] = true;
    }
  }
  return {};
}

std::string format_answers(Schedule schedule, const Shape& shape, std::span<const std::uint32_t> tokens) {
  std::vector<std::vector<std::string>> lines(shape.streams);
  for (std::size_t row = 0; row < tokens.size() / shape.streams; ++row) {
    const StepPlan plan = schedule.advance();
    for (std::uint32_t stream = 0; stream < shape.streams; ++stream) {
      if (plan.position[stream] == 0) {
        const std::uint32_t number = schedule.state().streams[stream].request;
        lines[stream].push_back(fmt::format("stream {} request {} prompt {}:", stream, number,
                                            schedule.request(stream, number).prompt_tokens));
      }
      const std::uint32_t token = tokens[row * shape.streams + stream];
      if (token != no_token) lines[stream].back() += fmt::format(" {}", token);
    }
  }
  std::string text;
  for (const auto& stream : lines) {
    for (const std::string& line : stream) text += line + "\n";
  }
  return text;
}

}  // namespace firebreak::workloads::decode
