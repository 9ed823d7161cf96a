// SPDX-License-Identifier: Apache-2.0
#include "commands/nri/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "ground/base/text.h"

#include <nri.pb.h>
#include <ttrpc.pb.h>

namespace firebreak::nri {
namespace {

namespace api = ::nri::pkg::api::v1alpha1;

constexpr std::uint32_t registration_stream = 1;
constexpr const char* plugin_service = "nri.pkg.api.v1alpha1.Plugin";
/// A line of ours quotes a runtime's words up to this length.
constexpr std::size_t most_of_word_bytes = 253;
/// Of those that ask for seats.
constexpr std::size_t most_pods = 4096;
constexpr int create_container_bit = 1 << (api::CREATE_CONTAINER - 1);

/// gRPC's, which ttrpc has, too.
int status_code_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::InvalidArgument:
    case ErrorCode::Protocol:
      return 3;
    case ErrorCode::NotFound:
      return 5;
    case ErrorCode::Unsupported:
      return 12;
    default:
      return 14;
  }
}

std::string response(std::uint32_t stream, const Result<std::string>& payload) {
  ttrpc::Response response;
  if (payload) {
    response.set_payload(*payload);
  } else {
    response.mutable_status()->set_code(status_code_of(payload.error().code));
    response.mutable_status()->set_message(to_string(payload.error()));
  }
  return encode({plugin_connection, stream, static_cast<std::uint8_t>(MessageType::Response), 0,
                 response.SerializeAsString()});
}

tl::unexpected<Error> unreadable(const char* what) {
  return fail(ErrorCode::Protocol, fmt::format("a {} that cannot be read", what));
}

std::string shown(const std::string& text) { return printable(text, most_of_word_bytes); }

/// It goes as far as its pod says.
Newcomer newcomer_of(const api::PodSandbox& pod) {
  Newcomer newcomer;
  newcomer.pod_namespace = pod.namespace_();
  newcomer.pod = pod.name();
  newcomer.pod_uid = pod.uid();
  for (const auto& [name, value] : pod.annotations()) newcomer.annotations[name] = value;
  return newcomer;
}

Newcomer newcomer_in(Newcomer newcomer, const api::Container& container) {
  newcomer.container = container.name();
  newcomer.environment = {container.env().begin(), container.env().end()};
  for (const api::Mount& mount : container.mounts()) newcomer.mounted_at.push_back(mount.destination());
  return newcomer;
}

/// CDI's mounts are the same (src/commands/cli/cdi_spec.cpp).
void write(const seats::SeatGrant& grant, api::ContainerAdjustment& adjustment) {
  for (const auto& [name, value] : grant.environment) {
    api::KeyValue& variable = *adjustment.add_env();
    variable.set_key(name);
    variable.set_value(value);
  }
  for (const seats::SeatMount& each : grant.mounts) {
    api::Mount& mount = *adjustment.add_mounts();
    mount.set_source(each.host_path);
    mount.set_destination(each.container_path);
    mount.set_type("bind");
    for (const char* option : {"bind", "nosuid", "nodev", each.is_read_only ? "ro" : "rw"})
      mount.add_options(option);
    if (!each.has_programs) mount.add_options("noexec");
  }
}

}  // namespace

std::string PluginSession::registration() {
  api::RegisterPluginRequest plugin;
  plugin.set_plugin_name("firebreak");
  plugin.set_plugin_idx("10");
  ttrpc::Request request;
  request.set_service("nri.pkg.api.v1alpha1.Runtime");
  request.set_method("RegisterPlugin");
  request.set_payload(plugin.SerializeAsString());
  return encode({runtime_connection, registration_stream, static_cast<std::uint8_t>(MessageType::Request), 0,
                 request.SerializeAsString()});
}

Result<std::string> PluginSession::receive(std::string_view bytes) {
  const auto messages = reader_.read(bytes);
  if (!messages) return propagate(messages);
  std::string answers;
  for (const TtrpcMessage& message : *messages) {
    if (message.connection == runtime_connection) {
      if (Status heard = hear_registered(message); !heard) return propagate(heard);
      continue;
    }
    const bool is_of_a_caller = message.type == static_cast<std::uint8_t>(MessageType::Request) ||
                                message.type == static_cast<std::uint8_t>(MessageType::Data);
    if (!is_of_a_caller)
      return fail(ErrorCode::Protocol, fmt::format("a message of type {} where calls come", message.type));
    answers += answer(message);
  }
  return answers;
}

Error PluginSession::end() const {
  if (reader_.is_in_midst()) return {ErrorCode::Protocol, "the runtime ended in the midst of a message", {}};
  if (!is_registered_) return {ErrorCode::Unavailable, "the runtime ended before it took the plugin", {}};
  return {ErrorCode::Unavailable, "the runtime has ended the connection", {}};
}

