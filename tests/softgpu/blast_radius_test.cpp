// SPDX-License-Identifier: Apache-2.0
// Whom a fault takes along: co-clients of the faulter's MPS server end as the kind expects, others live.
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "agent/domains/mps/domain.h"
#include "ground/os/file.h"
#include "ground/os/real_kernel.h"
#include "inject/catalogue.h"
#include "tests/softgpu/gpu_test.h"

namespace firebreak::test {
namespace {

/// Both ends of a pipe: what is read, what is written.
struct Pipe {
  os::Fd read_end;
  os::Fd write_end;
};

Pipe make_pipe() {
  int ends[2] = {-1, -1};
  if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("pipe2");
  return {os::Fd(ends[0]), os::Fd(ends[1])};
}

/// A program that was started, and its standard output. Killed at the end.
class Program {
 public:
  Program(os::Kernel& kernel, std::vector<std::string> command, const mps::Environment& environment) {
    Pipe output = make_pipe();
    Pipe input = make_pipe();
    os::SpawnRequest request;
    request.command = std::move(command);
    request.environment = environment;
    request.standard_input = input.read_end.get();
    request.standard_output = output.write_end.get();
    pid_ = must(kernel.spawn(request));
    output_ = std::move(output.read_end);
    input_ = std::move(input.write_end);
  }
  Program(Program&& other) noexcept
      : output_(std::move(other.output_)),
        input_(std::move(other.input_)),
        pid_(std::exchange(other.pid_, -1)),
        text_(std::move(other.text_)) {}
  Program& operator=(Program&&) = delete;
  ~Program() {
    if (pid_ == -1) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
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

  /// Tells a bystander that it may end.
  void let_end() { input_.reset(); }
  /// Its exit code; throws when a signal ended it.
  int exit_code() {
    const int status = wait();
    if (!WIFEXITED(status)) throw std::runtime_error("ended by signal " + std::to_string(WTERMSIG(status)));
    return WEXITSTATUS(status);
  }
  int wait() {
    int status = 0;
    if (waitpid(pid_, &status, 0) != pid_) throw std::runtime_error("waitpid");
    pid_ = -1;
    return status;
  }

 private:
  os::Fd output_;
  os::Fd input_;
  pid_t pid_ = -1;
  std::string text_;
};

/// One MPS domain in a folder of its own.
class BlastRadius : public ::testing::TestWithParam<const inject::Kind*> {
 protected:
  BlastRadius() {
    const bool software = choose_driver();
    mps::DomainOptions options;
    options.name = "A";
    options.directory = folder_.path();
    if (software) options.control_program = FIREBREAK_MPS_CONTROL;
    domain_ = must(mps::Domain::start(kernel_, options));
  }

  Program start(std::vector<std::string> command) {
    return Program(kernel_, std::move(command), domain_->client_environment());
  }
  Program start_outside(std::vector<std::string> command) {
    return Program(kernel_, std::move(command), {{"CUDA_MPS_PIPE_DIRECTORY", folder_.path() + "/none"}});
  }

  static std::vector<std::string> bystander(CUresult expected) {
    return {FIREBREAK_BYSTANDER, "60", std::to_string(static_cast<int>(expected))};
  }

  os::RealKernel kernel_;
  os::TemporaryDirectory folder_ = must(os::TemporaryDirectory::create());
  std::unique_ptr<mps::Domain> domain_;
};

std::string name_of(const ::testing::TestParamInfo<const inject::Kind*>& info) {
  std::string name(info.param->name);
  std::ranges::replace(name, '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Catalogue, BlastRadius, ::testing::ValuesIn(inject::catalogue()), name_of);

/// Ends a bystander that is to live, and says how it was.
int outcome(Program& bystander, CUresult expected) {
  if (expected == CUDA_SUCCESS) bystander.let_end();
  return bystander.exit_code();
}

TEST_P(BlastRadius, CoClientAndOutsiderEndAsExpected) {
  const inject::Kind& kind = *GetParam();
  const inject::Expectation& expected = kind.expectation;
  auto co_client = start(bystander(expected.co_client));
  auto outsider = start_outside(bystander(expected.outsider));
  ASSERT_TRUE(co_client.wait_for("running"));
  ASSERT_TRUE(outsider.wait_for("running"));
  auto rogue = start({FIREBREAK_RAISE_FAULT, std::string(kind.name)});
  // Who is expected to fall may do so while the rogue lives on, as another program for example.
  if (expected.co_client == CUDA_SUCCESS) rogue.wait();
  EXPECT_EQ(outcome(co_client, expected.co_client), 0);
  EXPECT_EQ(outcome(outsider, expected.outsider), 0);
}

class BlastRadiusOfOneKind : public BlastRadius {};
INSTANTIATE_TEST_SUITE_P(Catalogue, BlastRadiusOfOneKind, ::testing::Values(inject::find("misaligned-load")),
                         name_of);

TEST_P(BlastRadiusOfOneKind, ClientWithoutMpsLivesAndTheNextOneStarts) {
  auto outside = start_outside(bystander(CUDA_SUCCESS));
  ASSERT_TRUE(outside.wait_for("running"));
  EXPECT_EQ(start({FIREBREAK_RAISE_FAULT, std::string(GetParam()->name)}).exit_code(), 0);
  // It is refused as long as the server handles the fault.
  for (bool runs = false; !runs;) {
    auto next = start(bystander(CUDA_SUCCESS));
    runs = next.wait_for("running");
    EXPECT_EQ(outcome(next, CUDA_SUCCESS), runs ? 0 : 2);
  }
  EXPECT_EQ(outcome(outside, CUDA_SUCCESS), 0);
}

class BlastRadiusOfTheDevice : public BlastRadius {};
INSTANTIATE_TEST_SUITE_P(Catalogue, BlastRadiusOfTheDevice,
                         ::testing::Values(inject::find("fallen-off-the-bus")), name_of);

TEST_P(BlastRadiusOfTheDevice, NobodyStartsUntilAllAreGone) {
  const CUresult lost = GetParam()->expectation.outsider;
  auto outside = start_outside(bystander(lost));
  ASSERT_TRUE(outside.wait_for("running"));
  // Stays, with its context, until it has seen the error; the server of the domain stays longer.
  EXPECT_EQ(start({FIREBREAK_RAISE_FAULT, std::string(GetParam()->name)}).exit_code(), 0);
  EXPECT_EQ(outcome(outside, lost), 0);
  EXPECT_EQ(start_outside(bystander(CUDA_SUCCESS)).exit_code(), 2);
  domain_.reset();
  auto next = start_outside(bystander(CUDA_SUCCESS));
  EXPECT_TRUE(next.wait_for("running"));
  EXPECT_EQ(outcome(next, CUDA_SUCCESS), 0);
}

}  // namespace
}  // namespace firebreak::test
