// SPDX-License-Identifier: Apache-2.0
/// What a program starts has its environment, and may come to CUDA, too.
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "tests/virtual/spare_fixture.h"

namespace firebreak::test {
namespace {

class SpareChildren : public Spare {
 protected:
  /// As `firebreak run` sets it up: in the core dump mode, with a pipe for each of the two domains.
  Environment of_the_mode() {
    const std::string first = directory() + "/dump-a";
    const std::string second = directory() + "/dump-b";
    for (const std::string& pipe : {first, second}) EXPECT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
    return {{"CUDA_ENABLE_COREDUMP_ON_EXCEPTION", "1"},
            {"CUDA_COREDUMP_GENERATION_FLAGS", "skip_abort"},
            {"CUDA_COREDUMP_FILE", first},
            {"FIREBREAK_SPARE_DUMPS", first + ":" + second}};
  }
  /// Of all dumps into the first pipe, when a neighbour faults. Then these have ended.
  std::size_t bytes_of_dumps(std::unique_ptr<Client> first, std::unique_ptr<Client> second) {
    const auto faulter = start_faulter("a");
    const os::Fd pipe(::open((directory() + "/dump-a").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    std::atomic<bool> is_over{false};
    std::size_t bytes = 0;
    std::thread reader([&] {
      std::array<char, 65536> part{};
      for (ssize_t count = 0; count > 0 || !is_over.load();) {
        count = ::read(pipe.get(), part.data(), part.size());
        if (count > 0) bytes += static_cast<std::size_t>(count);
      }
    });
    EXPECT_EQ(faulter->tell("fault"), CUDA_SUCCESS);
    EXPECT_EQ(faulter->tell("wait"), CUDA_ERROR_MISALIGNED_ADDRESS);
    is_over.store(true);
    reader.join();
    for (Client* const each : {faulter.get(), first.get(), second.get()})
      if (each != nullptr) each->kill();
    return bytes;
  }
  /// Whether somebody has begun its dump there.
  static bool has_begun(const os::Fd& pipe) {
    return eventually([&] {
      char byte = 0;
      return ::read(pipe.get(), &byte, 1) == 1;
    });
  }
};

/// Nobody could tell two dumps in one pipe apart. The second one, a compiler's worker, say, is in nobody's
/// way.
TEST_F(SpareChildren, TheFirstOneToComeToCudaAloneWritesDumps) {
  for (const char* const name : {"a", "b", "anchor"}) start_mps(name);
  const Environment mode = of_the_mode();
  const std::size_t alone = bytes_of_dumps(start_again("init", mode), nullptr);
  EXPECT_GT(alone, 0U);
  auto first = start_again("init", mode);
  EXPECT_EQ(bytes_of_dumps(std::move(first), start_again("init", mode)), alone);
}

TEST_F(SpareChildren, TheNextOneHasThePipesOnceTheFirstOneHasEnded) {
  for (const char* const name : {"a", "b", "anchor"}) start_mps(name);
  const Environment mode = of_the_mode();
  const os::Fd pipe(::open((directory() + "/dump-a").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  start_again("init", mode)->kill();
  const auto second = start_again("init", mode);
  const auto faulter = start_faulter("a");
  EXPECT_EQ(faulter->tell("fault"), CUDA_SUCCESS);
  EXPECT_TRUE(has_begun(pipe));
}

/// The agent takes a pipe away with its process. A dump that cannot be opened would end the neighbours.
TEST_F(SpareChildren, WhosePipesAreGoneWritesNoDumps) {
  for (const char* const name : {"a", "b", "anchor"}) start_mps(name);
  const Environment mode = of_the_mode();
  EXPECT_EQ(::unlink((directory() + "/dump-a").c_str()), 0);
  const auto program = start_again("init", mode);
  fault(*start_faulter("a"));
  EXPECT_NE(::access((directory() + "/dump-a").c_str(), F_OK), 0);
}

}  // namespace
}  // namespace firebreak::test
