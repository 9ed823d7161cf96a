// SPDX-License-Identifier: Apache-2.0
#include "tests/doubles/nri/runtime_stand_in.h"

#include <span>
#include <utility>

#include "ground/os/socket.h"
#include "tests/doubles/os/stream_test_support.h"

namespace firebreak::nri {
namespace {

namespace api = ::nri::pkg::api::v1alpha1;

constexpr auto request_type = static_cast<std::uint8_t>(MessageType::Request);
constexpr auto response_type = static_cast<std::uint8_t>(MessageType::Response);

}  // namespace

std::string call_bytes(std::uint32_t stream, const std::string& method, const std::string& payload,
                       const std::string& service) {
  ttrpc::Request request;
  request.set_service(service);
  request.set_method(method);
  request.set_payload(payload);
  return encode({plugin_connection, stream, request_type, 0, request.SerializeAsString()});
}

RuntimeStandIn::RuntimeStandIn(std::string socket_path, Habits habits)
    : habits_(std::move(habits)), listener_(os::listen_for_streams(socket_path)) {}

void RuntimeStandIn::look() {
  if (!connection_) connection_ = os::accept_stream(listener_);
  if (!connection_) return;
  const auto bytes = os::read_waiting(connection_.get(), 65'536);
  if (!bytes) return hang_up();
  const auto messages = reader_.read(*bytes);
  if (!messages) return hang_up();
  for (const TtrpcMessage& message : *messages) take(message);
}

void RuntimeStandIn::take(const TtrpcMessage& message) {
  if (message.connection == runtime_connection) return take_registration(message);
  ttrpc::Response response;
  response.ParseFromString(message.data);
  answers_[message.stream] = response;
  if (message.stream != configure_stream_) return;
  api::ConfigureResponse configured;
  configured.ParseFromString(response.payload());
  events_ = configured.events();
  is_configured_ = true;
  api::SynchronizeRequest state;
  state.set_more(true);
  call("Synchronize", state.SerializeAsString());
}

void RuntimeStandIn::take_registration(const TtrpcMessage& message) {
  ttrpc::Request request;
  request.ParseFromString(message.data);
  const bool is_one = message.type == request_type && request.service() == "nri.pkg.api.v1alpha1.Runtime" &&
                      request.method() == "RegisterPlugin";
  if (!is_one) return hang_up();
  registrations_.emplace_back().ParseFromString(request.payload());
  if (!habits_.answers_registrations) return;
  ttrpc::Response response;
  if (!habits_.refuses_with.empty()) {
    response.mutable_status()->set_code(3);
    response.mutable_status()->set_message(habits_.refuses_with);
  }
  send(encode({runtime_connection, message.stream, response_type, 0, response.SerializeAsString()}));
  if (!habits_.refuses_with.empty()) return;
  api::ConfigureRequest configuration;
  configuration.set_runtime_name("stand-in");
  configuration.set_runtime_version("1.0");
  configure_stream_ = call("Configure", configuration.SerializeAsString());
}

std::uint32_t RuntimeStandIn::call(const std::string& method, const std::string& payload) {
  const std::uint32_t stream = std::exchange(next_stream_, next_stream_ + 2);
  send(call_bytes(stream, method, payload));
  return stream;
}

void RuntimeStandIn::send(const std::string& bytes) {
  std::ignore = os::send_waiting(connection_.get(), std::as_bytes(std::span(bytes)));
}

void RuntimeStandIn::hang_up() {
  connection_.reset();
  reader_ = {};
  next_stream_ = 1;
  is_configured_ = false;
  answers_.clear();
}

std::optional<ttrpc::Response> RuntimeStandIn::answer(std::uint32_t stream) const {
  const auto found = answers_.find(stream);
  if (found == answers_.end()) return std::nullopt;
  return found->second;
}

}  // namespace firebreak::nri
