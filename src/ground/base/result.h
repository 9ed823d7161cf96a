// SPDX-License-Identifier: Apache-2.0
/// Errors are values: every function that can fail returns Result<T> or Status.
#pragma once

#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace firebreak {

/// Why something failed, coarse enough to decide on; the message has the details.
enum class ErrorCode {
  InvalidArgument,    ///< the caller asked for something that makes no sense
  NotFound,           ///< a file, process, tenant or symbol that is not there
  PermissionDenied,   ///< rights are missing; the hint says which
  Unavailable,        ///< a service that is not running or went away
  NotYet,             ///< the same may be asked for again in a moment
  ResourceExhausted,  ///< memory, descriptors or space ran out
  Timeout,            ///< something did not happen in time
  Protocol,           ///< a peer or a file does not follow its format
  Unsupported,        ///< a thing that this machine or driver cannot do
  Device,             ///< the GPU driver answered with an error
  Internal,           ///< a bug of ours
};

/// One failure. `message` is one line for a person; `hint`, where not empty, says what to do about it.
struct Error {
  ErrorCode code = ErrorCode::Internal;
  std::string message;
  std::string hint;
};

template <class T>
using Result = tl::expected<T, Error>;
using Status = Result<void>;

/// The short name of a code, as logs and JSON show it.
const char* to_string(ErrorCode code);

/// "message (hint)", one line.
std::string to_string(const Error& error);

/// The failing return of a function: `return fail(ErrorCode::NotFound, "no such tenant")`.
inline tl::unexpected<Error> fail(ErrorCode code, std::string message, std::string hint = {}) {
  return tl::unexpected<Error>(Error{code, std::move(message), std::move(hint)});
}

/// Hands a callee's failure to the caller: `if (!page) return propagate(page);`.
template <class T>
tl::unexpected<Error> propagate(const Result<T>& failed) {
  return tl::unexpected<Error>(failed.error());
}

/// The same, with what was being done put before the message.
template <class T>
tl::unexpected<Error> propagate(const Result<T>& failed, const std::string& doing) {
  return fail(failed.error().code, doing + ": " + failed.error().message, failed.error().hint);
}

}  // namespace firebreak
