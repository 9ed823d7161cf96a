// SPDX-License-Identifier: Apache-2.0
#include "softgpu/driver/process.h"

#include <dlfcn.h>
#include <pthread.h>

#include <chrono>
#include <cstdlib>
#include <thread>
#include <utility>

#include "ground/base/clock.h"
#include "ground/os/self.h"
#include "softgpu/driver/mps_limits.h"
#include "softgpu/environment.h"
#include "softgpu/machine/fault_delivery.h"

namespace firebreak::softgpu::driver {

namespace {

/// The one object, and whether this process is a child of one that had it.
struct Instance {
  std::mutex mutex;
  std::atomic<Process*> process{nullptr};
  std::atomic<bool> forked{false};
};

Instance& instance() {
  static Instance* only = new Instance;  // outlives static destructors: threads may still run then
  return *only;
}

std::optional<Nanoseconds> orphaned_work_from_environment() {
  constexpr long default_ms = 100;
  const auto text = os::environment_variable(environment::orphaned_work_ms);
  if (text == "endless") return std::nullopt;
  return std::chrono::milliseconds(text ? std::strtol(text->c_str(), nullptr, 10) : default_ms);
}

/// Its threads outlive a program's dlclose().
void stay_loaded() {
  Dl_info own{};
  if (::dladdr(reinterpret_cast<void*>(&stay_loaded), &own) != 0) (void)::dlopen(own.dli_fname, RTLD_NOW);
}

/// The process gives it back before its end shows. For a process that is killed its server does it, after
/// that.
void give_context_back_at_exit() {
  Process* const process = Process::current();
  if (process != nullptr && !process->contexts().all().empty()) process->give_last_context_back();
}

void disable_in_child() {
  // The child has all that its parent had on the GPU, which lives on with it.
  if (Process* const parent = instance().process.load()) parent->rm_client().add_child(os::own_pid());
  instance().process.store(nullptr);
  instance().forked.store(true);
}

/// Their memory goes with the context.
template <class Object>
void forget_all_of(CUcontext context, HandleTable<Object>& table) {
  for (const auto& object : table.all()) {
    if (object->context == context) table.remove(object.get());
  }
}

}  // namespace

Process* Process::current() { return instance().process.load(std::memory_order_acquire); }

CUresult Process::initialise() {
  if (current() != nullptr) return CUDA_SUCCESS;
  if (instance().forked.load()) return CUDA_ERROR_NOT_INITIALIZED;
  const std::lock_guard lock(instance().mutex);
  if (current() != nullptr) return CUDA_SUCCESS;
  const auto process = create();
  if (!process) return process.error();
  if (pthread_atfork(nullptr, nullptr, &disable_in_child) != 0 ||
      std::atexit(&give_context_back_at_exit) != 0)
    return CUDA_ERROR_OPERATING_SYSTEM;
  stay_loaded();
  std::thread(&Process::watch_machine, *process).detach();
  instance().process.store(*process, std::memory_order_release);
  return CUDA_SUCCESS;
}

Answer<Process*> Process::create() {
  auto gpu = SharedGpu::open_own();
  if (!gpu || !(*gpu)->enter()) return refuse(CUDA_ERROR_SYSTEM_NOT_READY);
  auto va_space = UvmDescriptor::create();
  auto memory_manager = create_memory_manager_descriptor();
  auto rm_client = RmClient::create(orphaned_work_from_environment());
  if (!va_space || !memory_manager || !rm_client) return refuse(CUDA_ERROR_OPERATING_SYSTEM);
  auto presence = Presence::create();
  if (!presence) return refuse(presence.error());
  auto membership = join_domain(*va_space, *rm_client);
  if (!membership) return refuse(membership.error());
  return new Process(std::move(*gpu), std::move(*membership), std::move(*va_space),
                     std::move(*memory_manager), std::move(*rm_client), std::move(*presence));
}

Process::Process(std::shared_ptr<SharedGpu> gpu, DomainMembership membership, UvmDescriptor va_space,
                 os::Fd memory_manager, RmClient rm_client, Presence presence)
    : presence_(std::move(presence)),
      gpu_(std::move(gpu)),
      uvm_memory_manager_(std::move(memory_manager)),
      rm_client_(std::move(rm_client)),
      speed_(speed_from_environment()),
      core_dump_mode_(core_dump_settings()),
      uvm_(std::move(va_space), speed_, os::environment_variable(environment::uvm_asks_cpu) == "1"),
      control_(gpu_, membership.domain, membership.slot),
      completions_(control_),
      memory_(gpu_, uvm_, addresses_),
      virtual_memory_(gpu_, uvm_, addresses_),
      shared_memory_(memory_, uvm_, addresses_),
      stream_host_(std::make_shared<StreamHost>()) {
  become(std::move(membership));
  if (is_mps_client()) take_mps_limits();
  stream_host_->control = &control_;
  stream_host_->completions = &completions_;
  stream_host_->count_work = [this](bool begins) {
    begins ? rm_client_.begin_work() : rm_client_.end_work();
  };
  stream_host_->count_waiting = [this](bool begins) {
    begins ? rm_client_.begin_wait() : rm_client_.end_wait();
  };
  stream_host_->count_writing = [this](bool begins) {
    begins ? domain().begin_work(slot()) : domain().end_work(slot());
  };
  stream_host_->count_losable = [this](bool begins) { losable_work_ += begins ? 1 : -1; };
  stream_host_->deliver_fault = [this](const WorkFault& fault) { return deliver(fault); };
}

/// The device says fewer SMs and as much memory as ever, and less of it free, as on an H100 with driver 580.
void Process::take_mps_limits() {
  sm_count_ = sm_count_from_environment(multiprocessor_count);
  if (const auto bytes = memory_limit_from_environment()) gpu_->limit_own_memory(*bytes);
}

bool Process::deliver(const WorkFault& fault) {
  const pid_t pid = os::own_pid();
  const FaultReport report{fault.cause, fault.access, fault.address, slot(), pid, process_name(pid), false};
  const auto is_held = [&] {
    const std::lock_guard lock(hold_mutex_);
    return hold_domain(*gpu_, domain(), &uvm_.descriptor(), report, *fault.exception, speed_);
  };
  if (fault.exception && is_held()) return control_.outlives_own_dump();
  deliver_fault(*gpu_, domain(), &uvm_.descriptor(), report, speed_);
  return false;
}

void Process::begin_core_dump() {
  const auto hold = domain().hold();
  if (dumps_core_ || !hold || !domain().wants_core_dump(slot())) return;
  const bool is_trap = hold->cause == FaultCause::Trap || hold->cause == FaultCause::Breakpoint ||
                       hold->cause == FaultCause::Assertion;
  if (is_trap && hold->faulter_slot != slot() && !core_dump_mode_.dumps_after_traps()) {
    domain().refuse_core_dump(slot());
    return gpu_->wake_everybody();
  }
  dumps_core_ = true;
  // The dump has a thread of its own: somebody may let it wait for ever to write.
  (void)os::start_detached_thread("cuda-core-dump", [this, hold] { dump_core(*hold); });
}

void Process::dump_core(const DomainHold& hold) {
  std::this_thread::sleep_until(from_ns(hold.dumps_due_ns));
  control_.wait_until_halted(hold);
  core_dump_mode_.write(hold.exception, hold.faulter_slot == slot());
  domain().finish_core_dump(slot());
  gpu_->wake_everybody();
  // A server does that for its clients.
  if (!is_mps_client()) end_hold(*gpu_, domain(), speed_);
  if (core_dump_mode_.aborts()) std::abort();
}

CUresult Process::await_context() {
  {
    const std::lock_guard lock(joining_);
    if (const CUresult error = join_again(); error != CUDA_SUCCESS) return error;
  }
  control_.wait_while_still();
  if (core_dump_mode_.is_on()) domain().want_core_dump(slot());
  return control_.sticky_error();
}

void Process::enter_core_dump_mode() {
  if (core_dump_mode_.is_on() && !contexts_.all().empty()) domain().want_core_dump(slot());
}

CUresult Process::raise_device_fault(int xid) {
  if (find_device_fault(xid) == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const pid_t pid = os::own_pid();
  FaultReport report;
  report.slot = slot();
  report.pid = pid;
  report.process_name = process_name(pid);
  deliver_device_fault(*gpu_, domain(), xid, report, speed_);
  if (const auto due_ns = control_.error_due_ns()) std::this_thread::sleep_until(from_ns(*due_ns));
  return CUDA_SUCCESS;
}

void Process::share_host_memory(void* host, std::size_t size_bytes) {
  if (!is_mps_client()) return;
  host_files_.add(*member().of.server, reinterpret_cast<std::uint64_t>(host), size_bytes);
}

RmClient::Ticket Process::queue_word(std::uint64_t address, std::uint64_t value, std::uint32_t size_bytes) {
  if (losable_work_ > 0) return RmClient::no_ticket;
  const auto place = host_files_.find(address);
  return place ? rm_client_.queue_word({*place, value, size_bytes}) : RmClient::no_ticket;
}

bool Process::server_is_gone() {
  Member& now = member();
  if (!now.of.server || now.has_left) return false;
  const auto received = now.of.server->receive(Milliseconds(0));
  if (received) now.has_left = true;  // a later instance of this process has taken it: goodbye
  const bool is_over = !received && received.error().code != ErrorCode::Timeout;
  return is_over && !now.has_left;  // true also when it is our own end of it
}

void Process::watch_machine() {
  constexpr std::chrono::seconds look_again(1);
  while (true) {
    const std::uint32_t seen = gpu_->wake().value();
    if (!member().has_left) {
      if (server_is_gone()) domain().mark_server_gone();
      control_.refresh();
      begin_core_dump();
      if (domain().is_terminated(slot())) domain().acknowledge_termination(slot());
    }
    completions_.notify();
    gpu_->wake().wait(seen, look_again);
  }
}

std::shared_ptr<Context> Process::create_context(const ContextOptions& options) {
  auto context = std::make_shared<Context>(stream_host_, gpu_, options, next_context_id_.fetch_add(1));
  contexts_.add(context);
  return context;
}

CUresult Process::synchronize(Context& context) {
  for (const auto& other : contexts_.all()) {
    if (other.get() == &context || other->home() != context.handle()) continue;
    if (const CUresult error = other->synchronize(); error != CUDA_SUCCESS) return error;
  }
  return context.synchronize();
}

CUresult Process::destroy_context(CUcontext handle) {
  const std::shared_ptr<Context> context = contexts_.remove(handle);
  if (!context) return CUDA_ERROR_INVALID_CONTEXT;
  (void)synchronize(*context);
  forget_all_of(handle, arrays_);
  forget_all_of(handle, mipmapped_arrays_);
  memory_.free_all_of(handle);
  if (!contexts_.all().empty()) return CUDA_SUCCESS;
  give_last_context_back();
  leave_server();
  return CUDA_SUCCESS;
}

void Process::give_last_context_back() {
  const pid_t pid = os::own_pid();
  leave_held_domain(*gpu_, domain(), slot(), pid, process_name(pid));
}

void Process::leave_server() {
  Member& now = member();
  if (!now.of.server || now.has_left.exchange(true)) return;
  if (domain().healthy()) {
    now.may_join_another = true;
    control_.leave();
  }
  now.of.server->hang_up();
}

/// A process whose domain had not fallen when it gave its last context back asks whatever daemon is there
/// now. Any other one has its error for good (H200: results/h200/instance-again.json).
CUresult Process::join_again() {
  if (!member().may_join_another) return CUDA_SUCCESS;
  auto membership = join_domain(uvm_.descriptor(), rm_client_);
  if (!membership) return membership.error();
  control_.move_to(membership->domain, membership->slot);
  become(std::move(*membership));
  dumps_core_ = false;
  return CUDA_SUCCESS;
}

void Process::become(DomainMembership membership) {
  members_.emplace_back().of = std::move(membership);
  member_.store(&members_.back(), std::memory_order_release);
}

}  // namespace firebreak::softgpu::driver
