// SPDX-License-Identifier: Apache-2.0
/// Who started us and starts us again when we fail, and keeps descriptors for us meanwhile: systemd, or our
/// own supervisor in its place (agent/supervisor.h). Both speak the protocol of sd_notify(3) and
/// sd_listen_fds(3).
#pragma once

#include <map>
#include <memory>
#include <string>

#include "base/result.h"
#include "os/fd.h"

namespace firebreak::agent {

class ServiceManager {
 public:
  virtual ~ServiceManager() = default;
  /// What an earlier process of this service left there. Once: the descriptors become the caller's.
  virtual std::map<std::string, os::Fd> take_descriptors() = 0;
  /// Has a duplicate kept under that name, of which there is one: at most 255 bytes, without ':' and control
  /// characters. Unsupported: nobody keeps anything for us.
  virtual Status keep(const std::string& name, int descriptor) = 0;
  virtual void drop(const std::string& name) = 0;
  /// The service is up.
  virtual void tell_ready() = 0;
  /// One line for whoever asks how the service is.
  virtual void tell_status(const std::string& line) = 0;
};

/// By the environment; one that keeps nothing where nobody is there.
std::unique_ptr<ServiceManager> find_service_manager();

}  // namespace firebreak::agent
