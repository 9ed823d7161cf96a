// SPDX-License-Identifier: Apache-2.0
#include "ground/os/looks.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "ground/base/units.h"
#include "ground/os/descriptors.h"
#include "ground/os/fd.h"

namespace firebreak::os {
namespace {

/// Small files are far smaller than that; a file that never ends must not eat the memory.
constexpr std::size_t largest_small_file = 16 * mib;
constexpr std::size_t most_memory_bytes = 4096;

Result<Fd> open_to_read(const std::string& path) {
  int number = -1;
  do {
    number = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  } while (number < 0 && errno == EINTR);
  if (number < 0) return fail_errno("open " + path, errno);
  return Fd(number);
}

std::optional<int> number_in(std::string_view name) {
  int number = -1;
  const auto parsed = std::from_chars(name.data(), name.data() + name.size(), number);
  const bool is_number = parsed.ec == std::errc{} && parsed.ptr == name.data() + name.size();
  return is_number ? std::optional(number) : std::nullopt;
}

/// Empty: it is gone, or not ours to see.
std::optional<std::string> link_of(const std::string& path) {
  std::string target(most_link_bytes, '\0');
  const ssize_t length = ::readlink(path.c_str(), target.data(), target.size());
  if (length < 0) return std::nullopt;
  target.resize(static_cast<std::size_t>(length));
  return target;
}

/// Entries of a directory, so few at a time: Linux makes each that it is asked for, which is what a look at a
/// process of very many descriptors would last for, and the C library asks for 32 KiB of them.
class Entries {
 public:
  static Result<Entries> of(const std::string& directory) {
    Fd folder(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!folder) return fail_errno("list " + directory, errno);
    return Entries(std::move(folder));
  }

  void go_on_at(off_t place) { (void)::lseek(folder_.get(), place, SEEK_SET); }

  /// The name of the next one, until the one after it; null: there is none, or `error` is not 0.
  const char* next(int& error) {
    error = 0;
    if (at_ == filled_) {
      const long got = ::syscall(SYS_getdents64, folder_.get(), buffer_.data(), buffer_.size());
      if (got < 0) error = errno;
      if (got <= 0) return nullptr;
      at_ = 0;
      filled_ = static_cast<std::size_t>(got);
    }
    const char* const entry = buffer_.data() + at_;
    std::uint16_t length = 0;
    std::memcpy(&length, entry + offsetof(dirent64, d_reclen), sizeof(length));
    at_ += length;
    return entry + offsetof(dirent64, d_name);
  }

 private:
  explicit Entries(Fd folder) : folder_(std::move(folder)) {}

  Fd folder_;
  alignas(dirent64) std::array<char, 2048> buffer_{};
  std::size_t at_ = 0;
  std::size_t filled_ = 0;
};

/// Reads only so many names of a process that has very many.
Result<DescriptorLinks> links_in(const std::string& directory, int from, Nanoseconds longest) {
  auto entries = Entries::of(directory);
  if (!entries) return propagate(entries);
  constexpr int before_the_first = 2;  // "." and "..": Linux counts places by the numbers of descriptors
  if (from > 0) entries->go_on_at(from + before_the_first);
  DescriptorLinks links;
  std::size_t seen = 0;
  const SystemClock clock;
  const Monotonic until = clock.now() + longest;
  const auto is_enough = [&] {
    return seen == most_descriptors_in_a_look ||
           (seen >= fewest_descriptors_in_a_look && clock.now() >= until);
  };
  int error = 0;
  while (const char* name = entries->next(error)) {
    const auto number = number_in(name);
    if (!number) continue;
    if (is_enough()) {
      links.next = *number;
      return links;
    }
    ++seen;
    auto target = link_of(directory + "/" + name);
    links.has_missed_any |= !target;
    if (target) links.all.push_back({*number, std::move(*target)});
  }
  if (error != 0) return fail_errno("list " + directory, error);
  return links;
}

class DirectLooks final : public Looks {
 public:
  explicit DirectLooks(Nanoseconds at_descriptors) : at_descriptors_(at_descriptors) {}

