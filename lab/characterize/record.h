// SPDX-License-Identifier: Apache-2.0
/// A record has what was observed when one fault of one kind was raised. It is plain data: judges, sums,
/// comparisons and drawings only read it. Times are milliseconds after the faulting launch.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/faults/fault/fault.h"

namespace firebreak::characterize {

/// The parts in a run, seen from the fault.
enum class Role {
  Faulter,      ///< works in MPS domain A
  CoClient,     ///< a victim in A
  OtherDomain,  ///< a victim in B, on the same GPU
  Outside,      ///< a victim without MPS
};
inline constexpr Role roles[] = {Role::Faulter, Role::CoClient, Role::OtherDomain, Role::Outside};
inline constexpr Role victim_roles[] = {Role::CoClient, Role::OtherDomain, Role::Outside};

/// The keys of results: "faulter", "co_client", "other_domain", "outside".
const char* key_of(Role role);
/// "uvm_event", "process_exit", "xid", "mps_log", "nvml", "core_dump", "progress", "cuda_error", "operator".
const char* key_of(fault::FaultSource source);
/// "mmu_replayable", "mmu_non_replayable", "sm", "termination", "device", "unknown".
const char* key_of(fault::FaultClass fault_class);

/// The CUDA error in the co-client: not a detector of its own, but told beside them.
inline constexpr const char* co_client_error_source = "cuda_error_co_client";
/// The faulter's answer where it had no error: how long the access took that the guard contained.
inline constexpr const char* answer_source = "answered";
/// A page fault that the guard's guard ranges took, as strays::StrayWatch tells it from outside.
inline constexpr const char* stray_source = "stray";

/// A time without progress on the GPU.
struct Stall {
  double from_ms = 0;  ///< counted from the launch; below 0 where it began before
  double to_ms = 0;
  double length_ms() const { return to_ms - from_ms; }
};

struct Participant {
  pid_t pid = 0;
  /// counted from its start to its first kernel's end (faulter: to "prepared")
  double start_ms = 0;
  std::string error;                  ///< the CUDA error that it saw; empty: none
  std::optional<double> error_ms;     ///< the moment when it saw it
  std::optional<double> answered_ms;  ///< the driver answered it without an error
  std::string end;                    ///< "exit 3", "signal 9"; empty: lived until it was told to end
  std::optional<double> end_ms;
  std::uint64_t kernels = 0;           ///< completed since shortly before the fault
  std::optional<Stall> longest_stall;  ///< a victim's, around the fault; its end may be the error

  bool died() const { return !error.empty() || !end.empty(); }
};

struct Signal {
  std::string source;  ///< a key
  std::string kind;    ///< the source's own word
  double after_ms = 0;
  std::optional<int> xid;
  std::string names;  ///< the process that it names: a role's key, "server_a", "server_b", "other"; or empty
};

/// The process that the merged incident names.
enum class Verdict {
  Nothing,  ///< no incident was told
  Unknown,  ///< nobody is named
  Right,
  Wrong,
};
/// "nothing", "unknown", "right", "wrong".
const char* key_of(Verdict verdict);

struct Attribution {
  Verdict verdict = Verdict::Nothing;
  std::string names;       ///< named as in Signal
  std::string confidence;  ///< "unknown", "probable", "certain"
  std::vector<std::string> evidence;
  int incidents = 0;  ///< how many the signals were merged into; one is right
};

/// Tells whether the domain takes a new client afterwards.
struct Restart {
  std::optional<double> served_ms;  ///< a new client's first kernel had completed; empty: none was served
  std::optional<double> asked_ms;   ///< start of that client
  int tries = 0;
  std::string last_error;  ///< answer of the last client in vain
};

/// How the last kernels of a held process ended.
struct HoldOutcome {
  double end_after_share = 0;  ///< the process ended after this share of its kernel's time
  double held_ms = 0;          ///< time since its end
  std::string end;             ///< word for what is known of it
};

struct Run {
  std::string kind;
  int repeat = 1;       ///< counts from 1
  std::string date;     ///< UTC, "2026-11-21T12:00:00Z"
  std::string refused;  ///< why this device cannot have this fault; nothing else is set then
  std::string problem;  ///< reason why the run did not come to its end; it counts for nothing then
  std::map<std::string, Participant> participants;  ///< keyed by role
  std::vector<Signal> signals;                      ///< sorted by their times
  Attribution attribution;
  Restart restart;
  std::optional<HoldOutcome> hold;                ///< set where its descriptors were held and it ended
  std::optional<std::int64_t> memory_left_bytes;  ///< GPU memory used after the run, less before it
  std::vector<std::string> notes;                 ///< detectors that were not there and the like
  std::vector<std::string> mismatches;            ///< how it differs from what the catalogue expects
  double took_ms = 0;                             ///< the whole run

  bool counts() const { return refused.empty() && problem.empty(); }
  const Participant& of(Role role) const;
};

/// The first time of each source, by its key, with the faulter's and the co-client's CUDA errors.
std::map<std::string, double> first_by_source(const Run& run);
/// The source that spoke first; empty where none did. The co-client's error counts for nothing here.
std::string first_source(const Run& run);
/// Each Xid once, in the order in which it first showed in the kernel log.
std::vector<int> xids_of(const Run& run);

}  // namespace firebreak::characterize
