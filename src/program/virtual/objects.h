// SPDX-License-Identifier: Apache-2.0
/// What the program has of the driver: contexts, streams, events, code. Each object is known by the handle
/// that the program holds, by the handle that each instance has for it, and by the calls that made it.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "program/cuda/backend.h"
#include "program/virtual/code_image.h"

namespace firebreak::virtual_driver {

/// The place of an instance among those that a process has at the same time. 0 is the anchor. Another
/// instance takes the place of one that nobody has anything in any more.
using Slot = std::uint32_t;
inline constexpr Slot anchor = 0;
inline constexpr Slot slots_max = 16;
inline constexpr Slot no_slot = slots_max;

/// Handles of one family mean the same kind of thing; those of two may have the same value.
enum class Family : std::uint32_t { Context, Stream, Event, Module, Library, Code, Graph, GraphExec };
inline constexpr std::size_t families = static_cast<std::size_t>(Family::GraphExec) + 1;

template <class Handle>
struct FamilyOf;
template <>
struct FamilyOf<CUcontext> {
  static constexpr Family value = Family::Context;
};
template <>
struct FamilyOf<CUstream> {
  static constexpr Family value = Family::Stream;
};
template <>
struct FamilyOf<CUevent> {
  static constexpr Family value = Family::Event;
};
template <>
struct FamilyOf<CUmodule> {
  static constexpr Family value = Family::Module;
};
template <>
struct FamilyOf<CUlibrary> {
  static constexpr Family value = Family::Library;
};
template <>
struct FamilyOf<CUgraph> {
  static constexpr Family value = Family::Graph;
};
template <>
struct FamilyOf<CUgraphExec> {
  static constexpr Family value = Family::GraphExec;
};
// A kernel may stand wherever a function may.
template <>
struct FamilyOf<CUfunction> {
  static constexpr Family value = Family::Code;
};
template <>
struct FamilyOf<CUkernel> {
  static constexpr Family value = Family::Code;
};

template <class Handle>
concept Followed = requires {
  FamilyOf<Handle>::value;
};

template <class Handle>
std::uintptr_t number_of(Handle handle) {
  return (std::uintptr_t)handle;  // NOLINT: some handles are pointers and some are numbers
}

/// Null and the two default streams: the same in every instance.
constexpr bool is_special(std::uintptr_t handle) { return handle <= 2; }

class Objects;

/// One instance, while an object is made there again.
struct Making {
  const cuda::Backend& driver;
  Slot slot;
  Objects& objects;
  std::uintptr_t made = 0;  ///< by a call that answers a handle

  /// What that instance calls the object that the program calls so; null where it has none.
  template <class Handle>
  Handle in(Handle seen) const;
};

/// How much was queued in a stream, and up to where it is known to have ended.
struct Work {
  std::atomic<std::uint64_t> queued{0};
  std::atomic<std::uint64_t> ended{0};
  /// Calls under way that give such work; and of these, those that have counted it first.
  std::atomic<std::uint32_t> givers{0};
  std::atomic<std::uint32_t> counted_first{0};
  std::atomic<std::int32_t> mark_word{-1};  ///< of program/virtual/marks.h; -1: there is none yet
  std::atomic<std::int64_t> marked_ns{0};   ///< when the last mark was put
  bool is_under_way() const { return queued.load() != ended.load(); }
  /// `up_to`: what `queued` was before somebody began to wait for it.
  void end(std::uint64_t up_to) {
    std::uint64_t before = ended.load();
    while (before < up_to && !ended.compare_exchange_weak(before, up_to)) {
    }
  }
};

/// A variable in one instance.
struct VariablePlace {
  CUdeviceptr address = 0;
  std::size_t size_bytes = 0;
};

/// Of an event: when it was recorded last, by the host's clock (program/virtual/event_times.h).
struct EventTime {
  std::atomic<bool> is_measured{false};    ///< it was made to measure time
  std::atomic<std::int64_t> called_ns{0};  ///< when the program asked for that; 0: it has not
  std::atomic<std::int64_t> kept_ns{0};    ///< in an instance that the program has left; 0: in none
  void reset() {
    is_measured.store(false);
    called_ns.store(0);
    kept_ns.store(0);
  }
};

struct Object {
  /// One call that the program made: that which made it first, then those that changed it.
  struct Step {
    std::string key;  ///< of two steps with the same key, the later one counts alone; empty: all count
    std::function<CUresult(Making&)> again;
    std::uintptr_t context = 0;  ///< what the program called the one that was current; 0: it does not matter
    std::string value = {};      ///< of what has a key: what it sets, as bytes; empty: it is not known
    std::uint64_t number = 0;    ///< counts all steps of all objects
  };
  /// What it goes with.
  struct Origin {
    Object* parent = nullptr;    ///< a function's module, say
    std::uintptr_t context = 0;  ///< as the program calls it; 0: it is of none
  };

