// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <thread>

#include "ground/base/line_splitter.h"
#include "ground/os/event_loop.h"
#include "ground/os/real_kernel.h"
#include "ground/os/socket.h"

namespace firebreak::cli {

/// A tenant's standard error on its way to ours: every byte, in order, and its lines to us as well.
class ErrorRelay {
 public:
  /// Called on the relay's thread, after the line's bytes were passed on.
  using OnLine = std::function<void(std::string_view line)>;

  /// Its end for the tenant is a terminal where our standard error is one.
  static Result<std::unique_ptr<ErrorRelay>> create();
  ErrorRelay(const ErrorRelay&) = delete;
  ErrorRelay& operator=(const ErrorRelay&) = delete;
  /// Passes on what has been written by now. Whoever else holds the tenant's end has no reader any more.
  ~ErrorRelay();

  /// What the tenant is to have as its standard error.
  int tenant_end() const { return channel_.theirs.get(); }
  /// The tenant has it: from now on it is passed on. Once.
  Status start(OnLine on_line);

 private:
  ErrorRelay(os::RelayChannel channel, std::unique_ptr<os::EventLoop> loop)
      : channel_(std::move(channel)), loop_(std::move(loop)) {}
  void serve();
  std::size_t pass_on();
  void close();

  os::RealKernel kernel_;
  os::RelayChannel channel_;
  std::unique_ptr<os::EventLoop> loop_;  ///< the thread's
  OnLine on_line_;
  os::Watch readable_;
  LineSplitter lines_;
  std::thread thread_;
};

}  // namespace firebreak::cli
