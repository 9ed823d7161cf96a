// SPDX-License-Identifier: Apache-2.0
/// The kubelet of this machine, as device plugins meet it: a folder with its socket.
#pragma once

#include <optional>
#include <string>

#include "commands/k8s/registration.h"
#include "ground/base/clock.h"
#include "ground/base/result.h"

namespace firebreak::k8s {

class Kubelet {
 public:
  explicit Kubelet(std::string folder) : folder_(std::move(folder)) {}

  /// Finds a file there; empty: there is none.
  std::optional<SocketIdentity> find(const std::string& name) const;
  std::optional<SocketIdentity> find_its_socket() const { return find("kubelet.sock"); }
  std::string path(const std::string& name) const { return folder_ + "/" + name; }

  /// Waits for its answer, `timeout` at most. Unavailable: it does not answer, or refuses.
  Status register_plugin(const std::string& endpoint, Milliseconds timeout) const;

 private:
  std::string folder_;
};

/// Tells whether somebody serves gRPC at that socket.
bool is_served(const std::string& socket_path, Milliseconds timeout);

}  // namespace firebreak::k8s
