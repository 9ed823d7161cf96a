// SPDX-License-Identifier: Apache-2.0
/// For tests: the cases in the comments of testdata/*.ptx.
///
///   // case: KERNEL grid=2,4 block=32 args=A,B+128,64 want=idempotent
///
/// `want` is a verdict with dashes. `-or-unknown`: that one will do, too. `-not-run`: the launch faults or
/// does not end, so nobody runs it. `-by-bound`: by what it really does it may be otherwise, which a decision
/// cannot see.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace firebreak::access::testing {

struct LabelledLaunch {
  std::string text;  ///< the whole line
  std::string kernel;
  std::array<std::uint32_t, 3> grid{1, 1, 1};
  std::array<std::uint32_t, 3> block{1, 1, 1};
  std::vector<std::string> arguments;
  std::string want;
};

inline std::vector<std::string> split_at_commas(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');) parts.push_back(part);
  return parts;
}

inline std::vector<LabelledLaunch> read_cases(const std::string& source) {
  std::vector<LabelledLaunch> cases;
  std::istringstream lines(source);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("// case: ")) continue;
    LabelledLaunch each;
    each.text = line;
    std::istringstream words(line.substr(9));
    words >> each.kernel;
    for (std::string word; words >> word;) {
      const std::size_t equals = word.find('=');
      const std::string name = word.substr(0, equals);
      const std::vector<std::string> parts = split_at_commas(word.substr(equals + 1));
      for (std::size_t i = 0; i < parts.size() && i < 3; ++i) {
        if (name == "grid") each.grid[i] = static_cast<std::uint32_t>(std::stoul(parts[i]));
        if (name == "block") each.block[i] = static_cast<std::uint32_t>(std::stoul(parts[i]));
      }
      if (name == "args") each.arguments = parts;
      if (name == "want") each.want = parts.at(0);
    }
    cases.push_back(std::move(each));
  }
  return cases;
}

inline std::string read_text(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline std::vector<std::filesystem::path> labelled_files(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> found;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".ptx") found.push_back(entry.path());
  std::sort(found.begin(), found.end());
  return found;
}

/// `buffers`: where A, B, C, D, P and Q lie.
inline std::vector<std::byte> pack_arguments(const LabelledLaunch& launch,
                                             const std::array<std::uint64_t, 6>& buffers) {
  constexpr std::string_view names = "ABCDPQ";
  std::vector<std::byte> packed;
  const auto append = [&packed](const auto value) {
    const std::size_t at = packed.size();
    packed.resize(at + sizeof(value));
    std::memcpy(packed.data() + at, &value, sizeof(value));
  };
  // Two pointers come first in all of these kernels.
  for (std::size_t i = 0; i < launch.arguments.size(); ++i) {
    const std::string& text = launch.arguments[i];
    const std::size_t which = names.find(text[0]);
    if (which != std::string_view::npos)
      append(buffers[which] + (text.size() > 2 ? std::stoull(text.substr(2)) : 0));
    else if (i < 2)
      append(static_cast<std::uint64_t>(std::stoll(text)));
    else
      append(static_cast<std::uint32_t>(std::stoll(text)));
  }
  return packed;
}

}  // namespace firebreak::access::testing
