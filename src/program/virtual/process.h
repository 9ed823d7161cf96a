// SPDX-License-Identifier: Apache-2.0
/// The driver that a program sees, made of several: an anchor, an instance that works and a spare. Decides
/// which instance a call reaches, and moves the program from one to the next.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "ground/os/memory.h"
#include "ground/os/self.h"
#include "ground/os/standing.h"
#include "program/cuda/backend.h"
#include "program/rest/own_driver.h"
#include "program/virtual/argument_addresses.h"
#include "program/virtual/current.h"
#include "program/virtual/event_times.h"
#include "program/virtual/gate.h"
#include "program/virtual/given_work.h"
#include "program/virtual/graphs.h"
#include "program/virtual/instance.h"
#include "program/virtual/later_frees.h"
#include "program/virtual/mappings.h"
#include "program/virtual/marks.h"
#include "program/virtual/memory.h"
#include "program/virtual/news.h"
#include "program/virtual/objects.h"
#include "program/virtual/outside_word.h"
#include "program/virtual/redo.h"
#include "program/virtual/taken_variables.h"
#include "shared/abi/spare_page.h"

namespace firebreak::virtual_driver {

/// 0: what was under way when a domain died is not done again. Else how many microseconds marks are apart.
inline constexpr const char* redo_variable = "FIREBREAK_SPARE_REDO";
inline constexpr Nanoseconds default_between_marks = std::chrono::microseconds(100);

struct VirtualSettings {
  std::string library;                 ///< the program's own driver, by its path
  std::array<std::string, 2> domains;  ///< pipe directories: that of the first working instance, the other
  /// Core dumps of instances in these domains go there (docs/how/parking.md); empty: to where the process's
  /// go.
  std::array<std::string, 2> dumps = {};
  Nanoseconds longest_wait{std::chrono::seconds(10)};  ///< of a flip, for calls and work under way
  /// Runs `run` in a way that what a driver asks the dynamic linker for meanwhile is answered with its own.
  void (*undisturbed)(const std::function<void()>& run) = nullptr;
  /// Whether that is a word of ours, which nobody else reads and the GPU writes in the order of a stream.
  /// Null: there are none.
  bool (*is_marker)(CUdeviceptr address) = nullptr;
  /// What was under way when a domain died is done again where that is proved (program/virtual/redo.h). So
  /// far apart are marks in a stream at least, which tell how far it has come. Nothing: nothing is done
  /// again.
  std::optional<Nanoseconds> between_marks = default_between_marks;
  /// Called in each move, once the next instance is the one that works and before any call reaches it. It may
  /// wait for nobody who calls the driver. Null: nobody wants to know.
  void (*moved)() = nullptr;
  /// Called when the program comes to rest without a driver, before any is thrown away. Like moved().
  void (*resting)() = nullptr;
};

/// Cut off where there is no room.
template <std::size_t size>
void write_text(std::array<char, size>& into, const std::string& text) {
  into.fill('\0');
  std::memcpy(into.data(), text.data(), std::min(text.size(), size - 1));
}

/// FIREBREAK_SPARE_TRACE=1: calls that answer an error, addresses of variables that are taken, and all that
/// puts the program aside are written to standard error, for who develops this. 2: every call.
enum class Trace { Nothing, Errors, Calls };
Trace trace();
inline bool is_traced() { return trace() != Trace::Nothing; }

/// Memory in the window that is ours.
struct Room {
  CUdeviceptr begin = 0;
  std::size_t size_bytes = 0;
};

class VirtualProcess;

/// What a call is given: the instance that it reaches.
struct Turn {
  const Instance& instance;
  const cuda::Backend& driver;
  Slot slot;
  Objects& objects;
  VirtualProcess& all;

  /// Where what the program means by that address lies in the instance.
  CUdeviceptr translate(CUdeviceptr address) const;
  /// The same for a call that may write there.
  CUdeviceptr translate_for_use(CUdeviceptr address) const;
  /// The call has addresses in a place where nobody looks.
  void beware_of_addresses() const;
};

/// One for the process, never destroyed. Thread safe.
class VirtualProcess {
 public:
  /// `own_driver`: the program's own, which becomes the anchor. `settings` without domains: there is nothing
  /// but the anchor, and the program works as ever.
  VirtualProcess(const cuda::Backend& own_driver, VirtualSettings settings);

  /// In a child of fork(): from now on the process's one, with nothing but the anchor. Threads of the
  /// parent's may have been using everything else, and its page is the parent's alone.
  static void begin_anew();

