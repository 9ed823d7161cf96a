// SPDX-License-Identifier: Apache-2.0
#include "program/client/failure.h"

namespace firebreak::client {

tl::unexpected<Failure> failure(fb_status status, std::string message) {
  return tl::unexpected<Failure>(Failure{status, std::move(message)});
}

tl::unexpected<Failure> agent_failure(const Error& error) {
  switch (error.code) {
    case ErrorCode::ResourceExhausted:
      return failure(FB_ERROR_NO_MEMORY, to_string(error));
    case ErrorCode::PermissionDenied:
      return failure(FB_ERROR_REFUSED, to_string(error));
    case ErrorCode::NotFound:
    case ErrorCode::Timeout:
      return failure(FB_ERROR_TIMEOUT, to_string(error));
    case ErrorCode::InvalidArgument:
      return failure(FB_ERROR_INVALID_ARGUMENT, to_string(error));
    case ErrorCode::Protocol:
      return failure(FB_ERROR_CORRUPT, to_string(error));
    default:
      return failure(FB_ERROR_NO_AGENT, to_string(error));
  }
}

tl::unexpected<Failure> cuda_failure(const Error& error) {
  const bool no_memory = error.code == ErrorCode::ResourceExhausted;
  return failure(no_memory ? FB_ERROR_NO_MEMORY : FB_ERROR_CUDA, to_string(error));
}

}  // namespace firebreak::client
