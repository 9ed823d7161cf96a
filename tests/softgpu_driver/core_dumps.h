// SPDX-License-Identifier: Apache-2.0
/// Clients in CUDA's core dump mode, on a software machine of the test's own.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "softgpu/machine/shared_gpu.h"
#include "tests/softgpu_driver/machine_test.h"

namespace firebreak::test {

inline constexpr std::size_t dump_bytes = 249'928;

class CoreDumps : public MachineTest {
 protected:
  std::string path(const std::string& name) const { return directory() + "/" + name; }

  Environment mode(const std::string& file, const char* flags = "skip_abort") const {
    Environment all = environment();
    all.emplace_back("CUDA_ENABLE_COREDUMP_ON_EXCEPTION", "1");
    all.emplace_back("CUDA_COREDUMP_SHOW_PROGRESS", "1");
    all.emplace_back("CUDA_COREDUMP_GENERATION_FLAGS", flags);
    all.emplace_back("CUDA_COREDUMP_FILE", file);
    if (!halt_ms_.empty()) all.emplace_back("FIREBREAK_SOFTGPU_HALT_MS", halt_ms_);
    return all;
  }
  /// A client whose dump goes to a file.
  std::unique_ptr<Client> start(const std::string& name, const char* flags = "skip_abort") {
    return working(mode(path(name), flags), name);
  }
  /// A client whose dump nobody reads, until drain().
  std::unique_ptr<Client> start_unread(const std::string& name) {
    EXPECT_EQ(::mkfifo(path(name).c_str(), 0600), 0);
    return working(mode(path(name)), name);
  }
  std::unique_ptr<Client> working(const Environment& with, const std::string& name) {
    const os::Fd errors(::open(path(name + ".err").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    auto client = std::make_unique<Client>(kernel_, with, errors.get());
    EXPECT_EQ(client->tell("init"), CUDA_SUCCESS);
    EXPECT_EQ(client->tell("buffer"), CUDA_SUCCESS);
    return client;
  }
  std::string errors_of(const std::string& name) {
    return kernel_.read_file(path(name + ".err")).value_or("");
  }
  /// 0: there is none.
  std::size_t dump_size(const std::string& name) { return kernel_.read_file(path(name)).value_or("").size(); }
  bool is_complete(const std::string& name) {
    return eventually([&] { return errors_of(name).find("All done") != std::string::npos; });
  }

  /// Reads a whole dump from its FIFO.
  std::string drain(const std::string& name) {
    const os::Fd fifo(::open(path(name).c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    std::string dump;
    EXPECT_TRUE(eventually([&] {
      std::array<char, 65536> part{};
      const ssize_t count = ::read(fifo.get(), part.data(), part.size());
      if (count > 0) dump.append(part.data(), static_cast<std::size_t>(count));
      return dump.size() >= dump_bytes;
    }));
    return dump;
  }

  /// All Xid lines so far, in order.
  std::vector<softgpu::KmsgLine> log() {
    const auto gpu = softgpu::SharedGpu::open(state_directory()).value();
    std::vector<softgpu::KmsgLine> lines;
    for (std::uint64_t at = 0; at < gpu->kmsg().next_sequence(); ++at) {
      if (auto line = gpu->kmsg().read(at)) lines.push_back(std::move(*line));
    }
    return lines;
  }
  /// The domain was reset after that time, and not before.
  void expect_reset_after(std::int64_t when_ns) {
    std::vector<softgpu::KmsgLine> lines;
    EXPECT_TRUE(eventually([&] {
      lines = log();
      return !lines.empty() && lines.back().text.find(": 43,") != std::string::npos;
    }));
    ASSERT_FALSE(lines.empty());
    EXPECT_GT(lines.back().due_ns, when_ns);
  }
  /// Enough for a server that would reset the domain to have done so: each command is a process.
  void let_the_server_look() {
    for (int i = 0; i < 10; ++i) EXPECT_EQ(mps_command(status()), "ACTIVE\n");
  }
  std::string status() { return "get_server_status " + std::to_string(mps_server()); }

  static void expect_works(Client& client) {
    EXPECT_EQ(client.tell("launch add_one"), CUDA_SUCCESS);
    EXPECT_EQ(client.tell("sync"), CUDA_SUCCESS);
  }

  /// How far an endless kernel has come.
  static std::uint64_t sum(const Sweeper& sweeper) {
    std::uint64_t all = 0;
    for (std::size_t index = 0; index < (1 << 18); ++index) all += sweeper.word(index);
    return all;
  }
  static bool stands_still(const Sweeper& sweeper) {
    return eventually([&] {
      const std::uint64_t before = sum(sweeper);
      for (int i = 0; i < 10; ++i) {
        if (sum(sweeper) != before) return false;
      }
      return true;
    });
  }
  static bool goes_on(const Sweeper& sweeper) {
    const std::uint64_t before = sum(sweeper);
    return eventually([&] { return sum(sweeper) != before; });
  }

  std::string halt_ms_;  ///< of clients in the mode; empty: nothing is said of it
};

}  // namespace firebreak::test
