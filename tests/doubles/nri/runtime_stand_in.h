// SPDX-License-Identifier: Apache-2.0
/// A container runtime as its plugins see it: the real protocol over a Unix socket. For one thread; nothing
/// here waits, whoever tests looks again and again.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <nri.pb.h>
#include <ttrpc.pb.h>
#include "commands/nri/frames.h"
#include "ground/os/fd.h"

namespace firebreak::nri {

class RuntimeStandIn {
 public:
  struct Habits {
    bool answers_registrations = true;
    std::string refuses_with;  ///< empty: it takes the plugin
  };
  explicit RuntimeStandIn(std::string socket_path) : RuntimeStandIn(std::move(socket_path), Habits{}) {}
  RuntimeStandIn(std::string socket_path, Habits habits);

  /// Takes a plugin that waits, and what has come: answers a registration, and configures and synchronizes
  /// the plugin then, as containerd does.
  void look();

  /// Calls the plugin; the stream's id.
  std::uint32_t call(const std::string& method, const std::string& payload);
  std::uint32_t create(const ::nri::pkg::api::v1alpha1::CreateContainerRequest& request) {
    return call("CreateContainer", request.SerializeAsString());
  }
  /// Bytes as they are.
  void send(const std::string& bytes);
  /// Ends the connection, as a runtime's end does; the next plugin is waited for.
  void hang_up();

  /// What the plugin answered; empty: nothing yet.
  std::optional<ttrpc::Response> answer(std::uint32_t stream) const;
  bool has_plugin() const { return static_cast<bool>(connection_); }
  bool is_configured() const { return is_configured_; }
  int events() const { return events_; }
  const std::vector<::nri::pkg::api::v1alpha1::RegisterPluginRequest>& registrations() const {
    return registrations_;
  }

 private:
  void take(const TtrpcMessage& message);
  void take_registration(const TtrpcMessage& message);

  Habits habits_;
  os::Fd listener_;
  os::Fd connection_;
  FrameReader reader_;
  std::uint32_t next_stream_ = 1;
  std::uint32_t configure_stream_ = 0;
  bool is_configured_ = false;
  int events_ = 0;
  std::map<std::uint32_t, ttrpc::Response> answers_;
  std::vector<::nri::pkg::api::v1alpha1::RegisterPluginRequest> registrations_;
};

/// A call as runtimes make it.
std::string call_bytes(std::uint32_t stream, const std::string& method, const std::string& payload,
                       const std::string& service = "nri.pkg.api.v1alpha1.Plugin");

}  // namespace firebreak::nri
