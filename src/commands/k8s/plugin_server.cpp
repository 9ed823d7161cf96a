// SPDX-License-Identifier: Apache-2.0
#include "commands/k8s/plugin_server.h"

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include <filesystem>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include <device_plugin.grpc.pb.h>
#include "commands/k8s/kubelet.h"
#include "commands/k8s/preference.h"

namespace firebreak::k8s {
namespace {

/// Time for a server at that socket to answer, and for calls under way to end.
constexpr Milliseconds answer_patience{500};

v1beta1::ListAndWatchResponse list_of(const Offer& offer) {
  v1beta1::ListAndWatchResponse list;
  for (const OfferedSeat& seat : offer.seats) {
    v1beta1::Device& device = *list.add_devices();
    device.set_id(seat.id);
    device.set_health(seat.is_healthy ? "Healthy" : "Unhealthy");
  }
  return list;
}

void write(const seats::SeatGrant& grant, v1beta1::ContainerAllocateResponse& response) {
  for (const auto& [name, value] : grant.environment) (*response.mutable_envs())[name] = value;
  for (const seats::SeatMount& each : grant.mounts) {
    v1beta1::Mount& mount = *response.add_mounts();
    mount.set_host_path(each.host_path);
    mount.set_container_path(each.container_path);
    mount.set_read_only(each.is_read_only);
  }
}

grpc::Status status_of(const Error& error) {
  switch (error.code) {
    case ErrorCode::NotFound:
      return {grpc::StatusCode::NOT_FOUND, to_string(error)};
    case ErrorCode::InvalidArgument:
      return {grpc::StatusCode::INVALID_ARGUMENT, to_string(error)};
    default:
      return {grpc::StatusCode::UNAVAILABLE, to_string(error)};
  }
}

template <class Repeated>
std::vector<std::string> strings_of(const Repeated& field) {
  return {field.begin(), field.end()};
}

grpc::Status allocate(const Offer& offer, const v1beta1::AllocateRequest& request,
                      v1beta1::AllocateResponse& response) {
  for (const auto& container : request.container_requests()) {
    const auto grant = grant_for(offer, strings_of(container.devicesids()));
    if (!grant) return status_of(grant.error());
    write(*grant, *response.add_container_responses());
  }
  return grpc::Status::OK;
}

grpc::Status prefer(const Offer& offer, const v1beta1::PreferredAllocationRequest& request,
                    v1beta1::PreferredAllocationResponse& response) {
  for (const auto& container : request.container_requests()) {
    const auto chosen =
        preferred_seats(offer, {strings_of(container.available_deviceids()),
                                strings_of(container.must_include_deviceids()), container.allocation_size()});
    if (!chosen) return status_of(chosen.error());
    auto& answer = *response.add_container_responses();
    for (const std::string& id : *chosen) answer.add_deviceids(id);
  }
  return grpc::Status::OK;
}

class Board;

/// One open ListAndWatch. gRPC calls it on its threads; it ends itself, as gRPC's reactors do.
class Stream final : public grpc::ServerWriteReactor<v1beta1::ListAndWatchResponse> {
 public:
  explicit Stream(std::shared_ptr<Board> board) : board_(std::move(board)) {}

  /// One at a time; whoever says so has set is_writing.
  void write(const Offer& offer) {
    list_ = list_of(offer);
    StartWrite(&list_);
  }
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

  bool is_writing = false;  ///< the Board's, as the next two
  bool has_news = false;
  bool is_ending = false;

 private:
  std::shared_ptr<Board> board_;
  v1beta1::ListAndWatchResponse list_;
};

/// Holds what is offered, and who is told of it. Thread safe. Streams are written to and finished without its
/// lock: one that is being written to is finished only afterwards, so that it lives so long.
class Board {
 public:
  explicit Board(SharedOffer offer) : offer_(std::move(offer)) {}

