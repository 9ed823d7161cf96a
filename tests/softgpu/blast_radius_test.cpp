// SPDX-License-Identifier: Apache-2.0
// Whom a fault takes along: co-clients of the faulter's MPS server end as the kind expects, others live.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "inject/catalogue.h"
#include "mps/domain.h"
#include "os/real_kernel.h"
#include "tests/softgpu/gpu_test.h"

namespace firebreak::test {
namespace {

/// A program that was started, and its standard output.
class Program {
 public:
  Program(os::Kernel& kernel, std::vector<std::string> command, const mps::Environment& environment) {
    int ends[2] = {-1, -1};
    if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("pipe2");
    output_ = os::Fd(ends[0]);
    const os::Fd input(ends[1]);
    os::SpawnRequest request;
    request.command = std::move(command);
    request.environment = environment;
    request.standard_output = input.get();
    pid_ = must(kernel.spawn(request));
  }

  /// Reads until the program has written `word`, or closed its output: false.
  bool wait_for(const std::string& word) {
    char piece[256];
    while (text_.find(word) == std::string::npos) {
      const ssize_t size = ::read(output_.get(), piece, sizeof piece);
      if (size <= 0) return false;
      text_.append(piece, static_cast<std::size_t>(size));
    }
    return true;
  }

  /// Its exit code; throws when a signal ended it.
  int exit_code() {
    const int status = wait();
    if (!WIFEXITED(status)) throw std::runtime_error("ended by signal " + std::to_string(WTERMSIG(status)));
    return WEXITSTATUS(status);
  }
  int wait() {
    int status = 0;
    if (waitpid(pid_, &status, 0) != pid_) throw std::runtime_error("waitpid");
    return status;
  }

 private:
  os::Fd output_;
  pid_t pid_ = -1;
  std::string text_;
};

/// One MPS domain in a folder of its own.
class BlastRadius : public ::testing::TestWithParam<const inject::Kind*> {
 protected:
  BlastRadius() {
    const bool software = choose_driver();
    std::filesystem::create_directories(folder_);
    mps::DomainOptions options;
    options.name = "A";
    options.directory = folder_;
    if (software) options.control_program = FIREBREAK_MPS_CONTROL;
    domain_ = must(mps::Domain::start(kernel_, options));
  }
  ~BlastRadius() override {
    domain_.reset();
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  Program start(std::vector<std::string> command) {
    return Program(kernel_, std::move(command), domain_->client_environment());
  }
  Program start_outside(std::vector<std::string> command) {
    return Program(kernel_, std::move(command), {{"CUDA_MPS_PIPE_DIRECTORY", folder_ + "/none"}});
  }

  os::RealKernel kernel_;
  std::string folder_ = "/tmp/firebreak-blast-" + std::to_string(getpid());
  std::unique_ptr<mps::Domain> domain_;
};

std::string name_of(const ::testing::TestParamInfo<const inject::Kind*>& info) {
  std::string name(info.param->name);
  std::ranges::replace(name, '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Catalogue, BlastRadius, ::testing::ValuesIn(inject::catalogue()), name_of);

TEST_P(BlastRadius, CoClientEndsAsExpected) {
  const inject::Kind& kind = *GetParam();
  const auto expected = std::to_string(static_cast<int>(kind.expectation.co_client));
  auto co_client = start({FIREBREAK_BYSTANDER, "60", expected});
  ASSERT_TRUE(co_client.wait_for("running"));
  start({FIREBREAK_RAISE_FAULT, std::string(kind.name)}).wait();
  EXPECT_EQ(co_client.exit_code(), 0);
}

class BlastRadiusOfOneKind : public BlastRadius {};
INSTANTIATE_TEST_SUITE_P(Catalogue, BlastRadiusOfOneKind, ::testing::Values(inject::find("misaligned-load")),
                         name_of);

TEST_P(BlastRadiusOfOneKind, ClientWithoutMpsLivesAndTheNextOneStarts) {
  auto outside = start_outside({FIREBREAK_BYSTANDER, "2"});
  ASSERT_TRUE(outside.wait_for("running"));
  EXPECT_EQ(start({FIREBREAK_RAISE_FAULT, std::string(GetParam()->name)}).exit_code(), 0);
  auto next = start({FIREBREAK_BYSTANDER, "1"});
  EXPECT_TRUE(next.wait_for("running"));
  EXPECT_EQ(next.exit_code(), 0);
  EXPECT_EQ(outside.exit_code(), 0);
}

}  // namespace
}  // namespace firebreak::test