  Family family{};
  std::uintptr_t seen = 0;  ///< what the program calls it
  Origin origin;
  std::array<std::atomic<std::uintptr_t>, slots_max> in{};  ///< what each instance calls it; 0: nothing
  std::vector<Step> steps;                                  ///< empty: it comes with its instance
  /// The last step that was made in each instance.
  std::array<std::atomic<std::uint64_t>, slots_max> made_up_to{};
  /// Of modules and libraries: what was loaded. Guarded by the mutex of Objects; null: there is none, or it
  /// is gone.
  std::shared_ptr<CodeImage> code;
  /// Of code that was read: its variables on the GPU that a kernel may change. Written once, before
  /// `is_read`.
  std::vector<std::string> variables;
  std::vector<std::string> named;  ///< likewise, all that the program may ask for by their names; sorted
  std::atomic<bool> is_read{false};
  /// Where instances have these, in their order. Of who flips alone.
  std::map<Slot, std::vector<VariablePlace>> variables_in;
  const Object* variables_of = nullptr;  ///< the program's context then
  /// Of modules and libraries: the program has a kernel or something else of it. Nobody has run what it has
  /// nothing of.
  std::atomic<bool> is_used{false};
  std::atomic<bool> is_gone{false};
  /// Somebody has it at hand for longer than a call: no other one takes its place once it is gone.
  std::atomic<bool> is_kept{false};
  /// Of executable graphs: the number of what it does (Graphs), and the last one of these that was launched.
  std::atomic<std::uint64_t> content{0};
  std::atomic<std::uint64_t> launched_content{0};
  EventTime time;  ///< of events
  Work work;       ///< of streams. It goes on counting where another stream takes this one's place

  // Of Objects.
  std::uint64_t life = 0;              ///< counts those that were here
  std::list<Object*>::iterator place;  ///< among those that are not gone
};

/// Thread safe. Objects live as long as the process: a thread may still have one at hand that another thread
/// has just destroyed. Of streams and events, which programs make without end, the next one takes a gone
/// one's place, as handles of the driver do: whoever uses one that is gone meets another one of its kind.
class Objects {
 public:
  /// The program is given an object that instance `slot` has just made and calls `own`. Until the first flip
  /// the program's handle is the driver's own, so that whatever we do not know of works as ever. After it,
  /// the handle is ours: an address of ours that is nobody else's.
  Object& add(Family family, std::uintptr_t own, Slot slot, std::vector<Object::Step> steps,
              Object::Origin origin = {}, std::shared_ptr<CodeImage> code = nullptr);
  /// The same of what comes with the instances.
  Object& add_seen(Family family, std::uintptr_t seen);

  /// Whether the driver may answer one that it has made before, where another is asked for.
  static bool is_answered_again(Family family);
  /// One that the driver has answered again, of the code that `parent` is of. Null: it is a new one, also
  /// where another thread has just unloaded the code of one that was called so.
  Object* find_answered(Family family, std::uintptr_t own, Slot slot, const Object* parent);