  Result<std::string> read_file(const std::string& path) override { return read_small_file(path); }

  Result<std::string> read_memory(const std::string& path, std::uint64_t address,
                                  std::size_t size_bytes) override {
    const auto memory = open_to_read(path);
    if (!memory) return propagate(memory);
    std::string bytes(std::min(size_bytes, most_memory_bytes), '\0');
    const ssize_t got = ::pread(memory->get(), bytes.data(), bytes.size(), static_cast<off_t>(address));
    if (got < 0) return fail_errno("read " + path, errno);
    bytes.resize(static_cast<std::size_t>(got));
    return bytes;
  }

  Result<DescriptorLinks> read_links(const std::string& directory, int from) override {
    return links_in(directory, from, at_descriptors_);
  }

  Result<Fd> find(const std::string& path) override {
    Fd found(::open(path.c_str(), O_PATH | O_CLOEXEC));
    if (!found) return fail_errno("open " + path, errno);
    return found;
  }

  Result<Fd> duplicate(const Fd& pidfd, int number, const std::string& link) override {
    const std::string of_a_process = "duplicate descriptor " + std::to_string(number) + " of a process";
    // First: to close another file than these may take as long as its owner likes.
    if (const pid_t pid = process_behind(pidfd); pid != 0) {
      const auto path = "/proc/" + std::to_string(pid) + "/fd/" + std::to_string(number);
      if (const Status right = check_what_it_is_called(path, link); !right) return propagate(right);
    }
    // The call goes by number: the C library's header for it does not link from C++ in the oldest supported
    // release.
    Fd fd(static_cast<int>(::syscall(SYS_pidfd_getfd, pidfd.get(), number, 0U)));
    if (!fd) return fail_errno(of_a_process, errno);
    // The number may be another file's by now.
    if (is_what_it_is_called(fd.get(), link)) return fd;
    return fail(ErrorCode::NotFound, of_a_process + ": it is no " + link);
  }

  Result<bool> is_same_file(pid_t pid, int number, pid_t other, int other_number) override {
    const long order = ::syscall(SYS_kcmp, other, pid, KCMP_FILE, other_number, number);
    if (order < 0) return fail_errno("compare descriptors", errno);
    return order == 0;
  }

 private:
  Nanoseconds at_descriptors_;
};

}  // namespace

std::shared_ptr<Looks> direct_looks(Nanoseconds at_descriptors) {
  return std::make_shared<DirectLooks>(at_descriptors);
}

Result<std::string> read_small_file(const std::string& path) {
  const auto fd = open_to_read(path);
  return fd ? read_to_end(*fd, path) : propagate(fd);
}

Result<std::string> read_to_end(const Fd& file, const std::string& path) {
  std::string text;
  std::array<char, 4096> buffer{};
  while (text.size() < largest_small_file) {
    const ssize_t size = ::read(file.get(), buffer.data(), buffer.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return fail_errno(path + ": read", errno);
    if (size == 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(size));
  }
  return fail(ErrorCode::Protocol, path + " is larger than expected");
}

bool may_have_to_wait(std::string_view path) {
  constexpr std::string_view folder = "/proc/";
  if (!path.starts_with(folder)) return false;
  const std::size_t slash = path.find('/', folder.size());
  if (slash == std::string_view::npos || !number_in(path.substr(folder.size(), slash - folder.size())))
    return false;
  constexpr std::array<std::string_view, 3> never_wait{"comm", "schedstat", "status"};
  return std::ranges::find(never_wait, path.substr(path.rfind('/') + 1)) == never_wait.end();
}

pid_t process_behind(const Fd& pidfd) {
  constexpr std::string_view label = "\nPid:\t";
  const auto text = read_small_file("/proc/self/fdinfo/" + std::to_string(pidfd.get()));
  const std::size_t found = text ? text->find(label) : std::string::npos;
  if (found == std::string::npos) return 0;
  pid_t pid = 0;
  std::from_chars(text->data() + found + label.size(), text->data() + text->size(), pid);
  return std::max(pid, 0);
}

}  // namespace firebreak::os
