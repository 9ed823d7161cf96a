// SPDX-License-Identifier: Apache-2.0
#include "program/virtual/process.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <new>
#include <thread>
#include <utility>

#include "ground/os/file.h"
#include "program/cuda/driver.h"

namespace firebreak::virtual_driver {
namespace {

constinit std::atomic<VirtualProcess*> only{nullptr};

/// The program, while work is waited for.
constexpr Milliseconds look_whether_it_ends(100);

constexpr const char* anchor_sm_percent = "2";

/// After a spare that did not come up, as where the GPU's memory is used up.
constexpr std::chrono::seconds shortest_before_spare(1);
constexpr std::chrono::seconds longest_before_spare(60);

/// No server that takes this client, for now.
bool is_mps_not_there(CUresult result) {
  return result == CUDA_ERROR_MPS_CONNECTION_FAILED || result == CUDA_ERROR_MPS_RPC_FAILURE ||
         result == CUDA_ERROR_MPS_SERVER_NOT_READY;
}

}  // namespace

VirtualProcess* process() { return only.load(std::memory_order_acquire); }
void set_process(VirtualProcess* made) { only.store(made, std::memory_order_release); }

Trace trace() {
  static const Trace wanted = [] {
    const std::string said = os::environment_variable("FIREBREAK_SPARE_TRACE").value_or("");
    return said == "2" ? Trace::Calls : said == "1" ? Trace::Errors : Trace::Nothing;
  }();
  return wanted;
}

Current& current() {
  static thread_local Current own;
  return own;
}

VirtualProcess::VirtualProcess(const cuda::Backend& own_driver, VirtualSettings settings)
    : own_driver_(own_driver), settings_(std::move(settings)) {
  instances_.push_back(Instance::of(own_driver));
  there_.push_back(instances_.front().get());
  for (Slot slot = slots_max - 1; slot > anchor; --slot) free_slots_.push_back(slot);
  active_.store(instances_.front().get());
  auto memory = os::create_memory_file(abi::spare_page_name, os::page_size());
  auto mapping = memory ? os::Mapping::of_file(memory->get(), os::page_size(), os::Protection::ReadWrite)
                        : Result<os::Mapping>(propagate(memory));
  if (!mapping) return;  // then nobody hears of us, and nobody asks us to leave
  page_memory_ = std::move(*memory);
  page_mapping_ = std::move(*mapping);
  page_ = new (page_mapping_.data()) abi::SparePage;
  page_->deepest_rest.store(abi::RestLevel::WithoutMemory);
  if (settings_.between_marks && !settings_.domains[0].empty()) given_ = std::make_unique<GivenWork>();
  for (std::size_t i = 0; i < page_->domains.size(); ++i) write_text(page_->domains[i], settings_.domains[i]);
}

void VirtualProcess::begin_anew() {
  VirtualProcess* const parents = process();
  if (parents == nullptr) return;
  parents->page_memory_ = os::Fd();
  current() = {};
  auto* const mine = new VirtualProcess(parents->own_driver_, {});
  mine->gate_.begin_anew();
  mine->tell(abi::SpareState::Unprotected, "a child of fork() has no spare");
  set_process(mine);
}

// ---- Start ----

Result<const Instance*> VirtualProcess::bring_up(const std::string& domain) {
  const auto begun = begin(domain);
  if (!begun) return propagate(begun);
  const Instance* const instance = *begun;
  instance->driver().cuCtxSetCurrent(nullptr);
  const std::lock_guard lock(instances_mutex_);
  there_.push_back(instance);
  Object* const primary = objects_.find(Family::Context, primary_seen_.load());
  if (primary != nullptr) objects_.set_own(*primary, instance->slot(), number_of(instance->primary()));
  return instance;
}

namespace {

/// What the copy of the driver in that slot wants done at the end comes after what we do; once for each slot.
template <Slot slot>
void end_of_slot() {
  VirtualProcess::end_of_program();
  VirtualProcess::run_exits_of(slot);
}

template <Slot... slot>
constexpr auto ends_of(std::integer_sequence<Slot, slot...>) {
  return std::array<void (*)(), slots_max>{&end_of_slot<slot>...};
}
constexpr auto end_of = ends_of(std::make_integer_sequence<Slot, slots_max>());

}  // namespace

void VirtualProcess::run_exits_of(Slot slot) {
  VirtualProcess* const mine = process();
  if (mine == nullptr) return;
  const auto is_its = [slot](const auto& each) { return each->slot() == slot && each->has_copy(); };
  const auto found = std::ranges::find_if(mine->instances_, is_its);
  if (found != mine->instances_.end()) (*found)->run_exits();
}

/// In the place of one that was thrown away, where there is one.
Instance& VirtualProcess::blank_instance() {
  const std::lock_guard lock(instances_mutex_);
  if (spent_.empty()) return *instances_.emplace_back(Instance::blank());
  Instance* const spent = spent_.back();
  spent_.pop_back();
  return *spent;
}

Result<Instance*> VirtualProcess::begin(const std::string& domain) {
  const auto slot = take_slot();
  if (!slot) return fail(ErrorCode::Unavailable, "the instances that were left have not been given back yet");
  Instance& instance = blank_instance();
  const Status made =
      instance.bring_up({settings_.library, domain, *slot, settings_.dumps[number_of_domain(domain)]});
  if (!made) {
    finish_throw(instance);
    return propagate(made);
  }
  if (!std::exchange(is_end_known_[*slot], true)) os::run_at_exit(end_of[*slot]);
  return &instance;
}

/// It is gone, or is tried once more later.
void VirtualProcess::finish_throw(Instance& instance) {
  const Slot slot = instance.slot();
  const std::lock_guard lock(instances_mutex_);
  if (instance.has_copy()) {
    still_there_.push_back(&instance);
  } else {
    spent_.push_back(&instance);
    free_slots_.push_back(slot);
  }
}

std::optional<Slot> VirtualProcess::take_slot() {
  const std::lock_guard lock(instances_mutex_);
  if (free_slots_.empty()) return std::nullopt;
  const Slot slot = free_slots_.back();
  free_slots_.pop_back();
  return slot;
}

/// As far as is known. The agent finds the page some time after it was made.
bool VirtualProcess::takes_instances(const std::string& domain) const {
  return rule_of(domain) == abi::DomainRule::Open && !os::is_plain_file(domain + "/" + abi::parked_file);
}

/// Where its domain takes nobody, as one that is parked, it comes up in the other one.
Result<const Instance*> VirtualProcess::bring_up_first() {
  const auto& [own, other] = settings_.domains;
  const bool may_try_own = takes_instances(own) || !takes_instances(other);
  auto working = may_try_own ? bring_up(own) : fail(ErrorCode::Unavailable, "its domain takes nobody");
  if (working || other.empty()) return working;
  auto instead = bring_up(other);
  return instead ? instead : working;
}

void VirtualProcess::start_working() {
  claim_dumps();
  const auto working = bring_up_first();
  const std::lock_guard lock(flipping_);
  if (working) {
    active_.store(*working, std::memory_order_release);
    tell_domains();
  } else {
    tell(abi::SpareState::Unprotected, to_string(working.error()));
  }
}

/// The program's own driver does all the work. Its environment leads to the domain for anchors, where an
/// exception would keep others from starting, and which nobody parks: so it goes where the program was
/// placed. Who comes to a domain that is parked stands still there, so one that takes nobody is the last try.
CUresult VirtualProcess::initialise_alone(unsigned int flags) {
  const auto& [own, other] = settings_.domains;
  const bool is_own_first = page_ == nullptr || takes_instances(own) || !takes_instances(other);
  for (const std::size_t i :
       is_own_first ? std::array<std::size_t, 2>{0, 1} : std::array<std::size_t, 2>{1, 0}) {
    const std::string& domain = settings_.domains[i];
    if (domain.empty() || page_ == nullptr) continue;
    const os::EnvironmentScope of_domain(environment_in(domain, settings_.dumps[i]));
    if (own_driver_.cuInit(flags) != CUDA_SUCCESS) continue;
    write_text(page_->active_domain, domain);
    return CUDA_SUCCESS;
  }
  // A child of fork(), in the domain for anchors: its dumps would be its parent's.
  if (settings_.domains[0].empty() && !anchor_dump_) anchor_dump_.emplace(environment_without_dumps());
  return own_driver_.cuInit(flags);
}

/// The domain for anchors is made anew within seconds where it has had a fault.
CUresult VirtualProcess::initialise_anchor(unsigned int flags) {
  const os::EnvironmentScope::Variables few{{"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", anchor_sm_percent}};
  const os::EnvironmentScope of_anchor(few);
  const auto until = std::chrono::steady_clock::now() + settings_.longest_wait;
  CUresult result = own_driver_.cuInit(flags);
  while (is_mps_not_there(result) && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(between_tries);
    result = own_driver_.cuInit(flags);
  }
  return result;
}

bool VirtualProcess::goes_without_spare(const std::string& function) {
  const std::lock_guard lock(starting_);
  if (!std::exchange(has_tried_, true))
    tell(abi::SpareState::Unprotected, "it uses " + function + ", which is newer than what is known here");
  return is_plain();
}

/// The working instance comes up first. Where none does, the program's own driver is the only one, and gets
/// all that the program may have. Else it is the anchor: it does no work, and a driver keeps memory for each
/// SM that it may use, so it gets few of them.
CUresult VirtualProcess::initialise(unsigned int flags) {
  if (has_started_.load())
    return own_driver_.cuInit(flags);  // each library with a CUDA runtime of its own asks again
  const std::lock_guard lock(starting_);
  const bool may_have_spare =
      page_ != nullptr && !settings_.domains[0].empty() && settings_.undisturbed != nullptr;
  if (may_have_spare && !has_tried_) began_as_ = os::own_standing();
  if (may_have_spare && !std::exchange(has_tried_, true)) settings_.undisturbed([this] { start_working(); });
  if (is_plain()) return initialise_alone(flags);
  // Each instance has its own. What the anchor dumps would be taken for word of an exception in another
  // domain.
  if (!settings_.dumps[0].empty() && !anchor_dump_)
    anchor_dump_.emplace(os::EnvironmentScope::Variables{{"CUDA_COREDUMP_FILE", "/dev/null"}});
  const CUresult result = own_descriptors_.during([&] { return initialise_anchor(flags); });
  if (result != CUDA_SUCCESS || has_started_.exchange(true)) return result;
  const Status started =
      os::start_detached_thread("firebreak-spare", [this] { settings_.undisturbed([this] { keep(); }); });
  if (!started) stand_aside("there is no thread left for the spare");
  return result;
}

/// As the instance that works is told. Nothing: it does not say.
std::optional<std::uint64_t> VirtualProcess::free_on_gpu() const {
  const Instance& asked = active();
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  const ContextScope scope(asked);
  const bool is_known =
      scope.is_current() && asked.driver().cuMemGetInfo_v2(&free_bytes, &total_bytes) == CUDA_SUCCESS;
  return is_known ? std::optional<std::uint64_t>(free_bytes) : std::nullopt;
}

void VirtualProcess::note_cost(std::atomic<std::uint32_t>& cost_mib,
                               std::optional<std::uint64_t> free_before_bytes) {
  const auto free_after = free_before_bytes ? free_on_gpu() : std::nullopt;
  if (!free_after) return;
  const std::uint64_t taken = *free_before_bytes - std::min(*free_before_bytes, *free_after);
  cost_mib.store(static_cast<std::uint32_t>(taken >> 20));
}

// ---- Calls ----

namespace {

/// The driver has it for each thread. What was said in one instance holds in the next, too.
void set_capture_mode(const Instance& instance, CUstreamCaptureMode mode) {
  CUstreamCaptureMode& there = there_in(instance).capture_mode;
  if (there == mode) [[likely]]
    return;
  CUstreamCaptureMode exchanged = mode;
  if (instance.driver().cuThreadExchangeStreamCaptureMode(&exchanged) == CUDA_SUCCESS) there = mode;
}

/// What we do on a thread of our own breaks nobody's capture.
void leave_captures_alone(const Instance& instance) {
  current().capture_mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  set_capture_mode(instance, CU_STREAM_CAPTURE_MODE_RELAXED);
}

}  // namespace

bool VirtualProcess::ends_instance(CUresult result) {
  return result != CUDA_SUCCESS && cuda::is_fatal(result);
}

void VirtualProcess::make_current(const Instance& instance) {
  Current& mine = current();
  const std::uintptr_t seen = current_context();
  std::uintptr_t wanted = 0;
  if (seen != 0) {  // One that has ended is nobody's.
    Object* const context = objects_.find(Family::Context, seen);
    wanted = context == nullptr ? 0 : context->in[instance.slot()].load(std::memory_order_acquire);
  }
  std::uintptr_t& there = there_in(instance).context;
  if (there == wanted) [[likely]]
    return;
  instance.driver().cuCtxSetCurrent(reinterpret_cast<CUcontext>(wanted));
  there = wanted;
  set_capture_mode(instance, mine.capture_mode);
}

bool VirtualProcess::has_one_context() {
  std::size_t count = 0;
  objects_.for_each(Family::Context, [&](Object&) { ++count; });
  return count <= 1;
}

Work& VirtualProcess::work_of(CUstream stream, bool per_thread) {
  const std::uintptr_t number = number_of(stream);
  if (number == CU_STREAM_PER_THREAD_AS_INT || (number == 0 && per_thread)) return thread_streams_work_;
  if (is_special(number)) return legacy_stream_work_;
  Object* const object = objects_.find(Family::Stream, number);
  return object == nullptr ? no_work_ : object->work;
}

std::vector<std::pair<Work*, std::uint64_t>> VirtualProcess::all_queued() {
  std::vector<std::pair<Work*, std::uint64_t>> all;
  const auto add = [&](Work& work) { all.emplace_back(&work, work.queued.load()); };
  add(legacy_stream_work_);
  add(thread_streams_work_);
  objects_.for_each(Family::Stream, [&](Object& stream) { add(stream.work); });
  return all;
}

void VirtualProcess::end_all(const std::vector<std::pair<Work*, std::uint64_t>>& queued) {
  for (const auto& [work, up_to] : queued) work->end(up_to);
}

bool VirtualProcess::is_work_under_way() {
  const auto all = all_queued();
  return std::ranges::any_of(all, [](const auto& each) { return each.first->is_under_way(); });
}

void VirtualProcess::tell_ended(std::uint32_t begun) {
  if (!word_.is_behind()) return;
  auto all = all_queued();
  all.emplace_back(&no_work_, 0);
  const auto has_ended = [](const auto& each) {
    return each.first->givers.load() == 0 && !each.first->is_under_way();
  };
  if (std::ranges::all_of(all, has_ended)) word_.end(begun);
}

void VirtualProcess::stand_aside(const char* why) {
  static std::atomic<const char*> traced{nullptr};
  if (is_traced() && traced.exchange(why) != why) std::fprintf(stderr, "firebreak: aside: %s\n", why);
  const char* before = nullptr;
  if (!aside_.compare_exchange_strong(before, why)) return;
  wake_keeper();
}

void VirtualProcess::stand_aside(const char* why, const std::string& what) {
  if (aside_.load() != nullptr) return stand_aside(why);
  static const std::string first = std::string(why) + ": " + what;  // there is one process, and one reason
  stand_aside(first.c_str());
}

// ---- Leaving an instance ----

namespace {

/// What a thread that waits for the GPU leaves behind, whoever is still there then.
struct Waiting {
  std::vector<CUcontext> contexts;
  std::atomic<std::uint32_t> is_over{0};
  CUresult result = CUDA_SUCCESS;  ///< once it is over
};

void wait_for(const Instance& instance, Waiting& waiting) {
  for (const CUcontext context : waiting.contexts) {
    waiting.result = instance.driver().cuCtxSetCurrent(context);
    if (waiting.result == CUDA_SUCCESS) waiting.result = instance.driver().cuCtxSynchronize();
    if (waiting.result != CUDA_SUCCESS) break;
  }
  instance.driver().cuCtxSetCurrent(nullptr);
  waiting.is_over.store(1, std::memory_order_release);
  os::futex_wake(waiting.is_over);
}

}  // namespace

/// A kernel may wait for a call of the program's, which waits at the gate. So a thread of its own waits, and
/// where it does not come back in time it is left behind until the kernel ends.
VirtualProcess::Waited VirtualProcess::synchronize(const Instance& instance, Nanoseconds longest) {
  const auto waiting = std::make_shared<Waiting>();
  objects_.for_each(Family::Context, [&](Object& context) {
    const std::uintptr_t own = context.in[instance.slot()].load();
    if (own != 0) waiting->contexts.push_back(reinterpret_cast<CUcontext>(own));
  });
  const Status started = instance.start_thread([waiting, &instance] { wait_for(instance, *waiting); });
  if (!started) return Waited::TooLong;
  const auto until = std::chrono::steady_clock::now() + longest;
  while (waiting->is_over.load(std::memory_order_acquire) == 0) {
    const Nanoseconds left = until - std::chrono::steady_clock::now();
    if (left <= Nanoseconds(0) || program_ends_.load()) return Waited::TooLong;
    os::futex_wait(waiting->is_over, 0, std::min<Nanoseconds>(left, look_whether_it_ends));
  }
  return waiting->result == CUDA_SUCCESS ? Waited::AllDone : Waited::Failed;
}

/// Gives an instance everything that the program has.
VirtualProcess::Completed VirtualProcess::complete(const Instance& instance) {
  const Completed completed = bring_everything(instance);
  return completed == Completed::Yes && aside_.load() != nullptr ? Completed::No : completed;
}

VirtualProcess::Completed VirtualProcess::bring_everything(const Instance& instance) {
  instance.driver().cuCtxSetCurrent(instance.primary());
  CUresult memory = memory_.bring_to(instance, active());
  if (memory == CUDA_SUCCESS) memory = mappings_.bring_to(instance, active());
  graphs_.try_again(instance.slot());
  const auto failed = objects_.make_all(instance.driver(), instance.slot());
  forget_current(instance);
  // It is the active one's to give. Where that has died it is not the spare that is wrong.
  if (ends_instance(memory) && is_alive(instance)) return Completed::NotFromTheDead;
  if (memory != CUDA_SUCCESS)
    tell(abi::SpareState::Unprotected,
         "the spare does not get the program's memory: the driver says " + std::to_string(memory));
  if (failed && !program_ends_.load())
    tell(abi::SpareState::Unprotected, "the spare does not get the program's objects");
  if (memory != CUDA_SUCCESS || failed) return Completed::No;
  read_code();
  if (!find_variables(instance) || !bring_taken(instance))
    stand_aside("its code has variables that are not found in the spare");
  return Completed::Yes;
}

void VirtualProcess::note_time(std::atomic<std::uint32_t>& of_part_us) {
  const auto now = std::chrono::steady_clock::now();
  const auto took = std::chrono::duration_cast<std::chrono::microseconds>(now - part_began_);
  of_part_us.store(static_cast<std::uint32_t>(took.count()));
  part_began_ = now;
}

/// The gate is closed: nobody is inside.
bool VirtualProcess::is_ready_to_flip(Why why, const Instance& from, Nanoseconds longest) {
  const Instance& to = *spare_.load();
  if (!is_alive(to)) tell(abi::SpareState::Unprotected, "the spare's domain has died: another one is made");
  const bool is_protected = page_->state.load() == abi::SpareState::Protected;
  const Completed completed = is_protected ? complete(to) : Completed::No;
  if (completed == Completed::NotFromTheDead) tell_lost("memory that was too new for its spare");
  if (completed != Completed::Yes) {
    drop_spare();
    return false;
  }
  note_part(abi::MovePart::Spare);
  const auto queued = all_queued();
  if (why == Why::Asked) event_times_.put_mark(from);
  const Waited waited = why == Why::Asked ? synchronize(from, longest) : Waited::Failed;
  if (waited == Waited::TooLong) {
    try_later();
    return false;
  }
  note_part(abi::MovePart::Work);
  if (waited == Waited::AllDone) {
    end_all(queued);
    event_times_.keep(objects_, from);
    const std::string wrong = copy_variables(from, to);
    note_part(abi::MovePart::Variables);
    if (wrong.empty()) return true;
    tell(abi::SpareState::Unprotected, "variables of its code could not be copied to the spare: " + wrong);
    return false;
  }
  if (has_variables() || !write_taken(to)) {
    tell_lost("variables of its code");
    return false;
  }
  event_times_.keep_calls(objects_);
  take_up_marks();
  const std::string obstacle = is_work_under_way() ? redo_in(to) : "";
  if (!obstacle.empty()) tell_lost(obstacle);
  return obstacle.empty();
}

/// `with`: what it died with; where work was under way, what keeps that from being done again.
void VirtualProcess::tell_lost(const std::string& with) {
  const std::string what = is_work_under_way() ? "work of this process under way: " + with : with;
  tell(abi::SpareState::Lost, "its domain died with " + what);
}

bool VirtualProcess::flip(Why why, std::uint32_t from, Nanoseconds longest) {
  const std::lock_guard lock(flipping_);
  if (!has_a_driver()) return true;  // whoever asks once more waits
  const Instance& leaving = *active_.load();
  if (leaving.life() != from) return true;  // somebody else was faster
  const Instance* const next = spare_.load();
  if (next == nullptr || aside_.load() != nullptr) return false;
  for (auto& part : page_->last_move_us) part.store(0);
  part_began_ = std::chrono::steady_clock::now();
  if (!gate_.close(longest)) {
    if (why == Why::Asked) try_later();
    return false;
  }
  if (graphs_.are_captures_under_way()) {  // what it is to be recorded into is not there in the next one
    gate_.open();
    return false;
  }
  note_part(abi::MovePart::Calls);
  const bool ready = is_ready_to_flip(why, leaving, longest);
  if (ready) {
    active_.store(next, std::memory_order_release);
    spare_.store(nullptr, std::memory_order_release);
    receiver_.store(nullptr);
    left_.push_back(&leaving);
    objects_.flipped();
    mappings_.flipped();
    event_times_.moved_to(*next);
    if (settings_.moved != nullptr) settings_.moved();
    note_part(abi::MovePart::Ranges);
    if (page_ != nullptr) page_->flips.fetch_add(1);
    tell_domains();
    tell(abi::SpareState::Unprotected, "the next spare is being made");
  }
  gate_.open();
  wake_keeper();
  return ready;
}

// ---- The keeper: what is done in the background ----

void VirtualProcess::wake_keeper() {
  if (page_ == nullptr) return;
  page_->wake.fetch_add(1, std::memory_order_release);
  os::futex_wake(page_->wake);
}

std::size_t VirtualProcess::number_of_domain(const std::string& domain) const {
  return settings_.domains[0] == domain ? 0 : 1;
}

abi::DomainRule VirtualProcess::rule_of(const std::string& domain) const {
  return page_->rules[number_of_domain(domain)].load(std::memory_order_acquire);
}

/// Whoever is inside a call may still be using a spare that was dropped. Of an instance that was left nobody
/// is inside.
std::vector<const Instance*> VirtualProcess::take_left() {
  constexpr Milliseconds longest(5);
  const std::lock_guard lock(flipping_);
  if (are_left_in_use_ && !gate_.await_those_inside(longest)) {
    wake_keeper();  // once more
    return {};
  }
  are_left_in_use_ = false;
  const auto is_held = [this](const Instance* left) {
    return rule_of(left->pipe_directory()) == abi::DomainRule::Held;
  };
  const auto first_free = std::stable_partition(left_.begin(), left_.end(), is_held);
  std::vector<const Instance*> free(first_free, left_.end());
  left_.erase(first_free, left_.end());
  return free;
}

/// What was left is thrown away, so that its domain can drain; not while that is held.
void VirtualProcess::give_back_left() {
  for (const Instance* const each : take_left()) give_back(*each);
  std::vector<Instance*> once_more;
  {
    const std::lock_guard lock(instances_mutex_);
    once_more.swap(still_there_);
  }
  for (Instance* const each : once_more) {
    (void)each->throw_away();
    finish_throw(*each);
  }
}

void VirtualProcess::give_back(const Instance& left) {
  forget(left);
  Instance* its = nullptr;
  {
    const std::lock_guard lock(instances_mutex_);
    std::erase(there_, &left);
    its = std::ranges::find(instances_, &left, &std::unique_ptr<Instance>::get)->get();
  }
  (void)its->throw_away();
  finish_throw(*its);
}

/// Nothing is there any more.
void VirtualProcess::forget(const Instance& instance) {
  const std::lock_guard lock(flipping_);
  const Slot slot = instance.slot();
  later_frees_.take_up(memory_, active());
  mappings_.forget(slot);
  memory_.forget(slot);
  graphs_.forget(slot);
  event_times_.forget(slot);
  taken_.forget(slot);
  objects_.forget(slot);
}

void VirtualProcess::make_spare() {
  const std::string& domain = settings_.domains[1 - number_of_domain(active().pipe_directory())];
  if (!takes_instances(domain)) {
    const std::lock_guard lock(flipping_);
    tell(abi::SpareState::Unprotected, "the other domain takes nobody yet");
    before_next_spare_ = Nanoseconds(0);
    return;
  }
  const auto made = [&] {
    const std::lock_guard starting(starting_);
    // A domain that is held answers nobody.
    const bool may_ask = rule_of(active().pipe_directory()) == abi::DomainRule::Open;
    if (may_ask) leave_captures_alone(active());
    active().prepare_dump();
    const auto free_before = may_ask ? free_on_gpu() : std::nullopt;
    auto its = bring_up(domain);
    if (its) note_cost(page_->spare_mib, free_before);
    if (its) (*its)->prepare_dump();
    return its;
  }();
  const std::lock_guard lock(flipping_);
  before_next_spare_ =
      std::clamp<Nanoseconds>(2 * before_next_spare_, shortest_before_spare, longest_before_spare);
  next_spare_ = std::chrono::steady_clock::now() + before_next_spare_;
  if (!made) {
    tell(abi::SpareState::Unprotected, to_string(made.error()));
    return;
  }
  const Instance* const instance = *made;
  leave_captures_alone(*instance);
  receiver_.store(instance, std::memory_order_seq_cst);
  prepare_move();
  const Completed completed = complete(*instance);
  if (completed == Completed::NotFromTheDead)
    tell(abi::SpareState::Unprotected, "its domain has died, and its spare was not there yet");
  if (completed != Completed::Yes) {
    receiver_.store(nullptr);
    left_.push_back(instance);
    are_left_in_use_ = true;
    return;
  }
  prepare_times_in(*instance);
  spare_.store(instance, std::memory_order_release);
  before_next_spare_ = Nanoseconds(0);
  next_spare_ = {};
  tell_domains();
  tell(abi::SpareState::Protected, "");
}

/// It has died, or does not get what the program has: there will be another one.
void VirtualProcess::drop_spare() {
  receiver_.store(nullptr);
  const Instance* const dropped = spare_.exchange(nullptr);
  if (dropped == nullptr) return;
  left_.push_back(dropped);
  are_left_in_use_ = true;
  tell_domains();
}

bool VirtualProcess::is_alive(const Instance& instance) {
  const bool alive = instance.is_alive();
  forget_current(instance);
  return alive;
}

/// What a move would have to do else.
void VirtualProcess::prepare_move() {
  if (rule_of(active().pipe_directory()) != abi::DomainRule::Open) return;
  (void)find_variables(active());
  make_room_for_variables();
  prepare_times_in(active());
}

void VirtualProcess::prepare_times_in(const Instance& instance) {
  event_times_.prepare(instance, only_context(instance));
}

/// The spare lives, and has what the program has made since.
void VirtualProcess::check_spare() {
  const std::lock_guard lock(flipping_);
  const Instance* const instance = spare_.load();
  if (instance == nullptr || aside_.load() != nullptr) return;
  const abi::DomainRule rule = rule_of(instance->pipe_directory());
  if (rule == abi::DomainRule::Held) return;  // it stands still, or is about to
  prepare_move();
  if (rule == abi::DomainRule::Closed || !is_alive(*instance))
    tell(abi::SpareState::Unprotected, "the spare's domain has died: another one is made");
  else
    prepare_times_in(*instance);
  // Of a program whose domain has just died the spare is the way out: its next call decides.
  if (page_->state.load() != abi::SpareState::Protected || complete(*instance) == Completed::No) drop_spare();
}

/// For as long as work is waited for. Its end wakes the keeper.
bool VirtualProcess::is_held_up_by_capture() {
  if (!graphs_.are_captures_under_way()) {
    captures_since_.reset();
    return false;
  }
  const auto now = std::chrono::steady_clock::now();
  if (!captures_since_) captures_since_ = now;
  return now - *captures_since_ < settings_.longest_wait;
}

/// The program goes on, and is asked once more, three times as long as work is waited for.
bool VirtualProcess::is_held_up_by_work() {
  const auto now = std::chrono::steady_clock::now();
  if (now >= next_try_) return false;
  if (!held_up_since_) held_up_since_ = now;
  return now - *held_up_since_ < 3 * settings_.longest_wait;
}

/// The agent wants the program out of its domain. A spare that turns out to be none is replaced first.
void VirtualProcess::leave_if_asked() {
  constexpr int tries_max = 3;
  if (std::chrono::steady_clock::now() < next_try_) return;
  const std::uint32_t asked = page_->asked_to_leave.load(std::memory_order_acquire);
  if (asked == page_->answered.load()) return;
  const bool is_aside = aside_.load() != nullptr || !has_a_driver();  // it has left, or never will
  const Instance* const next = spare_.load();
  const bool may_go = next != nullptr && rule_of(next->pipe_directory()) == abi::DomainRule::Open;
  if (!may_go && !is_aside) return;  // one is being made, or its domain has had a fault, too
  if (!is_aside && is_held_up_by_capture()) return;
  const bool left = !is_aside && leave_alive();
  if (!left && !is_aside && is_held_up_by_capture()) return;  // one began just before the gate was closed
  if (!left && !is_aside && is_held_up_by_work()) return;
  const bool is_over = left || is_aside || page_->state.load() == abi::SpareState::Lost;
  if (!is_over && ++tries_ < tries_max) {
    wake_keeper();  // once more
    return;
  }
  tries_ = 0;
  held_up_since_.reset();
  page_->answered.store(asked, std::memory_order_release);
  os::futex_wake(page_->answered);
}

void VirtualProcess::keep() {
  constexpr std::chrono::seconds look_again(1);
  leave_captures_alone(active());
  while (true) {
    const std::uint32_t seen = page_->wake.load(std::memory_order_acquire);
    const auto began = std::chrono::steady_clock::now();
    news_.begin();
    is_keeping_.store(true);
    if (!program_ends_.load()) keep_once();
    tell_whether_behind();
    is_keeping_.store(false);
    const Nanoseconds worked = std::chrono::steady_clock::now() - began;
    os::futex_wait(page_->wake, seen, look_again);
    pause_after(worked);
  }
}

/// Something may come in between.
void VirtualProcess::tell_whether_behind() {
  if (!news_.is_any()) page_->is_behind.store(0);
  if (news_.is_any()) page_->is_behind.store(1);
}

/// Where it was woken by news alone. The agent wakes it out of that, too.
void VirtualProcess::pause_after(Nanoseconds worked) {
  const std::uint32_t seen = page_->wake.load(std::memory_order_acquire);
  const bool is_asked = page_->asked_to_leave.load(std::memory_order_acquire) != page_->answered.load() ||
                        page_->asked_to_rest.load(std::memory_order_acquire) != page_->answered_rest.load();
  if (!news_.is_any() || is_asked) return;
  os::futex_wait(page_->wake, seen, News::rest_after(worked));
}

/// Then neither its core dump nor its next instance finds what it needs.
void VirtualProcess::look_who_it_is() {
  if (os::own_standing() != began_as_) stand_aside("it has changed its user or its root directory");
}

void VirtualProcess::keep_once() {
  rest_if_asked();
  if (!has_a_driver()) return leave_if_asked();
  look_who_it_is();
  if (aside_.load() == nullptr) {
    read_code();
    if (given_ != nullptr && has_variables()) is_never_redone_.store(true, std::memory_order_relaxed);
    give_back_left();
    if (spare_.load() == nullptr && std::chrono::steady_clock::now() >= next_spare_) make_spare();
    check_spare();
    summarise_code();
  } else {
    give_up_spare();
  }
  leave_if_asked();
}

void VirtualProcess::end_of_program() {
  // What one call of a driver may take that comes up beside many others. A program that is inside a driver
  // while that is taken down ends with a signal (H200, eight programs at once).
  constexpr std::chrono::seconds longest(10);
  VirtualProcess* const mine = process();
  if (mine == nullptr) return;
  if (mine->program_ends_.exchange(true)) return;
  mine->objects_.make_no_more();
  const auto until = std::chrono::steady_clock::now() + longest;
  while (mine->is_keeping_.load() && std::chrono::steady_clock::now() < until)
    std::this_thread::sleep_for(Milliseconds(1));
  // Its other threads end where they are.
  if (mine->rest_.load() == abi::RestLevel::Awake) return;
  if (!mine->has_a_driver()) mine->active_.store(mine->none_.get());
  mine->gate_.let_this_thread_pass();
}

/// The program is aside.
void VirtualProcess::give_up_spare() {
  give_back_left();
  const std::lock_guard lock(flipping_);
  drop_spare();
  const std::string why = aside_.load();
  if (why != page_->reason.data()) tell(abi::SpareState::Unprotected, why);
}

// ---- Host memory ----

void VirtualProcess::keep_host(Host host) {
  const std::lock_guard lock(hosts_mutex_);
  const void* const begin = host.memory.data();
  hosts_.insert_or_assign(begin, std::move(host));
}

std::optional<unsigned int> VirtualProcess::flags_of_host(const void* address) {
  const std::lock_guard lock(hosts_mutex_);
  const auto after = hosts_.upper_bound(address);
  if (after == hosts_.begin()) return std::nullopt;
  const auto& [begin, host] = *std::prev(after);
  const auto offset =
      static_cast<std::size_t>(static_cast<const char*>(address) - static_cast<const char*>(begin));
  return offset < host.memory.size_bytes() ? std::optional(host.flags) : std::nullopt;
}

std::optional<VirtualProcess::Host> VirtualProcess::take_host(const void* begin) {
  const std::lock_guard lock(hosts_mutex_);
  auto found = hosts_.extract(begin);
  if (found.empty()) return std::nullopt;
  return std::move(found.mapped());
}

// ---- What is told ----

void VirtualProcess::tell(abi::SpareState state, const std::string& reason) {
  if (page_ == nullptr) return;
  if (page_->state.load() == abi::SpareState::Lost && state != abi::SpareState::Lost)
    return;  // that is for good
  write_text(page_->reason, reason);
  page_->state.store(state, std::memory_order_release);
}

void VirtualProcess::tell_domains() {
  if (page_ == nullptr) return;
  const Instance* const instance = spare_.load();
  write_text(page_->active_domain, has_a_driver() ? active().pipe_directory() : "");
  write_text(page_->spare_domain, instance == nullptr ? "" : instance->pipe_directory());
}

}  // namespace firebreak::virtual_driver
