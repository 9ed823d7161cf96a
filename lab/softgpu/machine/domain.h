// SPDX-License-Identifier: Apache-2.0
/// A fault domain: the processes that die together. One memfd; the MPS server hands it to its clients, a
/// process without MPS has one of its own. A domain faults once; after that the server makes a new one.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "ground/base/result.h"
#include "ground/os/fd.h"
#include "ground/os/memory.h"
#include "shared/abi/cuda_result.h"
#include "softgpu/machine/fault_table.h"

namespace firebreak::softgpu {

/// The fault that ended a domain, as its processes need to know it. Times are CLOCK_MONOTONIC.
struct DomainFault {
  CUresult error = CUDA_SUCCESS;
  std::uint32_t faulter_slot = 0;
  std::int64_t when_ns = 0;
  std::int64_t faulter_error_due_ns = 0;    ///< API calls of the faulter answer `error` from here on
  std::int64_t co_client_error_due_ns = 0;  ///< time of the other clients, from here on
  std::int64_t mps_log_due_ns = 0;          ///< the MPS server's log tells of it
};

/// The words of the GPU's debugger on an exception.
struct SmException {
  std::uint32_t number = 0;  ///< one of CUDBG_EXCEPTION_*; 0: a trap or a breakpoint, which is none
  std::uint64_t program_counter = 0;
  std::uint32_t multiprocessor = 0;  ///< multiprocessor that it has halted
};

/// The exception that holds a domain until all core dumps of its clients are complete.
struct DomainHold {
  std::uint32_t faulter_slot = 0;
  FaultCause cause = FaultCause::Trap;
  GpuAccess access = GpuAccess::None;
  std::uint64_t address = 0;
  SmException exception;
  std::int64_t dumps_due_ns = 0;  ///< CLOCK_MONOTONIC; the clients begin their dumps
  std::uint64_t switches = 0;     ///< switches of the GPU between domains, when it came
};

/// The core dump of a client.
enum class CoreDump : std::uint32_t {
  None,    ///< the client writes none: not in the mode, or without a context
  Wanted,  ///< an exception waits for it
  Complete,
  Refused,  ///< the client never will: nobody waits for it, and it stands still
};

struct DomainPage {
  static constexpr std::size_t client_count_max = 60;
  struct ClientSlot {
    std::atomic<std::int32_t> pid;  ///< 0: free
    std::atomic<std::uint32_t> terminated;
    std::atomic<std::uint32_t> terminate_acknowledged;
    std::atomic<std::uint32_t> faulted_alone;
    std::atomic<std::uint32_t> pieces_of_work;  ///< pieces of work that may write memory just now
    // The fault this client (or the server, for a dead one) proposes; valid once `fault` names the slot, or
    // `faulted_alone` says so.
    std::atomic<std::uint32_t> error;
    std::atomic<std::int64_t> when_ns;
    std::atomic<std::int64_t> faulter_error_due_ns;
    std::atomic<std::int64_t> co_client_error_due_ns;
    std::atomic<std::int64_t> mps_log_due_ns;
    std::atomic<std::int32_t> teller_pid;  ///< process that proposes it, and tells the kernel's log
    std::atomic<std::uint32_t> core_dump;  ///< a CoreDump
    std::atomic<std::uint32_t> newcomer;   ///< the client came while the domain was held
    std::atomic<std::uint32_t> worked_on;  ///< the client worked on after its dump
    // The exception with which this client proposes to hold the domain; valid once `held` names the slot.
    std::atomic<std::uint32_t> held_cause;
    std::atomic<std::uint32_t> held_access;
    std::atomic<std::uint64_t> held_address;
    std::atomic<std::uint32_t> held_exception;
    std::atomic<std::uint64_t> held_program_counter;
    std::atomic<std::uint32_t> held_multiprocessor;
    std::atomic<std::uint64_t> held_switches;
    std::atomic<std::int64_t> dumps_due_ns;
  };
  std::atomic<std::uint32_t> magic;
  std::atomic<std::int32_t> server_pid;  ///< 0: a domain without MPS
  std::atomic<std::uint32_t> server_gone;
  std::atomic<std::uint32_t> spoiled;
  std::atomic<std::uint32_t> fault;  ///< slot + 1 of the first fault; 0: healthy
  std::atomic<std::uint32_t> told;   ///< the lines in the kernel's log are on their way
  std::atomic<std::uint32_t> held;   ///< slot + 1 of the first exception that core dumps wait for; 0: none
  std::atomic<std::uint32_t> came_up_again;
  std::array<ClientSlot, client_count_max> clients;
};

/// One mapped domain. Thread safe; robust against processes that die at any point: a fault becomes visible by
/// one store, after its details.
class Domain {
 public:
  /// `server_pid` 0: the domain of a process without MPS.
  static Result<std::shared_ptr<Domain>> create(pid_t server_pid);
  /// Maps the domain that an MPS server sent; Protocol when it is none.
  static Result<std::shared_ptr<Domain>> from(os::Fd fd);

  int fd() const { return fd_.get(); }
  pid_t server_pid() const { return page_->server_pid.load(); }
  /// The process that stands for it: the server, or the only client.
  pid_t owner() const { return server_pid() != 0 ? server_pid() : client_pid(0); }

