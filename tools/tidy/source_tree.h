// SPDX-License-Identifier: Apache-2.0
/// The files that the rules look at, read once.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/tidy/source_text.h"
#include "tools/tidy/targets.h"

namespace firebreak::tidy {

/// The kind of a file, as the rules see it.
enum class FileKind {
  Header,  ///< .h, .cuh
  Source,  ///< .c, .cpp, .cu
  CMake,   ///< CMakeLists.txt, .cmake
  Script,  ///< .sh, .py, or anything that starts with "#!"
  Other,   ///< text that only few rules look at
};

/// One file: its path from the repository's root, with forward slashes, and its text.
class SourceFile {
 public:
  SourceFile(std::string path, std::string text);

  const std::string& path() const { return path_; }
  const std::string& text() const { return text_; }
  FileKind kind() const { return kind_; }
  bool is_cpp() const { return kind_ == FileKind::Header || kind_ == FileKind::Source; }
  bool is_test() const;
  /// Empty unless is_cpp().
  const SourceViews& views() const { return views_; }
  /// The line, from 1, in which this offset into the text stands.
  int line_of(std::size_t offset) const;
  int line_count() const;

 private:
  std::string path_;
  std::string text_;
  FileKind kind_;
  SourceViews views_;
};

/// The files of a checkout, sorted by path, and what CMake builds of them. Immutable.
class SourceTree {
 public:
  explicit SourceTree(std::vector<SourceFile> files, std::vector<Target> targets = {});

  const std::vector<SourceFile>& files() const { return files_; }
  /// Lists them in the order in which CMake met them: a library before its tests.
  const std::vector<Target>& targets() const { return targets_; }
  /// Null when there is no such file.
  const SourceFile* find(std::string_view path) const;
  /// The code of the header beside a source, where its own functions are declared; empty when it has none.
  std::string_view companion_code(const SourceFile& file) const;

 private:
  std::vector<SourceFile> files_;
  std::vector<Target> targets_;
};

/// Reads what a rule could look at below `root`, without build folders and hidden folders other than .ci;
/// empty when `root` is no directory.
std::optional<SourceTree> read_source_tree(const std::filesystem::path& root,
                                           std::vector<Target> targets = {});

/// The folder part of a path, without the final slash; empty at the root.
std::string_view folder_of(std::string_view path);

}  // namespace firebreak::tidy
