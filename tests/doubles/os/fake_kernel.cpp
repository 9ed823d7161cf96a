// SPDX-License-Identifier: Apache-2.0
#include "tests/doubles/os/fake_kernel.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <deque>
#include <set>

#include "ground/os/event_loop.h"
#include "ground/os/fd.h"
#include "ground/os/file.h"
#include "ground/os/processes.h"

namespace firebreak::os {
namespace {

Result<Fd> duplicate(const Fd& fd) {
  Fd copy(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 3));
  if (!copy) return fail_errno("duplicate a descriptor", errno);
  return copy;
}

Result<Fd> new_eventfd() {
  Fd fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!fd) return fail_errno("make an eventfd", errno);
  return fd;
}

Result<std::size_t> read_descriptor(const Fd& fd, std::span<std::byte> into) {
  const ssize_t size = ::read(fd.get(), into.data(), into.size());
  if (size < 0) return fail_errno("read", errno);
  return static_cast<std::size_t>(size);
}

Result<Fd> file_with(const std::string& content) {
  Fd fd(::memfd_create("fake", MFD_CLOEXEC));
  if (!fd) return fail_errno("make a memory file", errno);
  if (::pwrite(fd.get(), content.data(), content.size(), 0) != static_cast<ssize_t>(content.size())) {
    return fail_errno("fill a memory file", errno);
  }
  return fd;
}

std::string fd_directory(pid_t pid) { return "/proc/" + std::to_string(pid) + "/fd"; }

tl::unexpected<Error> no_such(const std::string& what) { return fail_errno(what, ENOENT); }

}  // namespace

struct FakeRecordFeed::State {
  std::mutex mutex;  ///< guards failures
  std::deque<Error> failures;
  Fd reader;
  Fd writer;
};

FakeRecordFeed::FakeRecordFeed() : state_(std::make_shared<State>()) {
  std::array<int, 2> ends{-1, -1};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()) == 0) {
    state_->reader = Fd(ends[0]);
    state_->writer = Fd(ends[1]);
  }
}

FakeDevice FakeRecordFeed::device() {
  FakeDevice device;
  device.open = [state = state_](int) -> Result<Fd> {
    if (!state->reader) return fail_errno("open twice", EBUSY);
    return std::move(state->reader);
  };
  device.read = [state = state_](const Fd& fd, std::span<std::byte> into) -> Result<std::size_t> {
    const Result<std::size_t> size = read_descriptor(fd, into);
    const std::lock_guard lock(state->mutex);
    // A single NUL byte stands for a failure, so that failures keep their place among the records.
    if (!size || *size != 1 || into[0] != std::byte{0} || state->failures.empty()) return size;
    const Error error = state->failures.front();
    state->failures.pop_front();
    return tl::unexpected<Error>(error);
  };
  return device;
}

void FakeRecordFeed::push(const std::string& record) {
  ::send(state_->writer.get(), record.data(), record.size(), MSG_NOSIGNAL);
}

void FakeRecordFeed::push_failure(Error error) {
  {
    const std::lock_guard lock(state_->mutex);
    state_->failures.push_back(std::move(error));
  }
  push(std::string(1, '\0'));
}

void FakeRecordFeed::end() { state_->writer.reset(); }

void FakeKernel::set_file(const std::string& path, const std::string& content) {
  const std::lock_guard lock(mutex_);
  files_[path] = content;
}

void FakeKernel::set_link(const std::string& path, const std::string& target) {
  const std::lock_guard lock(mutex_);
  links_[path] = target;
}

void FakeKernel::set_device(const std::string& path, FakeDevice device) {
  const std::lock_guard lock(mutex_);
  devices_[path] = std::move(device);
}

void FakeKernel::refuse(const std::string& path, Error error) {
  const std::lock_guard lock(mutex_);
  refused_[path] = std::move(error);
}

void FakeKernel::permit(const std::string& path) {
  const std::lock_guard lock(mutex_);
  refused_.erase(path);
}

