// SPDX-License-Identifier: Apache-2.0
/// The folder in which one process writes down what it launches:
///
///     PID/launches.jsonl    one line for each distinct launch
///     PID/counts            64-bit numbers: how many launches there were; how many of these were not
///     recorded,
///                           since there were too many distinct ones; how many graphs were launched; then, by
///                           the lines, how often each was launched
///     images/NAME.ptx       the PTX of which the driver makes the image's kernels
///     images/NAME.beside.ptx  PTX of the same source beside the machine code that the driver takes
///     images/NAME.cubin     machine code that the process made itself, of which somebody may have the PTX
///
/// What a killed process has written stays good.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ground/os/memory.h"
#include "program/record/loaded_image.h"

namespace firebreak::record {

/// Distinct ones of a process.
inline constexpr std::size_t most_launches = 1U << 15;

struct LaunchMemory {
  std::uint64_t address = 0;
  std::uint64_t size_bytes = 0;
};
struct VariableAddress {
  std::string name;
  std::uint64_t address = 0;
};

/// What a decision about one launch needs.
struct LaunchLine {
  std::string_view kernel;
  std::string_view image;  ///< LoadedImage::name()
  CodeForm form = CodeForm::Unknown;
  std::array<unsigned int, 3> grid{};
  std::array<unsigned int, 3> block{};
  unsigned int shared_bytes = 0;
  std::span<const std::byte> parameters;  ///< packed
  std::vector<LaunchMemory> memory;       ///< allocations that pointers among them lie in
  std::span<const VariableAddress> variables;
};

/// For one thread at a time.
class LaunchFolder {
 public:
  /// Makes it, with all above.
  static Result<std::unique_ptr<LaunchFolder>> create(const std::string& folder);

  void add_launch() { counts()[0] += 1; }
  void add_unrecorded() { counts()[1] += 1; }
  void add_graph_launch() { counts()[2] += 1; }
  /// Of a launch that has a line; the first has the number 0.
  void add_again(std::size_t line) { counts()[3 + line] += 1; }
  void write(const LaunchLine& line);
  void write_image(const std::string& name, const LoadedCode& code);

 private:
  struct CloseFile {
    void operator()(std::FILE* file) const { (void)std::fclose(file); }
  };
  using File = std::unique_ptr<std::FILE, CloseFile>;
  static constexpr std::size_t counts_bytes = (3 + most_launches) * sizeof(std::uint64_t);

  LaunchFolder() = default;
  void write_text(const std::string& name, std::string_view text);
  std::uint64_t* counts() { return static_cast<std::uint64_t*>(counts_.data()); }

  std::string folder_;
  File lines_;
  os::Mapping counts_;
};

}  // namespace firebreak::record