  /// At the program's exit: from now on nobody moves it, nor makes a spare. Returns once nobody does, or
  /// after a while: drivers are taken down next.
  static void end_of_program();
  /// And then what the driver in that slot wants done.
  static void run_exits_of(Slot slot);

  /// At the program's first cuInit: the working instance comes up, and the spare in the background.
  CUresult initialise(unsigned int flags);

  /// Runs `act` as one call of the program's. Where the instance has died and the program can leave it, `act`
  /// runs again in the next one: a call that answers an error has given the GPU nothing.
  template <class Act>
  CUresult call(const Act& act) {
    while (true) {
      CUresult result = CUDA_SUCCESS;
      std::uint32_t life = 0;
      {
        const Pass pass(gate_);
        const Instance& instance = *active_.load(std::memory_order_acquire);
        if (instance.slot() == no_slot) [[unlikely]]
          return CUDA_ERROR_DEINITIALIZED;  // the program ends while it rests
        life = instance.life();
        make_current(instance);
        result = act(Turn{instance, instance.driver(), instance.slot(), objects_, *this});
        if (result == CUDA_ERROR_INVALID_CONTEXT && is_current_ended()) [[unlikely]]
          result = CUDA_ERROR_CONTEXT_IS_DESTROYED;
      }
      if (!ends_instance(result)) [[likely]]
        return result;
      if (!leave_dead(life)) return result;
    }
  }

  const cuda::Backend& own_driver() const { return own_driver_; }
  Objects& objects() { return objects_; }
  WindowMemory& memory() { return memory_; }
  Mappings& mappings() { return mappings_; }
  LaterFrees& later_frees() { return later_frees_; }
  TakenVariables& taken() { return taken_; }
  ArgumentAddresses& arguments() { return arguments_; }
  Graphs& graphs() { return graphs_; }
  EventTimes& event_times() { return event_times_; }
  /// It is never moved any more.
  bool is_aside() const { return aside_.load(std::memory_order_relaxed) != nullptr; }
  /// A variable's address becomes the program's: where it is to have it. `code` is what it was found in.
  /// Empty: nowhere, since the program has that address of another variable, which has moved.
  std::optional<CUdeviceptr> take_variable(Object* code, const char* name, CUdeviceptr address,
                                           std::size_t size_bytes, Slot slot);
  /// False: it would give a kernel an address at which nothing is any more.
  bool may_launch(const Turn& turn, CUfunction function, void** parameters, void** extra);
  /// The same of a copy from the host to that address.
  bool may_copy(const Turn& turn, CUdeviceptr address, const void* host, std::size_t size_bytes);
  /// Only the anchor is there: nothing is kept.
  bool is_plain() const { return active_.load(std::memory_order_acquire)->slot() == anchor; }
  /// For somebody inside a call.
  const Instance* receiver() const { return receiver_.load(std::memory_order_acquire); }
  const Instance& active() const { return *active_.load(std::memory_order_acquire); }

  /// The anchor's primary context, which is the program's handle of its own in every instance.
  CUresult retain_primary(CUcontext* context);
  /// The program begins anew in the instance that works, unprotected from then on. That has its context again
  /// at once: the CUDA runtime gets the program's by ways of its own.
  CUresult reset_primary();
  /// Whoever gives it back last ends it, with all that is still of it.
  CUresult release_primary();
  /// Whether a context is one that the program has. The CUDA runtime gets the primary one by ways of its own:
  /// the first that we do not know, and that the anchor takes, is that.
  bool has_context(CUcontext context);
  /// The program asks for a function that is newer than all that are known here. True: it may have the
  /// driver's own, since that is the only one, and stays so.
  bool goes_without_spare(const std::string& function);
  /// The program uses what we cannot move: it goes on, unprotected. `why` is a literal.
  void stand_aside(const char* why);
  /// The same, and what it was: a name in the program's code.
  void stand_aside(const char* why, const std::string& what);
  /// Something that the spare is to have, too.
  void something_new() {
    if (!news_.tell()) return;
    page_->is_behind.store(1);
    wake_keeper();
  }

