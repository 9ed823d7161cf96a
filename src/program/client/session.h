// SPDX-License-Identifier: Apache-2.0
/// This class stands behind an fb_session: one process's membership in its tenant.
#pragma once

#include <firebreak/firebreak.h>

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ground/os/file.h"
#include "ground/os/memory.h"
#include "program/client/failure.h"
#include "program/client/gpu_memory.h"
#include "program/client/injection_hook.h"
#include "program/cuda/address_reservation.h"
#include "program/cuda/host_registration.h"
#include "program/journal/commit_writer.h"
#include "shared/link/agent_link.h"

namespace firebreak::client {

/// How to join; empty strings come from the environment.
struct JoinOptions {
  std::string socket_path;
  std::string tenant;
  fb_role role{};
};

/// This one tells the GPU to count a step.
enum class Counting {
  Library,  ///< we do, with a call of the driver
  Tenant,   ///< the tenant's own kernel does
};

/// One thread at a time uses it, as firebreak.h says; any thread may call role() and committed().
class Session {
 public:
  static Outcome<std::unique_ptr<Session>> join(const JoinOptions& options);
  /// The thread of the link, which writes to the page, ends first.
  ~Session() { link_.reset(); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  fb_role role() const { return role_.load(std::memory_order_acquire); }
  Outcome<std::uint64_t> allocate(const std::string& name, std::uint64_t size_bytes, abi::Memory memory,
                                  Milliseconds timeout);
  Outcome<void> share();
  Outcome<std::uint64_t> map_shared(const std::string& owner, const std::string& name, Milliseconds timeout);
  Outcome<void> ready();
  Outcome<fb_resume> wait_promotion(Milliseconds timeout);
  Outcome<void> commit(CUstream stream, std::uint64_t step, const journal::NewState& state,
                       Counting counting);
  Outcome<std::uint64_t> counter();
  std::uint64_t committed() const;
  Outcome<void> heartbeat(CUstream stream);
  Outcome<void> resumed();
  Outcome<void> turn(Milliseconds timeout);
  Outcome<void> turn_wanted(std::int64_t deadline_ns, std::uint64_t units);
  Outcome<void> stand_down();
  Outcome<void> leave();

  // The tenant's own clients, in session_clients.cpp.
  Outcome<void> listen(int descriptor);
  /// The caller's to close, as the next one.
  Outcome<os::Fd> listener();
  struct ClientConnection {
    std::uint64_t id = 0;
    os::Fd descriptor;
  };
  Outcome<ClientConnection> next_connection(std::uint64_t after);
  Outcome<std::uint64_t> send(int descriptor, std::uint64_t offset, std::span<const std::byte> bytes);
  Outcome<void> release_connection(std::uint64_t id);

  std::string last_error;  ///< fb_last_error shows this.

 private:
  /// What an allocation needs at once; the driver keeps one of them where it is the software GPU.
  static constexpr std::uint64_t descriptors_of_an_allocation = 8;

  /// `page_file` is a descriptor of what `shared` maps.
  Session(std::unique_ptr<link::AgentLink> link, os::Mapping shared, os::Fd page_file, const abi::Join& asked,
          const abi::Joined& joined);

  abi::SharedMemory& shared() const { return *shared_.as<abi::SharedMemory>(); }
  abi::SharedPage& page() const { return shared().page; }
  abi::PromotionWord promotion() {
    return abi::PromotionWord::from(page().promotion.load(std::memory_order_acquire));
  }
  Outcome<void> for_the_active();
  /// Nobody else is active, or is asked for in its place.
  Outcome<void> still_ours();
  bool fenced() {
    return role() == FB_ROLE_ACTIVE && (promotion().epoch != epoch_ || hand_over_state() == HandOver::Taken);
  }
  using HandOver = abi::HandOverWord::State;
  /// This is this epoch's word.
  HandOver hand_over_state();
  std::uint32_t offer_hand_over();
  bool withdraw_hand_over(std::uint32_t number, bool is_refused);
  /// Loads the driver where that has not happened, and says which device is current.
  Outcome<cuda::Device> current_device();
  void enter_core_dump_mode();
  /// It holds when all that was queued has ended, and the context still takes work.
  Outcome<void> come_to_rest();
  void note_class();
  bool is_step_queued_ahead() const;
  Outcome<void> register_page();
  Outcome<void> reserve_arena();
  // Shared memory, in session_shared.cpp.
  Outcome<void> reserve_shared();
  Outcome<std::uint64_t> create_shared(const std::string& name, std::uint64_t size_bytes);
  Outcome<std::uint64_t> publish_shared(const std::string& name);
  bool can_share() const { return shared_bytes_ > 0; }
  Outcome<std::uint64_t> create(const std::string& name, std::uint64_t size_bytes, abi::Memory memory);
  Outcome<std::uint64_t> publish(const std::string& name);
  Outcome<std::uint64_t> import(const std::string& name, const link::AgentLink::SharedAllocation& shared);
  Outcome<GpuMemory> import_memory(const link::AgentLink::SharedAllocation& shared);
  Outcome<void> become_active(std::uint32_t epoch);
  /// The epoch in which this process is the active one, where it was promoted.
  std::optional<std::uint32_t> own_promotion();
  /// The GPU writes `value` there once all that was queued before has ended. `word` lies in the shared page.
  Outcome<void> publish(CUstream stream, std::atomic<std::uint64_t>& word, std::uint64_t value);
  /// The GPU sees a word of the shared page, which has been registered, there.
  CUdeviceptr device_address_of(const std::atomic<std::uint64_t>& word) const;
  journal::CommitWriter& writer();
  Outcome<void> append(CUstream stream, const journal::NewState& state);
  cuda::Access access_to(const link::AgentLink::SharedAllocation& shared) const;
  fb_resume resume_point() const;

  std::atomic<bool> is_to_hand_over_ = false;  ///< somebody asked for it; the link's thread sets it
  std::unique_ptr<InjectionHook> injections_;  ///< This stands before link_, whose thread calls it.
  std::unique_ptr<link::AgentLink> link_;
  os::Mapping shared_;
  os::Fd page_file_;
  std::optional<os::InterprocessMutex>
      sending_;                ///< whoever has it sends to clients, if it is still the active one
  std::atomic<fb_role> role_;  ///< the two are read by any thread; the epoch is set before the role
  std::atomic<std::uint32_t> epoch_;
  std::uint32_t member_;  ///< The shared page names us so.
  std::string tenant_;
  std::uint64_t arena_base_;
  std::uint64_t next_address_;
  std::uint64_t shared_base_;
  std::uint64_t shared_bytes_;  ///< 0: the agent shares nothing
  std::optional<journal::CommitWriter> writer_;
  journal::Recovered recovered_;
  std::int64_t promoted_at_ns_ = 0;
  bool has_asked_for_core_dumps_ = false;  ///< enter_core_dump_mode()
  std::string agent_socket_;
  std::shared_ptr<const cuda::Driver> driver_;  ///< This stands before all that is made with it.
  std::optional<cuda::HostRegistration> registration_;
  std::optional<cuda::AddressReservation> arena_;
  std::optional<cuda::AddressReservation> shared_arena_;
  std::map<std::string, GpuMemory> allocations_;
  std::map<std::pair<std::string, std::string>, GpuMemory> of_others_;  ///< by their owners and their names
  /// Made, and offered to the agent, which has not answered: whoever asks for it again gets this one.
  struct Unpublished {
    std::uint64_t address = 0;
    std::uint64_t size_bytes = 0;
    abi::Memory memory = abi::Memory::State;
    GpuMemory::Created created;
  };
  std::map<std::string, Unpublished> unpublished_;
  /// The same of shared memory, which is mapped once the agent has said where.
  struct Unplaced {
    std::uint64_t size_bytes = 0;
    GpuMemory::Made made;
  };
  std::map<std::string, Unplaced> unplaced_;
  bool may_write_shared_ = false;    ///< this process has it writable, and may have work under way there
  bool has_asked_to_share_ = false;  ///< and was not answered
  std::uint32_t hand_overs_ = 0;     ///< tries
  std::int64_t last_turn_ns_ = 0;    ///< when a turn was last given without a wait; 0: it was not
  bool has_told_of_wishes_ = false;  ///< this active has
};

}  // namespace firebreak::client