  SharedOffer offer() const {
    const std::lock_guard lock(mutex_);
    return offer_;
  }
  std::size_t streams() const {
    const std::lock_guard lock(mutex_);
    return streams_.size();
  }
  void publish(SharedOffer offer) {
    std::vector<Stream*> idle;
    {
      const std::lock_guard lock(mutex_);
      offer_ = offer;
      for (Stream* stream : streams_) {
        stream->has_news = stream->is_writing;
        if (!stream->is_writing && !stream->is_ending) idle.push_back(stream);
      }
      for (Stream* stream : idle) stream->is_writing = true;
    }
    for (Stream* stream : idle) stream->write(*offer);
  }
  void add(Stream* stream) {
    SharedOffer first;
    {
      const std::lock_guard lock(mutex_);
      streams_.insert(stream);
      stream->is_writing = true;
      stream->is_ending = is_closing_;
      first = offer_;
    }
    stream->write(*first);
  }
  void written(Stream* stream, bool ok) {
    SharedOffer next;
    {
      const std::lock_guard lock(mutex_);
      stream->is_ending = stream->is_ending || !ok;
      stream->is_writing = !stream->is_ending && std::exchange(stream->has_news, false);
      if (stream->is_writing) next = offer_;
      if (!next && !stream->is_ending) return;
      if (stream->is_ending) streams_.erase(stream);
    }
    next ? stream->write(*next) : stream->Finish(grpc::Status::OK);
  }
  void end(Stream* stream) {
    {
      const std::lock_guard lock(mutex_);
      if (std::exchange(stream->is_ending, true) || stream->is_writing) return;
      streams_.erase(stream);
    }
    stream->Finish(grpc::Status::OK);
  }
  void close() {
    std::vector<Stream*> idle;
    {
      const std::lock_guard lock(mutex_);
      is_closing_ = true;
      for (Stream* stream : streams_) {
        if (!std::exchange(stream->is_ending, true) && !stream->is_writing) idle.push_back(stream);
      }
      for (Stream* stream : idle) streams_.erase(stream);
    }
    for (Stream* stream : idle) stream->Finish(grpc::Status::OK);
  }

 private:
  mutable std::mutex mutex_;  ///< guards all below, and the flags of streams
  SharedOffer offer_;
  std::set<Stream*> streams_;
  bool is_closing_ = false;
};

void Stream::OnWriteDone(bool ok) { board_->written(this, ok); }
void Stream::OnCancel() { board_->end(this); }
void Stream::OnDone() { delete this; }

class Service final : public v1beta1::DevicePlugin::CallbackService {
 public:
  explicit Service(std::shared_ptr<Board> board) : board_(std::move(board)) {}

  grpc::ServerUnaryReactor* GetDevicePluginOptions(grpc::CallbackServerContext* context,
                                                   const v1beta1::Empty*,
                                                   v1beta1::DevicePluginOptions* options) override {
    options->set_get_preferred_allocation_available(true);
    return finished(context, grpc::Status::OK);
  }
  grpc::ServerWriteReactor<v1beta1::ListAndWatchResponse>* ListAndWatch(grpc::CallbackServerContext*,
                                                                        const v1beta1::Empty*) override {
    auto* const stream = new Stream(board_);
    board_->add(stream);
    return stream;
  }
  grpc::ServerUnaryReactor* GetPreferredAllocation(grpc::CallbackServerContext* context,
                                                   const v1beta1::PreferredAllocationRequest* request,
                                                   v1beta1::PreferredAllocationResponse* response) override {
    return finished(context, prefer(*board_->offer(), *request, *response));
  }
  grpc::ServerUnaryReactor* Allocate(grpc::CallbackServerContext* context,
                                     const v1beta1::AllocateRequest* request,
                                     v1beta1::AllocateResponse* response) override {
    return finished(context, allocate(*board_->offer(), *request, *response));
  }
  grpc::ServerUnaryReactor* PreStartContainer(grpc::CallbackServerContext* context,
                                              const v1beta1::PreStartContainerRequest*,
                                              v1beta1::PreStartContainerResponse*) override {
    return finished(context, grpc::Status::OK);
  }

 private:
  static grpc::ServerUnaryReactor* finished(grpc::CallbackServerContext* context,
                                            const grpc::Status& status) {
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    reactor->Finish(status);
    return reactor;
  }

  std::shared_ptr<Board> board_;
};

class GrpcServer final : public PluginServer {
 public:
  GrpcServer(const std::string& socket_path, SharedOffer offer)
      : board_(std::make_shared<Board>(std::move(offer))), service_(board_) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("unix:" + socket_path, grpc::InsecureServerCredentials());
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
  }
  ~GrpcServer() override {
    board_->close();
    if (server_) server_->Shutdown(std::chrono::system_clock::now() + answer_patience);
  }
  bool listens() const { return server_ != nullptr; }
  void publish(SharedOffer offer) override { board_->publish(std::move(offer)); }
  std::size_t watchers() const override { return board_->streams(); }

 private:
  std::shared_ptr<Board> board_;
  Service service_;
  std::unique_ptr<grpc::Server> server_;  ///< last: it uses the service
};

}  // namespace

Result<std::unique_ptr<PluginServer>> PluginServer::listen(const std::string& socket_path,
                                                           SharedOffer offer) {
  std::error_code ignored;
  if (std::filesystem::exists(socket_path, ignored) && is_served(socket_path, answer_patience)) {
    return fail(ErrorCode::Unavailable, fmt::format("another program serves at {}", socket_path),
                "one firebreak-k8s serves a kubelet");
  }
  auto server = std::make_unique<GrpcServer>(socket_path, std::move(offer));
  if (!server->listens())
    return fail(ErrorCode::Unavailable, fmt::format("cannot listen at {}", socket_path));
  return server;
}

}  // namespace firebreak::k8s
