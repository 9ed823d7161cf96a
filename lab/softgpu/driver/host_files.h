// SPDX-License-Identifier: Apache-2.0
/// Registered host memory that is a memory file's: whoever has the file sees what the GPU writes there, also
/// when the process is dead. Then it is the MPS server that writes, which is sent each such file.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>

#include "ground/os/socket.h"
#include "softgpu/machine/rm_client.h"

namespace firebreak::softgpu::driver {

/// Thread safe.
class HostFiles {
 public:
  /// Memory that is registered from now on. Nothing happens where no descriptor of ours is behind it.
  void add(os::Socket& server, std::uint64_t begin, std::uint64_t size_bytes);
  /// Returns where in a file an address lies.
  std::optional<WordPlace> find(std::uint64_t address) const;

 private:
  struct Piece {
    std::uint64_t size_bytes = 0;
    WordPlace place;
  };
  mutable std::mutex mutex_;  ///< guards what follows
  std::map<std::uint64_t, Piece> pieces_;
  std::uint32_t files_ = 0;
};

}  // namespace firebreak::softgpu::driver
