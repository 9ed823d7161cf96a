// SPDX-License-Identifier: Apache-2.0
// Every kind of fault, raised in a process of its own, is answered as expected.
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <stdexcept>
#include <string>

#include "ground/os/real_kernel.h"
#include "inject/catalogue.h"
#include "softgpu/environment.h"
#include "tests/softgpu/gpu_test.h"

namespace firebreak::test {
namespace {

int run_and_wait(const std::string& argument) {
  os::SpawnRequest request;
  request.command = {FIREBREAK_RAISE_FAULT, argument};
  if (choose_driver()) {
    // A software GPU of its own: a fault of the device lasts as long as another process has the device open.
    const std::string folder = std::getenv(softgpu::environment::directory);
    request.environment = {{softgpu::environment::directory, folder + "/" + argument}};
  }
  const pid_t child = must(os::spawn_process(request));
  int status = 0;
  if (waitpid(child, &status, 0) != child) throw std::runtime_error("waitpid");
  return status;
}

std::string name_of(const ::testing::TestParamInfo<const inject::Kind*>& info) {
  std::string name(info.param->name);
  std::ranges::replace(name, '-', '_');
  return name;
}

class FaultKinds : public ::testing::TestWithParam<const inject::Kind*> {};
INSTANTIATE_TEST_SUITE_P(Catalogue, FaultKinds,
                         ::testing::ValuesIn(inject::catalogue().begin(), inject::catalogue().end()),
                         name_of);

TEST_P(FaultKinds, IsAnsweredAsExpected) {
  const int status = run_and_wait(std::string(GetParam()->name));
  const std::string_view name = GetParam()->name;
  const int signal = name == "sigterm" ? SIGTERM : name == "sigsegv" ? SIGSEGV : SIGKILL;
  if (name.starts_with("sig")) {
    ASSERT_TRUE(WIFSIGNALED(status));
    EXPECT_EQ(WTERMSIG(status), signal);
  } else {
    ASSERT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
    // What a process that leaves in mid-kernel says; the others compare and say 0.
    EXPECT_EQ(WEXITSTATUS(status), name == "exit" || name == "exec" ? 3 : 0);
  }
}

TEST(FaultKindsAlone, UnknownKindIsRefused) {
  const int status = run_and_wait("no-such-kind");
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 2);
}

}  // namespace
}  // namespace firebreak::test
