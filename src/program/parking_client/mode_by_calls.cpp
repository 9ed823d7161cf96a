// SPDX-License-Identifier: Apache-2.0
#include "program/parking_client/mode_by_calls.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "ground/base/clock.h"
#include "ground/os/self.h"
#include "shared/abi/wire.h"
#include "shared/dump_mode/mode.h"

namespace firebreak::park {
namespace {

using SetForProcess = CUresult (*)(CUcoredumpSettings, void*, std::size_t*);

constexpr Milliseconds longest_wait{500};
constexpr Milliseconds between_questions{20};
constexpr Milliseconds longest_between_tries{1'000};
/// As mode_environment() has them.
constexpr unsigned int flags = CU_COREDUMP_SKIP_NONRELOCATED_ELF_IMAGES | CU_COREDUMP_SKIP_GLOBAL_MEMORY |
                               CU_COREDUMP_SKIP_SHARED_MEMORY | CU_COREDUMP_SKIP_LOCAL_MEMORY |
                               CU_COREDUMP_SKIP_ABORT | CU_COREDUMP_SKIP_CONSTBANK_MEMORY;

/// The driver's two calls; null where it has none.
struct Calls {
  SetForProcess set = nullptr;
  SetForProcess get = nullptr;

  explicit Calls(const cuda::Driver& driver)
      : set(reinterpret_cast<SetForProcess>(driver.symbol("cuCoredumpSetAttributeGlobal"))),
        get(reinterpret_cast<SetForProcess>(driver.symbol("cuCoredumpGetAttributeGlobal"))) {}

  bool has_own_file() const {
    std::array<char, 4096> path{};
    std::size_t size_bytes = path.size();
    return get(CU_COREDUMP_FILE, path.data(), &size_bytes) == CUDA_SUCCESS && path[0] != '\0';
  }
};

/// MPS has to name it as a client first.
Result<link::Answer> ask_until_known(const AskAgent& ask) {
  const SystemClock clock;
  const Monotonic deadline = clock.now() + longest_wait;
  for (;;) {
    auto answer = ask(abi::GiveCoreDumpPipe{});
    const bool is_to_wait = !answer && answer.error().code == ErrorCode::NotYet && clock.now() < deadline;
    if (!is_to_wait) return answer;
    std::this_thread::sleep_for(between_questions);
  }
}

/// The same pipe, also where another mount namespace is ours.
bool leads_to(const std::string& path, int descriptor) {
  struct stat by_path {};
  struct stat by_descriptor {};
  return ::stat(path.c_str(), &by_path) == 0 && ::fstat(descriptor, &by_descriptor) == 0 &&
         by_path.st_dev == by_descriptor.st_dev && by_path.st_ino == by_descriptor.st_ino;
}

/// A number that no program comes to by opening files: the driver opens what has it, and cuts it to nothing.
os::Fd out_of_the_way(os::Fd place) {
  constexpr rlim_t highest = 1 << 20;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return place;
  const auto last = static_cast<int>(std::min(limit.rlim_cur, highest)) - 1;
  for (int number = last; number > last - 64 && number > place.get(); --number) {
    os::Fd moved(::fcntl(place.get(), F_DUPFD_CLOEXEC, number));
    if (moved) return moved;
  }
  return place;
}

/// As the driver can open it whenever it dumps.
std::string reachable(const std::string& path, os::Fd place) {
  if (leads_to(path, place.get())) return path;
  return "/proc/self/fd/" + std::to_string(out_of_the_way(std::move(place)).release());
}

/// Whoever listens at the socket may be somebody else: no file of the program's is cut.
bool is_pipe(int descriptor) {
  struct stat info {};
  return ::fstat(descriptor, &info) == 0 && S_ISFIFO(info.st_mode);
}

Status set_all(const cuda::Driver& driver, const Calls& calls, std::string file) {
  bool yes = true;
  unsigned int what = flags;
  const auto set = [&](CUcoredumpSettings setting, void* value, std::size_t size_bytes) {
    return driver.check(calls.set(setting, value, &size_bytes), "cuCoredumpSetAttributeGlobal");
  };
  if (Status done = set(CU_COREDUMP_LIGHTWEIGHT, &yes, sizeof(yes)); !done) return done;
  if (Status done = set(CU_COREDUMP_GENERATION_FLAGS, &what, sizeof(what)); !done) return done;
  if (Status done = set(CU_COREDUMP_FILE, file.data(), file.size() + 1); !done) return done;
  return set(CU_COREDUMP_ENABLE_ON_EXCEPTION, &yes, sizeof(yes));
}

/// One process's way into the mode, which may take several tries.
class Entry {
 public:
  Entry(std::shared_ptr<const cuda::Driver> driver, AskAgent ask)
      : driver_(std::move(driver)), calls_(*driver_), ask_(std::move(ask)) {}

  Result<ModeByCalls> go_on() {
    if (said_) return tell();
    if (os::has_environment_variable(is_of_mode)) return ModeByCalls::OwnSettings;
    if (calls_.set == nullptr || calls_.get == nullptr)
      return fail(ErrorCode::Unsupported, "the driver has no calls for its core dump mode");
    if (calls_.has_own_file()) return ModeByCalls::OwnSettings;
    auto answer = ask_until_known(ask_);
    if (!answer) return propagate(answer);
    const auto* pipe = std::get_if<abi::CoreDumpPipe>(&answer->message);
    if (pipe == nullptr) return ModeByCalls::NotWanted;
    if (answer->descriptors.size() != 1 || !is_pipe(answer->descriptors[0].get()))
      return fail(ErrorCode::Protocol, "the agent sent no pipe");
    said_ = set_all(*driver_, calls_, reachable(pipe->path, std::move(answer->descriptors[0])));
    return tell();
  }

 private:
  Result<ModeByCalls> tell() {
    const auto told = ask_(abi::CoreDumpMode{*said_ ? std::string() : to_string(said_->error())});
    if (!*said_) return propagate(*said_);
    if (!told) return propagate(told);
    return ModeByCalls::Entered;
  }

  std::shared_ptr<const cuda::Driver> driver_;
  Calls calls_;
  AskAgent ask_;
  std::optional<Status> said_;  ///< what the driver says of it
};

/// An agent that is there may be late: it has not heard of the process, or does not come to answer.
bool is_late(const Result<ModeByCalls>& answer) {
  return !answer && (answer.error().code == ErrorCode::NotYet || answer.error().code == ErrorCode::Timeout);
}

}  // namespace

void enter_mode_whenever(std::shared_ptr<const cuda::Driver> driver, const AskAgent& ask,
                         void (*undisturbed)(const std::function<void()>& run)) {
  const auto entry = std::make_shared<Entry>(std::move(driver), ask);
  if (!is_late(entry->go_on())) return;
  (void)os::start_detached_thread("firebreak-mode", [entry, undisturbed] {
    Milliseconds pause = between_questions;
    undisturbed([&] {
      while (is_late(entry->go_on())) {
        std::this_thread::sleep_for(pause);
        pause = std::min(2 * pause, longest_between_tries);
      }
    });
  });
}

}  // namespace firebreak::park
