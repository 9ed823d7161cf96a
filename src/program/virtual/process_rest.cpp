// SPDX-License-Identifier: Apache-2.0
/// A program that rests: it gives its GPU up, and gets it again, by a word of the agent's. It waits at the
/// gate meanwhile. The keeper alone does all of this.
#include "ground/os/self.h"
#include "program/rest/copy_lanes.h"
#include "program/rest/host_content.h"
#include "program/rest/own_driver.h"
#include "program/virtual/process.h"

namespace firebreak::virtual_driver {

using abi::RestLevel;
using abi::RestPart;

/// What is kept while there is no driver; the socket for good.
struct VirtualProcess::AtRest {
  std::string domain;                        ///< where it worked
  std::optional<rest::HostContent> content;  ///< empty: its memory is on the GPU
  std::vector<std::vector<char>> variables;  ///< in the order of each_variable_in()
  std::optional<os::QuietSocket> in_places;  ///< of what the own driver had
};

namespace {

constexpr std::uint64_t mib = std::uint64_t{1} << 20U;

std::string said(const std::string& what, CUresult result) {
  return what + ": the driver says " + std::to_string(result);
}

}  // namespace

void VirtualProcess::rest_if_asked() {
  const std::uint32_t asked = page_->asked_to_rest.load(std::memory_order_acquire);
  if (asked == page_->answered_rest.load()) return;
  const std::string refusal = go_to(abi::level_in(asked));
  {
    const std::lock_guard lock(flipping_);
    write_text(page_->rest_refusal, refusal);
  }
  page_->answered_rest.store(asked, std::memory_order_release);
  os::futex_wake(page_->answered_rest);
}

/// Empty: it is there. Else why not; then it is where it was before.
std::string VirtualProcess::go_to(RestLevel wanted) {
  const RestLevel before = rest_.load();
  if (wanted == before) return {};
  if (wanted == RestLevel::Awake) {
    if (before != RestLevel::Still) return wake_up();
    wake_from_still();
    return {};
  }
  if (before == RestLevel::WithoutContexts) return "it rests already, with its memory on the GPU";
  if (before == RestLevel::WithoutMemory) return "it rests already, with its memory in the host";
  if (before == RestLevel::Awake)
    if (std::string refusal = become_still(); !refusal.empty()) return refusal;
  if (wanted == RestLevel::Still) return {};
  std::string refusal = leave_gpu(wanted);
  if (!refusal.empty() && before == RestLevel::Awake) wake_from_still();
  return refusal;
}

void VirtualProcess::note_rest(RestLevel now) {
  rest_.store(now);
  page_->rest.store(now, std::memory_order_release);
}

// ---- To rest ----

std::string VirtualProcess::become_still() {
  const std::lock_guard lock(flipping_);
  if (const char* const why = aside_.load()) return std::string("it is unprotected: ") + why;
  if (page_->state.load() == abi::SpareState::Lost) return "its domain has died under its work";
  part_began_ = std::chrono::steady_clock::now();
  if (!gate_.close(settings_.longest_wait)) return "a call of its does not come back from the driver";
  if (graphs_.are_captures_under_way()) {
    gate_.open();
    return "it captures a graph";
  }
  const auto queued = all_queued();
  event_times_.put_mark(active());
  const Waited waited = synchronize(active(), settings_.longest_wait);
  if (waited != Waited::AllDone) {
    gate_.open();
    return waited == Waited::TooLong ? "it has work that does not end" : "its domain has died";
  }
  end_all(queued);
  note_part(RestPart::Work);
  note_rest(RestLevel::Still);
  return {};
}

/// Who ends in a domain that is parked ends it for everybody.
bool VirtualProcess::is_any_held() const {
  const auto is_held = [this](const Instance* each) {
    return each != nullptr && rule_of(each->pipe_directory()) == abi::DomainRule::Held;
  };
  return is_held(&active()) || is_held(spare_.load()) || std::ranges::any_of(left_, is_held);
}

/// That it can come back is known of who has a spare: all that it has was made again there.
std::string VirtualProcess::why_not_leave(const Instance& from) {
  const Instance* const spare = spare_.load();
  if (const char* const why = aside_.load()) return std::string("it is unprotected: ") + why;
  if (spare == nullptr || page_->state.load() != abi::SpareState::Protected)
    return std::string("it is unprotected: ") + page_->reason.data();
  if (primary_seen_.load() == 0) return "it has no context yet";
  if (is_any_held()) return "a domain of its is parked";
  if (complete(*spare) != Completed::Yes) return "its spare does not get all that it has";
  const bool is_well = is_alive(from);
  return is_well ? "" : "its domain has died";
}

std::string VirtualProcess::leave_gpu(RestLevel wanted) {
  const std::lock_guard starting(starting_);
  const auto kept = std::make_shared<AtRest>();
  {
    const std::lock_guard lock(flipping_);
    const Instance& from = active();
    part_began_ = std::chrono::steady_clock::now();
    if (std::string why = why_not_leave(from); !why.empty()) return why;
    if (std::string why = save(from, wanted, *kept); !why.empty()) return why;
    note_part(RestPart::Save);
    // From here on nothing fails.
    kept->domain = from.pipe_directory();
    if (at_rest_ != nullptr) kept->in_places = std::move(at_rest_->in_places);
    at_rest_ = kept;
    note_rest(wanted);
    page_->rest_host_bytes.store(kept->content ? kept->content->size_bytes() : 0);
    receiver_.store(nullptr);
    if (const Instance* const spare = spare_.exchange(nullptr)) left_.push_back(spare);
    left_.push_back(&from);
    tell_domains();
    tell(abi::SpareState::Unprotected, "it rests");
  }
  give_back_all(wanted);
  note_part(RestPart::Drivers);
  return {};
}

std::string VirtualProcess::save(const Instance& from, RestLevel wanted, AtRest& kept) {
  {
    const ContextScope scope(from);
    later_frees_.take_up(memory_, from, true);
  }
  event_times_.keep(objects_, from);
  if (!save_variables(from, &kept.variables)) return "variables of its code could not be copied";
  if (wanted == RestLevel::WithoutMemory) return save_memory(from, kept);
  const ContextScope scope(from);
  CUresult done = memory_.make_all_movable(from);
  if (done == CUDA_SUCCESS) done = mappings_.make_all_movable(from);
  return done == CUDA_SUCCESS ? "" : said("its memory cannot be kept", done);
}

std::string VirtualProcess::save_memory(const Instance& from, AtRest& kept) {
  std::vector<WindowMemory::Range> ranges = memory_.blocks();
  CUresult done = CUDA_SUCCESS;
  {
    const ContextScope scope(from);
    done = mappings_.show(from, &ranges);
  }
  std::vector<rest::GpuRange> places;
  for (const WindowMemory::Range& each : ranges) places.push_back({each.begin, each.size_bytes});
  std::string why;
  if (done == CUDA_SUCCESS) {
    auto content = rest::HostContent::of(places);
    if (!content) why = content.error().message;
    const auto start_thread = [&from](std::function<void()> run) {
      return from.start_thread(std::move(run));
    };
    if (content)
      done = rest::copy_all({from.driver(), from.primary(), start_thread, program_ends_}, *content,
                            rest::Direction::ToHost);
    if (content) kept.content.emplace(std::move(*content));
  }
  if (done == CUDA_ERROR_OUT_OF_MEMORY && why.empty()) why = "the host has not enough memory for its content";
  if (done != CUDA_SUCCESS && why.empty()) why = said("its memory could not be copied", done);
  const ContextScope scope(from);
  mappings_.hide(from, !why.empty());
  return why;
}

/// Also the program's own driver has nothing of the GPU then.
void VirtualProcess::give_back_all(RestLevel wanted) {
  if (settings_.resting != nullptr) settings_.resting();
  std::vector<const Instance*> all;
  {
    const std::lock_guard lock(flipping_);
    all.swap(left_);
    are_left_in_use_ = false;
  }
  for (const Instance* const each : all) give_back(*each);
  if (wanted == RestLevel::WithoutMemory) {
    memory_.let_go();
    mappings_.let_go();
  }
  std::set<int> kept;
  memory_.add_descriptors(&kept);
  mappings_.add_descriptors(&kept);
  const std::string pipes = os::environment_variable("CUDA_MPS_PIPE_DIRECTORY").value_or("/tmp/nvidia-mps");
  if (auto socket = os::make_quiet_socket(); socket && !at_rest_->in_places)
    at_rest_->in_places.emplace(std::move(*socket));
  if (at_rest_->in_places)
    (void)rest::replace_own_driver(*at_rest_->in_places, own_descriptors_, kept, pipes);
}

// ---- And back ----

void VirtualProcess::wake_from_still() {
  note_rest(RestLevel::Awake);
  gate_.open();
}

std::string VirtualProcess::wake_up() {
  const std::lock_guard starting(starting_);
  std::string why = "none of its domains takes it yet";
  const std::string first = at_rest_->domain;
  for (const std::string& domain : {first, settings_.domains[1 - number_of_domain(first)]}) {
    if (domain.empty() || !takes_instances(domain)) continue;
    why = wake_up_in(domain);
    if (why.empty()) return why;
  }
  return why;
}

std::string VirtualProcess::wake_up_in(const std::string& domain) {
  part_began_ = std::chrono::steady_clock::now();
  const auto begun = bring_up(domain);
  if (!begun) return begun.error().message;
  const Instance& to = **begun;
  note_part(RestPart::Begin);
  active_.store(&to, std::memory_order_release);
  std::string why;
  {
    const std::lock_guard lock(flipping_);
    why = fill(to);
    if (why.empty()) go_on_in(to);
  }
  if (!why.empty()) {
    give_back(to);
    return why;
  }
  at_rest_->content.reset();  // takes its time, and the program works again
  at_rest_->variables.clear();
  wake_keeper();
  return {};
}

/// Everything that the program has is there then. Its memory first: graphs are made with its addresses.
std::string VirtualProcess::fill(const Instance& to) {
  if (at_rest_->content) {
    const CUresult done = fill_memory(to);
    if (done == CUDA_ERROR_OUT_OF_MEMORY)
      return "the GPU has no room for its " + std::to_string(at_rest_->content->size_bytes() / mib) + " MiB";
    if (done != CUDA_SUCCESS) return said("its memory could not be made again", done);
  }
  note_part(RestPart::Fill);
  if (bring_everything(to) != Completed::Yes) return page_->reason.data();
  prepare_times_in(to);
  if (!fill_variables(to, at_rest_->variables)) return "variables of its code could not be copied";
  note_part(RestPart::Objects);
  return {};
}

CUresult VirtualProcess::fill_memory(const Instance& to) {
  CUresult done = CUDA_SUCCESS;
  {
    const ContextScope scope(to);
    done = memory_.make_again(to);
    if (done == CUDA_SUCCESS) done = mappings_.make_again(to);
    std::vector<WindowMemory::Range> shown;
    if (done == CUDA_SUCCESS) done = mappings_.show(to, &shown);
  }
  const auto start_thread = [&to](std::function<void()> run) { return to.start_thread(std::move(run)); };
  if (done == CUDA_SUCCESS)
    done = rest::copy_all({to.driver(), to.primary(), start_thread, program_ends_}, *at_rest_->content,
                          rest::Direction::ToGpu);
  const ContextScope scope(to);
  mappings_.hide(to, done == CUDA_SUCCESS);
  return done;
}

void VirtualProcess::go_on_in(const Instance& to) {
  note_rest(RestLevel::Awake);
  page_->rest_host_bytes.store(0);
  objects_.flipped();
  mappings_.flipped();
  event_times_.moved_to(to);
  if (settings_.moved != nullptr) settings_.moved();
  next_spare_ = {};
  before_next_spare_ = Nanoseconds(0);
  tell_domains();
  tell(abi::SpareState::Unprotected, "the next spare is being made");
  forget_current(to);
  gate_.open();
}

}  // namespace firebreak::virtual_driver
