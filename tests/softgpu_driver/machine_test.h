// SPDX-License-Identifier: Apache-2.0
/// A software machine of the test's own: state folder, MPS folders, client programs. Removed at the end.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ground/os/file.h"
#include "ground/os/memory.h"
#include "ground/os/real_kernel.h"
#include "ground/os/socket.h"
#include "shared/abi/cuda_result.h"

namespace firebreak::test {

/// Answers true as soon as `condition` holds; false when it did not within ten seconds.
bool eventually(const std::function<bool()>& condition);

using Environment = std::vector<std::pair<std::string, std::string>>;

/// One client program. Killed at the end.
class Client {
 public:
  /// `standard_error` -1: the test's own.
  Client(os::RealKernel& kernel, const Environment& environment, int standard_error = -1);
  /// Another program that understands commands.
  Client(os::RealKernel& kernel, const Environment& environment, const std::string& program,
         int standard_error = -1);
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  ~Client();

  struct Answer {
    CUresult result = CUDA_ERROR_UNKNOWN;
    unsigned long long value = 0;
    os::Fd descriptor;
  };
  Answer ask(const std::string& command, int descriptor = -1);
  CUresult tell(const std::string& command, int descriptor = -1) { return ask(command, descriptor).result; }
  /// Starts a command whose answer take_answer() waits for.
  void send(const std::string& command, int descriptor = -1);
  Answer take_answer();

  pid_t pid() const { return pid_; }
  const os::Fd& pidfd() const { return pidfd_; }
  void kill();
  /// Empty: it still runs, after long.
  std::optional<os::ExitStatus> wait_for_end();

 private:
  os::RealKernel& kernel_;
  std::optional<os::Socket> socket_;
  pid_t pid_ = 0;
  os::Fd pidfd_;
};

class MachineTest : public ::testing::Test {
 protected:
  MachineTest();
  ~MachineTest() override;

  /// Clients of no MPS domain, or of the one that start_mps() named last.
  std::unique_ptr<Client> start_client();
  /// A client that has a context and the buffer; fails the test when it has not.
  std::unique_ptr<Client> start_working_client();
  /// A client whose endless kernel has begun to write, and that memory as seen from here.
  struct Sweeper {
    std::unique_ptr<Client> client;
    os::Fd descriptor;
    os::Mapping memory;
    std::uint32_t word(std::size_t index) const;
  };
  Sweeper start_sweeper() { return sweep(start_working_client()); }
  /// The same of a client that has its buffer.
  static Sweeper sweep(std::unique_ptr<Client> client);

  /// What starts from then on computes on that GPU, of two.
  void choose_gpu(std::uint32_t gpu) { gpu_ = gpu; }
  void start_mps(const std::string& name = "a");
  std::string mps_command(const std::string& command);
  pid_t mps_server();
  const std::string& directory() const { return directory_.path(); }
  std::string state_directory() const { return directory() + "/gpu"; }
  Environment environment() const;

  os::RealKernel kernel_;
  unsigned memory_mib_ = 64;  ///< of the GPU

 private:
  os::TemporaryDirectory directory_;
  std::string mps_name_ = "none";
  std::optional<std::uint32_t> gpu_;
  std::set<std::string> running_mps_;
};

}  // namespace firebreak::test
