// SPDX-License-Identifier: Apache-2.0
/// Answers the kubelet by what is offered.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "commands/k8s/offer.h"
#include "ground/base/result.h"

namespace firebreak::k8s {

/// Serves on threads of gRPC's, until it goes; streams end then. publish() and watchers() may be called by
/// any one.
class PluginServer {
 public:
  /// Takes the place of a socket that is there and that nobody serves. Unavailable: somebody does, or the
  /// place cannot be had.
  static Result<std::unique_ptr<PluginServer>> listen(const std::string& socket_path, SharedOffer offer);
  virtual ~PluginServer() = default;

  /// Answers with that offer from now on, and tells every open ListAndWatch.
  virtual void publish(SharedOffer offer) = 0;
  /// How many streams of ListAndWatch are open.
  virtual std::size_t watchers() const = 0;
};

}  // namespace firebreak::k8s
