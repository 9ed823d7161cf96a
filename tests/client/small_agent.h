// SPDX-License-Identifier: Apache-2.0
/// An agent of one tenant, in a thread of the process that needs one: says yes to everything, promotes when
/// told to. For tests of libfirebreak, and for measuring it where no firebreakd runs.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "ground/os/file.h"
#include "ground/os/memory.h"
#include "ground/os/socket.h"
#include "shared/abi/commit_journal.h"
#include "shared/abi/wire.h"

namespace firebreak::testing_agent {

class SmallAgent {
 public:
  /// What it sends to who joins; tests make it lie.
  struct Memory {
    std::size_t size_bytes = sizeof(abi::SharedMemory);
    std::uint32_t version = abi::shared_page_version;
    bool is_of_fixed_size = true;
    bool is_sent = true;
  };
  static Result<std::unique_ptr<SmallAgent>> start(const Memory& memory);
  static Result<std::unique_ptr<SmallAgent>> start() { return start(Memory{}); }
  ~SmallAgent();

  /// Where to join.
  const std::string& socket_path() const { return listener_.path(); }
  /// Of the tenant; there only with a Memory as it should be.
  abi::SharedMemory& shared() { return *mapping_.as<abi::SharedMemory>(); }
  /// The standby that joined last becomes the active of the next epoch.
  void promote();
  /// The next epoch begins for somebody else.
  void begin_epoch();
  void finish();
  /// How often somebody has told that it wants its turns.
  int wishes() const { return wishes_; }

 private:
  SmallAgent(os::TemporaryDirectory directory, os::Listener listener, os::Fd memory, os::Mapping mapping,
             bool sends_memory);
  abi::SharedPage& page() { return *mapping_.as<abi::SharedPage>(); }
  void accept_all();
  void serve(os::Socket& peer);
  abi::Joined join(const abi::Join& asked);

  os::TemporaryDirectory directory_;
  os::Listener listener_;
  os::Fd memory_;
  os::Mapping mapping_;
  const bool sends_memory_;
  std::atomic<int> wishes_ = 0;
  std::mutex mutex_;
  bool ended_ = false;         ///< guarded by mutex_
  std::uint32_t members_ = 0;  ///< those who have joined; guarded by mutex_
  std::uint32_t standby_ = 0;  ///< the last of them that joined as one; guarded by mutex_
  std::vector<std::unique_ptr<os::Socket>>
      peers_;                         ///< guarded by mutex_; each is served by a thread of its own
  std::vector<std::thread> servers_;  ///< of acceptor_ until that has ended
  std::thread acceptor_;
};

}  // namespace firebreak::testing_agent
