// SPDX-License-Identifier: Apache-2.0
/// The process that started us and starts us again when we fail, and keeps descriptors for us meanwhile:
/// systemd, or our own supervisor in its place (agent/service/supervisor.h). Both speak the protocol of
/// sd_notify(3) and sd_listen_fds(3).
#pragma once

#include <sys/types.h>

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ground/base/clock.h"
#include "ground/base/result.h"
#include "ground/os/fd.h"

namespace firebreak::agent {

/// The exit status of an agent that makes room for the next one: whoever started it starts that at once. As a
/// shell says it of one that ended by SIGTERM. 0 is the end for good.
inline constexpr int handed_over_status = 128 + 15;

/// A program that is to run as a service of its own.
struct ApartService {
  std::string name;  ///< of its unit, "NAME.service"; no unit of that name is there
  std::string description;
  std::vector<std::string> command;  ///< the program by its path, and its arguments
  /// Variables besides this process's own.
  std::vector<std::pair<std::string, std::string>> environment;
  std::string output_path;  ///< file to which its output is appended; empty: `output`
  int input = -1;           ///< its standard input; -1: it has none
  int output = -1;          ///< its standard output and error
};

class ServiceManager {
 public:
  virtual ~ServiceManager() = default;
  /// True when somebody is there who starts the next agent where this one makes room for it.
  virtual bool starts_the_next() { return false; }
  /// Takes what an earlier process of this service left there. Called once: the descriptors become the
  /// caller's.
  virtual std::map<std::string, os::Fd> take_descriptors() = 0;
  /// The same, which stay where they are; until they are taken.
  virtual const std::map<std::string, os::Fd>& descriptors() = 0;
  /// Has a duplicate kept under that name, of which there is one: at most 255 bytes, without ':' and control
  /// characters. Unsupported: nobody keeps anything for us.
  virtual Status keep(const std::string& name, int descriptor) = 0;
  virtual void drop(const std::string& name) = 0;
  /// ResourceExhausted: with so many names more the next agent could not be started
  /// (agent/service/kept_names.h).
  virtual Status room_for(std::span<const std::string> /*names*/) { return {}; }
  /// Has that process live in a unit of its own, "NAME.scope", with all that it starts from now on: so that
  /// what is done to this service's unit and cgroup does not concern it. Any thread may call it, for as long
  /// as the manager takes to answer. Unsupported: systemd is not the manager, or this process is of no
  /// service.
  virtual Status give_own_unit(const std::string& name, const std::string& description, pid_t pid) = 0;
  /// True when it starts any (start_apart()). Waits for nobody.
  virtual bool can_start_apart() { return false; }
  /// Starts a program as a service of its own, with none of this service's limits, capabilities and
  /// protections but its place in the memory killer's order; returns its process. It ends by itself alone.
  /// Its descriptors stay the caller's.
  /// Any thread may call it, for as long as the manager takes to answer. Unsupported: as above.
  virtual Result<pid_t> start_apart(const ApartService& /*service*/) {
    return fail(ErrorCode::Unsupported, "nobody starts services for this process");
  }
  /// The service is up.
  virtual void tell_ready() = 0;
  /// One line for whoever asks how the service is.
  virtual void tell_status(const std::string& line) = 0;
  /// Returns after how long without a sign the manager ends the service, once it is up; none: it does not.
  virtual std::optional<Nanoseconds> ends_the_silent_after() { return std::nullopt; }
  /// Gives that sign. Waits for nobody: where the manager does not read, it is lost.
  virtual void give_sign() {}
  /// None comes from now on, and that is in order.
  virtual void end_signs() {}
};

/// Returns those variables ("NAME=VALUE") that systemd takes; it refuses all where one is wrong. The first of
/// a name that is there twice counts, as getenv() answers it. No control characters but tabs and line feeds.
/// A value that is no UTF-8 is not noticed.
std::vector<std::string> that_systemd_takes(const std::vector<std::string>& environment);

/// Finds it by the environment; one that keeps nothing where nobody is there.
std::unique_ptr<ServiceManager> find_service_manager();

}  // namespace firebreak::agent
