// SPDX-License-Identifier: Apache-2.0
/// The guard of one process: the driver's allocating functions, answered so that what they give lies inside
/// the guard ranges, and nothing else changes for the caller. Who puts these functions in the driver's place
/// is guard/preload.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "ground/base/clock.h"
#include "ground/os/kernel.h"
#include "program/cuda/driver.h"
#include "program/guard/guarded_address_space.h"
#include "program/guard/ledger.h"
#include "program/guard/reach.h"
#include "program/guard/slabs.h"
#include "shared/abi/cuda_driver.h"
#include "shared/abi/cuda_opaque_types.h"
#include "shared/guard_page/probe_result.h"

namespace firebreak::guard {

/// 1: memory of cuMemAlloc is the driver's own, so that it can be shared with other processes
/// (cuIpcGetMemHandle); what lies behind its ends is then not guarded.
inline constexpr const char* sharing_variable = "FIREBREAK_GUARD_IPC";

/// 0: nothing is guarded; for a program that is to have something else of the library.
inline constexpr const char* guard_variable = "FIREBREAK_GUARD";

/// How many GiB the guarded ranges reach to both sides of every allocation; 0: none around what the driver
/// has placed.
inline constexpr const char* reach_variable = "FIREBREAK_GUARD_REACH_GIB";

/// How many milliseconds the start of a process with an agent waits at most until its strays are heard.
inline constexpr const char* wait_variable = "FIREBREAK_GUARD_WAIT_MS";

/// Thread safe. Every function has the meaning of the driver's of nearly the same name, and answers with the
/// driver's own error where the driver refused. Where the guard is off, or has no addresses left, it passes
/// the call on: then the allocation lies where the driver puts it, unguarded, and the guard page says so.
class Guard {
 public:
  /// `driver` and `kernel` outlive it. The guard page is there from now on. start() waits for somebody who
  /// hears strays, for at most `patience`: what strays before is contained, and nobody would know.
  static Result<std::unique_ptr<Guard>> create(const cuda::Driver& driver, os::Kernel& kernel,
                                               GuardedAddressSpaceSettings settings = {},
                                               Milliseconds patience = {});

  /// Lays the guard ranges, unless it is known not to work here (shared/guard_page/probe_result.h); the
  /// process has a context by now, and with it what that takes. Afterwards it does nothing more.
  void start();
  /// The same where the calling thread has a context, which is cheap to ask.
  void start_within_context();
  bool is_on() const { return on_.load(std::memory_order_acquire); }
  /// Lets the driver allocate by itself from now on, as for peers and other processes that want to reach the
  /// memory; also before start().
  void pass_through(const std::string& reason);
  /// Returns cuIpcGetMemHandle's answer for memory of ours, which the driver cannot share; says once what to
  /// do.
  CUresult refuse_to_share();
  Ledger& ledger() { return ledger_; }

  /// The process works in another of its GPU address spaces from now on (settings.find_descriptors). Nobody
  /// gives the GPU work meanwhile, and whoever waits for that may hold what is ours.
  void follow_address_space();
  /// It works in none until follow_address_space(): nothing of ours keeps the one that it leaves.
  void leave_address_space();

  // cuMemAlloc and what goes with it (device_allocations.cpp).
  CUresult allocate(abi::GuardFunction function, CUdeviceptr* pointer, std::size_t size_bytes);
  CUresult allocate_pitch(CUdeviceptr* pointer, std::size_t* pitch_bytes, std::size_t width_bytes,
                          std::size_t height, unsigned int element_bytes);
  // The other way (freeing.cpp). Empty: not one of ours.
  /// Waits for the work of the context that it was made in, whichever is current; while a stream is captured
  /// it does not wait, and the memory goes later.
  std::optional<CUresult> free(CUdeviceptr pointer);
  /// The memory goes when the stream has come so far.
  std::optional<CUresult> free_in_order(CUdeviceptr pointer, CUstream stream);
  /// These tell which streams are captured, since then nothing may be waited for.
  void capture_begins(CUstream stream);
  void capture_ends(CUstream stream);
  /// The allocation of ours that the address lies in, by begin and size as they were asked for.
  struct Range {
    CUdeviceptr begin = 0;
    std::size_t size_bytes = 0;
    CUcontext context = nullptr;  ///< context in which it was allocated
    unsigned long long id = 0;    ///< no other allocation has or had it, of ours or of the driver's
  };
  std::optional<Range> find(CUdeviceptr pointer) const;
  /// A context has gone, and with it what was allocated in it.
  void forget_context(CUcontext context);
  /// Notes which context is a device's primary one, and that it has gone: answers which it was, or null.
  void note_primary(CUdevice device, CUcontext context);
  CUcontext forget_primary(CUdevice device);
  /// Notes a green context: what is allocated in one is its device's primary context's. Answers the device,
  /// or none.
  void note_green(CUgreenCtx green, CUdevice device);
  void note_green_context(CUgreenCtx green, CUcontext context);
  std::optional<CUdevice> forget_green(CUgreenCtx green);

