// SPDX-License-Identifier: Apache-2.0
/// A kubelet as a device plugin meets it, for tests: its socket, its calls and its habits.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <grpcpp/grpcpp.h>

#include <device_plugin.grpc.pb.h>

namespace firebreak::k8s {

/// Thread safe. It removes what others left in the folder, as a kubelet does that starts, and watches whoever
/// registers.
class KubeletStandIn final : public v1beta1::Registration::Service {
 public:
  struct Habits {
    bool refuses = false;  ///< every registration
    bool watches = true;   ///< who has registered
  };
  explicit KubeletStandIn(std::string folder) : KubeletStandIn(std::move(folder), Habits()) {}
  KubeletStandIn(std::string folder, Habits habits);
  ~KubeletStandIn() override;

  using Health = std::map<std::string, std::string>;
  /// What was last told, by the seats' names; empty: nobody has told anything.
  Health health() const;
  /// Whether `holds` within a minute; asked whenever something was told or registered.
  bool wait(const std::function<bool()>& holds);
  bool wait_for_health(const Health& wanted) {
    return wait([this, &wanted] { return health() == wanted; });
  }
  std::vector<v1beta1::RegisterRequest> registrations() const;
  /// Streams that are open, whoever opened them.
  std::size_t streams() const;
  /// How many lists have come by the streams, in the order of their beginning.
  std::vector<std::size_t> lists() const;

  /// One stream more.
  void watch();
  /// Ends all streams; the socket is as it was.
  void stop_watching();
  /// As one that is killed: its streams are cut, and its socket's name stays.
  void vanish();

  std::unique_ptr<v1beta1::DevicePlugin::Stub> plugin() const;
  /// Asked for one container.
  grpc::Status allocate(const std::vector<std::string>& ids,
                        v1beta1::ContainerAllocateResponse& response) const;
  grpc::Status prefer(const std::vector<std::string>& available, int size,
                      std::vector<std::string>& chosen) const;

 private:
  struct Watch {
    grpc::ClientContext context;
    std::thread thread;
    std::size_t lists = 0;
    bool is_open = true;
  };
  grpc::Status Register(grpc::ServerContext*, const v1beta1::RegisterRequest* request,
                        v1beta1::Empty*) override;
  void read(Watch& watch);

  std::string folder_;
  Habits habits_;
  std::unique_ptr<grpc::Server> server_;
  mutable std::mutex mutex_;  ///< guards all below
  std::condition_variable changed_;
  std::vector<v1beta1::RegisterRequest> registrations_;
  std::vector<std::unique_ptr<Watch>> watches_;
  Health health_;
};

}  // namespace firebreak::k8s
