// SPDX-License-Identifier: Apache-2.0
#include "ground/os/owned_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <string>

#include "ground/os/fd.h"
#include "ground/os/self.h"

namespace firebreak::os {
namespace {

// An access control list as Linux keeps it (linux/posix_acl_xattr.h). Its numbers are little-endian.
constexpr const char* acl_name = "system.posix_acl_access";
enum class AclTag : std::uint16_t { Owner = 0x01, User = 0x02, Group = 0x04, Mask = 0x10, Others = 0x20 };
constexpr std::uint16_t may_read = 4, may_write = 2, may_nothing = 0;
constexpr std::uint32_t acl_version = 2;
constexpr std::uint32_t nobody_named = ~std::uint32_t{0};

struct AclEntry {
  AclTag tag;
  std::uint16_t rights;
  std::uint32_t user;
};
struct ReaderAcl {
  std::uint32_t version;
  std::array<AclEntry, 5> entries;
};
static_assert(sizeof(AclEntry) == 8 && sizeof(ReaderAcl) == 44, "the layout of the kernel");

/// Its entries stand in the order that the kernel wants.
ReaderAcl acl_for_reader(uid_t user) {
  return {acl_version,
          {{{AclTag::Owner, may_read | may_write, nobody_named},
            {AclTag::User, may_read, user},
            {AclTag::Group, may_nothing, nobody_named},
            {AclTag::Mask, may_read, nobody_named},
            {AclTag::Others, may_nothing, nobody_named}}}};
}

Status write_all(const Fd& fd, std::string_view content) {
  while (!content.empty()) {
    const ssize_t written = ::write(fd.get(), content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return fail_errno("write", errno);
    content.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

Result<Fd> open_own_folder(const std::string& folder) {
  Fd opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!opened) return fail_errno("open " + folder, errno);
  struct stat info {};
  if (::fstat(opened.get(), &info) != 0) return fail_errno("look at " + folder, errno);
  if (info.st_uid != ::geteuid() || (info.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    return fail(ErrorCode::PermissionDenied, folder + " is not ours, or others may write it");
  return opened;
}

}  // namespace

Status let_user_read(const Fd& file, uid_t user) {
  const ReaderAcl acl = acl_for_reader(user);
  if (::fsetxattr(file.get(), acl_name, &acl, sizeof acl, 0) == 0) return {};
  const int error = errno;
  if (error == EOPNOTSUPP) return fail(ErrorCode::Unsupported, "the file system has no access control lists");
  return fail_errno("let user " + std::to_string(user) + " read a file", error);
}

bool has_access_lists(const std::string& path) {
  return ::lgetxattr(path.c_str(), acl_name, nullptr, 0) >= 0 || errno != EOPNOTSUPP;
}

Result<uid_t> reader_of(const std::string& path) {
  ReaderAcl acl{};
  if (::lgetxattr(path.c_str(), acl_name, &acl, sizeof acl) == sizeof acl &&
      acl.entries[1].tag == AclTag::User)
    return acl.entries[1].user;
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) return fail_errno("look at " + path, errno);
  return info.st_uid;
}

Result<OwnedFile> OwnedFile::begin(const std::string& folder, const std::string& name, uid_t reader) {
  auto opened = open_own_folder(folder);
  if (!opened) return propagate(opened);
  const std::string next = "." + name + "." + std::to_string(own_pid());
  (void)::unlinkat(opened->get(), next.c_str(), 0);  // left by a process that was killed in the middle
  Fd file(::openat(opened->get(), next.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file) return fail_errno("make " + folder + "/" + next, errno);
  OwnedFile made(std::move(*opened), std::move(file), folder, name, next);
  // Root reads what is ours.
  if (reader == ::geteuid() || reader == 0) return made;
  const Status let = let_user_read(made.file_, reader);
  if (!let && let.error().code != ErrorCode::Unsupported) return propagate(let);
  return made;
}

OwnedFile::~OwnedFile() {
  if (folder_) (void)::unlinkat(folder_.get(), next_.c_str(), 0);
}

Status OwnedFile::write(std::string_view piece) { return write_all(file_, piece); }

Status OwnedFile::finish() {
  if (::renameat(folder_.get(), next_.c_str(), folder_.get(), name_.c_str()) != 0)
    return fail_errno("replace " + path_ + "/" + name_, errno);
  folder_.reset();
  return {};
}

Status replace_owned_file(const std::string& folder, const std::string& name, std::string_view content,
                          uid_t reader) {
  auto file = OwnedFile::begin(folder, name, reader);
  if (!file) return propagate(file);
  if (Status written = file->write(content); !written) return written;
  return file->finish();
}

}  // namespace firebreak::os
