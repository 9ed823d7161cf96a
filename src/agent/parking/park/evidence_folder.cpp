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

/// What there is of one exception.
struct Kept {
  std::uint64_t bytes = 0;
  uid_t user = 0;  ///< for whom
};

/// They stand by id, in the order of time.
std::map<std::string, Kept> kept_by_id(const std::string& folder) {
  std::map<std::string, Kept> all;
  std::error_code error;
  fs::directory_iterator entries(folder, error);
  for (; !error && entries != fs::directory_iterator(); entries.increment(error)) {
    const std::string name = entries->path().filename();
    for (const std::string_view ending : {document, dump}) {
      const std::string id = id_of(name, ending);
      if (id.empty()) continue;
      std::error_code ignored;
      const std::uintmax_t bytes = fs::file_size(entries->path(), ignored);
      all[id].bytes += ignored ? 0 : bytes;
      all[id].user = os::reader_of(entries->path()).value_or(0);
    }
  }
  return all;
}

struct Share {
  std::uint64_t exceptions = 0;
  std::uint64_t bytes = 0;
};

/// Returns the oldest of whoever has the most beyond his part; all.end(): nobody has, but for `spared`.
std::map<std::string, Kept>::iterator next_to_go(std::map<std::string, Kept>& all, const std::string& spared,
                                                 std::uint64_t Share::*measure, std::uint64_t limit) {
  std::map<uid_t, Share> users;
  for (const auto& [id, kept] : all) {
    ++users[kept.user].exceptions;
    users[kept.user].bytes += kept.bytes;
  }
  auto oldest = all.end();
  std::uint64_t most = limit / users.size();
  for (auto each = all.begin(); each != all.end(); ++each) {
    const std::uint64_t its_users = users.at(each->second.user).*measure;
    if (each->first == spared || its_users <= most) continue;
    most = its_users;
    oldest = each;
  }
  return oldest;
}

}  // namespace

Status EvidenceFolder::open() const {
  std::error_code error;
  fs::permissions(path_,
                  fs::perms::owner_all | fs::perms::group_read | fs::perms::group_exec |
                      fs::perms::others_read | fs::perms::others_exec,
                  error);
  if (error) return fail(ErrorCode::PermissionDenied, path_ + ": " + error.message());
  if (!os::has_access_lists(path_))
    return fail(ErrorCode::Unsupported, "the file system of " + path_ + " has no access control lists");
  return {};
}

Status EvidenceFolder::keep(const Evidence& evidence, uid_t user) const {
  if (!is_evidence_id(evidence.id)) return fail(ErrorCode::InvalidArgument, "no name for a file");
  const Status written =
      os::replace_owned_file(path_, evidence.id + std::string(document), to_json(evidence), user);
  if (written) make_room(evidence.id);
  return written;
}

Result<os::OwnedFile> EvidenceFolder::begin_dump(const std::string& id, uid_t user) const {
  if (!is_evidence_id(id)) return fail(ErrorCode::InvalidArgument, "no name for a file");
  return os::OwnedFile::begin(path_, id + std::string(dump), user);
}

void EvidenceFolder::make_room(const std::string& id) const {
  auto all = kept_by_id(path_);
  std::uint64_t bytes = 0;
  for (const auto& [each, kept] : all) bytes += kept.bytes;
  while (all.size() > limits_.exceptions || bytes > limits_.bytes) {
    const auto next = all.size() > limits_.exceptions
                          ? next_to_go(all, id, &Share::exceptions, limits_.exceptions)
                          : next_to_go(all, id, &Share::bytes, limits_.bytes);
    if (next == all.end()) return;
    for (const std::string_view ending : {document, dump})
      (void)os::remove_file(file_of(path_, next->first, ending));
    bytes -= next->second.bytes;
    all.erase(next);
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
  if (!file && !os::has_access_lists(path))
    return fail(ErrorCode::PermissionDenied,
                "only root can read the report '" + id + "': its file system has no access control lists");
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
