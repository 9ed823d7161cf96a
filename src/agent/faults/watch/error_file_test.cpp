// SPDX-License-Identifier: Apache-2.0
#include "agent/faults/watch/error_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>

#include <fstream>
#include <map>

#include "ground/os/file.h"
#include "ground/os/processes.h"
#include "ground/os/program.h"
#include "ground/os/real_kernel.h"
#include "ground/os/socket.h"
#include "tests/doubles/watch/detector_test_support.h"

namespace firebreak::watch {
namespace {

using testing::ElementsAre;

/// Processes that stay, with a standard error to be chosen.
class ErrorFileTest : public DetectorTest {
 protected:
  void TearDown() override {
    for (const auto& [pid, pidfd] : running_) EXPECT_TRUE(os::kill_child(real_, pid, pidfd));
  }
  std::string path(const std::string& name) const { return directory_.path() + "/" + name; }
  os::Fd file(const std::string& name) {
    return real_.open(path(name), O_WRONLY | O_CREAT | O_APPEND).value();
  }
  /// `uses_gpu`: has a descriptor of UVM, as this kernel's processes go.
  pid_t start(const os::Fd& errors, bool uses_gpu = false) {
    os::SpawnRequest request;
    request.command = {"sleep", "1000"};
    request.standard_error = errors.get();
    const os::Fd uvm = real_.open(path("uvm"), O_RDWR | O_CREAT).value();
    if (uses_gpu) request.inherited.emplace_back(uvm.get(), 7);
    const pid_t pid = real_.spawn(request).value();
    running_[pid] = std::move(real_.pidfd_open(pid).value());
    return pid;
  }
  ErrorFile error_file_of(pid_t pid) {
    return ErrorFile(*loop_, real_, pid, [this](std::string_view line) { lines_.emplace_back(line); });
  }

  bool may_write(pid_t pid, const ErrorFile& its) {
    PossibleWriter writer(real_, pid);
    return writer.may_write(its.identity(), writer.user(now_), now_);
  }

  struct Kernel : os::RealKernel {
    std::string uvm_link;
    std::string uvm_link_target() const override { return uvm_link; }
    /// Does not let itself be looked at.
    pid_t hidden = 0;
    Result<os::Fd> open(const std::string& path, int flags) override {
      if (path != os::proc_folder(hidden) + "/fd/2") return os::RealKernel::open(path, flags);
      return fail(ErrorCode::Timeout, "it does not let itself be looked at");
    }
  };

  os::TemporaryDirectory directory_ = os::TemporaryDirectory::create().value();
  Kernel real_;
  std::map<pid_t, os::Fd> running_;
  std::vector<std::string> lines_;
  Monotonic now_{};
};

TEST_F(ErrorFileTest, LinesFromNowOnAreHeard) {
  std::ofstream(path("log")) << "old\n";
  const os::Fd errors = file("log");
  ErrorFile its = error_file_of(start(errors));
  ASSERT_TRUE(its.start());
  std::ofstream(path("log"), std::ios::app) << "new\n";
  ASSERT_TRUE(run_until([&] { return !lines_.empty(); }));
  EXPECT_THAT(lines_, ElementsAre("new"));
}

TEST_F(ErrorFileTest, APipeIsNotTouched) {
  auto [ours, theirs] = std::move(os::child_stream().value());
  ErrorFile its = error_file_of(start(theirs));
  const Status started = its.start();
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code, ErrorCode::Unsupported);
}

TEST_F(ErrorFileTest, AnotherThatUsesTheGpuMayHaveWrittenALine) {
  real_.uvm_link = path("uvm");
  const os::Fd shared = file("log");
  const os::Fd own = file("own");
  ErrorFile its = error_file_of(start(shared, true));
  ASSERT_TRUE(its.start());
  EXPECT_FALSE(may_write(start(own, true), its));
  EXPECT_FALSE(may_write(start(shared), its));
  EXPECT_TRUE(may_write(start(shared, true), its));
}

TEST_F(ErrorFileTest, OneOfTheSameUserThatIsNotToBeLookedAtMayHaveWrittenALine) {
  ErrorFile its = error_file_of(start(file("log")));
  ASSERT_TRUE(its.start());
  real_.hidden = start(file("own"));
  EXPECT_TRUE(may_write(real_.hidden, its));
  PossibleWriter hidden(real_, real_.hidden);
  EXPECT_FALSE(hidden.may_write(its.identity(), *hidden.user(now_) + 1, now_)) << "others cannot open it";
}

}  // namespace
}  // namespace firebreak::watch
