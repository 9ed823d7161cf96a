// SPDX-License-Identifier: Apache-2.0
#include "ground/os/program_needs.h"

#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "ground/os/file.h"
#include "ground/os/self.h"

namespace firebreak::os {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::StartsWith;

struct ProgramNeedsTest : testing::Test {
  TemporaryDirectory directory = TemporaryDirectory::create().value();
  std::string file = directory.path() + "/file";

  void write(const std::string& text) const { std::ofstream(file, std::ios::binary) << text; }
  static std::string own_program() {
    std::ifstream own(executable_path().value(), std::ios::binary);
    return {std::istreambuf_iterator<char>(own), {}};
  }
};

TEST_F(ProgramNeedsTest, AreItsDynamicLinkerAndItsLibraries) {
  const auto needs = program_needs(executable_path().value());
  ASSERT_TRUE(needs);
  EXPECT_THAT(needs->dynamic_linker, HasSubstr("ld-linux"));
  EXPECT_THAT(needs->libraries, Contains(StartsWith("libc.so")));
}

TEST_F(ProgramNeedsTest, OfAScriptAreThoseOfTheProgramInItsFirstLine) {
  write("#! " + executable_path().value() + " -x\nwords\n");
  const auto needs = program_needs(file);
  ASSERT_TRUE(needs);
  EXPECT_THAT(needs->libraries, Contains(StartsWith("libc.so")));
}

TEST_F(ProgramNeedsTest, OfWhatIsNoProgramAreNotKnown) {
  EXPECT_FALSE(program_needs(directory.path() + "/none"));
  EXPECT_FALSE(program_needs(directory.path()));
  for (const char* text : {"", "words",
                           "\x7f"
                           "ELF",
                           "#!", "#! \n", "#!/no/such/program\n"}) {
    write(text);
    EXPECT_FALSE(program_needs(file)) << text;
  }
}

// Of what somebody has written nothing is believed.
TEST_F(ProgramNeedsTest, OfABrokenProgramHaveAnEnd) {
  const std::string whole = own_program();
  for (std::size_t size : {sizeof(Elf64_Ehdr), std::size_t{200}, std::size_t{4096}, whole.size() / 2}) {
    write(whole.substr(0, size));
    const auto needs = program_needs(file);
    EXPECT_LE(needs ? needs->libraries.size() : 0, 4096u);
  }
  for (std::size_t place = 0; place < 1024; ++place) {
    std::string broken = whole.substr(0, 64 * 1024);
    broken[place] = static_cast<char>(0xff);
    write(broken);
    const auto needs = program_needs(file);
    EXPECT_LE(needs ? needs->dynamic_linker.size() : 0, 4096u) << place;
  }
}

}  // namespace
}  // namespace firebreak::os
