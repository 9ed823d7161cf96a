// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <utility>

#include "ground/base/result.h"
#include "ground/os/fd.h"

namespace firebreak::os {

/// A file that we alone write, and nobody but `reader`, and root, can read besides (an access control list;
/// we stay its owner, since an owner can let himself write). It is there at once with finish(), in the place
/// of an older one, and there is no moment in which somebody else could read it. Without that nothing is left
/// of it. Where the file system has no such lists `reader` cannot read it.
class OwnedFile {
 public:
  /// PermissionDenied: the folder is not ours, or a link, or others may write it.
  static Result<OwnedFile> begin(const std::string& folder, const std::string& name, uid_t reader);
  OwnedFile(OwnedFile&&) noexcept = default;
  OwnedFile& operator=(OwnedFile&&) = delete;
  ~OwnedFile();

  Status write(std::string_view piece);
  Status finish();

 private:
  OwnedFile(Fd folder, Fd file, std::string path, std::string name, std::string next)
      : folder_(std::move(folder)),
        file_(std::move(file)),
        path_(std::move(path)),
        name_(std::move(name)),
        next_(std::move(next)) {}

  Fd folder_;  ///< none: it was moved from, or is finished
  Fd file_;
  std::string path_;  ///< of the folder
  std::string name_;
  std::string next_;  ///< name until it is finished
};

/// The same, all at once.
Status replace_owned_file(const std::string& folder, const std::string& name, std::string_view content,
                          uid_t reader);

/// Lets that user read a file of ours (acl(5)). Unsupported: its file system has no access control lists.
Status let_user_read(const Fd& file, uid_t user);
/// False: files there are read by those alone whom owner, group and mode name.
bool has_access_lists(const std::string& path);
/// Returns the user whom let_user_read() has let read that file; where it is nobody, its owner.
Result<uid_t> reader_of(const std::string& path);

}  // namespace firebreak::os
