// SPDX-License-Identifier: Apache-2.0
#include "ground/base/result.h"

namespace firebreak {

const char* to_string(ErrorCode code) {
  switch (code) {
    case ErrorCode::InvalidArgument:
      return "invalid argument";
    case ErrorCode::NotFound:
      return "not found";
    case ErrorCode::PermissionDenied:
      return "permission denied";
    case ErrorCode::Unavailable:
      return "unavailable";
    case ErrorCode::NotYet:
      return "not yet";
    case ErrorCode::ResourceExhausted:
      return "resource exhausted";
    case ErrorCode::Timeout:
      return "timeout";
    case ErrorCode::Protocol:
      return "protocol error";
    case ErrorCode::Unsupported:
      return "unsupported";
    case ErrorCode::Device:
      return "device error";
    case ErrorCode::Internal:
      return "internal error";
  }
  return "unknown";
}

std::string to_string(const Error& error) {
  return error.hint.empty() ? error.message : error.message + " (" + error.hint + ")";
}

}  // namespace firebreak