  /// Asks without waiting, in the current context. A stream that a thread has for itself is not asked. No
  /// stream may be captured: asking ends that.
  bool are_streams_idle(const Instance& instance);
  /// Who waits for the current context has waited for everything.
  bool has_one_context();
  /// What is queued in a stream; of default streams, in the one for all threads, or in those of all threads.
  Work& work_of(CUstream stream, bool per_thread = false);
  /// False for what counts the streams that threads have for themselves.
  bool is_one_stream(const Work& work) const { return &work != &thread_streams_work_; }
  /// Waits, by `wait_on`, for everything that was queued before.
  template <class Wait>
  CUresult wait_for_all(const Wait& wait_on) {
    const std::uint32_t begun = word_.begun();
    const auto queued = all_queued();
    const CUresult result = wait_on();
    if (result != CUDA_SUCCESS) return result;
    end_all(queued);
    tell_ended(begun);
    saw_an_end();
    return result;
  }
  /// Counts an operation, and has `note` put it down, once, with what it is given. In a capture it is none of
  /// the GPU's.
  template <class Note>
  void give(Work& work, const Note& note) {
    work.queued.fetch_add(1);
    if (given_ == nullptr || is_plain() || is_never_redone()) return;
    if (graphs_.are_captures_under_way()) return given_->unknown(work);
    note(*given_, work);
  }
  /// After something was given to that stream.
  void maybe_mark(const Turn& turn, Work& work, CUstream stream);
  void give_unknown(Work& work) {
    word_.begin();
    give(work, [](GivenWork& given, const Work& its) { given.unknown(its); });
  }
  OutsideWord& word() { return word_; }
  /// Somebody has waited since word().begun() was `begun`: the outside is told where nothing is under way.
  void tell_ended(std::uint32_t begun);
  /// The program knows now that something has ended, and may go on from there.
  void saw_an_end() {
    if (given_ != nullptr && !is_never_redone()) given_->seen();
  }
  /// It has given back code or memory that work before may have used.
  void gave_back() {
    if (given_ != nullptr && !is_never_redone()) given_->given_back();
  }
  /// Its code has variables, so its domain could not be left anyway once that has died: from then on, for
  /// good, nothing is noted.
  bool is_never_redone() const { return is_never_redone_.load(std::memory_order_relaxed); }
  bool is_marker(CUdeviceptr address) const {
    return settings_.is_marker != nullptr && settings_.is_marker(address);
  }
  /// As far as is known here, and by what the GPU has marked.
  bool is_any_work_under_way() {
    if (given_ == nullptr || is_never_redone()) return false;
    take_up_marks();
    return is_work_under_way();
  }

  void make_current(const Instance& instance);
  /// Of who makes or ends a context, inside a call: the driver gives the next one the handle of one that has
  /// ended, and what was of that has to be gone by then.
  std::unique_lock<std::mutex> lock_contexts() { return std::unique_lock(contexts_mutex_); }
  /// The calling thread's context has ended, and is current still.
  bool is_current_ended() { return current_context() != 0 && !is_plain() && !has_current(); }

  /// Host memory that we have given to the program, until it gives it back.
  struct Host {
    os::Mapping memory;
    unsigned int flags = 0;  ///< that the program has asked for
  };
  void keep_host(Host host);
  std::optional<Host> take_host(const void* begin);
  /// What the program has asked for where that lies. Empty: it is none of such memory.
  std::optional<unsigned int> flags_of_host(const void* address);

 private:
  enum class Why { Asked, Died };

  void know_primary(CUcontext seen);
  bool has_current() { return objects_.find(Family::Context, current_context()) != nullptr; }

