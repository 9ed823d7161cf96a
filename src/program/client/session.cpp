// SPDX-License-Identifier: Apache-2.0
#include "program/client/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <thread>
#include <utility>

#include "ground/base/units.h"
#include "ground/os/descriptors.h"
#include "ground/os/memory.h"
#include "ground/os/self.h"
#include "program/cuda/context.h"
#include "program/parking_client/mode_by_calls.h"

namespace firebreak::client {
namespace {

/// The driver's granularity for memory that can be exported.
constexpr std::uint64_t granularity_bytes = 2 * mib;
constexpr const char* unanswered = "its first try, of another size or use, is not answered yet";
/// Addresses that each process of a tenant sets aside for shared allocations; they cost nothing until memory
/// is mapped.
constexpr std::uint64_t arena_bytes = 256 * gib;
/// An active that begins anew is answered when its dead predecessor's last kernels have ended, and those are
/// waited for no longer than the agent's --longest-hold-s.
constexpr Milliseconds join_timeout{60'000};
/// Time for which the agent is waited for that is asked for the core dump mode; it is asked again.
constexpr Milliseconds answer_patience{500};
/// The agent asks MPS for the standby's server first, and gives up earlier.
constexpr Milliseconds ready_timeout{30'000};
/// A lost agent wakes sleepers by hand; this only bounds how long a missed wake-up lasts.
constexpr Milliseconds sleep_slice{200};

/// Between two looks whether the GPU has done a step.
constexpr Nanoseconds shortest_look_pause = std::chrono::microseconds(20);
constexpr Nanoseconds longest_look_pause = std::chrono::milliseconds(1);
/// A GPU that does no step for so long has failed, or its steps take longer: the next call of the driver says
/// which.
constexpr Milliseconds longest_step{2'000};

/// This pause lies between two looks whether the next agent is there.
constexpr Milliseconds look_pause{20};

/// The process waits as long as others wait for the next agent, where an agent that comes back has placed it.
Milliseconds patience_with_agent() {
  const std::string text = os::environment_variable("FIREBREAK_AGENT_RETURNS_MS").value_or("");
  std::uint32_t patience_ms = 0;
  std::from_chars(text.data(), text.data() + text.size(), patience_ms);
  return Milliseconds(patience_ms);
}

struct Welcome {
  std::unique_ptr<link::AgentLink> link;
  link::Answer answer;
};

/// The answer is this agent's, or the next one's where it is away or ends before it has answered.
Outcome<Welcome> join_this_or_next(const std::string& socket_path, const abi::Join& request) {
  const auto deadline = std::chrono::steady_clock::now() + patience_with_agent();
  for (;;) {
    auto link = link::AgentLink::connect(socket_path);
    if (link) {
      auto answer = (*link)->ask(request, -1, join_timeout);
      if (answer) return Welcome{std::move(*link), std::move(*answer)};
      if (answer.error().code != ErrorCode::Unavailable) return agent_failure(answer.error());
      link = propagate(answer);
    }
    // Nobody ever comes by a path that can be no socket's.
    const bool is_hopeless = link.error().code == ErrorCode::InvalidArgument;
    if (is_hopeless || std::chrono::steady_clock::now() >= deadline) {
      return failure(FB_ERROR_NO_AGENT, to_string(link.error()));
    }
    std::this_thread::sleep_for(look_pause);
  }
}

/// The maker asked for less, and whoever writes it to its end would write into what is another's.
tl::unexpected<Failure> too_small(const std::string& name, std::uint64_t size_bytes) {
  return failure(FB_ERROR_INVALID_ARGUMENT,
                 fmt::format("allocation '{}' is there, and has {} bytes", name, size_bytes));
}

std::string or_environment(const std::string& given, const char* variable) {
  return given.empty() ? os::environment_variable(variable).value_or("") : given;
}

Outcome<fb_role> role_from(fb_role given) {
  if (given == FB_ROLE_ACTIVE || given == FB_ROLE_STANDBY) return given;
  if (given != fb_role{}) return failure(FB_ERROR_INVALID_ARGUMENT, "a role that is neither");
  const auto role = abi::role_from(os::environment_variable("FIREBREAK_ROLE").value_or(""));
  if (!role) return failure(FB_ERROR_INVALID_ARGUMENT, "FIREBREAK_ROLE: " + role.error().message);
  return *role == abi::Role::Active ? FB_ROLE_ACTIVE : FB_ROLE_STANDBY;
}

/// The version first: what lies behind the page depends on it.
Outcome<os::Mapping> map_shared_memory(const link::Answer& answer) {
  const int fd = answer.descriptors.size() == 1 ? answer.descriptors[0].get() : -1;
  if (fd < 0 || !os::has_fixed_size(fd)) return failure(FB_ERROR_CORRUPT, "the agent sent no shared page");
  const auto size = os::file_size(fd);
  if (!size || *size < sizeof(abi::SharedPage)) {
    return failure(FB_ERROR_CORRUPT, "the agent's shared page is too small");
  }
  const auto page = os::Mapping::of_file(fd, sizeof(abi::SharedPage), os::Protection::Read);
  if (!page) return failure(FB_ERROR_NO_MEMORY, to_string(page.error()));
  const auto* shared = page->as<abi::SharedPage>();
  if (shared->magic != abi::shared_page_magic || shared->version != abi::shared_page_version) {
    return failure(FB_ERROR_CORRUPT,
                   fmt::format("the agent's shared page has version {}, this library knows {}",
                               shared->version, abi::shared_page_version));
  }
  if (*size < sizeof(abi::SharedMemory)) {
    return failure(FB_ERROR_CORRUPT, "the agent's shared memory is too small");
  }
  auto whole = os::Mapping::of_file(fd, sizeof(abi::SharedMemory), os::Protection::ReadWrite);
  if (!whole) return failure(FB_ERROR_NO_MEMORY, to_string(whole.error()));
  return std::move(*whole);
}

}  // namespace

Outcome<std::unique_ptr<Session>> Session::join(const JoinOptions& options) {
  const std::string socket_path = or_environment(options.socket_path, "FIREBREAK_SOCKET");
  const std::string tenant = or_environment(options.tenant, "FIREBREAK_TENANT");
  if (socket_path.empty()) {
    return failure(FB_ERROR_NO_AGENT,
                   "no agent: FIREBREAK_SOCKET is not set (start the program with `firebreak run`)");
  }
  if (auto good = abi::check_name(tenant); !good) {
    return failure(FB_ERROR_INVALID_ARGUMENT, "FIREBREAK_TENANT: " + to_string(good.error()));
  }
  const auto role = role_from(options.role);
  if (!role) return tl::unexpected(role.error());
  const std::string token = os::environment_variable("FIREBREAK_TOKEN").value_or("");
  const abi::Role wanted = *role == FB_ROLE_ACTIVE ? abi::Role::Active : abi::Role::Standby;
  // The next agent refuses a join whose answer is lost where there is no number, as ever.
  const abi::Join asked{tenant, wanted, token, os::random_token().value_or(""),
                        or_environment({}, "CUDA_MPS_PIPE_DIRECTORY")};
  auto welcome = join_this_or_next(socket_path, asked);
  if (!welcome) return tl::unexpected(welcome.error());
  auto& [link, answer] = *welcome;
  const auto* joined = std::get_if<abi::Joined>(&answer.message);
  if (joined == nullptr) return failure(FB_ERROR_CORRUPT, "the agent answered a join with something else");
  auto shared = map_shared_memory(answer);
  if (!shared) return tl::unexpected(shared.error());
  link->come_back({socket_path, {tenant, token}, Milliseconds(joined->agent_returns_ms)});
  std::unique_ptr<Session> session(
      new Session(std::move(link), std::move(*shared), std::move(answer.descriptors.at(0)), asked, *joined));
  session->agent_socket_ = socket_path;
  // A predecessor was lost there, and its memory and commits were not.
  const bool goes_on = *role == FB_ROLE_ACTIVE && joined->epoch > 0;
  if (goes_on) {
    if (auto taken = session->become_active(joined->epoch); !taken) return tl::unexpected(taken.error());
  }
  return session;
}

Session::Session(std::unique_ptr<link::AgentLink> link, os::Mapping shared, os::Fd page_file,
                 const abi::Join& asked, const abi::Joined& joined)
    : injections_(std::make_unique<InjectionHook>(*link)),
      link_(std::move(link)),
      shared_(std::move(shared)),
      page_file_(std::move(page_file)),
      role_(asked.role == abi::Role::Active ? FB_ROLE_ACTIVE : FB_ROLE_STANDBY),
      epoch_(joined.epoch),
      member_(joined.member),
      tenant_(asked.tenant),
      arena_base_(joined.arena_base),
      next_address_(joined.arena_base),
      shared_base_(joined.shared_base),
      shared_bytes_(joined.shared_bytes) {
  auto* word = &page().promotion;
  link_->on_lost([word] { os::futex_wake(*word); });
  auto* turn = &page().turn;
  link_->on_hand_over([this, turn] {
    is_to_hand_over_.store(true, std::memory_order_release);
    os::futex_wake(turn->hold);
  });
  // The next agent says anew whether it wants to be told.
  link_->on_away([turn] { turn->heard.store(0, std::memory_order_release); });
  if (role_ == FB_ROLE_ACTIVE) note_class();
  link_->on_inject([hook = injections_.get()](const abi::Inject& wanted) { hook->request(wanted); });
}

Outcome<cuda::Device> Session::current_device() {
  if (!driver_) {
    auto driver = cuda::Driver::load();
    if (!driver) return cuda_failure(driver.error());
    driver_ = std::move(*driver);
  }
  auto context = cuda::ContextView::current(*driver_);
  if (!context) return cuda_failure(context.error());
  enter_core_dump_mode();
  auto device = context->device();
  if (!device) return cuda_failure(device.error());
  return *device;
}

/// This happens once there is a context. The agent knows what goes wrong: its domain is not parked.
void Session::enter_core_dump_mode() {
  if (std::exchange(has_asked_for_core_dumps_, true)) return;
  // The agent may be late, and the session over by then.
  const auto ask = [socket = agent_socket_](const abi::Message& question) {
    return link::ask_once(socket, question, answer_patience);
  };
  park::enter_mode_whenever(driver_, ask, [](const std::function<void()>& run) { run(); });
}

// --- memory
// -------------------------------------------------------------------------------------------------------

Outcome<std::uint64_t> Session::allocate(const std::string& name, std::uint64_t size_bytes,
                                         abi::Memory memory, Milliseconds timeout) {
  if (auto good = abi::check_name(name); !good)
    return failure(FB_ERROR_INVALID_ARGUMENT, to_string(good.error()));
  if (size_bytes == 0) return failure(FB_ERROR_INVALID_ARGUMENT, "an allocation of 0 bytes");
  if (size_bytes > arena_bytes) return failure(FB_ERROR_NO_MEMORY, "more than the tenant's addresses");
  size_bytes = round_up(size_bytes, granularity_bytes);
  const auto known = allocations_.find(name);
  if (known != allocations_.end() && known->second.size_bytes() < size_bytes)
    return too_small(name, known->second.size_bytes());
  if (known != allocations_.end()) return known->second.address();
  if (fenced()) return failure(FB_ERROR_FENCED, "another process is active now");
  if (const auto offered = unpublished_.find(name); offered != unpublished_.end()) {
    if (offered->second.size_bytes == size_bytes && offered->second.memory == memory) return publish(name);
    return failure(FB_ERROR_INVALID_ARGUMENT, unanswered);
  }
  if (const auto offered = unplaced_.find(name); offered != unplaced_.end()) {
    const bool is_same = offered->second.size_bytes == size_bytes && memory == abi::Memory::Shared;
    return is_same ? publish_shared(name) : failure(FB_ERROR_INVALID_ARGUMENT, unanswered);
  }
  // The driver and the agent's answer need this; an error of the driver's would not say what is missing.
  if (auto room = os::make_room_for_descriptors(descriptors_of_an_allocation); !room)
    return failure(FB_ERROR_NO_MEMORY, fmt::format("allocation '{}': {}", name, to_string(room.error())));
  // A promoted process may ask for what its predecessor made, or for something new.
  const bool makes_it = role_ == FB_ROLE_ACTIVE;
  const auto shared = link_->take_allocation(name, makes_it ? Milliseconds(0) : timeout);
  if (shared && shared->size_bytes < size_bytes) return too_small(name, shared->size_bytes);
  if (shared) return import(name, *shared);
  if (!makes_it || shared.error().code != ErrorCode::NotFound) return agent_failure(shared.error());
  if (memory == abi::Memory::Shared) return create_shared(name, size_bytes);
  return create(name, size_bytes, memory);
}

Outcome<std::uint64_t> Session::create(const std::string& name, std::uint64_t size_bytes,
                                       abi::Memory memory) {
  const auto device = current_device();
  if (!device) return tl::unexpected(device.error());
  if (auto reserved = reserve_arena(); !reserved) return tl::unexpected(reserved.error());
  if (next_address_ + size_bytes > arena_base_ + arena_bytes) {
    return failure(FB_ERROR_NO_MEMORY, "the tenant's addresses are used up");
  }
  auto created = GpuMemory::create(*device, next_address_, size_bytes);
  if (!created) return cuda_failure(created.error());
  unpublished_.emplace(name, Unpublished{next_address_, size_bytes, memory, std::move(*created)});
  next_address_ += size_bytes;
  return publish(name);
}

/// The agent may have it or not where no answer comes, and nobody knows: it stays as it was offered.
Outcome<std::uint64_t> Session::publish(const std::string& name) {
  Unpublished& offered = unpublished_.at(name);
  const auto answer = link_->ask(abi::Publish{name, offered.address, offered.size_bytes, offered.memory},
                                 offered.created.descriptor.get());
  if (!answer) {
    if (answer.error().code != ErrorCode::Timeout) unpublished_.erase(name);
    return agent_failure(answer.error());
  }
  const auto known = allocations_.emplace(name, std::move(offered.created.memory)).first;
  unpublished_.erase(name);
  return known->second.address();
}

Outcome<std::uint64_t> Session::import(const std::string& name,
                                       const link::AgentLink::SharedAllocation& shared) {
  auto memory = import_memory(shared);
  if (!memory) return tl::unexpected(std::move(memory.error()));
  if (shared.memory == abi::Memory::Shared)
    may_write_shared_ |= access_to(shared) == cuda::Access::ReadWrite;
  else
    next_address_ = std::max(next_address_, shared.address + shared.size_bytes);
  return allocations_.emplace(name, std::move(*memory)).first->second.address();
}

Outcome<GpuMemory> Session::import_memory(const link::AgentLink::SharedAllocation& shared) {
  const auto device = current_device();
  if (!device) return tl::unexpected(device.error());
  auto reserved = shared.memory == abi::Memory::Shared ? reserve_shared() : reserve_arena();
  if (!reserved) return tl::unexpected(reserved.error());
  auto memory = GpuMemory::import_at(*device, shared.address, shared.size_bytes, access_to(shared),
                                     shared.descriptor.get());
  if (!memory) return cuda_failure(memory.error());
  return std::move(*memory);
}

/// An active that begins where nothing was committed writes the weights anew: its predecessor may have died
/// halfway. Once others may have them nobody does.
cuda::Access Session::access_to(const link::AgentLink::SharedAllocation& shared) const {
  const bool begins = role_ == FB_ROLE_ACTIVE && recovered_.next_step == 0 && !shared.is_shared;
  return shared.memory == abi::Memory::State || begins ? cuda::Access::ReadWrite : cuda::Access::ReadOnly;
}

Outcome<void> Session::reserve_arena() {
  if (arena_) return {};
  auto arena = cuda::AddressReservation::reserve_at(*driver_, arena_base_, arena_bytes);
  if (!arena) return cuda_failure(arena.error());
  arena_.emplace(std::move(*arena));
  return {};
}

Outcome<void> Session::register_page() {
  if (registration_) return {};
  const auto device = current_device();
  if (!device) return tl::unexpected(device.error());
  auto registration =
      cuda::HostRegistration::create(*driver_, shared_.bytes().first(sizeof(abi::SharedPage)));
  if (!registration) return cuda_failure(registration.error());
  registration_.emplace(std::move(*registration));
  return {};
}

// --- promotion
// ----------------------------------------------------------------------------------------------------

Outcome<void> Session::ready() {
  if (role_ != FB_ROLE_STANDBY) return failure(FB_ERROR_INVALID_ARGUMENT, "only a standby gets ready");
  // A promotion would otherwise wait for this: the first commit needs the page on the GPU.
  if (auto registered = register_page(); !registered) return registered;
  // One that was promoted was ready: the agent's answer came too late, or not at all.
  if (own_promotion()) return {};
  const auto answer = link_->ask(abi::Ready{}, -1, ready_timeout);
  if (!answer && !own_promotion()) return agent_failure(answer.error());
  link_->say_ready(true);
  return {};
}

/// An epoch that began for somebody else is none of ours: who has lost its connection for a while waits on,
/// as the agent's standby again, or as nobody's.
std::optional<std::uint32_t> Session::own_promotion() {
  const std::uint32_t epoch = promotion().epoch;
  const auto promoted = abi::Promoted::from(page().promoted.load(std::memory_order_acquire));
  if (epoch == epoch_ || promoted != abi::Promoted{epoch, member_}) return std::nullopt;
  return epoch;
}

Outcome<fb_resume> Session::wait_promotion(Milliseconds timeout) {
  if (role_ == FB_ROLE_ACTIVE) return resume_point();
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  for (;;) {
    const std::uint32_t seen = page().promotion.load(std::memory_order_acquire);
    const auto word = abi::PromotionWord::from(seen);
    if (const auto epoch = own_promotion()) {
      page().woken_at_ns.store(to_ns(std::chrono::steady_clock::now()), std::memory_order_relaxed);
      if (auto taken = become_active(*epoch); !taken) return tl::unexpected(taken.error());
      return resume_point();
    }
    if (word.finished) return failure(FB_ERROR_REFUSED, "the tenant has finished");
    if (const std::string refusal = link_->refusal(); !refusal.empty())
      return failure(FB_ERROR_REFUSED, refusal);
    if (link_->lost()) return failure(FB_ERROR_NO_AGENT, "the firebreak agent is gone");
    const auto left = deadline - std::chrono::steady_clock::now();
    if (timeout >= Milliseconds(0) && left <= Nanoseconds(0))
      return failure(FB_ERROR_TIMEOUT, "no promotion in the given time");
    os::futex_wait(
        page().promotion, seen,
        timeout < Milliseconds(0) ? Nanoseconds(sleep_slice) : std::min<Nanoseconds>(left, sleep_slice));
  }
}

Outcome<void> Session::become_active(std::uint32_t epoch) {
  auto recovered = journal::recover(shared(), epoch);
  if (promotion().epoch != epoch) return failure(FB_ERROR_FENCED, "another process is active now");
  if (!recovered) return agent_failure(recovered.error());
  recovered_ = std::move(*recovered);
  writer_.emplace(shared(), epoch, recovered_);
  promoted_at_ns_ = page().decided_at_ns.load(std::memory_order_relaxed);
  is_to_hand_over_.store(false, std::memory_order_relaxed);  // meant for a term of office before
  link_->say_ready(false);
  note_class();
  has_told_of_wishes_ = false;
  epoch_.store(epoch, std::memory_order_release);
  role_.store(FB_ROLE_ACTIVE, std::memory_order_release);
  return {};
}

fb_resume Session::resume_point() const {
  const bool has_state = recovered_.next_step > 0;
  return {epoch_.load(), recovered_.next_step, has_state ? recovered_.state.data() : nullptr,
          recovered_.state.size(), promoted_at_ns_};
}

Outcome<void> Session::resumed() {
  if (role_ != FB_ROLE_ACTIVE || epoch_ == 0)
    return failure(FB_ERROR_INVALID_ARGUMENT, "there was no promotion");
  page().resumed_at_ns.store(to_ns(std::chrono::steady_clock::now()), std::memory_order_relaxed);
  const auto answer = link_->ask(abi::Resumed{recovered_.next_step});
  if (!answer) return agent_failure(answer.error());
  return {};
}

Outcome<void> Session::stand_down() {
  if (role_ != FB_ROLE_ACTIVE) return failure(FB_ERROR_INVALID_ARGUMENT, "only an active stands down");
  is_to_hand_over_.store(false, std::memory_order_relaxed);
  if (auto rests = come_to_rest(); !rests) return rests;
  const std::uint32_t word = promotion().epoch == epoch_ ? offer_hand_over() : 0;  // 0: somebody else's turn
  const auto answer = link_->ask(abi::StandDown{word});
  if (!answer) {
    if (word == 0) return agent_failure(answer.error());
    const bool is_refused = answer.error().code == ErrorCode::PermissionDenied;
    if (withdraw_hand_over(word, is_refused)) return agent_failure(answer.error());
    return failure(FB_ERROR_TIMEOUT, "the agent hands over, and has not answered: fb_stand_down again");
  }
  // Its successor's: nobody is promoted after that one before we are ready.
  const std::uint32_t epoch = promotion().epoch;
  writer_.reset();
  recovered_ = {};
  epoch_.store(epoch, std::memory_order_release);
  role_.store(FB_ROLE_STANDBY, std::memory_order_release);
  return {};
}

Session::HandOver Session::hand_over_state() {
  const auto word = abi::HandOverWord::from(page().hand_over.load(std::memory_order_acquire));
  return word.epoch == epoch_ ? word.state : HandOver::None;
}

std::uint32_t Session::offer_hand_over() {
  const abi::HandOverWord word{epoch_, ++hand_overs_, HandOver::Offered};
  page().hand_over.store(word.raw(), std::memory_order_release);
  return word.number;
}

/// Nobody is promoted on that word from then on. False means that the agent has taken it, and did not refuse.
bool Session::withdraw_hand_over(std::uint32_t number, bool is_refused) {
  auto& word = page().hand_over;
  const std::uint64_t withdrawn = abi::HandOverWord{epoch_, number, HandOver::Withdrawn}.raw();
  std::uint64_t there = abi::HandOverWord{epoch_, number, HandOver::Offered}.raw();
  if (word.compare_exchange_strong(there, withdrawn, std::memory_order_acq_rel)) return true;
  if (is_refused) word.store(withdrawn, std::memory_order_release);
  return is_refused;
}

/// Queued work would land in a successor's memory. A context without work says nothing of a fault that it has
/// met: a store tells, of what is there already.
Outcome<void> Session::come_to_rest() {
  if (auto registered = register_page(); !registered) return registered;
  auto context = cuda::ContextView::current(*driver_);
  if (!context) return cuda_failure(context.error());
  if (auto idle = context->synchronize(); !idle) return cuda_failure(idle.error());
  abi::CommitArea& own = writer().area();
  if (auto queued = publish(nullptr, own.heartbeats_done, own.heartbeats_done.load()); !queued) return queued;
  if (auto idle = context->synchronize(); !idle) return cuda_failure(idle.error());
  return {};
}

// --- turns
// --------------------------------------------------------------------------------------------------------

void Session::note_class() {
  const bool is_live = os::environment_variable("FIREBREAK_CLASS").value_or("") == "live";
  page().turn.is_live.store(is_live ? 1 : 0, std::memory_order_relaxed);
}

/// Where turns are given one step at most is queued ahead of the one that runs: who is to wait has then left
/// the GPU within a step.
bool Session::is_step_queued_ahead() const {
  if (page().turn.heard.load(std::memory_order_relaxed) == 0 || !writer_) return false;
  const abi::CommitArea* const area = area_of(page(), epoch_);
  return area != nullptr && area->queued_step.load(std::memory_order_relaxed) >
                                area->next_step.load(std::memory_order_acquire) + 1;
}

Outcome<void> Session::turn(Milliseconds timeout) {
  if (role_ != FB_ROLE_ACTIVE) return failure(FB_ERROR_INVALID_ARGUMENT, "a standby has no turns");
  abi::TurnPlace& place = page().turn;
  const Monotonic asked = std::chrono::steady_clock::now();
  const Nanoseconds between_looks =
      std::clamp<Nanoseconds>(Nanoseconds(place.unit_ns.load(std::memory_order_relaxed) / 16),
                              shortest_look_pause, longest_look_pause);
  for (Monotonic now = asked;; now = std::chrono::steady_clock::now()) {
    if (auto ours = still_ours(); !ours) return ours;
    const std::uint32_t seen = place.hold.load(std::memory_order_acquire);
    const Milliseconds held(abi::HoldWord::left_ms(seen, to_ns(now)));
    if (held == Milliseconds(0) && !(is_step_queued_ahead() && now - asked < longest_step)) break;
    const bool is_over = timeout >= Milliseconds(0) && now - asked >= timeout;
    if (is_over) return failure(FB_ERROR_TIMEOUT, "it is not this tenant's turn yet");
    const Nanoseconds left = timeout < Milliseconds(0) ? Nanoseconds(sleep_slice) : asked + timeout - now;
    if (held > Milliseconds(0)) {
      last_turn_ns_ = 0;
      os::futex_wait(place.hold, seen, std::min<Nanoseconds>({left, held, sleep_slice}));
    } else {
      std::this_thread::sleep_for(std::min(left, between_looks));
    }
  }
  // The time of a step is that between two turns between which nobody else had one.
  const std::int64_t now_ns = to_ns(std::chrono::steady_clock::now());
  if (last_turn_ns_ != 0) place.unit_ns.store(now_ns - last_turn_ns_, std::memory_order_relaxed);
  last_turn_ns_ = now_ns;
  place.taken.store(place.taken.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  return {};
}

Outcome<void> Session::turn_wanted(std::int64_t deadline_ns, std::uint64_t units) {
  if (role_ != FB_ROLE_ACTIVE) return failure(FB_ERROR_INVALID_ARGUMENT, "a standby has no turns");
  if (auto ours = still_ours(); !ours) return ours;
  abi::TurnPlace& place = page().turn;
  // 0 is no deadline; any time before now is the same as now.
  const std::int64_t deadline = deadline_ns < 0 ? 1 : deadline_ns;
  const std::int64_t deadline_before = place.deadline_ns.exchange(deadline, std::memory_order_relaxed);
  const std::uint64_t units_before = place.units.exchange(units, std::memory_order_acq_rel);
  if (units == 0) last_turn_ns_ = 0;
  const bool is_news = (units == 0) != (units_before == 0) || deadline != deadline_before;
  if (!is_news && has_told_of_wishes_) return {};
  // An agent that is away finds it on the page.
  if (place.heard.load(std::memory_order_acquire) != 0)
    has_told_of_wishes_ = link_->tell(abi::TurnWanted{}).has_value();
  return {};
}

// --- commits
// ------------------------------------------------------------------------------------------------------

Outcome<void> Session::still_ours() {
  if (fenced()) return failure(FB_ERROR_FENCED, "another process is active now");
  if (is_to_hand_over_.load(std::memory_order_acquire))
    return failure(FB_ERROR_FENCED, "its standby is to go on: fb_stand_down hands over");
  return {};
}

Outcome<void> Session::commit(CUstream stream, std::uint64_t step, const journal::NewState& state,
                              Counting counting) {
  if (role_ != FB_ROLE_ACTIVE) return failure(FB_ERROR_INVALID_ARGUMENT, "a standby does not commit");
  if (auto ours = still_ours(); !ours) return ours;
  if (auto good = check(state); !good) return failure(FB_ERROR_INVALID_ARGUMENT, good.error().message);
  if (step != writer().next_step()) {
    return failure(FB_ERROR_INVALID_ARGUMENT,
                   fmt::format("step {} out of order; {} is next", step, writer().next_step()));
  }
  if (auto registered = register_page(); !registered) return registered;
  injections_->at_commit();
  if (auto appended = append(stream, state); !appended) return appended;
  abi::CommitArea& area = writer().area();
  if (counting == Counting::Library) {
    if (auto queued = publish(stream, area.next_step, step + 1); !queued) {
      writer().retract();
      return queued;
    }
  }
  area.queued_step.store(step + 1, std::memory_order_relaxed);
  // The session puts away what the GPU has passed while it works on this step.
  writer().fold_some();
  return {};
}

/// These count within this epoch. An active that was never a standby begins at step 0.
journal::CommitWriter& Session::writer() {
  if (!writer_) writer_.emplace(shared(), epoch_, journal::Recovered{});
  return *writer_;
}

/// Some room comes once the GPU has passed what is queued.
Outcome<void> Session::append(CUstream stream, const journal::NewState& state) {
  while (!writer().append(state)) {
    writer().fold_all();
    if (writer().append(state)) break;
    const CUresult idle = (*driver_)->cuStreamQuery(stream);
    if (idle != CUDA_SUCCESS && idle != CUDA_ERROR_NOT_READY) {
      return cuda_failure(driver_->check(idle, "cuStreamQuery").error());
    }
    if (fenced()) return failure(FB_ERROR_FENCED, "another process is active now");
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
  return {};
}

CUdeviceptr Session::device_address_of(const std::atomic<std::uint64_t>& word) const {
  const auto offset = reinterpret_cast<const std::byte*>(&word) - shared_.bytes().data();
  return registration_->device_address() + static_cast<CUdeviceptr>(offset);
}

Outcome<void> Session::publish(CUstream stream, std::atomic<std::uint64_t>& word, std::uint64_t value) {
  const CUresult queued = (*driver_)->cuStreamWriteValue64(stream, device_address_of(word), value, 0);
  if (queued == CUDA_SUCCESS) return {};
  return cuda_failure(driver_->check(queued, "cuStreamWriteValue64").error());
}

Outcome<std::uint64_t> Session::counter() {
  if (role_ != FB_ROLE_ACTIVE) return failure(FB_ERROR_INVALID_ARGUMENT, "a standby counts no steps");
  if (fenced()) return failure(FB_ERROR_FENCED, "another process is active now");
  if (auto registered = register_page(); !registered) return tl::unexpected(registered.error());
  // The writer sets the counter to where we begin, which must not come after a kernel's store.
  return device_address_of(writer().area().next_step);
}

Outcome<void> Session::heartbeat(CUstream stream) {
  if (role_ != FB_ROLE_ACTIVE) return failure(FB_ERROR_INVALID_ARGUMENT, "a standby has no heartbeat");
  if (auto ours = still_ours(); !ours) return ours;
  if (auto registered = register_page(); !registered) return registered;
  abi::CommitArea& area = writer().area();
  const std::uint64_t heartbeat = area.heartbeats_queued.load(std::memory_order_relaxed) + 1;
  if (auto queued = publish(stream, area.heartbeats_done, heartbeat); !queued) return queued;
  area.heartbeats_queued.store(heartbeat, std::memory_order_relaxed);
  return {};
}

std::uint64_t Session::committed() const {
  const abi::CommitArea* own = role() == FB_ROLE_ACTIVE ? area_of(page(), epoch_) : nullptr;
  const abi::CommitArea* area = own != nullptr ? own : newest_area(page());
  return area != nullptr ? area->next_step.load(std::memory_order_acquire) : 0;
}

Outcome<void> Session::leave() {
  if (role_ != FB_ROLE_ACTIVE) return {};
  if (fenced()) return failure(FB_ERROR_FENCED, "another process is active now");
  // First, for an agent that is away.
  writer().area().left.store(std::uint64_t{epoch_} + 1, std::memory_order_release);
  const auto answer = link_->ask(abi::Finish{});
  if (answer) return {};
  const bool is_away =
      answer.error().code == ErrorCode::Unavailable || answer.error().code == ErrorCode::Timeout;
  return is_away ? Outcome<void>() : agent_failure(answer.error());
}

}  // namespace firebreak::client