  Object* find(Family family, std::uintptr_t seen);
  /// By what an instance calls it.
  Object* find_own(Family family, std::uintptr_t own, Slot slot);
  void set_own(Object& object, Slot slot, std::uintptr_t own);
  /// With everything that goes with it. False: it was gone already.
  bool remove(Object& object);
  /// A removed one of which the caller knows all that it wants to: the next one may take its place.
  void give_place(Object& object);
  /// `slot` has made it. False: it sets what is so already, as programs do before each launch, and is not
  /// kept again.
  bool add_step(Object& object, Slot slot, Object::Step step);

  /// What instance `slot` calls it. What we do not follow is the driver's own: it is answered as it is.
  template <class Handle>
  Handle translate(Handle seen, Slot slot) {
    const std::uintptr_t number = number_of(seen);
    if (is_special(number)) return seen;
    const Object* const object = find(FamilyOf<Handle>::value, number);
    return object == nullptr ? seen : (Handle)object->in[slot].load(std::memory_order_acquire);  // NOLINT
  }

  /// Makes everything that is not there yet in that instance, in the order in which the program made it, and
  /// graphs last: they change later, and are of what was there then. What failed first: the result and what
  /// it was.
  std::optional<std::pair<CUresult, Family>> make_all(const cuda::Backend& driver, Slot slot);
  /// Nothing is made again from now on: make_all() answers CUDA_ERROR_DEINITIALIZED where something is
  /// missing.
  void make_no_more() { is_over_.store(true); }
  /// One of them, while the program waits.
  CUresult make(Object& object, const cuda::Backend& driver, Slot slot);

  /// Nothing is there in that slot any more: the next instance takes it. Of who flips.
  void forget(Slot slot);

  /// From now on handles of new objects are ours.
  void flipped() {
    has_flipped_.store(true);
    forget_known();
  }

  /// Modules and libraries whose code nobody has read yet, with it.
  std::vector<std::pair<Object*, std::shared_ptr<CodeImage>>> unread_code();
  std::shared_ptr<CodeImage> code_of(const Object& object);

  /// With those that are gone.
  std::size_t count() const {
    const std::shared_lock lock(mutex_);
    return all_.size();
  }

  /// Runs `look` on each that is not gone.
  void for_each(Family family, const std::function<void(Object&)>& look);

 private:
  struct Key {
    Family family;
    std::uintptr_t handle;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const {
      return std::hash<std::uintptr_t>()(key.handle * 8 + static_cast<std::uintptr_t>(key.family));
    }
  };
  struct Known {
    Key key{};
    std::uint64_t age = 0;
    Object* object = nullptr;
  };
  Object* known_again(Family family, std::uintptr_t own, Slot slot, const Object* parent);
  Object* new_object(Family family);
  void remove_one(Object& object);
  void set_own_of(std::uint64_t life, Object& object, Slot slot, std::uintptr_t own);
  auto& alive(Family family) { return alive_[static_cast<std::size_t>(family)]; }
  Object* look_up(Family family, std::uintptr_t seen, Known& entry);
  static Known& known_place(Family family, std::uintptr_t seen);
  void forget_known() { age_.fetch_add(1, std::memory_order_acq_rel); }

  std::atomic<bool> is_over_{false};
  std::atomic<bool> has_flipped_{false};
  std::uint64_t steps_ = 0;  ///< so far; guarded by the mutex
  /// What threads remember holds as long as it stays. No two of these begin alike.
  std::atomic<std::uint64_t> age_{++all_so_far << 32U};
  static inline std::atomic<std::uint64_t> all_so_far{0};
  mutable std::shared_mutex mutex_;  ///< guards what follows, and the steps of every object
  std::list<Object> all_;
  std::array<std::list<Object*>, families> alive_;     ///< in the order in which the program made them
  std::array<std::vector<Object*>, families> places_;  ///< of gone ones
  std::unordered_map<Key, Object*, Hash> by_seen_;
  std::array<std::unordered_map<Key, Object*, Hash>, slots_max> by_own_;
};

template <class Handle>
Handle Making::in(Handle seen) const {
  return objects.translate(seen, slot);
}

}  // namespace firebreak::virtual_driver
