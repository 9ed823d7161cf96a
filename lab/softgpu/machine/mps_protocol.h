// SPDX-License-Identifier: Apache-2.0
/// The messages of clients, the command line and the daemon of the MPS stand-in on the daemon's socket, and
/// of the daemon to its server. They are whole (SOCK_SEQPACKET).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ground/base/clock.h"
#include "ground/base/result.h"
#include "ground/os/socket.h"
#include "shared/abi/cuda_result.h"

namespace firebreak::softgpu::mps {

inline constexpr const char* default_pipe_directory = "/tmp/nvidia-mps";
/// The daemon's socket, in the pipe directory.
inline constexpr const char* control_socket_name = "/control";

/// The argument that makes the control program a server.
inline constexpr const char* server_argument = "--software-gpu-server";
/// The argument of the daemon that "-d" has started.
inline constexpr const char* background_argument = "--software-gpu-daemon";

enum class RequestKind : std::uint32_t {
  /// A client joins, and the connection then stays open as long as it lives. Its UVM and its resource
  /// manager's descriptor come along.
  Attach = 1,
  Command = 2,  ///< a line of text; the answer is text
  /// A client's memory file, which its streams may write words into; no answer. Their order counts them.
  HostMemory = 3,
};

struct Request {
  RequestKind kind = RequestKind::Command;
  std::string text;
};

/// The answer to Attach; with CUDA_SUCCESS comes the domain's descriptor.
struct AttachAnswer {
  CUresult result = CUDA_SUCCESS;
  std::uint32_t slot = 0;
};

Status send_request(os::Socket& socket, const Request& request, Milliseconds timeout);
Status send_request_with(os::Socket& socket, const Request& request, std::span<const int> descriptors,
                         Milliseconds timeout);
struct ReceivedRequest {
  Request request;
  /// The descriptors of an Attach; from the daemon to its server the client's connection comes first.
  std::vector<os::Fd> descriptors;
};
Result<ReceivedRequest> receive_request(os::Socket& socket, Milliseconds timeout);

Status send_attach_answer(os::Socket& socket, const AttachAnswer& answer, int domain_fd,
                          Milliseconds timeout);
struct ReceivedAttachAnswer {
  AttachAnswer answer;
  os::Fd domain;
};
Result<ReceivedAttachAnswer> receive_attach_answer(os::Socket& socket, Milliseconds timeout);

Status send_text(os::Socket& socket, std::string_view text, Milliseconds timeout);
Result<std::string> receive_text(os::Socket& socket, Milliseconds timeout);

/// CUDA_MPS_PIPE_DIRECTORY or NVIDIA's default, and the daemon's socket in it.
std::string pipe_directory();
std::string control_socket_path();

}  // namespace firebreak::softgpu::mps
