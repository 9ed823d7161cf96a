// SPDX-License-Identifier: Apache-2.0
#include "tools/tidy/target_map.h"

#include <algorithm>

#include "tools/tidy/includes.h"

namespace firebreak::tidy {
namespace {

std::string without_ending(std::string_view path) { return std::string(path.substr(0, path.rfind('.'))); }

bool is_of_tests(std::string_view path) { return path.starts_with("tests/"); }

}  // namespace

TargetMap::TargetMap(const SourceTree& tree) : tree_(tree) {
  for (const Target& target : tree.targets()) {
    by_name_.emplace(target.name, &target);
    const auto [first, added] = first_of_folder_.emplace(target.folder, &target);
    if (!added && first->second->kind == TargetKind::Test) first->second = &target;
  }
  add_sources();
  add_headers_of_folders();
  add_headers_of_other_folders();
  add_shared_headers();
  add_rest();
}

const Target* TargetMap::first_around(std::string_view path) const {
  for (auto folder = folder_of(path); !folder.empty(); folder = folder_of(folder)) {
    const auto found = first_of_folder_.find(folder);
    if (found != first_of_folder_.end()) return found->second;
  }
  return nullptr;
}

template <class Enter>
void TargetMap::follow(const SourceFile& file, std::set<const SourceFile*>& seen, const Enter& enter) const {
  if (!seen.insert(&file).second) return;
  for (const Include& include : includes_of(file)) {
    const SourceFile* next = included_file(tree_, include);
    if (next != nullptr && next->kind() != FileKind::Source && enter(*next)) follow(*next, seen, enter);
  }
}

void TargetMap::add_sources() {
  for (const Target& target : tree_.targets()) {
    for (const std::string& source : target.sources) {
      owners_[source].insert(&target);
      for (const char* ending : {".h", ".cuh"}) {
        const std::string header = without_ending(source) + ending;
        if (tree_.find(header) != nullptr) owners_[header].insert(&target);
      }
    }
  }
}

void TargetMap::add_headers_of_folders() {
  for (const Target& target : tree_.targets()) {
    if (target.kind == TargetKind::Test || is_of_tests(target.folder)) continue;
    std::set<const SourceFile*> seen;
    const auto enter = [&](const SourceFile& header) {
      const Target* around = first_around(header.path());
      if (around == nullptr || around->folder != target.folder) return false;
      auto& owners = owners_[header.path()];
      if (owners.empty()) owners.insert(&target);
      return owners.contains(&target);
    };
    for (const std::string& source : target.sources) {
      if (const SourceFile* file = tree_.find(source)) follow(*file, seen, enter);
    }
  }
}

void TargetMap::add_headers_of_other_folders() {
  std::set<const SourceFile*> seen;
  const auto enter = [&](const SourceFile& header) {
    auto& owners = owners_[header.path()];
    const Target* around = first_around(header.path());
    if (owners.empty() && !is_of_tests(header.path()) && around != nullptr) owners.insert(around);
    return true;
  };
  for (const Target& target : tree_.targets()) {
    if (target.kind == TargetKind::Test) continue;
    for (const std::string& source : target.sources) {
      if (const SourceFile* file = tree_.find(source)) follow(*file, seen, enter);
    }
  }
}

void TargetMap::add_shared_headers() {
  Owners shared;
  for (const Target& target : tree_.targets()) {
    std::set<const SourceFile*> seen;
    const auto enter = [&](const SourceFile& header) {
      const bool has_folder = is_of_tests(header.path()) || first_around(header.path()) != nullptr;
      if (has_folder && owners(header.path()).empty()) shared[header.path()].insert(&target);
      return true;
    };
    for (const std::string& source : target.sources) {
      if (const SourceFile* file = tree_.find(source)) follow(*file, seen, enter);
    }
  }
  for (auto& [path, targets] : shared) owners_[path] = std::move(targets);
}

void TargetMap::add_rest() {
  for (const SourceFile& file : tree_.files()) {
    auto& owners = owners_[file.path()];
    const Target* around = first_around(file.path());
    if (owners.empty() && around != nullptr) owners.insert(around);
  }
}

const std::set<const Target*>& TargetMap::owners(std::string_view path) const {
  static const std::set<const Target*> none;
  const auto found = owners_.find(path);
  return found == owners_.end() ? none : found->second;
}

bool TargetMap::may_include(const Target& from, const Target& to) const {
  std::vector<const Target*> reached{&from};
  for (std::size_t i = 0; i < reached.size(); ++i) {
    if (reached[i] == &to) return true;
    for (const std::string& name : i == 0 ? from.direct : reached[i]->passed_on) {
      const Target* next = find(name);
      if (next != nullptr && std::ranges::find(reached, next) == reached.end()) reached.push_back(next);
    }
  }
  return false;
}

const Target* TargetMap::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : found->second;
}

std::string list_of(const Target& target) { return target.folder + "/CMakeLists.txt"; }

int line_of(const SourceTree& tree, const Target& target) {
  const SourceFile* list = tree.find(list_of(target));
  if (list == nullptr) return 1;
  std::string name = target.name;
  if (name.starts_with("firebreak_")) name.erase(0, 10);
  if (target.kind == TargetKind::Test) name.erase(name.rfind("_test"));
  for (const std::string& called : {target.name, name}) {
    const std::size_t at = list->text().find("(" + called);
    if (at != std::string::npos) return list->line_of(at);
  }
  return 1;
}

}  // namespace firebreak::tidy