Status PluginSession::hear_registered(const TtrpcMessage& message) {
  const bool is_awaited = message.type == static_cast<std::uint8_t>(MessageType::Response) &&
                          message.stream == registration_stream && !is_registered_;
  if (!is_awaited)
    return fail(ErrorCode::Protocol, fmt::format("an answer that nobody asked for: type {}, stream {}",
                                                 message.type, message.stream));
  ttrpc::Response response;
  if (!response.ParseFromString(message.data)) return unreadable("response");
  if (response.status().code() != 0)
    return fail(ErrorCode::Unavailable,
                "the runtime refuses the plugin: " + shown(response.status().message()));
  is_registered_ = true;
  return {};
}

std::string PluginSession::answer(const TtrpcMessage& message) {
  const auto refuse = [&](ErrorCode code, const char* why) {
    return response(message.stream, fail(code, why));
  };
  if (message.stream % 2 == 0) return refuse(ErrorCode::InvalidArgument, "stream ids of calls are odd");
  if (message.type == static_cast<std::uint8_t>(MessageType::Data))
    return refuse(ErrorCode::InvalidArgument, "this stream takes no data");
  if (message.stream <= last_stream_)
    return refuse(ErrorCode::InvalidArgument, "stream ids of calls go up, and come once");
  last_stream_ = message.stream;
  if ((message.flags & remote_open_flag) != 0)
    return refuse(ErrorCode::Unsupported, "no call here is a stream");
  ttrpc::Request request;
  if (!request.ParseFromString(message.data)) return response(message.stream, unreadable("request"));
  if (request.service() != plugin_service)
    return response(message.stream, fail(ErrorCode::Unsupported,
                                         fmt::format("there is no service '{}'", shown(request.service()))));
  return response(message.stream, call(request.method(), request.payload()));
}

Result<std::string> PluginSession::call(const std::string& method, const std::string& payload) {
  if (method == "CreateContainer") return create_container(payload);
  if (method == "Configure") return configure(payload);
  if (method == "Synchronize") return synchronize(payload);
  if (method == "Shutdown" || method == "StateChange") return std::string();
  return fail(ErrorCode::Unsupported, fmt::format("there is no method '{}'", shown(method)));
}

/// These are there already: a runtime that was not asking us made them as if nobody had asked for seats.
Result<std::string> PluginSession::synchronize(const std::string& payload) {
  api::SynchronizeRequest request;
  if (!request.ParseFromString(payload)) return unreadable("request");
  for (const api::PodSandbox& pod : request.pods()) {
    Newcomer of_pod = newcomer_of(pod);
    const auto is_ours = [](const auto& each) { return each.first.starts_with("firebreak.dev/"); };
    if (std::ranges::any_of(of_pod.annotations, is_ours) && pods_.size() < most_pods)
      pods_[pod.id()] = std::move(of_pod);
  }
  for (const api::Container& container : request.containers()) {
    const auto pod = pods_.find(container.pod_sandbox_id());
    if (pod == pods_.end() || container.state() == api::CONTAINER_STOPPED) continue;
    const Newcomer made = newcomer_in(pod->second, container);
    if (lacks_its_seat(made))
      news_.push_back(described(made) +
                      " runs without its seat: it was made while nobody asked firebreak-nri; "
                      "make the pod anew");
  }
  if (!request.more()) pods_.clear();
  api::SynchronizeResponse answer;
  answer.set_more(request.more());  // else the runtime sends no second part
  return answer.SerializeAsString();
}

Result<std::string> PluginSession::configure(const std::string& payload) {
  api::ConfigureRequest request;
  if (!request.ParseFromString(payload)) return unreadable("request");
  runtime_ = shown(request.runtime_name()) + " " + shown(request.runtime_version());
  is_configured_ = true;
  api::ConfigureResponse answer;
  answer.set_events(create_container_bit);
  return answer.SerializeAsString();
}

Result<std::string> PluginSession::create_container(const std::string& payload) {
  api::CreateContainerRequest request;
  if (!request.ParseFromString(payload)) return unreadable("request");
  const Newcomer newcomer = newcomer_in(newcomer_of(request.pod()), request.container());
  const auto seat = seating_(newcomer);
  if (!seat) {
    news_.push_back(fmt::format("{} is refused: {}", described(newcomer), to_string(seat.error())));
    return propagate(seat);
  }
  api::CreateContainerResponse answer;
  if (!*seat) return answer.SerializeAsString();
  write(**seat, *answer.mutable_adjust());
  const auto pipe = std::ranges::find((*seat)->environment, "CUDA_MPS_PIPE_DIRECTORY",
                                      &std::pair<std::string, std::string>::first);
  news_.push_back(fmt::format("{} has a seat, with {}", described(newcomer),
                              pipe == (*seat)->environment.end() ? "no domain" : pipe->second));
  return answer.SerializeAsString();
}

}  // namespace firebreak::nri
