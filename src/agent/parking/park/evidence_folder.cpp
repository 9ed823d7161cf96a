// SPDX-License-Identifier: Apache-2.0
#include "agent/parking/park/evidence_folder.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string_view>
#include <system_error>

#include "ground/os/file.h"
#include "ground/os/owned_file.h"

namespace firebreak::park {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view document = ".json";
constexpr std::string_view dump = ".cudacore";
constexpr std::size_t longest_document = std::size_t{1} << 20;

std::string file_of(const std::string& folder, const std::string& id, std::string_view ending) {
  return folder + "/" + id + std::string(ending);
}

/// Returns the id of a file with that ending; empty: it is another file.
std::string id_of(const std::string& name, std::string_view ending) {
  if (!name.ends_with(ending)) return {};
  const std::string id = name.substr(0, name.size() - ending.size());
  return is_evidence_id(id) ? id : std::string();
}

/// Sizes by id, in the order of time.
std::map<std::string, std::uint64_t> bytes_by_id(const std::string& folder) {
  std::map<std::string, std::uint64_t> all;
  std::error_code error;
  fs::directory_iterator entries(folder, error);
  for (; !error && entries != fs::directory_iterator(); entries.increment(error)) {
    const std::string name = entries->path().filename();
    for (const std::string_view ending : {document, dump}) {
      const std::string id = id_of(name, ending);
      if (id.empty()) continue;
      std::error_code ignored;
      const std::uintmax_t bytes = fs::file_size(entries->path(), ignored);
      all[id] += ignored ? 0 : bytes;
    }
  }
  return all;
}

}  // namespace

Status EvidenceFolder::open() const {
  std::error_code error;
  fs::permissions(path_,
                  fs::perms::owner_all | fs::perms::group_read | fs::perms::group_exec |
                      fs::perms::others_read | fs::perms::others_exec,
                  error);
  return error ? fail(ErrorCode::PermissionDenied, path_ + ": " + error.message()) : Status{};
}

Status EvidenceFolder::keep(const Evidence& evidence, uid_t owner) const {
  if (!is_evidence_id(evidence.id)) return fail(ErrorCode::InvalidArgument, "no name for a file");
  const Status written =
      os::replace_owned_file(path_, evidence.id + std::string(document), to_json(evidence), owner, give_);
  if (written) make_room(evidence.id);
  return written;
}

Status EvidenceFolder::keep(const Evidence& evidence, uid_t owner, std::span<const std::byte> content) const {
  if (!is_evidence_id(evidence.id)) return fail(ErrorCode::InvalidArgument, "no name for a file");
  const std::string_view text(reinterpret_cast<const char*>(content.data()), content.size());
  const Status written = os::replace_owned_file(path_, evidence.id + std::string(dump), text, owner, give_);
  return written ? keep(evidence, owner) : written;
}

void EvidenceFolder::make_room(const std::string& id) const {
  auto all = bytes_by_id(path_);
  std::uint64_t bytes = 0;
  for (const auto& [each, its] : all) bytes += its;
  while ((all.size() > limits_.exceptions || bytes > limits_.bytes) && !all.empty()) {
    const auto oldest = all.begin()->first == id ? std::next(all.begin()) : all.begin();
    if (oldest == all.end()) return;
    for (const std::string_view ending : {document, dump})
      (void)os::remove_file(file_of(path_, oldest->first, ending));
    bytes -= oldest->second;
    all.erase(oldest);
  }
}

std::vector<std::string> evidence_ids(const std::string& folder) {
  std::vector<std::string> ids;
  std::error_code error;
  fs::directory_iterator entries(folder, error);
  for (; !error && entries != fs::directory_iterator(); entries.increment(error)) {
    const std::string id = id_of(entries->path().filename(), document);
    if (!id.empty()) ids.push_back(id);
  }
  std::ranges::sort(ids);
  return ids;
}

Result<Evidence> read_evidence(const std::string& folder, const std::string& id) {
  if (!is_evidence_id(id)) return fail(ErrorCode::InvalidArgument, "'" + id + "' names no report");
  const std::string path = file_of(folder, id, document);
  std::error_code error;
  const fs::file_status status = fs::symlink_status(path, error);
  if (!fs::exists(status)) return fail(ErrorCode::NotFound, "there is no report '" + id + "'");
  if (!fs::is_regular_file(status)) return fail(ErrorCode::Protocol, path + " is no file");
  std::ifstream file(path, std::ios::binary);
  if (!file) return fail(ErrorCode::PermissionDenied, "the report '" + id + "' is another user's");
  std::string text;
  for (std::istreambuf_iterator<char> next(file), end; next != end && text.size() <= longest_document; ++next)
    text += *next;
  if (text.size() > longest_document) return fail(ErrorCode::Protocol, path + " is too long");
  auto evidence = evidence_from(text);
  if (evidence && evidence->id != id) return fail(ErrorCode::Protocol, path + " is of another exception");
  return evidence;
}

std::string dump_path_of(const std::string& folder, const std::string& id) {
  std::error_code error;
  const std::string path = file_of(folder, id, dump);
  return is_evidence_id(id) && fs::is_regular_file(fs::symlink_status(path, error)) ? path : std::string();
}

}  // namespace firebreak::park