void FakeKernel::remove(const std::string& path) {
  const std::lock_guard lock(mutex_);
  files_.erase(path);
  links_.erase(path);
  devices_.erase(path);
  refused_.erase(path);
}

void FakeKernel::wake(const std::string& path) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t one = 1;
  for (const Fd& fd : wakeable_[path]) {
    [[maybe_unused]] const ssize_t size = ::write(fd.get(), &one, sizeof(one));
  }
}

void FakeKernel::set_uvm_link_target(const std::string& target) {
  const std::lock_guard lock(mutex_);
  uvm_link_target_ = target;
}

void FakeKernel::add_process(pid_t pid) {
  const std::lock_guard lock(mutex_);
  if (Result<Fd> ended = new_eventfd()) processes_[pid].ended = std::move(*ended);
}

void FakeKernel::give_descriptor(pid_t pid, int number, const std::string& link_target, Fd fd) {
  const std::lock_guard lock(mutex_);
  processes_[pid].descriptors[number] = std::pair(link_target, std::move(fd));
  links_[fd_directory(pid) + "/" + std::to_string(number)] = link_target;
}

void FakeKernel::exit_locked(pid_t pid, ExitStatus status) {
  const auto found = processes_.find(pid);
  if (found == processes_.end() || found->second.status) return;
  found->second.status = status;
  found->second.descriptors.clear();
  std::erase_if(links_, [prefix = fd_directory(pid) + "/"](const auto& link) {
    return link.first.starts_with(prefix);
  });
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t size = ::write(found->second.ended.get(), &one, sizeof(one));
}

void FakeKernel::take_descriptor(pid_t pid, int number) {
  const std::lock_guard lock(mutex_);
  processes_[pid].descriptors.erase(number);
  links_.erase(fd_directory(pid) + "/" + std::to_string(number));
}

void FakeKernel::exit_process(pid_t pid, ExitStatus status) {
  const std::lock_guard lock(mutex_);
  exit_locked(pid, status);
}

void FakeKernel::refuse_pidfd_getfd(std::optional<Error> error) {
  const std::lock_guard lock(mutex_);
  getfd_error_ = std::move(error);
}

void FakeKernel::on_spawn(std::function<Result<pid_t>(const SpawnRequest&)> handler) {
  const std::lock_guard lock(mutex_);
  spawn_handler_ = std::move(handler);
}

std::vector<SpawnRequest> FakeKernel::spawned() const {
  const std::lock_guard lock(mutex_);
  return spawned_;
}

std::vector<SentSignal> FakeKernel::signals() const {
  const std::lock_guard lock(mutex_);
  return signals_;
}

int FakeKernel::opened(const std::string& path) const {
  const std::lock_guard lock(mutex_);
  const auto found = opened_.find(path);
  return found == opened_.end() ? 0 : found->second;
}

Status FakeKernel::check(const std::string& path) const {
  const auto found = refused_.find(path);
  if (found != refused_.end()) return tl::unexpected<Error>(found->second);
  return {};
}

Result<Fd> FakeKernel::open(const std::string& path, int flags) {
  std::function<Result<Fd>(int)> opener;
  {
    const std::lock_guard lock(mutex_);
    if (Status allowed = check(path); !allowed) return propagate(allowed);
    const auto device = devices_.find(path);
    const auto file = files_.find(path);
    if (device == devices_.end() && file == files_.end()) return no_such("open " + path);
    ++opened_[path];
    if (device == devices_.end()) {
      opener = [content = file->second](int) { return file_with(content); };
    } else {
      opener = device->second.open ? device->second.open : [](int) { return new_eventfd(); };
    }
  }
  Result<Fd> fd = opener(flags);
  if (!fd) return fd;
  const std::lock_guard lock(mutex_);
  path_of_fd_[fd->get()] = path;
  const auto device = devices_.find(path);
  if (device != devices_.end() && !device->second.open) {
    if (Result<Fd> copy = duplicate(*fd)) wakeable_[path].push_back(std::move(*copy));
  }
  return fd;
}