  static bool ends_instance(CUresult result);
  bool leave_dead(std::uint32_t life) { return flip(Why::Died, life, settings_.longest_wait); }
  bool leave_alive();
  /// `from`: the life of the instance that is to be left. `longest`: so long the program's calls may have to
  /// wait for those inside, and then for the GPU.
  bool flip(Why why, std::uint32_t from, Nanoseconds longest);
  void note_part(abi::MovePart part) { note_time(page_->last_move_us[static_cast<std::size_t>(part)]); }
  void note_part(abi::RestPart part) { note_time(page_->rest_us[static_cast<std::size_t>(part)]); }
  /// Since the part before; on the page.
  void note_time(std::atomic<std::uint32_t>& of_part_us);
  bool is_ready_to_flip(Why why, const Instance& from, Nanoseconds longest);
  bool is_work_under_way();
  std::vector<std::pair<Work*, std::uint64_t>> all_queued();
  static void end_all(const std::vector<std::pair<Work*, std::uint64_t>>& queued);
  enum class Waited { AllDone, TooLong, Failed };
  Waited synchronize(const Instance& instance, Nanoseconds longest);
  Nanoseconds patience_at_gate(const Instance& from);
  void try_later();
  enum class Completed : std::uint8_t { Yes, No, NotFromTheDead };
  Completed complete(const Instance& instance);
  Completed bring_everything(const Instance& instance);
  void tell_lost(const std::string& with);
  std::string redo_in(const Instance& to);
  void take_up_marks();
  void read_code();
  void summarise_code();
  void check_taken();
  bool bring_taken(const Instance& instance);
  bool write_taken(const Instance& instance);
  bool find_variables(const Instance& instance);
  void make_room_for_variables();
  void prepare_move();
  void prepare_times_in(const Instance& instance);
  bool has_variables();
  std::string copy_variables(const Instance& from, const Instance& to);
  CUcontext only_context(const Instance& instance);
  const Object* only_own_context();
  void start_working();
  void claim_dumps();
  Result<const Instance*> bring_up_first();
  bool takes_instances(const std::string& domain) const;
  CUresult initialise_alone(unsigned int flags);
  CUresult initialise_anchor(unsigned int flags);
  void keep();
  void look_who_it_is();
  void keep_once();
  void tell_whether_behind();
  void pause_after(Nanoseconds worked);
  void wake_keeper();
  void make_spare();
  void drop_spare();
  void check_spare();
  void give_up_spare();
  void leave_if_asked();
  bool is_held_up_by_capture();
  bool is_held_up_by_work();
  static bool is_alive(const Instance& instance);
  void end_primary(const Turn& turn);
  CUresult begin_primary_again(const Instance& working);
  void note_cost(std::atomic<std::uint32_t>& cost_mib, std::optional<std::uint64_t> free_before_bytes);
  std::optional<std::uint64_t> free_on_gpu() const;
  void tell(abi::SpareState state, const std::string& reason);
  void tell_domains();
  Result<const Instance*> bring_up(const std::string& domain);
  Result<Instance*> begin(const std::string& domain);
  Instance& blank_instance();
  void finish_throw(Instance& instance);
  std::optional<Slot> take_slot();
  std::size_t number_of_domain(const std::string& domain) const;
  abi::DomainRule rule_of(const std::string& domain) const;
  void give_back_left();
  std::vector<const Instance*> take_left();
  void give_back(const Instance& instance);
  void forget(const Instance& instance);

  // process_rest.cpp.
  struct AtRest;
  bool has_a_driver() const { return rest_.load() <= abi::RestLevel::Still; }
  void rest_if_asked();
  std::string go_to(abi::RestLevel wanted);
  std::string become_still();
  std::string leave_gpu(abi::RestLevel wanted);
  std::string why_not_leave(const Instance& from);
  std::string save(const Instance& from, abi::RestLevel wanted, AtRest& kept);
  std::string save_memory(const Instance& from, AtRest& kept);
  void give_back_all(abi::RestLevel wanted);
  void wake_from_still();
  std::string wake_up();
  std::string wake_up_in(const std::string& domain);
  std::string fill(const Instance& to);
  CUresult fill_memory(const Instance& to);
  void go_on_in(const Instance& to);
  void note_rest(abi::RestLevel now);
  bool is_any_held() const;
  bool each_variable_in(const Instance& instance, const std::function<void(const VariablePlace&)>& act);
  bool save_variables(const Instance& from, std::vector<std::vector<char>>* contents);
  bool fill_variables(const Instance& to, const std::vector<std::vector<char>>& contents);

