// SPDX-License-Identifier: Apache-2.0
/// The events' file of nvidia-uvm with fault isolation, for tests.
#pragma once

#include <algorithm>
#include <cstring>
#include <map>
#include <string>

#include "agent/faults/watch/isolation.h"
#include "tests/doubles/watch/detector_test_support.h"

namespace firebreak::watch {

/// Wakes its readers as the module does, and gives each descriptor the text from its start.
class FakeIsolation {
 public:
  explicit FakeIsolation(os::FakeKernel& kernel) : kernel_(kernel) {
    os::FakeDevice device;
    device.read = [this](const os::Fd& fd, std::span<std::byte> into) { return read(fd, into); };
    kernel.set_device(isolation_events_path, std::move(device));
  }

  void add_line(const std::string& line) {
    text_ += line + "\n";
    kernel_.wake(isolation_events_path);
  }
  void add(std::uint64_t sequence, pid_t pid = 4711, const std::string& outcome = "contained") {
    add_line("event " + std::to_string(sequence) + " ns=1 pid=" + std::to_string(pid) +
             " gpu=0 address=0x7000dead0000 path=replayable access=UVM_FAULT_ACCESS_TYPE_WRITE "
             "type=UVM_FAULT_TYPE_INVALID_PDE client=3 class=no_range outcome=" +
             outcome + " us=5 command=rogue");
  }
  /// The file's contents are overwritten.
  void forget() { text_.clear(); }
  /// It cannot be read any more.
  void break_off() {
    kernel_.refuse(isolation_events_path, Error{ErrorCode::Internal, "gone", {}});
    kernel_.wake(isolation_events_path);
  }

 private:
  /// This reads in pieces, like procfs; the end of one descriptor is the start of the next with its number.
  Result<std::size_t> read(const os::Fd& fd, std::span<std::byte> into) {
    std::size_t& at = read_[fd.get()];
    const std::size_t size = std::min({into.size(), text_.size() - at, std::size_t{100}});
    std::memcpy(into.data(), text_.data() + at, size);
    at += size;
    if (size == 0) read_.erase(fd.get());
    return size;
  }

  os::FakeKernel& kernel_;
  std::string text_;
  std::map<int, std::size_t> read_;  ///< by descriptor
};

}  // namespace firebreak::watch