FakeDevice FakeKernel::device_of(const Fd& fd) const {
  const std::lock_guard lock(mutex_);
  const auto path = path_of_fd_.find(fd.get());
  if (path == path_of_fd_.end()) return {};
  const auto device = devices_.find(path->second);
  return device == devices_.end() ? FakeDevice{} : device->second;
}

Result<std::size_t> FakeKernel::read(const Fd& fd, std::span<std::byte> into) {
  const FakeDevice device = device_of(fd);
  return device.read ? device.read(fd, into) : read_descriptor(fd, into);
}

void FakeKernel::on_link_read(std::function<void()> handler) {
  const std::lock_guard lock(mutex_);
  link_read_handler_ = std::move(handler);
}

Result<std::string> FakeKernel::read_link(const std::string& path) {
  const std::lock_guard lock(mutex_);
  if (link_read_handler_) link_read_handler_();
  if (Status allowed = check(path); !allowed) return propagate(allowed);
  const auto found = links_.find(path);
  if (found == links_.end()) return no_such("read the link " + path);
  return found->second;
}

Result<std::vector<std::string>> FakeKernel::list_directory(const std::string& path) {
  const std::lock_guard lock(mutex_);
  if (Status allowed = check(path); !allowed) return propagate(allowed);
  const std::string prefix = path.ends_with('/') ? path : path + "/";
  std::set<std::string> names;
  const auto collect = [&](const auto& entries) {
    for (const auto& [name, ignored] : entries) {
      if (name.starts_with(prefix))
        names.insert(name.substr(prefix.size(), name.find('/', prefix.size()) - prefix.size()));
    }
  };
  collect(files_);
  collect(links_);
  collect(devices_);
  for (const auto& [pid, process] : processes_) {
    if (path == fd_directory(pid)) return std::vector(names.begin(), names.end());
  }
  if (names.empty()) return no_such("list " + path);
  return std::vector(names.begin(), names.end());
}

Result<std::string> FakeKernel::read_file(const std::string& path) {
  const std::lock_guard lock(mutex_);
  if (Status allowed = check(path); !allowed) return propagate(allowed);
  const auto found = files_.find(path);
  if (found != files_.end()) return found->second;
  if (auto status = status_locked(path)) return std::move(*status);
  return no_such("open " + path);
}

/// A stat says this, where nothing else was set.
std::optional<std::string> FakeKernel::status_locked(const std::string& path) const {
  if (!path.starts_with("/proc/") || !path.ends_with("/status")) return std::nullopt;
  const auto found = files_.find(path.substr(0, path.size() - 2));
  if (found == files_.end() || stat_field(found->second, 4).empty()) return std::nullopt;
  const std::string& stat = found->second;
  return "Name:\t" + std::string(program_name(stat)) + "\nState:\t" + std::string(stat_field(stat, 3)) +
         "\nPPid:\t" + std::string(parent(stat)) + "\n";
}

Status FakeKernel::ioctl(const Fd& fd, unsigned long request, void* argument) {
  const FakeDevice device = device_of(fd);
  if (!device.ioctl) return fail_errno("ioctl " + std::to_string(request), ENOTTY);
  return device.ioctl(fd, request, argument);
}

void FakeKernel::set_kernel_log_bell(Fd fd) {
  const std::lock_guard lock(mutex_);
  kernel_log_bell_ = std::move(fd);
}

Result<KernelLogBell> FakeKernel::kernel_log_bell() {
  const std::lock_guard lock(mutex_);
  if (!kernel_log_bell_) return Kernel::kernel_log_bell();
  return KernelLogBell(std::move(kernel_log_bell_));
}

void FakeKernel::close(Fd fd) {
  const FakeDevice device = device_of(fd);
  if (device.close) return device.close(std::move(fd));
  fd.reset();
}

std::string FakeKernel::uvm_link_target() const {
  const std::lock_guard lock(mutex_);
  return uvm_link_target_;
}