  cuda::Backend own_driver_;
  rest::OwnDescriptors own_descriptors_;  ///< of starting_
  VirtualSettings settings_;
  Gate gate_;
  Objects objects_;
  Receiver receiver_{nullptr};
  WindowMemory memory_{receiver_};
  Mappings mappings_{receiver_, memory_};
  LaterFrees later_frees_;
  TakenVariables taken_;
  Room room_;  ///< for variables on their way; of flipping_
  ArgumentAddresses arguments_;
  Graphs graphs_{*this};
  EventTimes event_times_;
  OutsideWord word_;
  std::unique_ptr<GivenWork> given_;  ///< null: nothing is done again
  std::atomic<bool> is_never_redone_{false};
  Marks marks_{memory_, settings_.between_marks.value_or(Nanoseconds(0))};
  CodeSummaries code_summaries_;
  Redo redo_{objects_, memory_, mappings_, graphs_, arguments_, code_summaries_};  ///< of flipping_
  /// The environment says which domain a driver joins, and a driver asks it when it makes its first context:
  /// one at a time starts. Before flipping_.
  std::mutex starting_;
  Nanoseconds before_next_spare_{0};                       ///< of the keeper, as the next one
  std::chrono::steady_clock::time_point next_spare_ = {};  ///< not before that
  std::optional<os::EnvironmentScope> anchor_dump_;        ///< of the anchor, for good
  std::vector<os::Fd> claims_;                             ///< on where the dumps go, for good
  bool has_tried_ = false;                                 ///< to bring up an instance that works
  os::Standing began_as_;                                  ///< the program, when it came to CUDA
  std::atomic<bool> has_started_{false};                   ///< there is one, and the anchor
  std::mutex
      flipping_;  ///< one flip at a time; also guards the texts on the page. Never taken inside a call.
  std::mutex contexts_mutex_;                         ///< see lock_contexts()
  std::mutex reading_code_;                           ///< one at a time reads it; after that one
  std::mutex instances_mutex_;                        ///< of the next; after flipping_
  std::vector<std::unique_ptr<Instance>> instances_;  ///< with those that are over
  std::vector<const Instance*> there_;                ///< of these, those that have a context
  std::atomic<const Instance*> active_{nullptr};
  std::atomic<const Instance*> spare_{nullptr};
  std::vector<const Instance*> left_;                        ///< to be thrown away; of flipping_
  bool are_left_in_use_ = false;                             ///< some of those, by calls under way; likewise
  std::vector<Instance*> spent_;                             ///< thrown away; of instances_mutex_
  std::vector<Instance*> still_there_;                       ///< to be thrown away once more; likewise
  std::vector<Slot> free_slots_;                             ///< likewise
  std::atomic<abi::RestLevel> rest_{abi::RestLevel::Awake};  ///< the keeper writes it
  std::shared_ptr<AtRest> at_rest_;                          ///< of the keeper; null: it has a driver
  std::unique_ptr<Instance> none_ = Instance::blank();       ///< what a call reaches where there is none
  std::atomic<const char*> aside_{nullptr};
  Work legacy_stream_work_;
  Work thread_streams_work_;
  Work no_work_;  ///< of streams that are not followed: the program is aside then
  std::atomic<std::uintptr_t> primary_seen_{0};
  /// So often the program still has it, besides what the CUDA runtime has by ways of its own; of starting_.
  std::int64_t primary_retains_ = 0;
  std::atomic<bool> program_ends_{false};
  News news_;
  std::atomic<bool> is_keeping_{false};                 ///< the keeper may be inside a driver
  std::chrono::steady_clock::time_point part_began_{};  ///< of a move; of flipping_
  /// Since when captures have held a move up; of the keeper alone.
  std::optional<std::chrono::steady_clock::time_point> captures_since_;
  /// This pause lies between two attempts to leave a domain, or to come to the one for anchors.
  static constexpr Nanoseconds between_tries = std::chrono::milliseconds(500);
  static constexpr Nanoseconds first_at_gate = std::chrono::milliseconds(50);
  Nanoseconds shortest_at_gate_ = first_at_gate;  ///< The keeper has at least this patience at the gate.
  /// The keeper alone has this: since when the program's work has held a move up.
  std::optional<std::chrono::steady_clock::time_point> held_up_since_;
  int tries_ = 0;  ///< to leave, as asked; of the keeper alone
  /// Before that nobody tries again: the program has to get through the gate.
  std::chrono::steady_clock::time_point next_try_{};
  std::array<bool, slots_max>
      is_end_known_{};  ///< somebody runs what its copies want done at the end; of starting_
  std::mutex hosts_mutex_;
  std::map<const void*, Host> hosts_;
  os::Fd page_memory_;
  os::Mapping page_mapping_;
  abi::SparePage* page_ = nullptr;
};

inline void VirtualProcess::maybe_mark(const Turn& turn, Work& work, CUstream stream) {
  if (given_ == nullptr || is_plain() || is_aside() || is_never_redone()) return;
  if (graphs_.are_captures_under_way()) return;
  if (&work == &thread_streams_work_ || &work == &no_work_) return;
  marks_.maybe_put(turn.instance, work, objects_.translate(stream, turn.slot), *given_);
}

inline CUdeviceptr Turn::translate(CUdeviceptr address) const { return all.taken().translate(address, slot); }

inline CUdeviceptr Turn::translate_for_use(CUdeviceptr address) const {
  return all.taken().translate_for_use(address, slot);
}

/// The process's one; null: the program works without. Set once.
VirtualProcess* process();
void set_process(VirtualProcess* only);

}  // namespace firebreak::virtual_driver
