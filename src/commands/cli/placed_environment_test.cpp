// SPDX-License-Identifier: Apache-2.0
#include "commands/cli/placed_environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "ground/os/file.h"
#include "shared/dump_mode/mode.h"

namespace firebreak::cli {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

class PlacedEnvironment : public testing::Test {
 protected:
  PlacedEnvironment() {
    EXPECT_EQ(::mkfifo(pipe_.c_str(), 0600), 0);
    std::ofstream(file_) << "what was there";
  }
  os::TemporaryDirectory directory_ = std::move(os::TemporaryDirectory::create().value());
  std::string pipe_ = directory_.path() + "/pipe";
  std::string file_ = directory_.path() + "/file";
};

TEST_F(PlacedEnvironment, SaysWhatOfTheUsersGoes) {
  const Environment placed{{"CUDA_MPS_PIPE_DIRECTORY", "/run/firebreak/mps/a"},
                           {"CUDA_VISIBLE_DEVICES", "GPU-1"},
                           {"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "25"},
                           {"FIREBREAK_TENANT", "llm"}};
  const Environment own{{"CUDA_MPS_PIPE_DIRECTORY", "/tmp/mine"},
                        {"CUDA_VISIBLE_DEVICES", "0"},
                        {"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "25"},
                        {"FIREBREAK_TENANT", "outer"},
                        {"CUDA_CACHE_PATH", "/tmp/cache"}};
  EXPECT_THAT(notes_of_replaced(placed, own, {"CUDA_VISIBLE_DEVICES"}),
              testing::ElementsAre("CUDA_MPS_PIPE_DIRECTORY='/tmp/mine' is not kept: it is "
                                   "'/run/firebreak/mps/a' for the tenant"));
  EXPECT_THAT(notes_of_replaced(placed, own, {}), testing::SizeIs(2));
}

TEST_F(PlacedEnvironment, SaysToWhichDomainAProgramBelongs) {
  Environment placed{{"CUDA_MPS_PIPE_DIRECTORY", "/run/firebreak/mps/a"},
                     {"CUDA_VISIBLE_DEVICES", "GPU-1"},
                     {"FIREBREAK_SPARE", "/a:/b"},
                     {"FIREBREAK_SPARE_DUMPS", pipe_ + ":" + pipe_}};
  for (const auto& variable : park::mode_environment(pipe_)) placed.push_back(variable);
  EXPECT_TRUE(check_placed_environment(placed, {}));
  EXPECT_EQ(without_dumps_to_files(placed), placed);
}

TEST_F(PlacedEnvironment, HasNoLibraryLoadedAndNoFileWritten) {
  for (const char* name :
       {"LD_AUDIT", "LD_PRELOAD", "LD_LIBRARY_PATH", "CUDA_INJECTION64_PATH", "FIREBREAK_CUDA_LIBRARY",
        "FIREBREAK_RECORD_LAUNCHES", "CUDA_CACHE_PATH", "PATH", "", "FIREBREAK_SOCKET2"}) {
    const Status checked = check_placed_environment({{"FIREBREAK_ROLE", "active"}, {name, pipe_}}, {});
    ASSERT_FALSE(checked) << name;
    EXPECT_EQ(checked.error().code, ErrorCode::PermissionDenied);
    EXPECT_THAT(checked.error().message, HasSubstr("the agent wants " + std::string(name)));
  }
}

TEST_F(PlacedEnvironment, MaySayWhatTheGpuHereNeeds) {
  const Environment own{{"LD_LIBRARY_PATH", "/soft"}};
  EXPECT_TRUE(check_placed_environment({{"LD_LIBRARY_PATH", "/soft"}}, own));
  Environment another{{"FIREBREAK_ROLE", "active"}, {"LD_LIBRARY_PATH", "/tmp"}};
  EXPECT_FALSE(check_placed_environment(another, own));
  prefer_own_driver(another, own);
  EXPECT_EQ(another[1].second, "/soft");
  EXPECT_TRUE(check_placed_environment(another, own));
}

TEST_F(PlacedEnvironment, HasDumpsGoToPipesAlone) {
  ASSERT_EQ(::symlink(pipe_.c_str(), (file_ + ".link").c_str()), 0);
  // The driver would write to the file pattern.1234.
  const std::string pattern = directory_.path() + "/pattern.%p";
  ASSERT_EQ(::mkfifo(pattern.c_str(), 0600), 0);
  const auto relative = std::filesystem::relative(pipe_).string();
  for (const std::string& elsewhere :
       {file_, file_ + ".new", file_ + ".link", pattern, relative, directory_.path(), std::string()}) {
    for (const Environment& placed : {park::mode_environment(elsewhere),
                                      Environment{{"FIREBREAK_SPARE_DUMPS", pipe_ + ":" + elsewhere}}}) {
      EXPECT_FALSE(check_placed_environment(placed, {})) << elsewhere;
      EXPECT_THAT(without_dumps_to_files(placed), IsEmpty()) << elsewhere;
    }
  }
  EXPECT_FALSE(check_placed_environment({{"CUDA_COREDUMP_GENERATION_FLAGS", "all"}}, {}));
}

}  // namespace
}  // namespace firebreak::cli
