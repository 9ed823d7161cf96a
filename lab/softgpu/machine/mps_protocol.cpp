// SPDX-License-Identifier: Apache-2.0
#include "softgpu/machine/mps_protocol.h"

#include <cstdlib>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "ground/os/self.h"
#include "softgpu/environment.h"

namespace firebreak::softgpu::mps {

namespace {

constexpr std::uint32_t magic = 0x4653504d;  // "MPSF"

/// The head of every message: the magic and one number; what follows is text or one more number.
struct Header {
  std::uint32_t magic = softgpu::mps::magic;
  std::uint32_t number = 0;
};

std::vector<std::byte> compose(std::uint32_t number, std::string_view text) {
  const Header header{magic, number};
  std::vector<std::byte> bytes(sizeof(header) + text.size());
  std::memcpy(bytes.data(), &header, sizeof(header));
  if (!text.empty()) std::memcpy(bytes.data() + sizeof(header), text.data(), text.size());
  return bytes;
}

struct Parsed {
  std::uint32_t number = 0;
  std::string text;
  std::vector<os::Fd> descriptors;
};

Result<Parsed> receive(os::Socket& socket, Milliseconds timeout) {
  auto message = socket.receive(timeout);
  if (!message) return propagate(message);
  Header header;
  if (message->bytes.size() < sizeof(header)) return fail(ErrorCode::Protocol, "a short message from MPS");
  std::memcpy(&header, message->bytes.data(), sizeof(header));
  if (header.magic != magic) return fail(ErrorCode::Protocol, "this is not the software GPU's MPS");
  Parsed parsed;
  parsed.number = header.number;
  parsed.text.assign(reinterpret_cast<const char*>(message->bytes.data()) + sizeof(header),
                     message->bytes.size() - sizeof(header));
  parsed.descriptors = std::move(message->descriptors);
  return parsed;
}

Status send(os::Socket& socket, std::uint32_t number, std::string_view text, std::span<const int> descriptors,
            Milliseconds timeout) {
  const auto bytes = compose(number, text);
  return socket.send(bytes, descriptors, timeout);
}

}  // namespace

Status send_request(os::Socket& socket, const Request& request, Milliseconds timeout) {
  return send_request_with(socket, request, {}, timeout);
}

Status send_request_with(os::Socket& socket, const Request& request, std::span<const int> descriptors,
                         Milliseconds timeout) {
  return send(socket, static_cast<std::uint32_t>(request.kind), request.text, descriptors, timeout);
}

Result<ReceivedRequest> receive_request(os::Socket& socket, Milliseconds timeout) {
  auto parsed = receive(socket, timeout);
  if (!parsed) return propagate(parsed);
  return ReceivedRequest{{static_cast<RequestKind>(parsed->number), std::move(parsed->text)},
                         std::move(parsed->descriptors)};
}

Status send_attach_answer(os::Socket& socket, const AttachAnswer& answer, int domain_fd,
                          Milliseconds timeout) {
  return send(socket, static_cast<std::uint32_t>(answer.result), std::to_string(answer.slot),
              domain_fd < 0 ? std::span<const int>() : std::span<const int>(&domain_fd, 1), timeout);
}

Result<ReceivedAttachAnswer> receive_attach_answer(os::Socket& socket, Milliseconds timeout) {
  auto parsed = receive(socket, timeout);
  if (!parsed) return propagate(parsed);
  const auto slot = static_cast<std::uint32_t>(std::strtoul(parsed->text.c_str(), nullptr, 10));
  ReceivedAttachAnswer received{{static_cast<CUresult>(parsed->number), slot}, {}};
  if (!parsed->descriptors.empty()) received.domain = std::move(parsed->descriptors.front());
  return received;
}

Status send_text(os::Socket& socket, std::string_view text, Milliseconds timeout) {
  return send(socket, 0, text, {}, timeout);
}

Result<std::string> receive_text(os::Socket& socket, Milliseconds timeout) {
  auto parsed = receive(socket, timeout);
  if (!parsed) return propagate(parsed);
  return std::move(parsed->text);
}

std::string pipe_directory() {
  const auto named = os::environment_variable(environment::mps_pipe_directory);
  return named && !named->empty() ? *named : std::string(default_pipe_directory);
}

std::string control_socket_path() { return pipe_directory() + control_socket_name; }

}  // namespace firebreak::softgpu::mps
