// SPDX-License-Identifier: Apache-2.0
#include "program/instance/taken.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <string_view>
#include <thread>

#include "ground/os/memory.h"

namespace firebreak::instance {
namespace {

std::string link_of(int number) {
  std::string link(256, '\0');
  const std::string path = "/proc/self/fd/" + std::to_string(number);
  const ssize_t length = ::readlink(path.c_str(), link.data(), link.size());
  link.resize(length < 0 ? 0 : static_cast<std::size_t>(length));
  return link;
}

}  // namespace

// ---- Mappings ----

void TakenMappings::cut(std::uintptr_t begin, std::uintptr_t end) {
  auto each = ends_.lower_bound(begin);
  if (each != ends_.begin() && std::prev(each)->second > begin) --each;
  while (each != ends_.end() && each->first < end) {
    const auto [its_begin, its_end] = *each;
    each = ends_.erase(each);
    if (its_begin < begin) ends_.emplace(its_begin, begin);
    if (its_end > end) each = ends_.emplace(end, its_end).first;
  }
}

void TakenMappings::add(std::uintptr_t begin, std::size_t size_bytes) {
  const std::size_t page = os::page_size();
  const std::uintptr_t end = begin + (size_bytes + page - 1) / page * page;
  const std::lock_guard lock(mutex_);
  cut(begin, end);
  ends_.emplace(begin, end);
}

void TakenMappings::remove(std::uintptr_t begin, std::size_t size_bytes) {
  const std::size_t page = os::page_size();
  const std::lock_guard lock(mutex_);
  cut(begin, begin + (size_bytes + page - 1) / page * page);
}

std::size_t TakenMappings::count() const {
  const std::lock_guard lock(mutex_);
  return ends_.size();
}

std::size_t TakenMappings::size_bytes() const {
  const std::lock_guard lock(mutex_);
  std::size_t sum = 0;
  for (const auto& [begin, end] : ends_) sum += end - begin;
  return sum;
}

void TakenMappings::give_back() {
  const std::lock_guard lock(mutex_);
  for (const auto& [begin, end] : ends_) os::raw_munmap(reinterpret_cast<void*>(begin), end - begin);
  ends_.clear();
}

// ---- Descriptors ----

std::optional<TakenDescriptors::File> TakenDescriptors::file_of(int number) {
  struct stat status {};
  if (::fstat(number, &status) != 0) return std::nullopt;
  return File{status.st_dev, status.st_ino, status.st_rdev};
}

void TakenDescriptors::add(int number) {
  const auto file = number < 0 ? std::nullopt : file_of(number);
  if (!file) return;
  const std::lock_guard lock(mutex_);
  open_.insert_or_assign(number, *file);
}

void TakenDescriptors::remove(int number) {
  const std::lock_guard lock(mutex_);
  open_.erase(number);
}

void TakenDescriptors::add_stream(std::FILE* stream) {
  if (stream == nullptr) return;
  const std::lock_guard lock(mutex_);
  open_.erase(::fileno(stream));
  streams_.insert(stream);
}

void TakenDescriptors::remove_stream(std::FILE* stream) {
  const std::lock_guard lock(mutex_);
  streams_.erase(stream);
}

std::vector<int> TakenDescriptors::of_file(const std::string& file) const {
  const std::lock_guard lock(mutex_);
  std::vector<int> found;
  for (const auto& [number, identity] : open_) {
    const std::string link = link_of(number);
    if (link == "/dev/" + file || link == os::memory_file_link(file)) found.push_back(number);
  }
  return found;
}

std::size_t TakenDescriptors::count() const {
  const std::lock_guard lock(mutex_);
  return open_.size() + streams_.size();
}

/// The last one of the GPU's and RM's ends the channels; UVM's takes as long once more (H200, docs/how).
int TakenDescriptors::order_of(int number) {
  const std::string link = link_of(number);
  if (link.find("nvidiactl") != std::string::npos) return 1;
  if (link.find("nvidia-uvm") != std::string::npos) return 2;
  return link.starts_with("/dev/nvidia") ? 0 : 3;
}

void TakenDescriptors::give_back() {
  const std::lock_guard lock(mutex_);
  std::vector<std::pair<int, int>> ordered;
  for (const auto& [number, file] : open_) {
    if (file_of(number) == file) ordered.emplace_back(order_of(number), number);
  }
  std::ranges::sort(ordered);
  for (const auto& [order, number] : ordered) ::close(number);
  open_.clear();
  for (std::FILE* const stream : streams_) std::fclose(stream);
  streams_.clear();
}

// ---- Keys ----

namespace {

/// The action that one key's values want done at a thread's end. The C library says to nobody which key it
/// was, so each has a function of its own.
struct Ending {
  std::atomic<bool> is_taken{false};
  std::atomic<void (*)(void*)> destroy{nullptr};
  std::atomic<int> running{0};
};
constexpr std::size_t endings_max = 128;
constinit std::array<Ending, endings_max> endings{};

template <std::size_t place>
void end_value(void* value) {
  Ending& ending = endings[place];
  ending.running.fetch_add(1);
  Held::enter();
  if (void (*const destroy)(void*) = ending.destroy.load()) destroy(value);
  Held::leave();
  ending.running.fetch_sub(1);
}

template <std::size_t... place>
constexpr std::array<void (*)(void*), endings_max> end_values_at(std::index_sequence<place...>) {
  return {&end_value<place>...};
}
constexpr auto end_value_at = end_values_at(std::make_index_sequence<endings_max>());

std::optional<std::size_t> take_ending(void (*destroy)(void*)) {
  for (std::size_t place = 0; place < endings_max; ++place) {
    bool is_taken = false;
    if (!endings[place].is_taken.compare_exchange_strong(is_taken, true)) continue;
    endings[place].destroy.store(destroy);
    return place;
  }
  return std::nullopt;
}

}  // namespace

/// Values stay until the copy goes where there is no place for what is to be done.
int TakenKeys::add(pthread_key_t* key, void (*destroy)(void*)) {
  const auto ending = destroy == nullptr ? std::nullopt : take_ending(destroy);
  const int result = ::pthread_key_create(key, ending ? end_value_at[*ending] : nullptr);
  if (result != 0) {
    if (ending) endings[*ending].is_taken.store(false);
    return result;
  }
  const std::lock_guard lock(mutex_);
  keys_.emplace_back(*key, ending.value_or(endings_max));
  return 0;
}

int TakenKeys::remove(pthread_key_t key) {
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find(keys_, key, &std::pair<pthread_key_t, std::size_t>::first);
  if (found == keys_.end()) return EINVAL;
  const int result = ::pthread_key_delete(key);
  if (found->second < endings_max) {
    endings[found->second].destroy.store(nullptr);
    endings[found->second].is_taken.store(false);
  }
  keys_.erase(found);
  return result;
}

bool TakenKeys::give_back(Nanoseconds longest) {
  const auto until = std::chrono::steady_clock::now() + longest;
  const std::lock_guard lock(mutex_);
  for (const auto& [key, place] : keys_) {
    if (place < endings_max) endings[place].destroy.store(nullptr);
  }
  const auto is_running = [](const auto& key) {
    return key.second < endings_max && endings[key.second].running.load() != 0;
  };
  while (std::ranges::any_of(keys_, is_running)) {
    if (std::chrono::steady_clock::now() >= until) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  for (const auto& [key, place] : keys_) {
    ::pthread_key_delete(key);
    if (place < endings_max) endings[place].is_taken.store(false);
  }
  keys_.clear();
  return true;
}

// ---- At the process's end ----

void TakenExits::add(std::function<void()> action) {
  const std::lock_guard lock(mutex_);
  actions_.push_back(std::move(action));
}

void TakenExits::run() {
  while (true) {
    std::function<void()> next;
    {
      const std::lock_guard lock(mutex_);
      if (actions_.empty()) return;
      next = std::move(actions_.back());
      actions_.pop_back();
    }
    next();
  }
}

void TakenExits::give_back() {
  const std::lock_guard lock(mutex_);
  actions_.clear();
}

// ---- Places ----

namespace {

struct Place {
  std::atomic<bool> is_taken{false};
  std::unique_ptr<Taken> taken;
  bool is_at_exit = false;  ///< somebody looks at it when the process ends
};

std::array<Place, places_max>& places() {
  static auto* const all = new std::array<Place, places_max>;  // never destroyed: drivers' threads may use it
  return *all;
}

}  // namespace

Taken& taken_at(std::size_t place) { return *places()[place].taken; }

bool is_taken(std::size_t place) { return places()[place].taken != nullptr; }

std::optional<std::size_t> take_place() {
  for (std::size_t place = 0; place < places_max; ++place) {
    bool is_taken = false;
    if (!places()[place].is_taken.compare_exchange_strong(is_taken, true)) continue;
    places()[place].taken = std::make_unique<Taken>();
    places()[place].taken->process = ::getpid();
    return place;
  }
  return std::nullopt;
}

void give_place(std::size_t place) {
  places()[place].taken.reset();
  places()[place].is_taken.store(false);
}

}  // namespace firebreak::instance