Result<pid_t> FakeKernel::spawn(const SpawnRequest& request) {
  std::function<Result<pid_t>(const SpawnRequest&)> handler;
  pid_t pid = 0;
  {
    const std::lock_guard lock(mutex_);
    spawned_.push_back(request);
    handler = spawn_handler_;
    pid = next_pid_++;
  }
  if (handler) return handler(request);
  add_process(pid);
  return pid;
}

Result<FakeKernel::Process*> FakeKernel::find_running(pid_t pid) {
  const auto found = processes_.find(pid);
  if (found == processes_.end()) return fail_errno("open process " + std::to_string(pid), ESRCH);
  return &found->second;
}

Result<Fd> FakeKernel::pidfd_open(pid_t pid) {
  const std::lock_guard lock(mutex_);
  const Result<Process*> process = find_running(pid);
  if (!process) return propagate(process);
  Result<Fd> fd = duplicate((*process)->ended);
  if (fd) pid_of_pidfd_[fd->get()] = pid;
  return fd;
}

Result<Fd> FakeKernel::pidfd_getfd(const Fd& pidfd, int remote_number, const std::string& link) {
  const std::lock_guard lock(mutex_);
  if (getfd_error_) return tl::unexpected<Error>(*getfd_error_);
  const auto pid = pid_of_pidfd_.find(pidfd.get());
  if (pid == pid_of_pidfd_.end()) return fail_errno("duplicate a descriptor", EBADF);
  const Result<Process*> process = find_running(pid->second);
  if (!process) return propagate(process);
  const auto descriptor = (*process)->descriptors.find(remote_number);
  if (descriptor == (*process)->descriptors.end()) return fail_errno("duplicate a descriptor", EBADF);
  if (descriptor->second.first != link) return fail(ErrorCode::NotFound, "that descriptor is no " + link);
  Result<Fd> fd = duplicate(descriptor->second.second);
  if (fd) path_of_fd_[fd->get()] = descriptor->second.first;
  return fd;
}

Result<bool> FakeKernel::is_same_file(pid_t pid, int remote_number, const Fd& fd) {
  const std::lock_guard lock(mutex_);
  const Result<Process*> process = find_running(pid);
  if (!process) return propagate(process);
  const auto descriptor = (*process)->descriptors.find(remote_number);
  if (descriptor == (*process)->descriptors.end()) return fail_errno("compare descriptors", EBADF);
  const auto theirs = identity_of(descriptor->second.second.get());
  const auto ours = identity_of(fd.get());
  return theirs && ours && *theirs == *ours;
}

Status FakeKernel::send_signal(const Fd& pidfd, int signal) {
  const std::lock_guard lock(mutex_);
  const auto pid = pid_of_pidfd_.find(pidfd.get());
  if (pid == pid_of_pidfd_.end()) return fail_errno("send a signal", EBADF);
  const Result<Process*> process = find_running(pid->second);
  if (!process || (*process)->status) return fail_errno("send a signal", ESRCH);
  if (signal != 0) signals_.push_back(SentSignal{pid->second, signal});
  if (signal == SIGKILL) exit_locked(pid->second, ExitStatus{0, SIGKILL});
  return {};
}

/// Its processes have no threads.
Result<std::unique_ptr<Standstill>> FakeKernel::stop_all_but_writers(pid_t pid, const Fd& /*pipe*/) {
  return fail(ErrorCode::NotFound, "process " + std::to_string(pid) + " has no thread");
}

Result<std::optional<ExitStatus>> FakeKernel::try_wait(pid_t pid) {
  const std::lock_guard lock(mutex_);
  const auto found = processes_.find(pid);
  if (found == processes_.end())
    return fail(ErrorCode::NotFound, "process " + std::to_string(pid) + " is no child of ours");
  const std::optional<ExitStatus> status = found->second.status;
  if (status) processes_.erase(found);
  return status;
}

Result<std::vector<std::size_t>> FakeKernel::poll(std::span<const int> fds,
                                                  std::chrono::milliseconds timeout) {
  return poll_readable(fds, timeout);
}

}  // namespace firebreak::os
