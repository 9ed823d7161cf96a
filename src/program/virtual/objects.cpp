// SPDX-License-Identifier: Apache-2.0
#include "program/virtual/objects.h"

#include <algorithm>
#include <mutex>

namespace firebreak::virtual_driver {

Objects::Known& Objects::known_place(Family family, std::uintptr_t seen) {
  constexpr std::size_t places = 64;
  static thread_local std::array<Known, places> known;
  return known[(seen >> 4 ^ seen >> 12 ^ static_cast<std::uintptr_t>(family)) % places];
}

Object* Objects::find(Family family, std::uintptr_t seen) {
  Known& entry = known_place(family, seen);
  const bool is_it = entry.key == Key{family, seen} && entry.age == age_.load(std::memory_order_acquire);
  return is_it ? entry.object : look_up(family, seen, entry);
}

Object* Objects::look_up(Family family, std::uintptr_t seen, Known& entry) {
  const std::shared_lock lock(mutex_);
  const std::uint64_t age = age_.load(std::memory_order_acquire);
  const auto found = by_seen_.find({family, seen});
  if (found == by_seen_.end()) return nullptr;
  entry = {{family, seen}, age, found->second};
  return found->second;
}

bool Objects::is_answered_again(Family family) {
  return family == Family::Code || family == Family::Module || family == Family::Library;
}

namespace {

/// The module or library that it is of.
const Object* code_with(const Object* object) {
  while (object != nullptr && object->origin.parent != nullptr) object = object->origin.parent;
  return object;
}

}  // namespace

Object* Objects::known_again(Family family, std::uintptr_t own, Slot slot, const Object* parent) {
  if (!is_answered_again(family)) return nullptr;
  const auto found = by_own_[slot].find({family, own});
  if (found == by_own_[slot].end()) return nullptr;
  const bool is_of_it = parent == nullptr || code_with(found->second) == code_with(parent);
  return is_of_it ? found->second : nullptr;
}

Object* Objects::find_answered(Family family, std::uintptr_t own, Slot slot, const Object* parent) {
  const std::shared_lock lock(mutex_);
  return known_again(family, own, slot, parent);
}

Object& Objects::add(Family family, std::uintptr_t own, Slot slot, std::vector<Object::Step> steps,
                     Object::Origin origin, std::shared_ptr<CodeImage> code) {
  const std::unique_lock lock(mutex_);
  // The driver answers what it has made before, for a kernel's function or a library's module. Anything else
  // that is known by that handle is being destroyed by another thread, which is not here yet.
  if (Object* const known = code != nullptr ? nullptr : known_again(family, own, slot, origin.parent))
    return *known;
  Object* object = new_object(family);
  object->seen = own;
  while (has_flipped_.load() && by_seen_.contains({family, object->seen = number_of(object)})) {
    object = &all_.emplace_back();  // what stays behind is one object that nobody has
    object->family = family;
  }
  object->place = alive(family).insert(alive(family).end(), object);
  object->origin = origin;
  if (origin.parent != nullptr) origin.parent->is_used.store(true, std::memory_order_release);
  object->code = std::move(code);
  object->steps = std::move(steps);
  for (Object::Step& step : object->steps) step.number = ++steps_;
  object->made_up_to[slot].store(steps_);
  object->in[slot].store(own, std::memory_order_release);
  by_own_[slot][{family, own}] = object;
  by_seen_[{family, object->seen}] = object;
  return *object;
}

Object& Objects::add_seen(Family family, std::uintptr_t seen) {
  const std::unique_lock lock(mutex_);
  if (const auto known = by_seen_.find({family, seen}); known != by_seen_.end()) return *known->second;
  Object& object = *new_object(family);
  object.place = alive(family).insert(alive(family).end(), &object);
  object.seen = seen;
  by_seen_[{family, seen}] = &object;
  return object;
}

Object* Objects::new_object(Family family) {
  std::vector<Object*>& places = places_[static_cast<std::size_t>(family)];
  if (places.empty()) {
    Object& made = all_.emplace_back();
    made.family = family;
    return &made;
  }
  Object* const object = places.back();
  places.pop_back();
  ++object->life;
  object->work.end(object->work.queued.load());
  for (auto& each : object->in) each.store(0, std::memory_order_relaxed);
  object->is_gone.store(false);
  object->time.reset();
  return object;
}

void Objects::give_place(Object& object) {
  const bool is_without_end = object.family == Family::Stream || object.family == Family::Event;
  const std::unique_lock lock(mutex_);
  if (is_without_end && object.is_gone.load() && !object.is_kept.load())
    places_[static_cast<std::size_t>(object.family)].push_back(&object);
}

Object* Objects::find_own(Family family, std::uintptr_t own, Slot slot) {
  const std::shared_lock lock(mutex_);
  const auto found = by_own_[slot].find({family, own});
  return found == by_own_[slot].end() ? nullptr : found->second;
}

void Objects::set_own(Object& object, Slot slot, std::uintptr_t own) {
  set_own_of(object.life, object, slot, own);
}

void Objects::set_own_of(std::uint64_t life, Object& object, Slot slot, std::uintptr_t own) {
  const std::unique_lock lock(mutex_);
  if (object.is_gone.load() || object.life != life) return;
  if (const std::uintptr_t before = object.in[slot].load(); before != 0 && before != own)
    by_own_[slot].erase({object.family, before});
  object.in[slot].store(own, std::memory_order_release);
  if (own != 0) by_own_[slot][{object.family, own}] = &object;
}

bool Objects::remove(Object& object) {
  const std::unique_lock lock(mutex_);
  if (object.is_gone.exchange(true)) return false;
  std::vector<Object*> gone{&object};
  for (std::size_t i = 0; i < gone.size(); ++i) {
    Object& one = *gone[i];
    remove_one(one);
    if (one.family == Family::Stream || one.family == Family::Event) continue;  // nothing goes with these
    for (const auto& family : alive_) {
      for (Object* const other : family) {
        const bool is_of_context = one.family == Family::Context && other->origin.context == one.seen;
        if ((other->origin.parent == &one || is_of_context) && !other->is_gone.exchange(true))
          gone.push_back(other);
      }
    }
  }
  forget_known();
  return true;
}

void Objects::remove_one(Object& object) {
  alive(object.family).erase(object.place);
  // The driver may have given its handle to the next one already.
  const auto erase = [&](auto& from, std::uintptr_t handle) {
    const auto found = from.find({object.family, handle});
    if (found != from.end() && found->second == &object) from.erase(found);
  };
  erase(by_seen_, object.seen);
  for (Slot slot = 0; slot < slots_max; ++slot) {
    if (const std::uintptr_t own = object.in[slot].load(); own != 0) erase(by_own_[slot], own);
  }
  object.steps.clear();
  object.code = nullptr;
}

bool Objects::add_step(Object& object, Slot slot, Object::Step step) {
  const std::unique_lock lock(mutex_);
  if (object.is_gone.load()) return false;
  if (!step.key.empty()) {
    const auto is_so = [&](const Object::Step& before) { return before.key == step.key; };
    const auto before = std::ranges::find_if(object.steps, is_so);
    if (before != object.steps.end() && !step.value.empty() && before->value == step.value) return false;
    std::erase_if(object.steps, is_so);
  }
  step.number = ++steps_;
  object.made_up_to[slot].store(steps_);
  object.steps.push_back(std::move(step));
  return true;
}

CUresult Objects::make(Object& object, const cuda::Backend& driver, Slot slot) {
  std::vector<Object::Step> steps;
  std::uint64_t life = 0;
  {
    const std::shared_lock lock(mutex_);
    if (!object.is_gone.load()) steps = object.steps;
    life = object.life;
  }
  Making making{driver, slot, *this};
  for (const Object::Step& step : steps) {
    if (step.number <= object.made_up_to[slot].load()) continue;
    if (step.context != 0) driver.cuCtxSetCurrent(translate(reinterpret_cast<CUcontext>(step.context), slot));
    if (const CUresult result = step.again(making); result != CUDA_SUCCESS) return result;
    // What follows changes it by its handle.
    if (object.in[slot].load() == 0 && making.made != 0) set_own_of(life, object, slot, making.made);
    object.made_up_to[slot].store(step.number);  // of one that has taken its place, all steps are later
  }
  return CUDA_SUCCESS;
}

std::optional<std::pair<CUresult, Family>> Objects::make_all(const cuda::Backend& driver, Slot slot) {
  struct Todo {
    std::uint64_t step;
    Object* object;
    std::uint64_t life;
  };
  std::vector<Todo> todo;
  {
    const std::shared_lock lock(mutex_);
    for (const auto& family : alive_) {
      for (Object* const object : family) {
        if (object->steps.empty() || object->steps.back().number <= object->made_up_to[slot].load()) continue;
        todo.push_back({object->steps.front().number, object, object->life});
      }
    }
  }
  std::ranges::sort(todo, {}, &Todo::step);
  std::ranges::stable_partition(todo, [](const Todo& each) {
    return each.object->family != Family::Graph && each.object->family != Family::GraphExec;
  });
  for (const auto& [step, object, life] : todo) {
    if (is_over_.load()) return std::pair(CUDA_ERROR_DEINITIALIZED, object->family);
    const CUresult result = make(*object, driver, slot);
    if (result == CUDA_SUCCESS) continue;
    const std::shared_lock lock(mutex_);
    if (!object->is_gone.load() && object->life == life) return std::pair(result, object->family);
  }
  return std::nullopt;
}

void Objects::forget(Slot slot) {
  const std::unique_lock lock(mutex_);
  by_own_[slot].clear();
  for (Object& object : all_) {
    object.in[slot].store(0, std::memory_order_release);
    object.made_up_to[slot].store(0);
    object.variables_in.erase(slot);
  }
}

std::vector<std::pair<Object*, std::shared_ptr<CodeImage>>> Objects::unread_code() {
  const std::shared_lock lock(mutex_);
  std::vector<std::pair<Object*, std::shared_ptr<CodeImage>>> unread;
  for (const Family family : {Family::Module, Family::Library}) {
    for (Object* const object : alive(family)) {
      if (object->code != nullptr && !object->is_read.load()) unread.emplace_back(object, object->code);
    }
  }
  return unread;
}

std::shared_ptr<CodeImage> Objects::code_of(const Object& object) {
  const std::shared_lock lock(mutex_);
  return object.code;
}

void Objects::for_each(Family family, const std::function<void(Object&)>& look) {
  std::vector<Object*> found;
  {
    const std::shared_lock lock(mutex_);
    found.assign(alive(family).begin(), alive(family).end());
  }
  for (Object* const object : found) look(*object);
}

}  // namespace firebreak::virtual_driver
