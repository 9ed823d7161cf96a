// SPDX-License-Identifier: Apache-2.0
/// Tells whose each file is, and whom a target may include.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tools/tidy/source_tree.h"
#include "tools/tidy/targets.h"

namespace firebreak::tidy {

/// Points into the tree that it was made of. Immutable.
///
/// A source is of the targets that compile it, and so is the header beside it. A header without a source is
/// of the first target of its folder that includes it, but for tests; of the folder's first target where only
/// other folders do; and of all tests that include it where nobody else does. In tests/ it is of all that
/// include it. What no target compiles here (a check against an installed toolkit) is of its folder's first
/// target. A file's folder is the nearest one around it that has a target.
class TargetMap {
 public:
  explicit TargetMap(const SourceTree& tree);

  /// Empty when no folder around the file has a target.
  const std::set<const Target*>& owners(std::string_view path) const;
  /// Itself, what it links, and what that passes on.
  bool may_include(const Target& from, const Target& to) const;
  /// Null when there is no such target.
  const Target* find(std::string_view name) const;

 private:
  using Owners = std::map<std::string, std::set<const Target*>, std::less<>>;

  void add_sources();
  void add_headers_of_folders();
  void add_headers_of_other_folders();
  void add_shared_headers();
  void add_rest();
  /// Visits every header that a file includes, and what those include, as long as `enter` says so.
  template <class Enter>
  void follow(const SourceFile& file, std::set<const SourceFile*>& seen, const Enter& enter) const;
  const Target* first_around(std::string_view path) const;

  const SourceTree& tree_;
  std::map<std::string, const Target*, std::less<>> by_name_;
  std::map<std::string, const Target*, std::less<>> first_of_folder_;  ///< prefers a target that is no test
  Owners owners_;
};

/// The CMakeLists.txt that makes a target.
std::string list_of(const Target& target);
/// Gives the line where it does so there; 1 where that is not to be seen.
int line_of(const SourceTree& tree, const Target& target);

}  // namespace firebreak::tidy
