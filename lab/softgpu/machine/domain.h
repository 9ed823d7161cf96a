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

#include "abi/cuda_result.h"
#include "base/result.h"
#include "os/fd.h"
#include "os/memory.h"

namespace firebreak::softgpu {

/// The fault that ended a domain, as its processes need to know it. Times are CLOCK_MONOTONIC.
struct DomainFault {
  CUresult error = CUDA_SUCCESS;
  std::uint32_t faulter_slot = 0;
  std::int64_t when_ns = 0;
  std::int64_t faulter_error_due_ns = 0;    ///< API calls of the faulter answer `error` from here on
  std::int64_t co_client_error_due_ns = 0;  ///< and those of the others from here on
  std::int64_t mps_log_due_ns = 0;          ///< the MPS server's log tells of it
};

struct DomainPage {
  static constexpr std::size_t client_count_max = 60;
  struct ClientSlot {
    std::atomic<std::int32_t> pid;  ///< 0: free
    std::atomic<std::uint32_t> terminated;
    std::atomic<std::uint32_t> terminate_acknowledged;
    std::atomic<std::uint32_t> faulted_alone;
    std::atomic<std::uint32_t> pieces_of_work;  ///< that may write memory just now
    // The fault this client (or the server, for a dead one) proposes; valid once `fault` names the slot, or
    // `faulted_alone` says so.
    std::atomic<std::uint32_t> error;
    std::atomic<std::int64_t> when_ns;
    std::atomic<std::int64_t> faulter_error_due_ns;
    std::atomic<std::int64_t> co_client_error_due_ns;
    std::atomic<std::int64_t> mps_log_due_ns;
  };
  std::atomic<std::uint32_t> magic;
  std::atomic<std::int32_t> server_pid;  ///< 0: a domain without MPS
  std::atomic<std::uint32_t> server_gone;
  std::atomic<std::uint32_t> spoiled;
  std::atomic<std::uint32_t> fault;  ///< slot + 1 of the first fault; 0: healthy
  std::atomic<std::uint32_t> told;   ///< what the kernel's log says of it is on its way
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

  /// A slot for the process; empty when all are taken.
  std::optional<std::uint32_t> join(pid_t pid);
  void leave(std::uint32_t slot);
  pid_t client_pid(std::uint32_t slot) const { return page_->clients[slot].pid.load(); }

  /// False when the domain had faulted before; the first fault stays.
  bool raise(const DomainFault& fault);
  /// The same for a fault that ends its client only.
  bool raise_alone(const DomainFault& fault);
  /// Of the fault of the whole domain: no client may see its error, and end, while it is the one that is to
  /// tell of it.
  void mark_told() { page_->told.store(1); }
  /// Also where nobody is left to tell.
  bool is_told() const;
  /// What ended the client: its own fault, or the domain's.
  std::optional<DomainFault> fault_of(std::uint32_t slot) const;
  bool is_faulted(std::uint32_t slot) const {
    return !healthy() || page_->clients[slot].faulted_alone.load() != 0;
  }
  bool healthy() const { return page_->fault.load(std::memory_order_acquire) == 0; }

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
  /// After a fault was raised and everybody was woken: until nobody writes any more. Who does
  /// not stop within `limit` is taken to be stopped itself.
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
  os::Fd fd_;
  os::Mapping mapping_;
  DomainPage* page_;
};

}  // namespace firebreak::softgpu
