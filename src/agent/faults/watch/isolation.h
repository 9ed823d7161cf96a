// SPDX-License-Identifier: Apache-2.0
/// Reads what nvidia-uvm with fault isolation says of itself in /proc/driver/nvidia-uvm
/// (docs/use/uvm-patch.md, "What it shows"): how it is set, what it has counted, and its last events.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/faults/fault/fault.h"
#include "ground/base/result.h"
#include "ground/os/kernel.h"

namespace firebreak::watch {

inline constexpr const char* isolation_state_path = "/proc/driver/nvidia-uvm/fault_isolation";
/// File that only root may read.
inline constexpr const char* isolation_events_path = "/proc/driver/nvidia-uvm/fault_isolation_events";
/// File that only root may read: who is condemned and still there.
inline constexpr const char* isolation_condemned_path = "/proc/driver/nvidia-uvm/fault_isolation_condemned";
/// File that only root may write: it takes the MPS servers.
inline constexpr const char* isolation_servers_path = "/proc/driver/nvidia-uvm/fault_isolation_servers";

enum class IsolationMode { Off, Report, On };

/// The outcome of a fault.
enum class IsolationOutcome {
  Contained,  ///< its client alone ends, also where the module helps it no more
  Cancelled,  ///< treated as by the stock module: it takes its domain along
  Spared,     ///< somebody else's, beside which this one would have been cancelled
  Deferred,   ///< not a fault: a process died, and its address space stays for a while
  Unknown,    ///< an outcome of a newer module
};

/// How often the module came to that.
struct IsolationCount {
  std::string fault_class;  ///< the module's word: "no_range"
  std::string word;         ///< the module's word for the outcome: "contained", "alone"
  std::uint64_t count = 0;
};

struct IsolationState {
  IsolationMode mode = IsolationMode::Off;
  std::uint64_t condemned = 0;  ///< clients
  std::uint64_t killed = 0;     ///< those of them that the module killed, since nobody else had ended them
  std::int64_t sinks = 0;       ///< sinks in page tables, now
  std::vector<IsolationCount> faults;
  // Faults that report mode has foreseen of mode on.
  std::vector<IsolationCount> foreseen_faults;
  std::uint64_t foreseen_ends = 0;          ///< ends of clients
  std::uint64_t foreseen_ends_at_once = 0;  ///< those of them that had come to a bound
};

struct IsolationEvent {
  std::uint64_t sequence = 0;  ///< counts up from 1 while the module is loaded
  std::optional<pid_t> pid;    ///< process of the client, as the first PID namespace counts; empty: nobody
                               ///< knows it
  std::uint64_t address = 0;
  bool replayable = true;   ///< false: of a copy engine or PBDMA
  std::string access;       ///< "write", "atomic strong"; empty: no fault
  std::string type;         ///< "invalid pde"; empty: no fault
  std::string fault_class;  ///< class as in IsolationCount
  std::string word;
  std::uint32_t took_us = 0;  ///< time from the fatal fault to the outcome
  std::string command;        ///< command of the client; the kernel has escaped it
};

/// Returns the outcome of any word.
IsolationOutcome outcome_of(std::string_view word);

/// Protocol: not this format. Words and lines that a newer module may add are passed over.
Result<IsolationState> parse_isolation_state(std::string_view text);
/// One line of the events' file. Protocol: it is none.
Result<IsolationEvent> parse_isolation_event(std::string_view line);

/// One line of the list of who is condemned, as the event that would have told it. Protocol: it is none.
Result<IsolationEvent> parse_condemned(std::string_view line);

/// Says that the process is an MPS server. The module then leaves a fault of its own as it is, instead of
/// killing the server and with it all of its clients. NotFound: no such process, or the module that is loaded
/// has no fault isolation.
Status name_mps_server(os::Kernel& kernel, pid_t server);

/// NotFound: the module that is loaded, if any, is not the one with fault isolation.
Result<IsolationState> read_isolation_state(os::Kernel& kernel);

/// "on; 3 contained (2 no_range, 1 external); 1 not contained (1 hmm unsupported); 1 killed by the module".
std::string describe(const IsolationState& state);
/// The event as a signal among others; empty for what is no fault of the process that it names.
std::optional<fault::Fault> fault_of(const IsolationEvent& event, Monotonic when);

}  // namespace firebreak::watch