  /// A slot for the process; empty when all are taken.
  std::optional<std::uint32_t> join(pid_t pid);
  void leave(std::uint32_t slot);
  pid_t client_pid(std::uint32_t slot) const { return page_->clients[slot].pid.load(); }

  /// False when the domain had faulted before; the first fault stays.
  bool raise(const DomainFault& fault);
  /// The same for a fault that ends its client only.
  bool raise_alone(const DomainFault& fault);
  /// Marks the fault of the whole domain as told: no client may see its error, and end, while it is the one
  /// that is to tell of it.
  void mark_told() { page_->told.store(1); }
  /// True also where nobody is left to tell.
  bool is_told() const;
  /// Returns what ended the client: its own fault, or the domain's.
  std::optional<DomainFault> fault_of(std::uint32_t slot) const;
  bool is_faulted(std::uint32_t slot) const {
    return !healthy() || page_->clients[slot].faulted_alone.load() != 0;
  }
  bool healthy() const { return page_->fault.load(std::memory_order_acquire) == 0; }

  // CUDA's core dump mode: an exception of an SM holds the domain. Each client in the mode writes a dump, and
  // stands still until it is complete. The fault comes when all are, or when the faulter ends.
  void want_core_dump(std::uint32_t slot);
  void finish_core_dump(std::uint32_t slot);
  void refuse_core_dump(std::uint32_t slot);
  bool wants_core_dump(std::uint32_t slot) const { return core_dump_of(slot) == CoreDump::Wanted; }
  /// True when an exception would have to wait: somebody who lives is in the mode.
  bool has_core_dumps() const;
  /// False when the domain was held or had faulted before; the first exception stays.
  bool hold(const DomainHold& hold);
  /// Empty: nothing holds it, or the fault has come.
  std::optional<DomainHold> hold() const;
  bool is_held() const { return page_->held.load(std::memory_order_acquire) != 0 && healthy(); }
  /// Nobody's dump is waited for any more.
  bool is_hold_over() const;
  bool has_dumped(std::uint32_t slot) const { return core_dump_of(slot) == CoreDump::Complete; }
  /// Its work waits.
  bool stands_still(std::uint32_t slot) const {
    return is_held() && (core_dump_of(slot) != CoreDump::Complete || page_->came_up_again.load() != 0);
  }
  /// Notes that the exception which holds it has come up again as a memory fault: everybody's work waits.
  /// False: it had before.
  bool come_up_again() { return page_->came_up_again.exchange(1) == 0; }
  /// Notes that the client launches a kernel.
  void note_work(std::uint32_t slot) {
    if (has_dumped(slot)) page_->clients[slot].worked_on.store(1, std::memory_order_relaxed);
  }
  /// Another client has worked on after its dump, and is there still. Its kernels keep this one from being
  /// halted for its own dump (H100: docs/how/parking.md).
  bool has_worker_beside(std::uint32_t slot) const;
  /// True when another client has worked on after its dump, and is there still. Then the faulter goes on,
  /// too, before the domain falls, once its dump is complete (H100).
  bool falls_late(std::uint32_t faulter) const;
  /// Marks a client before the domain is given to it: for this client the fault is that of others.
  void mark_newcomer(std::uint32_t slot) { page_->clients[slot].newcomer.store(1); }
  bool is_newcomer(std::uint32_t slot) const { return page_->clients[slot].newcomer.load() != 0; }

  void terminate(std::uint32_t slot) { page_->clients[slot].terminated.store(1); }
  bool is_terminated(std::uint32_t slot) const { return page_->clients[slot].terminated.load() != 0; }
  void acknowledge_termination(std::uint32_t slot) { page_->clients[slot].terminate_acknowledged.store(1); }
  bool termination_acknowledged(std::uint32_t slot) const {
    return page_->clients[slot].terminate_acknowledged.load() != 0;
  }

  /// Around everything that may write memory, and before the client asks whether it is to stop.
  void begin_work(std::uint32_t slot) { page_->clients[slot].pieces_of_work.fetch_add(1); }
  void end_work(std::uint32_t slot) { page_->clients[slot].pieces_of_work.fetch_sub(1); }
  /// Nobody writes just now. The dead do not.
  bool is_quiet() const;
  /// Waits, after a fault was raised and everybody was woken, until nobody writes any more. A client that
  /// does not stop within `limit` is taken to be stopped itself.
  void wait_until_quiet(std::chrono::milliseconds limit) const;

  /// Its server had a fault while nobody else was its client: whoever comes now makes no context. Before the
  /// domain is given to anybody.
  void mark_spoiled() { page_->spoiled.store(1); }
  bool is_spoiled() const { return page_->spoiled.load() != 0; }

  void mark_server_gone() { page_->server_gone.store(1); }
  bool server_gone() const { return page_->server_gone.load() != 0; }

 private:
  Domain(os::Fd fd, os::Mapping mapping);
  void write_record(const DomainFault& fault);
  CoreDump core_dump_of(std::uint32_t slot) const {
    return static_cast<CoreDump>(page_->clients[slot].core_dump.load());
  }
  /// True when the client has not ended, and was not ended.
  bool is_there(std::uint32_t slot) const;
  os::Fd fd_;
  os::Mapping mapping_;
  DomainPage* page_;
};

}  // namespace firebreak::softgpu
