// SPDX-License-Identifier: Apache-2.0
/// Lets the last kernels of a client that dies run to their end, so that its death harms nobody. When a
/// client's descriptors close under a running kernel, its address space goes and the fault takes its whole
/// MPS domain along; so they are held for a while.
///
/// Of a client that counts its launches somebody can say whether they have ended (`watch_work`): it is let go
/// as soon as they have. Of all others nobody outside is told (what was tried: docs/how/dying.md), so the
/// while is a time, and what is said afterwards is a presumption. One thing is certain even then: where work
/// still waits behind a kernel, closing the descriptors of the resource manager waits for it, at most 2.0 s
/// (measured on an H100, driver 580.159.04, results/h100/dying-probe.json). They are closed first, and who
/// waited that long is known to run on.
///
/// Somebody else may have the same descriptors: then nothing is closed, and nothing told to be released,
/// before he has them no more (agent/endings/hold/other_holders.h).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "agent/endings/hold/gpu_descriptors.h"
#include "agent/endings/hold/other_holders.h"
#include "ground/base/clock.h"
#include "ground/os/event_loop.h"
#include "ground/os/kernel.h"

namespace firebreak::hold {

struct HolderOptions {
  /// False: nothing is held, and of who else keeps an address space only forks are known. To hold for no time
  /// would not do: descriptors that are held at all also keep what a process closes itself, as by exec.
  bool takes_duplicates = true;
  /// Pauses between two looks for descriptors of a process: the first, and the longest. A process opens what
  /// it needs when it initialises CUDA.
  Nanoseconds first_look = std::chrono::milliseconds(20);
  Nanoseconds longest_look = std::chrono::seconds(2);
  /// Largest number of glances in a row. Most looks only count a process's descriptors and ask whether it has
  /// those that are held: of one that has not changed that is all there is to see. After so many each of its
  /// descriptors is looked at all the same, since it may have closed one and opened another. Where Linux does
  /// not count (before 6.2) that is each time.
  std::uint32_t most_glances = 15;
  /// Largest number of closings at once. Descriptors that a living process has closed at different times are
  /// let go by a thread each. While there are so many of these nothing new of it is held.
  std::size_t most_closings = 64;
  /// Pause between two parts of one look at a process of many descriptors (os::most_descriptors_in_a_look).
  Nanoseconds between_parts = std::chrono::milliseconds(2);
  /// Pause before the next look where there was no descriptor for something.
  Nanoseconds look_for_room = std::chrono::milliseconds(200);
  /// Time for which a dead process's descriptors are held: kernels of who serves or trains take milliseconds.
  Nanoseconds hold = std::chrono::seconds(5);
  /// Closing that takes so long has waited for work, in vain.
  Nanoseconds idle_wait = std::chrono::milliseconds(1900);
  /// Pause between two questions whether work that runs has ended.
  Nanoseconds work_look = std::chrono::milliseconds(5);
  /// Longest time after the death, for work that is known to run on.
  Nanoseconds longest = std::chrono::seconds(30);
  /// Pauses between two looks for whether somebody else still has the descriptors: the first, and the
  /// longest.
  Nanoseconds first_other_look = std::chrono::milliseconds(2);
  Nanoseconds longest_other_look = std::chrono::milliseconds(250);
};

/// The knowledge of a dead client's work.
enum class WorkState { Unknown, Running, Ended };
/// Asked again and again while it answers Running. Empty: nothing is known.
using ReadWork = std::function<WorkState()>;

enum class WorkEnd {
  Known,     ///< the work has ended, and somebody knows
  Presumed,  ///< the descriptors were held for as long as they were to be
  Unknown,   ///< the descriptors were let go earlier
  Forced,    ///< the work was known to run on
};

/// A process that is gone, or has given the GPU back, and nothing of that is held any more, by us or by
/// anybody else.
struct Release {
  pid_t pid = 0;
  WorkEnd work = WorkEnd::Presumed;
  Nanoseconds held{};  ///< time since the process's end
};

/// True when nobody is in danger by it, as far as anybody knows.
bool is_safe(WorkEnd work);

/// "its last kernels are taken to have ended: held for 5012 ms"
std::string describe(const Release& release);

struct HolderCallbacks {
  /// Returns the reader to ask about the work of a process that has just ended, or given the GPU back.
  std::function<ReadWork(pid_t)> watch_work = nullptr;
  /// A dead process's work is known to run on.
  std::function<void(pid_t)> on_endless = nullptr;
  std::function<void(const Release&)> on_released = nullptr;
  /// Somebody else has it; at each look, so that whoever can be ended is. Not from inside of a call.
  std::function<void(pid_t, const Findings&)> on_others = nullptr;
  /// Called when what traces_of() says of a living process has changed. Not from inside of a call.
  std::function<void(pid_t)> on_traces = nullptr;
  /// A living process is another program now, by exec. Not from inside of a call.
  std::function<void(pid_t)> on_other_program = nullptr;
};

/// The holding of one process, for people.
struct Held {
  pid_t pid = 0;
  bool dead = false;
  bool endless = false;
  WorkState work = WorkState::Unknown;
  Nanoseconds since_death{};
  Findings others = {};  ///< processes that have them, too
};

/// Lives on the loop's thread; closing is done by threads of its own, since it waits. Its end lets everything
/// go and takes up to 2 s.
class Holder {
 public:
  /// The references outlive it.
  Holder(os::EventLoop& loop, os::Kernel& kernel, const Clock& clock, HolderOptions options,
         HolderCallbacks callbacks);
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;
  ~Holder();

