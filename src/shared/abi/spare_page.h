// SPDX-License-Identifier: Apache-2.0
/// A page of memory on which a process with a spare driver instance tells the agent how it is, and is told
/// what to do. It lies in a memory file of that process, which the agent finds by its name.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "shared/abi/rest_level.h"

namespace firebreak::abi {

inline constexpr const char* spare_page_name = "firebreak-spare";

/// The variable that gives a process a spare: its value is the pipe directories of two domains, "A:B". The
/// first instance that works joins A, its spare B.
inline constexpr const char* spare_variable = "FIREBREAK_SPARE";
/// The variable that says, in the same form, where core dumps of instances in these two domains go. When it
/// is not set they go to where the process's own go.
inline constexpr const char* spare_dumps_variable = "FIREBREAK_SPARE_DUMPS";

/// A file in a domain's pipe directory for as long as the domain is parked: for processes that come to it,
/// whose pages the agent has not found yet. A client that comes to a parked domain stands still until that
/// falls.
inline constexpr const char* parked_file = "firebreak-parked";

/// "A:B" as A and B; two empty ones where it is not of that form.
inline std::array<std::string, 2> spare_pair(std::string_view value) {
  const std::size_t colon = value.find(':');
  if (colon == std::string_view::npos) return {};
  return {std::string(value.substr(0, colon)), std::string(value.substr(colon + 1))};
}

enum class SpareState : std::uint32_t {
  Starting,     ///< the program has not asked for CUDA yet, or its spare is being made
  Protected,    ///< the spare has all that the program has
  Unprotected,  ///< `reason` says why
  Lost,         ///< its domain died and it could not leave; `reason` says why
};

/// The rule that the agent gives a process for one of its two domains.
enum class DomainRule : std::uint32_t {
  Open,    ///< nothing
  Closed,  ///< no new instance joins the domain: it has had a fault, and waits for its clients to go
  Held,    ///< nothing in the domain is given back either: it is parked, and whoever ends in it ends it for
           ///< everybody
};

/// The parts of a move, in this order.
enum class MovePart : std::uint32_t {
  Calls,      ///< wait until nobody was inside a call
  Spare,      ///< wait until the spare had everything
  Work,       ///< wait until all queued work was done
  Variables,  ///< wait until the variables of the code were copied
  Ranges,     ///< wait until the guard ranges were the next instance's; a process of an older version has
              ///< none
};
inline constexpr std::size_t move_parts = 5;

/// The parts of a way to rest, and of the way back; in this order.
enum class RestPart : std::uint32_t {
  Work,     ///< wait until nobody was inside a call and all queued work was done
  Save,     ///< copy variables, and memory, to the host
  Drivers,  ///< throw the drivers away
  Begin,    ///< bring a driver up
  Fill,     ///< make memory again, with its content
  Objects,  ///< make all else again
};
inline constexpr std::size_t rest_parts = 6;

/// Written by the process, but for `asked_to_leave`, `rules` and `asked_to_rest`. A text is whole once the
/// state beside it says so.
struct SparePage {
  static constexpr std::uint64_t right_magic = 0x6572617073626672;  // "rfbspare"
  static constexpr std::uint32_t right_version = 4;
  static constexpr std::size_t text_bytes = 256;

  std::uint64_t magic = right_magic;
  std::uint32_t version = right_version;
  std::atomic<SpareState> state{SpareState::Starting};
  /// The agent's: it counts up, and wakes who waits for it, when the process is to leave its domain.
  std::atomic<std::uint32_t> asked_to_leave{0};
  std::atomic<std::uint32_t> answered{0};  ///< the last of those that the process has dealt with
  std::atomic<std::uint32_t> flips{0};
  /// Counts up, and wakes the process's keeper: after `asked_to_leave` was changed, among others.
  std::atomic<std::uint32_t> wake{0};
  /// Of the domain of the same number; both are the agent's, which wakes the process after a change.
  std::array<std::atomic<DomainRule>, 2> rules{};
  std::uint32_t unused = 0;  ///< This word keeps the places of those behind it.
  std::array<std::array<char, text_bytes>, 2> domains{};  ///< pipe directories; from the start, for good
  std::array<char, text_bytes> active_domain{};           ///< the pipe directory of the instance that works
  std::array<char, text_bytes> spare_domain{};            ///< empty: there is no spare
  std::array<char, text_bytes> reason{};
  std::array<std::atomic<std::uint32_t>, move_parts>
      last_move_us{};  ///< one time for each MovePart; 0: the move did not get that far
  std::uint32_t unused_too = 0;  ///< This word keeps the places of those behind it.
  /// GPU memory, in MiB, that the program's own driver (which does no work) and the spare take: how much less
  /// was free once each was there. The figure includes what others took or gave meanwhile. A process of an
  /// older version says 0.
  std::atomic<std::uint32_t> own_driver_mib{0};
  std::atomic<std::uint32_t> spare_mib{0};
  /// How many operations that were under way when a domain died were done again, in all its moves.
  std::atomic<std::uint32_t> redone{0};
  /// 1: the program has made something just now, and `state` is that of before: its spare may not have it
  /// yet.
  std::atomic<std::uint32_t> is_behind{0};

  /// The deepest level that the process can go to. A process of an older version says Awake.
  std::atomic<RestLevel> deepest_rest{RestLevel::Awake};
  /// The agent's: the RestLevel that is wanted, in the two lowest bits, below a number that counts up; it
  /// wakes the process then.
  std::atomic<std::uint32_t> asked_to_rest{0};
  std::atomic<std::uint32_t> answered_rest{0};  ///< the last of those that the process has dealt with
  std::atomic<RestLevel> rest{RestLevel::Awake};
  std::atomic<std::uint64_t> rest_host_bytes{0};  ///< of the host's memory, for what was on the GPU
  std::array<char, text_bytes> rest_refusal{};    ///< why the last question was refused; empty: it was not
  std::array<std::atomic<std::uint32_t>, rest_parts> rest_us{};  ///< one time for each RestPart
};
/// What the agent asks for, after `before` was asked for.
constexpr std::uint32_t next_rest_question(std::uint32_t before, RestLevel wanted) {
  return (before & ~std::uint32_t{3}) + 4 + static_cast<std::uint32_t>(wanted);
}
constexpr RestLevel level_in(std::uint32_t question) { return static_cast<RestLevel>(question & 3); }

static_assert(sizeof(SparePage) <= 4096);
static_assert(std::atomic<SpareState>::is_always_lock_free);

}  // namespace firebreak::abi
