// SPDX-License-Identifier: Apache-2.0
#include "commands/k8s/kubelet.h"

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>
#include <sys/stat.h>

#include <device_plugin.grpc.pb.h>
#include "commands/seats/seats.h"

namespace firebreak::k8s {
namespace {

/// Makes a channel of its own: one that gRPC keeps for the same path would wait for minutes after it was
/// refused once.
std::shared_ptr<grpc::Channel> channel_to(const std::string& socket_path) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  return grpc::CreateCustomChannel("unix:" + socket_path, grpc::InsecureChannelCredentials(), arguments);
}

std::chrono::system_clock::time_point in(Milliseconds time) {
  return std::chrono::system_clock::now() + time;
}

}  // namespace

std::optional<SocketIdentity> Kubelet::find(const std::string& name) const {
  constexpr std::int64_t ns_per_s = 1'000'000'000;
  struct stat found {};
  if (::stat(path(name).c_str(), &found) != 0) return std::nullopt;
  return SocketIdentity{found.st_dev, found.st_ino, found.st_ctim.tv_sec * ns_per_s + found.st_ctim.tv_nsec};
}

Status Kubelet::register_plugin(const std::string& endpoint, Milliseconds timeout) const {
  v1beta1::RegisterRequest request;
  request.set_version("v1beta1");
  request.set_endpoint(endpoint);
  request.set_resource_name(seats::resource_name);
  request.mutable_options()->set_get_preferred_allocation_available(true);
  grpc::ClientContext context;
  context.set_deadline(in(timeout));
  v1beta1::Empty answer;
  const grpc::Status done =
      v1beta1::Registration::NewStub(channel_to(path("kubelet.sock")))->Register(&context, request, &answer);
  if (done.ok()) return {};
  return fail(ErrorCode::Unavailable,
              fmt::format("the kubelet does not take {}: {}", seats::resource_name, done.error_message()));
}

bool is_served(const std::string& socket_path, Milliseconds timeout) {
  return channel_to(socket_path)->WaitForConnected(in(timeout));
}

}  // namespace firebreak::k8s
