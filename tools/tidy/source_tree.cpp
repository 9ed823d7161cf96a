// SPDX-License-Identifier: Apache-2.0
#include "tools/tidy/source_tree.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <utility>

namespace firebreak::tidy {
namespace {

template <std::size_t N>
bool ends_with_any(std::string_view path, const std::array<std::string_view, N>& endings) {
  return std::any_of(endings.begin(), endings.end(), [&](auto ending) { return path.ends_with(ending); });
}

FileKind kind_of(std::string_view path, std::string_view text) {
  static constexpr std::array<std::string_view, 2> header{".h", ".cuh"};
  static constexpr std::array<std::string_view, 3> source{".c", ".cpp", ".cu"};
  static constexpr std::array<std::string_view, 2> cmake{"CMakeLists.txt", ".cmake"};
  static constexpr std::array<std::string_view, 2> script{".sh", ".py"};
  if (ends_with_any(path, header)) return FileKind::Header;
  if (ends_with_any(path, source)) return FileKind::Source;
  if (ends_with_any(path, cmake)) return FileKind::CMake;
  if (ends_with_any(path, script) || text.starts_with("#!")) return FileKind::Script;
  return FileKind::Other;
}

bool is_skipped_folder(const std::filesystem::path& folder, int depth) {
  const std::string name = folder.filename().string();
  return (depth == 0 && name == "build") || (name.starts_with(".") && name != ".ci");
}

std::string read_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace

SourceFile::SourceFile(std::string path, std::string text)
    : path_(std::move(path)), text_(std::move(text)), kind_(kind_of(path_, text_)) {
  if (is_cpp()) views_ = split_views(text_);
}

bool SourceFile::is_test() const {
  static constexpr std::array<std::string_view, 4> endings{"_test.cpp", "_test.c", "_test.sh", "_test.py"};
  return ends_with_any(path_, endings);
}

int SourceFile::line_of(std::size_t offset) const {
  const auto end = text_.begin() + static_cast<std::ptrdiff_t>(std::min(offset, text_.size()));
  return 1 + static_cast<int>(std::count(text_.begin(), end, '\n'));
}

int SourceFile::line_count() const {
  const bool open_end = !text_.empty() && text_.back() != '\n';
  return static_cast<int>(std::count(text_.begin(), text_.end(), '\n')) + (open_end ? 1 : 0);
}

SourceTree::SourceTree(std::vector<SourceFile> files, std::vector<Target> targets)
    : files_(std::move(files)), targets_(std::move(targets)) {
  std::sort(files_.begin(), files_.end(),
            [](const auto& left, const auto& right) { return left.path() < right.path(); });
}

const SourceFile* SourceTree::find(std::string_view path) const {
  const auto found =
      std::lower_bound(files_.begin(), files_.end(), path,
                       [](const SourceFile& file, std::string_view p) { return file.path() < p; });
  return found != files_.end() && found->path() == path ? &*found : nullptr;
}

std::string_view SourceTree::companion_code(const SourceFile& file) const {
  const SourceFile* header = find(file.path().substr(0, file.path().rfind('.')) + ".h");
  return header == nullptr ? std::string_view() : std::string_view(header->views().code);
}

std::optional<SourceTree> read_source_tree(const std::filesystem::path& root, std::vector<Target> targets) {
  std::error_code error;
  std::filesystem::recursive_directory_iterator at(root, error);
  if (error) return std::nullopt;
  std::vector<SourceFile> files;
  for (; at != std::filesystem::recursive_directory_iterator(); ++at) {
    if (at->is_directory() && is_skipped_folder(at->path(), at.depth())) at.disable_recursion_pending();
    if (!at->is_regular_file()) continue;
    files.emplace_back(at->path().lexically_relative(root).generic_string(), read_text(at->path()));
  }
  return SourceTree(std::move(files), std::move(targets));
}

std::string_view folder_of(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? std::string_view() : path.substr(0, slash);
}

}  // namespace firebreak::tidy
