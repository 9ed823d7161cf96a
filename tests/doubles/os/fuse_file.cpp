// SPDX-License-Identifier: Apache-2.0
#include "tests/doubles/os/fuse_file.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace firebreak::os {
namespace {

constexpr std::uint64_t file_node = 2;
constexpr std::size_t file_bytes = 4096;

fuse_attr attributes_of(std::uint64_t node) {
  fuse_attr attributes{};
  attributes.ino = node;
  attributes.size = node == FUSE_ROOT_ID ? 0 : file_bytes;
  attributes.mode = node == FUSE_ROOT_ID ? S_IFDIR | 0755 : S_IFREG | 0644;
  attributes.nlink = 1;
  return attributes;
}

}  // namespace

FuseFile::FuseFile(std::function<bool(const fuse_in_header&)> swallow)
    : swallow_(std::move(swallow)),
      directory_(TemporaryDirectory::create().value()),
      connection_(::open("/dev/fuse", O_RDWR | O_CLOEXEC)) {
  if (!connection_) return;
  server_ = std::thread([this] { serve(); });
  // This happens in a mount namespace of its own, which goes with this thread: the file stays.
  std::thread([this] { file_ = open_file(); }).join();
  directory_.remove();  // nobody else has anything mounted there
}

/// The file is closed while somebody answers; whoever waits then is let go by the connection's end.
FuseFile::~FuseFile() {
  file_.reset();
  is_over_ = true;
  if (server_.joinable()) server_.join();
}

Fd FuseFile::open_file() {
  const std::string options =
      "fd=" + std::to_string(connection_.get()) + ",rootmode=40000,user_id=0,group_id=0";
  const char* const path = directory_.path().c_str();
  if (::unshare(CLONE_NEWNS) != 0 || ::mount("", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      ::mount("test", path, "fuse", MS_NOSUID | MS_NODEV, options.c_str()) != 0)
    return {};
  Fd file(::open((directory_.path() + "/file").c_str(), O_RDWR | O_CLOEXEC));
  questions_ = 0;
  return file;
}

void FuseFile::serve() {
  constexpr int look_ms = 10;
  std::array<char, std::size_t{1} << 18> buffer;
  while (!is_over_) {
    pollfd waiting{connection_.get(), POLLIN, 0};
    if (::poll(&waiting, 1, look_ms) <= 0) continue;
    const ssize_t size = ::read(connection_.get(), buffer.data(), buffer.size());
    if (size < 0 && errno == ENODEV) return;  // nobody has the file any more
    if (size < static_cast<ssize_t>(sizeof(fuse_in_header))) continue;
    fuse_in_header question{};
    std::memcpy(&question, buffer.data(), sizeof(question));
    answer(question);
  }
}

void FuseFile::answer(const fuse_in_header& question) {
  switch (question.opcode) {
    case FUSE_INIT: {
      fuse_init_out out{};
      out.major = FUSE_KERNEL_VERSION;
      out.minor = FUSE_KERNEL_MINOR_VERSION;
      out.max_write = file_bytes;
      return send(question, 0, &out, sizeof(out));
    }
    case FUSE_FORGET:
    case FUSE_BATCH_FORGET:
      return;  // no answer is expected
    case FUSE_RELEASE:
      return send(question, 0, nullptr, 0);  // comes when it likes: not counted
    default:
      break;
  }
  ++questions_;
  if (swallow_ && swallow_(question)) return;
  switch (question.opcode) {
    case FUSE_LOOKUP: {
      fuse_entry_out out{};
      out.nodeid = file_node;
      out.attr = attributes_of(file_node);
      return send(question, 0, &out, sizeof(out));
    }
    case FUSE_GETATTR: {
      fuse_attr_out out{};
      out.attr = attributes_of(question.nodeid);
      return send(question, 0, &out, sizeof(out));
    }
    case FUSE_OPEN: {
      const fuse_open_out out{};
      return send(question, 0, &out, sizeof(out));
    }
    default:
      // Never "I do not know that": then Linux would not ask again.
      return send(question, question.opcode == FUSE_FLUSH ? 0 : -EIO, nullptr, 0);
  }
}

void FuseFile::send(const fuse_in_header& question, int error, const void* body, std::size_t size_bytes) {
  std::array<char, 256> buffer{};
  const fuse_out_header header{static_cast<std::uint32_t>(sizeof(header) + size_bytes), error,
                               question.unique};
  std::memcpy(buffer.data(), &header, sizeof(header));
  if (size_bytes != 0) std::memcpy(buffer.data() + sizeof(header), body, size_bytes);
  [[maybe_unused]] const ssize_t sent =
      ::write(connection_.get(), buffer.data(), sizeof(header) + size_bytes);
}

}  // namespace firebreak::os
