// SPDX-License-Identifier: Apache-2.0
/// The counts of an agent and of those before it, for whoever draws curves of them (firebreak-exporter).
/// Pure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "agent/faults/fault/fault.h"
#include "ground/base/clock.h"
#include "ground/base/utc.h"

namespace firebreak::agent {

/// The outcome of a fault for tenants that had not caused it.
enum class FaultOutcome {
  Contained,   ///< nothing
  Parked,      ///< its domain is held, so that they can leave it
  FailedOver,  ///< a standby went on
  Lost,        ///< somebody ended, and nobody went on
};

/// The proof that a promoted standby's predecessor writes no more.
enum class Fence {
  Xid,       ///< the driver has reset its domain
  Exit,      ///< its end
  HandOver,  ///< its own word
  Earlier,   ///< one of these, before the standby was ready or this agent was there
};

/// Times, by upper bounds that never change: a curve over several agents needs the same ones.
struct DurationCounts {
  static constexpr std::array bounds_s = {0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0};
  std::array<std::uint64_t, bounds_s.size() + 1> counts{};  ///< counts, each time in one of them; the last
                                                            ///< one has the rest
  std::uint64_t sum_us = 0;

  void add(Nanoseconds time);
  friend bool operator==(const DurationCounts&, const DurationCounts&) = default;
};

struct RestartCounts {
  std::uint64_t of_daemon = 0;
  std::uint64_t of_server = 0;
  friend bool operator==(const RestartCounts&, const RestartCounts&) = default;
};

/// A tenant that was in a fault's domain.
struct Touched {
  std::string tenant;
  std::string became;  ///< what became of it, in words
  friend bool operator==(const Touched&, const Touched&) = default;
};

/// The account of one fault that was counted: whoever tells of it, tells this. In words, as people are told.
struct PastFault {
  std::int64_t at_ns = 0;  ///< CLOCK_MONOTONIC
  std::string fault_class;
  std::string outcome;
  std::string domain;              ///< empty: of none
  std::string culprit;             ///< a tenant, or "process 7"; empty: nobody is named
  std::string what;                ///< text in the words of who told of it
  std::string control_group = {};  ///< the culprit's; empty: not known
  std::string id = {};             ///< empty: an agent of before gave none
  std::string at = {};             ///< the same moment by the wall clock: "2026-11-29T08:10:05Z"
  std::vector<int> xids = {};
  std::vector<Touched> touched = {};      ///< the culprit is none of them
  std::vector<std::string> saw = {};      ///< what each source said of the culprit, the strongest first
  std::vector<std::string> reports = {};  ///< its exceptions', by their names (agent/parking/park/evidence.h)
  std::string user = {};                  ///< the culprit's; empty: not known
  friend bool operator==(const PastFault&, const PastFault&) = default;
};

struct Counts {
  static constexpr std::size_t most_past_faults = 64;
  static constexpr std::size_t longest_word_bytes = 256;
  /// All of them have to fit into one document that is kept (agent/tenants/kept_state.h).
  static constexpr std::size_t longest_account_bytes = 4096;

  static constexpr std::size_t classes = static_cast<std::size_t>(fault::FaultClass::Unknown) + 1;
  static constexpr std::size_t outcomes = static_cast<std::size_t>(FaultOutcome::Lost) + 1;
  static constexpr std::size_t fences = static_cast<std::size_t>(Fence::Earlier) + 1;

  std::uint64_t agent_starts = 0;
  std::array<std::array<std::uint64_t, outcomes>, classes> faults{};
  std::uint64_t known_culprits = 0;  ///< faults whose culprit is known
  std::uint64_t unknown_culprits = 0;
  std::array<std::uint64_t, fences> promotions{};
  DurationCounts promotion_times;  ///< times from the promotion until the agent heard of the first kernel's
                                   ///< end
  std::map<std::string, RestartCounts> domain_restarts;
  /// The last ones, in their order. One user's take at most half of the places while others have some.
  std::vector<PastFault> past_faults;
  std::uint64_t last_id = 0;  ///< number of the id that was given last

  /// An id that no fault of this machine has had: the second of its moment, or the next one that is free.
  std::string new_id(WallTime at);
  /// Counts it, too, and returns it as it is told.
  const PastFault& note_fault(fault::FaultClass fault_class, FaultOutcome outcome, PastFault fault);
  /// Null: it is none of the last ones.
  PastFault* find(const std::string& id);
  std::uint64_t& of_fault(fault::FaultClass fault_class, FaultOutcome outcome) {
    return faults.at(static_cast<std::size_t>(fault_class)).at(static_cast<std::size_t>(outcome));
  }
  std::uint64_t& of_promotion(Fence fence) { return promotions.at(static_cast<std::size_t>(fence)); }
  friend bool operator==(const Counts&, const Counts&) = default;
};

/// Writes counts as `firebreak status --json` has them, and as they are kept for the next agent: each series
/// by its words, also where it is 0.
nlohmann::json to_json(const Counts& counts);
/// Reads counts; one that is missing or no number counts as 0; series that are not known here are left out.
Counts counts_in(const nlohmann::json& in);

}  // namespace firebreak::agent
