// SPDX-License-Identifier: Apache-2.0
#include "ground/os/become.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "ground/os/file.h"
#include "ground/os/self.h"

namespace firebreak::os {
namespace {

struct ProgramFile : testing::Test {
  TemporaryDirectory directory = TemporaryDirectory::create().value();

  std::string file(const std::string& name, const std::string& text, mode_t mode) const {
    const std::string path = directory.path() + "/" + name;
    std::ofstream(path) << text;
    ::chmod(path.c_str(), mode);
    return path;
  }
};

TEST_F(ProgramFile, IsTheFirstInPathThatCanBeExecuted) {
  file("sh", "no program", 0644);
  const EnvironmentScope path({{"PATH", directory.path() + ":/bin"}});
  EXPECT_EQ(program_file("sh").value(), "/bin/sh");
}

TEST_F(ProgramFile, IsToldApartFromWhatIsNotThere) {
  const EnvironmentScope path({{"PATH", directory.path()}});
  EXPECT_EQ(program_file("none").error().code, ErrorCode::NotFound);
  EXPECT_EQ(program_file("").error().code, ErrorCode::NotFound);
  EXPECT_EQ(program_file(directory.path() + "/none").error().code, ErrorCode::NotFound);
  EXPECT_EQ(program_file(directory.path() + "/none/none").error().code, ErrorCode::NotFound);
}

TEST_F(ProgramFile, IsNoFolderAndNothingThatCannotBeExecuted) {
  const std::string text = file("text", "no program", 0644);
  const EnvironmentScope path({{"PATH", directory.path()}});
  EXPECT_EQ(program_file(text).error().code, ErrorCode::PermissionDenied);
  EXPECT_EQ(program_file("text").error().code, ErrorCode::PermissionDenied);
  EXPECT_EQ(program_file(directory.path()).error().code, ErrorCode::PermissionDenied);
  EXPECT_THAT(program_file(directory.path()).error().message, testing::HasSubstr("is a folder"));
}

/// What a child says that becomes that file.
int status_of(const std::string& file, const std::vector<std::string>& arguments) {
  const pid_t child = ::fork();
  if (child == 0) {
    const Status failed = become_program(file, arguments, {{"SAID", "5"}, {"HOME", "here"}});
    ::_exit(failed.error().code == ErrorCode::NotFound ? 127 : 126);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_F(ProgramFile, IsBecomeWithItsNameItsArgumentsAndWhatIsSaidOfItsEnvironment) {
  const std::string check = "test \"$0\" = name && test $1 = one && test $HOME = here && exit $SAID";
  EXPECT_EQ(status_of("/bin/sh", {"sh", "-c", check, "name", "one"}), 5);
  EXPECT_EQ(status_of(file("script", "exit $SAID", 0755), {"script"}), 5) << "it has no first line";
  EXPECT_EQ(status_of(file("lost", "#!/no/such/program\n", 0755), {"lost"}), 127);
  EXPECT_EQ(status_of(directory.path(), {"folder"}), 126);
}

TEST_F(ProgramFile, ThatNoKernelOfThisMachineRunsIsGivenToNoShell) {
  using namespace std::string_literals;
  std::ifstream shell("/bin/sh", std::ios::binary);
  std::string foreign(std::istreambuf_iterator<char>(shell), {});
  constexpr std::size_t machine_place = 18;  // e_machine of an ELF file
  ASSERT_GT(foreign.size(), machine_place);
  foreign[machine_place] = '\xb7';  // AArch64
  for (const std::string& content : {foreign,
                                     "\x7f"
                                     "ELF"s,
                                     "\0\1\2"s,
                                     "\x7f"
                                     "ELF\nexit 5\n"s}) {
    const std::string path = file("binary", content, 0755);
    const Error why = become_program(path, {"it"}, {}).error();
    EXPECT_EQ(why.code, ErrorCode::Unsupported);
    EXPECT_EQ(why.message, "start it: it is no program that this machine runs");
  }
  EXPECT_EQ(status_of(file("late", "exit $SAID\n\0"s, 0755), {"late"}), 5) << "its first line is text";
  EXPECT_EQ(status_of(file("empty", "", 0755), {"empty"}), 0);
}

TEST_F(ProgramFile, SaysWhatItWouldBeRunByWhereThatIsNotThere) {
  const auto why = [](const std::string& path) { return become_program(path, {"it"}, {}).error(); };
  EXPECT_EQ(why(file("lost", "#!/no/such/program -x\n", 0755)).message,
            "start it: it names /no/such/program to run it, which is not there");
  EXPECT_THAT(why(file("copied", "#!/bin/sh\r\n", 0755)).hint, testing::HasSubstr("CR"));
  EXPECT_THAT(why(directory.path() + "/none").message, testing::HasSubstr("No such file"));
  std::ifstream shell("/bin/sh", std::ios::binary);
  std::string compiled(std::istreambuf_iterator<char>(shell), {});
  const std::size_t linker = compiled.find("ld-linux");
  ASSERT_NE(linker, std::string::npos);
  compiled[linker] = 'L';
  EXPECT_THAT(why(file("compiled", compiled, 0755)).message, testing::HasSubstr("Ld-linux"));
}

}  // namespace
}  // namespace firebreak::os
