// SPDX-License-Identifier: Apache-2.0
/// Tests use this: one file of a file system in user space (FUSE), as any user can have it. It counts what it
/// is asked, and leaves unanswered what it is told to. Whoever waits for it is let go when its process ends,
/// or it does.
#pragma once

#include <linux/fuse.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>

#include "ground/os/fd.h"
#include "ground/os/file.h"

namespace firebreak::os {

class FuseFile {
 public:
  /// `swallow`: whether a question gets no answer; on a thread of our own. Whoever may ask one that is
  /// swallowed must not have our connection: its end could not end the wait.
  explicit FuseFile(std::function<bool(const fuse_in_header&)> swallow = nullptr);
  FuseFile(const FuseFile&) = delete;
  FuseFile& operator=(const FuseFile&) = delete;
  ~FuseFile();

  /// Empty: this machine lets nobody mount.
  const Fd& file() const { return file_; }
  void close_file() { file_.reset(); }
  int connection() const { return connection_.get(); }
  /// Linux has asked this many questions since the last call.
  int questions() { return questions_.exchange(0); }

 private:
  Fd open_file();
  void serve();
  void answer(const fuse_in_header& question);
  void send(const fuse_in_header& question, int error, const void* body, std::size_t size_bytes);

  std::function<bool(const fuse_in_header&)> swallow_;
  TemporaryDirectory directory_;
  Fd connection_;
  Fd file_;
  std::atomic<bool> is_over_ = false;
  std::atomic<int> questions_ = 0;
  std::thread server_;
};

}  // namespace firebreak::os
