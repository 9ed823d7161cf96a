// SPDX-License-Identifier: Apache-2.0
/// Services of their own (ServiceManager::start_apart), started without waiting for the manager, which may
/// take seconds.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <thread>

#include "agent/service/service_manager.h"
#include "ground/base/result.h"
#include "ground/os/event_loop.h"

namespace firebreak::agent {

/// Belongs to the loop's thread, on which all callbacks are called, never inside of the call that asks.
class ApartStarter {
 public:
  using Done = std::function<void(const Result<pid_t>& process)>;

  /// The references outlive it.
  ApartStarter(os::EventLoop& loop, ServiceManager& manager) : loop_(loop), manager_(manager) {}
  ApartStarter(const ApartStarter&) = delete;
  ApartStarter& operator=(const ApartStarter&) = delete;
  /// Waits for what is being started. Nobody is told of it.
  ~ApartStarter();

  bool is_possible() const { return manager_.can_start_apart(); }
  /// The descriptors that the service names are open until `done` is gone.
  void start(ApartService service, Done done);
  /// Somebody is still to be told.
  bool is_starting() const { return !threads_.empty(); }

 private:
  void finish(std::uint64_t number, const Result<pid_t>& process, const Done& done);

  os::EventLoop& loop_;
  ServiceManager& manager_;
  std::shared_ptr<bool> is_there_ = std::make_shared<bool>(true);  ///< what is posted looks whether we are
  std::uint64_t next_ = 0;
  std::map<std::uint64_t, std::thread> threads_;
};

}  // namespace firebreak::agent
