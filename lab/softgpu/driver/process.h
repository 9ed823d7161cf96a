// SPDX-License-Identifier: Apache-2.0
/// Everything that the driver knows in one process. Made by cuInit, never destroyed: a process may exit while
/// endless kernels run.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>

#include "softgpu/driver/array.h"
#include "softgpu/driver/captures.h"
#include "softgpu/driver/completion.h"
#include "softgpu/driver/context.h"
#include "softgpu/driver/core_dump_mode.h"
#include "softgpu/driver/device_attributes.h"
#include "softgpu/driver/device_memory.h"
#include "softgpu/driver/domain_membership.h"
#include "softgpu/driver/driver_addresses.h"
#include "softgpu/driver/event.h"
#include "softgpu/driver/gpu_control.h"
#include "softgpu/driver/graph.h"
#include "softgpu/driver/green_context.h"
#include "softgpu/driver/handle_table.h"
#include "softgpu/driver/host_files.h"
#include "softgpu/driver/module.h"
#include "softgpu/driver/presence.h"
#include "softgpu/driver/shared_memory.h"
#include "softgpu/driver/uvm_space.h"
#include "softgpu/driver/virtual_memory.h"
#include "softgpu/machine/rm_client.h"

namespace firebreak::softgpu::driver {

/// The primary context: one a process, counted by those who retain it.
struct PrimaryContext {
  std::mutex mutex;
  std::shared_ptr<Context> context;
  std::uint32_t references = 0;
  unsigned int flags = 0;
};

/// Thread safe.
class Process {
 public:
  /// Makes the one object of this process; again and again is fine. NOT_INITIALIZED in a child of fork().
  static CUresult initialise();
  /// Null before cuInit and in a child of fork().
  static Process* current();

  SharedGpu& gpu() { return *gpu_; }
  Domain& domain() { return *member().of.domain; }
  void note_work() {
    if (core_dump_mode_.is_in_order()) domain().note_work(slot());
  }
  bool is_mps_client() const { return member().of.server.has_value(); }
  /// Host memory that the GPU may write from now on; the MPS server hears of it.
  void share_host_memory(void* host, std::size_t size_bytes);
  /// A stream's word is queued, and later done: what is left when the process dies is the MPS server's to do,
  /// unless it would vouch for work that nobody does then.
  RmClient::Ticket queue_word(std::uint64_t address, std::uint64_t value, std::uint32_t size_bytes);
  void finish_word(RmClient::Ticket ticket) { rm_client_.finish_word(ticket); }
  /// The resource manager sees this process so.
  RmClient& rm_client() { return rm_client_; }
  /// How many SMs it may use.
  int sm_count() const { return sm_count_; }
  CoreDumpMode& core_dump_mode() { return core_dump_mode_; }
  GpuControl& control() { return control_; }
  CompletionHub& completions() { return completions_; }
  AddressSpace& space() { return uvm_.space(); }
  DeviceMemory& memory() { return memory_; }
  const DeviceMemory& memory() const { return memory_; }
  SharedMemory& shared_memory() { return shared_memory_; }
  VirtualMemory& virtual_memory() { return virtual_memory_; }
  const VirtualMemory& virtual_memory() const { return virtual_memory_; }

  HandleTable<Context>& contexts() { return contexts_; }
  HandleTable<Module>& modules() { return modules_; }
  HandleTable<Function>& functions() { return functions_; }
  HandleTable<Event>& events() { return events_; }
  HandleTable<Graph>& graphs() { return graphs_; }
  HandleTable<GraphExec>& graph_execs() { return graph_execs_; }
  HandleTable<Array>& arrays() { return arrays_; }
  HandleTable<MipmappedArray>& mipmapped_arrays() { return mipmapped_arrays_; }
  HandleTable<ResourceDescription>& resource_descriptions() { return resource_descriptions_; }
  HandleTable<GreenContext>& green_contexts() { return green_contexts_; }
  Captures& captures() { return captures_; }
  PrimaryContext& primary() { return primary_; }

  /// This comes before a context is made: it waits where an exception holds the domain, and takes part in
  /// core dumps from then on. It answers why the context cannot be made, if it cannot.
  CUresult await_context();
  /// Takes part in core dumps from now on, where it is in their mode and has a context.
  void enter_core_dump_mode();
  std::shared_ptr<Context> create_context(const ContextOptions& options);
  /// Waits for the work of a context, and of the green ones that belong to it.
  CUresult synchronize(Context& context);
  /// Makes the device itself fail, noticed in this process; and waits until that shows;
  /// INVALID_VALUE when the table has no such Xid.
  CUresult raise_device_fault(int xid);
  /// Ends a context and whatever is current on it; INVALID_CONTEXT when there is none.
  CUresult destroy_context(CUcontext handle);
  /// This is about a domain that an exception holds, as leave_held_domain() has it.
  void give_last_context_back();

 private:
  Process(std::shared_ptr<SharedGpu> gpu, DomainMembership membership, UvmDescriptor va_space,
          os::Fd memory_manager, RmClient rm_client, Presence presence);
  static Answer<Process*> create();
  /// The process's one background thread: looks at the domain and the GPU whenever anything has changed.
  void watch_machine();
  struct Member {
    DomainMembership of;
    std::atomic<bool> has_left{false};
    std::atomic<bool> may_join_another{false};
  };
  Member& member() { return *member_.load(std::memory_order_acquire); }
  const Member& member() const { return *member_.load(std::memory_order_acquire); }
  std::uint32_t slot() const { return member().of.slot; }
  bool server_is_gone();
  /// A client whose last context is gone has left its server, which waits for that after a fault (H100:
  /// docs/how/spare.md).
  void leave_server();
  /// This lock guards joining_.
  CUresult join_again();
  void become(DomainMembership membership);
  void take_mps_limits();
  /// This tells whether the process goes on as though the work were done.
  bool deliver(const WorkFault& fault);
  /// An exception holds the domain, and this process's dump is wanted.
  void begin_core_dump();
  void dump_core(const DomainHold& hold);

  Presence presence_;
  std::shared_ptr<SharedGpu> gpu_;
  std::mutex joining_;
  std::deque<Member> members_;  ///< for good, as the places of GpuControl
  std::atomic<Member*> member_{nullptr};
  os::Fd uvm_memory_manager_;
  RmClient rm_client_;
  HostFiles host_files_;
  double speed_;
  CoreDumpMode core_dump_mode_;
  std::mutex hold_mutex_;  ///< one exception of this process at a time proposes to hold the domain
  std::atomic<bool> dumps_core_ = false;  ///< it has begun to
  int sm_count_ = multiprocessor_count;
  UvmSpace uvm_;
  GpuControl control_;
  CompletionHub completions_;
  DriverAddresses addresses_;
  DeviceMemory memory_;
  VirtualMemory virtual_memory_;
  SharedMemory shared_memory_;
  std::shared_ptr<StreamHost> stream_host_;
  std::atomic<int> losable_work_{0};  ///< pieces of it, submitted and not done
  HandleTable<Context> contexts_;
  HandleTable<Module> modules_;
  HandleTable<Function> functions_;
  HandleTable<Event> events_;
  HandleTable<Graph> graphs_;
  HandleTable<GraphExec> graph_execs_;
  HandleTable<Array> arrays_;
  HandleTable<MipmappedArray> mipmapped_arrays_;
  HandleTable<ResourceDescription> resource_descriptions_;
  HandleTable<GreenContext> green_contexts_;
  Captures captures_;
  PrimaryContext primary_;
  std::atomic<std::uint64_t> next_context_id_{1};
};

}  // namespace firebreak::softgpu::driver
