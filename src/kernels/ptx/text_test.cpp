// SPDX-License-Identifier: Apache-2.0
// Runs testdata/*.txt. A file holds cases:
//
//   === what the case is about          the source is a whole module
//   === kernel: what it is about        the source is put into a kernel; registers and variables are in the
//   prelude below (PTX)
//   ---
//   (what is expected: the dump of the module, of the kernel's instructions alone, or the error)
//
// Lines count from 1 at the first line of PTX; the kernel's prelude is line 0. FIREBREAK_TEST_UPDATE=1 writes
// what came out into the files instead.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "kernels/ptx/dump.h"
#include "kernels/ptx/parse.h"
#include "kernels/ptx/validate.h"

namespace firebreak::ptx {
namespace {

constexpr std::string_view prelude =
    ".version 8.0 .target sm_90 .address_size 64 "
    ".global .align 16 .b32 g[4]; .const .b32 c[4]; .shared .b32 s[4]; .extern .shared .b8 dynamic[]; "
    ".func (.param .b32 result) callee (.param .b32 a, .param .align 8 .b8 b[16]); "
    ".func (.reg .u32 result) register_callee (.reg .u32 a, .reg .f32 b); .func quiet; "
    ".visible .entry kernel (.param .u64 p, .param .u32 q) { "
    ".reg .pred %p<9>; .reg .b16 %h<9>; .reg .f16 %hf<9>; .reg .b32 %r<9>; .reg .u32 %u<9>; .reg .s32 %s<9>; "
    ".reg .b64 %rd<9>; .reg .u64 %ud<9>; .reg .f32 %f<9>; .reg .f64 %d<9>; .local .align 8 .b8 depot[32];";

struct Case {
  std::string title;
  std::string source;
  std::string expected;
};

std::vector<Case> read_cases(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::vector<Case> cases;
  std::string line;
  bool in_source = true;
  while (std::getline(file, line)) {
    if (line.starts_with("=== ")) {
      cases.push_back({line.substr(4), {}, {}});
      in_source = true;
    } else if (line == "---") {
      in_source = false;
    } else if (!cases.empty()) {
      (in_source ? cases.back().source : cases.back().expected) += line + "\n";
    }
  }
  return cases;
}

// The first lines of a file, up to the first case: its licence and what it is about.
std::string read_head(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string head;
  std::string line;
  while (std::getline(file, line) && !line.starts_with("=== ")) head += line + "\n";
  return head;
}

// The prelude takes a line of its own: it is line 0.
std::string renumbered(const std::string& message) {
  const std::size_t colon = message.find(':', 5);
  const int line = std::stoi(message.substr(5, colon - 5)) - 1;
  return "text:" + std::to_string(line) + message.substr(colon);
}

std::string outcome(const Case& text_case) {
  const bool is_kernel = text_case.title.starts_with("kernel: ");
  const std::string source =
      is_kernel ? std::string(prelude) + "\n" + text_case.source + "}" : text_case.source;
  const Result<Module> module = parse(source, "text");
  if (!module) return (is_kernel ? renumbered(module.error().message) : module.error().message) + "\n";
  EXPECT_TRUE(validate(*module));
  if (!is_kernel) return dump(*module);
  const Function& kernel = module->functions.back();
  std::string text;
  for (const Instruction& instruction : kernel.instructions)
    text += dump(*module, kernel, instruction) + "\n";
  return text;
}

std::vector<std::filesystem::path> files() {
  std::vector<std::filesystem::path> found;
  for (const auto& entry : std::filesystem::directory_iterator(FIREBREAK_PTX_TESTDATA))
    if (entry.path().extension() == ".txt") found.push_back(entry.path());
  std::sort(found.begin(), found.end());
  return found;
}

class TextTest : public testing::TestWithParam<std::filesystem::path> {};

TEST_P(TextTest, EveryCaseComesOutAsWritten) {
  const std::vector<Case> cases = read_cases(GetParam());
  ASSERT_FALSE(cases.empty());
  const bool update = std::getenv("FIREBREAK_TEST_UPDATE") != nullptr;
  std::string updated = update ? read_head(GetParam()) : "";
  for (const Case& text_case : cases) {
    const std::string actual = outcome(text_case);
    updated += "=== " + text_case.title + "\n" + text_case.source + "---\n" + actual;
    SCOPED_TRACE(GetParam().filename().string() + ", case: " + text_case.title);
    EXPECT_EQ(actual, update ? actual : text_case.expected);
  }
  if (update) std::ofstream(GetParam()) << updated;
}

INSTANTIATE_TEST_SUITE_P(Files, TextTest, testing::ValuesIn(files()),
                         [](const auto& file) { return file.param.stem().string(); });

}  // namespace
}  // namespace firebreak::ptx