  /// Holds the process's descriptors from now on, as soon as it has some.
  void follow(pid_t pid, std::shared_ptr<const os::Fd> process);
  /// The same for who has not opened the process. NotFound: there is none.
  Status follow(pid_t pid);
  /// Tells that the process has just opened the GPU: a look is worth while.
  void look(pid_t pid);
  /// The process has ended. True: it is held, by us or by somebody else, and on_released will tell; false:
  /// nothing of it is left. `known`: of one that was not followed; with what another agent knew of it we
  /// hold again what somebody else still has.
  bool keep(pid_t pid, Traces known = {});
  /// A living one became another program while nobody looked: what is left of the one before is held as of a
  /// dead one, by what another agent knew of that. on_released tells.
  void keep_of_program_before(pid_t pid, Traces known);
  /// Returns the traces of a living or a dead process, for who comes after us.
  Traces traces_of(pid_t pid) const;
  /// Lets go of a dead process: nobody is left who would be harmed, or somebody cannot wait, or no longer
  /// than `patience` for work that is known to run. on_released tells, later.
  void let_go(pid_t pid, Nanoseconds patience = {});
  /// Lists those of the living of whom all is held that their work needs: address space and resource manager.
  std::vector<Held> held() const;
  /// True when not all of a living process is held, for want of descriptors; that is tried again and again.
  bool lacks(pid_t pid) const;
  /// True when a living process has so many descriptors (os::most_descriptors_of_a_process) that what it
  /// opens is held late.
  bool is_large(pid_t pid) const;

 private:
  struct ClosingPlan {
    bool keep_if_busy = false;  ///< the address space, where closing the rest has waited for work
    bool space_first = false;
  };
  struct Client {
    std::shared_ptr<const os::Fd> process;  ///< none: there was no descriptor for it
    std::string image;
    std::optional<uid_t> user = {};
    Duplicates duplicates;
    Nanoseconds pause{};
    os::Watch next_look;
    bool lacks = false;
    std::string image_before = {};   ///< image when the look that is under way began
    int look_from = 0;               ///< place where a look in parts goes on; 0: none is under way
    Numbers seen = {};               ///< descriptors that the parts have seen until now
    std::size_t looked_at = 0;       ///< number of its descriptors that these parts have looked at
    bool is_large = false;           ///< that it is large was told
    std::uint64_t looks = 0;         ///< the first is not put off for anything
    os::DescriptorCount count = {};  ///< count when the last look began
  };
  /// Descriptors that their process has no more, most often because it is dead.
  struct Dead {
    pid_t pid = 0;
    Duplicates duplicates;
    std::size_t count = 0;  ///< their number at first: they may be at a thread that closes them
    Traces traces;          ///< traces, also while they are being closed; its others are in `others`
    Monotonic died{};
    WorkEnd work = WorkEnd::Presumed;
    WorkEnd worst = WorkEnd::Known;  ///< worst end of what else was held of the same process
    bool endless = false;
    ClosingPlan plan;
    std::shared_ptr<OtherHolders> looker;  ///< none: its process lives, as the same program
    Findings others;                       ///< others as of the last look
    bool waits = false;                    ///< it waits for others
    Nanoseconds pause{};                   ///< pause until the next look
    os::Watch next_look;                   ///< next look for the others
    ReadWork read;
    os::Watch next_read;  ///< next reading, while its work is known to run
    os::Watch deadline;
    std::thread closing;  ///< there is no thread before the time
  };

  void look_again(pid_t pid);
  /// Calls back later. Not from inside of a call.
  void tell_later(const std::function<void(pid_t)>& callback, pid_t pid);
  bool is_as_it_was(pid_t pid, Client& client) const;
  void note_image(pid_t pid, Client& client);
  std::size_t closed_by(pid_t pid) const;
  Status look_at(pid_t pid, Client& client);
  void look_later(pid_t pid, Client& client);
  void keep_what_is_left(pid_t pid, Traces known, Duplicates duplicates, std::optional<uid_t> user);
  /// Hands what the process had to the dead one from here on.
  void hold_for_dead(pid_t pid, Traces traces, Duplicates duplicates, std::shared_ptr<OtherHolders> looker);
  void look_at_work(std::uint64_t id);
  void hold_on(std::uint64_t id);
  void time_is_up(std::uint64_t id);
  void let_go_now(std::uint64_t id);
  void close(std::uint64_t id);
  void close_now(std::uint64_t id, ClosingPlan plan);
  void start_closing(std::uint64_t id);
  void close_as_planned(ClosingPlan plan, Duplicates& duplicates);
  void close_space(Duplicates& duplicates);
  static WorkState state_of(const Dead& dead);
  static bool is_closing(const Dead& dead);
  void tell(std::uint64_t id, Duplicates left, Findings others);
  void closed(std::uint64_t id, Duplicates left, const Findings& others);
  void await_others(std::uint64_t id, const Findings& others);
  Late late(pid_t pid, Traces traces, std::optional<uid_t> user) const;
  void force(std::uint64_t id);
  void release(std::uint64_t id);
  bool is_held(pid_t pid) const;

  os::EventLoop& loop_;
  os::Kernel& kernel_;
  const Clock& clock_;
  HolderOptions options_;
  HolderCallbacks callbacks_;
  std::shared_ptr<Holder*> self_;  ///< closing threads post to this, and it outlives us
  std::map<pid_t, Client> clients_;
  std::uint64_t next_id_ = 0;
  std::map<std::uint64_t, Dead> dead_;
};

}  // namespace firebreak::hold
