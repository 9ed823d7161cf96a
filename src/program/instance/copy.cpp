// SPDX-License-Identifier: Apache-2.0
#include "program/instance/copy.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <string_view>

#include "ground/os/self.h"
#include "program/instance/import_library.h"
#include "program/instance/imports.h"

namespace firebreak::instance {
namespace {

/// For threads that hold something of the process's.
constexpr std::chrono::milliseconds longest_for_threads(200);

/// Copies that this process has begun to load so far.
constinit std::atomic<unsigned int> copies_so_far{0};

/// Of a debugger library, by which it is found.
constexpr const char* debugger_function = "GetCUDADebuggerAPI";

/// The process's, with the instance's own in front: whoever looks through it finds these first.
void make_environment(Taken& taken) {
  for (const auto& [name, value] : taken.answers.variables) taken.environment.push_back(name + "=" + value);
  const auto is_own = [&](std::string_view name) {
    return std::ranges::count(taken.answers.variables, name, &std::pair<std::string, std::string>::first) !=
           0;
  };
  for (std::string& each : os::environment_but_for(is_own)) taken.environment.push_back(std::move(each));
  for (std::string& each : taken.environment) taken.environment_words.push_back(each.data());
  taken.environment_words.push_back(nullptr);
}

enum class Whose { Driver, Debugger };

os::LibraryBehind::InFront imports_for(std::size_t place, Whose whose) {
  return [place, whose](const std::string& path) {
    std::vector<ExportedFunction> functions;
    for (const ImportRow& row : import_table()) {
      const bool is_special = whose == Whose::Debugger && row.entry_of_debugger != nullptr;
      functions.push_back({row.name, is_special ? row.entry_of_debugger(place) : row.entry(place)});
    }
    // The C library's own variable is not the program's where that has a copy of it.
    const auto words = reinterpret_cast<std::uint64_t>(taken_at(place).environment_words.data());
    const std::vector<ExportedWord> variables{{"environ", words}, {"__environ", words}, {"_environ", words}};
    return import_library(functions, variables, path);
  };
}

}  // namespace

Result<std::unique_ptr<DriverCopy>> DriverCopy::load(const std::string& library, Variables variables) {
  if (const Status allowed = Threads::check_whether_allowed(); !allowed) return propagate(allowed);
  const auto place = take_place();
  if (!place) return fail(ErrorCode::ResourceExhausted, "this process has as many instances as it can");
  Taken& taken = taken_at(*place);
  taken.answers.variables = std::move(variables);
  const auto number = static_cast<unsigned int>(*place + 1);
  // A child of fork() keeps the sockets that were there, so no later copy takes such a name again.
  taken.answers.socket_suffix = "-" + std::to_string(++copies_so_far);
  make_environment(taken);
  // A driver that has no memory from its first moment on throws, and ends the process.
  void* const first_memory = taken.memory.allocate(1);
  taken.memory.give(first_memory);
  auto loaded = first_memory == nullptr
                    ? fail(ErrorCode::ResourceExhausted, "the process has no addresses left for its memory",
                           "ulimit -v limits them")
                    : os::LibraryBehind::load(library, number, imports_for(*place, Whose::Driver));
  if (!loaded) {
    give_place(*place);
    return propagate(loaded);
  }
  taken.library = loaded->handle();
  std::unique_ptr<DriverCopy> made(new DriverCopy(*place, taken, std::move(*loaded)));
  taken.load_debugger = [copy = made.get()](const char* file) { return copy->load_debugger(file); };
  return made;
}

DriverCopy::~DriverCopy() {
  if (is_gone_) return;
  taken_.load_debugger = nullptr;
}

void* DriverCopy::load_debugger(const char* file) {
  const std::lock_guard lock(debugger_mutex_);
  if (debugger_) return debugger_->handle();
  void* const plain = os::real_dlopen(file, 0x2);  // RTLD_NOW
  void* const function = plain == nullptr ? nullptr : os::real_dlsym(plain, debugger_function);
  const auto path = function == nullptr ? Result<std::string>(fail(ErrorCode::NotFound, "no debugger"))
                                        : os::library_of(function);
  if (!path) return plain;
  const auto number = static_cast<unsigned int>(place_ + 1);
  auto copy = os::LibraryBehind::load(*path, number, imports_for(place_, Whose::Debugger));
  if (!copy) return plain;
  debugger_ = std::move(*copy);
  taken_.debugger.store(debugger_->handle());
  return debugger_->handle();
}

TakenCounts DriverCopy::counts() const {
  return {taken_.mappings.count(), taken_.mappings.size_bytes(), taken_.descriptors.count(),
          taken_.threads.count()};
}

namespace {

void* run_and_forget(void* given) {
  const std::unique_ptr<std::function<void()>> run(static_cast<std::function<void()>*>(given));
  (*run)();
  return nullptr;
}

}  // namespace

/// Who is ended in it leaves the little that it was given.
Status DriverCopy::start_thread(std::function<void()> run) {
  auto given = std::make_unique<std::function<void()>>(std::move(run));
  pthread_t id{};
  const int result =
      os::without_signals([&] { return taken_.threads.start(&id, nullptr, &run_and_forget, given.get()); });
  if (result != 0) return fail(ErrorCode::ResourceExhausted, "there is no thread left");
  (void)given.release();
  (void)taken_.threads.detach(id);
  return {};
}

void DriverCopy::run_exits() {
  if (taken_.process == os::own_pid()) taken_.exits.run();
}

Thrown DriverCopy::throw_away() {
  Thrown thrown;
  auto part_began = std::chrono::steady_clock::now();
  const auto note = [&](Nanoseconds& part) {
    const auto now = std::chrono::steady_clock::now();
    part = now - std::exchange(part_began, now);
  };
  taken_.exits.give_back();
  const bool are_threads_gone = taken_.threads.end_all(longest_for_threads);
  const bool is_nobody_inside = taken_.keys.give_back(longest_for_threads);
  note(thrown.threads);
  taken_.mappings.give_back();
  note(thrown.mappings);
  taken_.descriptors.give_back();
  thrown.is_fence = true;
  note(thrown.descriptors);
  if (!are_threads_gone || !is_nobody_inside) return thrown;
  for (int left = taken_.references.exchange(0); left > 0; --left) (void)os::real_dlclose(taken_.library);
  const bool is_debugger_gone = !debugger_ || debugger_->unload();
  const bool is_unloaded = library_.unload() && is_debugger_gone;
  taken_.memory.end();
  note(thrown.rest);
  is_gone_ = true;
  if (is_unloaded) give_place(place_);  // else its file's number is not free
  thrown.is_gone = true;
  return thrown;
}

}  // namespace firebreak::instance