  // Notes what the driver has placed itself (placements.cpp), and what ended it.
  void placed(abi::GuardFunction function, CUdeviceptr begin, std::size_t size_bytes);
  void displaced(CUdeviceptr begin);
  /// An array was made, whose address nobody knows; displaced() ends it, by its handle.
  void array_made(abi::GuardFunction function, const void* array, std::size_t size_bytes);

  // Reservations and mappings (reservations.cpp): after the driver's function, or in its place.
  CUresult reserve(CUdeviceptr* begin, std::size_t size_bytes, std::size_t alignment_bytes, CUdeviceptr hint,
                   unsigned long long flags);
  CUresult release(CUdeviceptr begin, std::size_t size_bytes);
  void mapped(CUdeviceptr begin, std::size_t size_bytes);
  CUresult unmap(CUdeviceptr begin, std::size_t size_bytes);
  CUresult set_access(CUdeviceptr begin, std::size_t size_bytes, const CUmemAccessDesc* rights,
                      std::size_t count);

 private:
  struct Allocation {
    std::size_t size_bytes = 0;  ///< size as asked for
    os::AddressRange block;      ///< block in which it lies
    bool in_slab = false;
    CUcontext context = nullptr;
    unsigned long long id = 0;
  };
  /// Freed by the program, and still used by what it had launched before.
  struct Leaving {
    CUdeviceptr pointer = 0;
    Allocation allocation;
    CUcontext event_context = nullptr;
    CUevent event = nullptr;  ///< null: until its context is idle
  };

  Guard(const cuda::Driver& driver, os::Kernel& kernel, Ledger ledger, GuardedAddressSpaceSettings settings,
        Milliseconds patience)
      : driver_(driver),
        kernel_(kernel),
        ledger_(std::move(ledger)),
        settings_(settings),
        patience_(patience) {}

  Status lay_guard_ranges(GuardRanges guard_ranges);
  Status come_up(const ProbeResult& result);
  void wait_until_heard();
  /// Puts fresh memory of the current device behind a taken range.
  CUresult back_with_memory(os::AddressRange range);
  void take_memory_away(os::AddressRange range);
  /// Memory for one large allocation or for a slab; CUDA_ERROR_OUT_OF_MEMORY also where addresses are
  /// missing.
  CUresult make_block(std::size_t size_bytes, os::AddressRange* block);
  CUresult allocate_large(std::size_t size_bytes, Allocation* allocation, CUdeviceptr* pointer);
  CUresult allocate_small(std::size_t size_bytes, CUcontext context, Allocation* allocation,
                          CUdeviceptr* pointer);
  CUresult allocate_ours(std::size_t size_bytes, CUcontext context, Allocation* allocation,
                         CUdeviceptr* address);
  void drop(CUdeviceptr pointer, const Allocation& allocation);
  /// The context that an allocation in this one belongs to.
  CUcontext home_of(CUcontext context) const;
  bool is_capturing() const { return captures_.load() != 0; }
  /// Returns what the driver would say of an allocation or its end while streams are captured.
  CUresult ask_about_captures(CUcontext context);
  CUresult wait_for(CUcontext context);
  CUresult record_end(CUstream stream, Leaving* leaving);
  /// Lets go what nobody uses any more.
  void let_go();
  /// Waits until nobody does; false: there was nothing.
  bool wait_and_let_go();
  void let_go_of(CUcontext context);
  std::vector<os::AddressRange> guarded_parts(os::AddressRange range) const;
  Status open_all(const std::vector<os::AddressRange>& parts);
  void close_all(const std::vector<os::AddressRange>& parts);

  const cuda::Driver& driver_;
  os::Kernel& kernel_;
  Ledger ledger_;
  GuardedAddressSpaceSettings settings_;
  Milliseconds patience_;
  std::mutex start_mutex_;  ///< guards the next
  std::string passing_;     ///< why the driver allocates by itself; empty: it does not
  std::once_flag share_refused_;
  std::atomic<bool> started_{false};
  std::atomic<bool> on_{false};
  std::atomic<bool> allocates_{false};
  std::unique_ptr<GuardedAddressSpace> address_space_;

  mutable std::mutex mutex_;  ///< guards what follows; the driver is called with it held
  std::map<CUdeviceptr, Allocation> allocations_;
  unsigned long long last_id_ = 1ULL << 62U;  ///< The driver counts from 1.
  std::map<CUdeviceptr, CUcontext> placed_;   ///< allocations that the driver placed, and in which context
  std::vector<Leaving> leaving_;
  std::vector<CUstream> captured_;
  std::atomic<std::size_t> captures_{0};  ///< how many those are
  std::atomic<int> waits_{0};             ///< how many threads wait for a context, or are about to
  std::map<CUcontext, Slabs> slabs_;
  std::map<CUdevice, CUcontext> primaries_;
  struct Green {
    CUdevice device = 0;
    CUcontext context = nullptr;  ///< null: nobody has asked for it yet
  };
  std::map<CUgreenCtx, Green> greens_;
  std::map<CUdeviceptr, std::uint64_t> adopted_;  ///< reservations of the program's: begin -> end
  Reach reach_;                                   ///< reach of what lies in them
};

}  // namespace firebreak::guard
