// SPDX-License-Identifier: Apache-2.0
/// One question to the agent on a connection of its own, for who asks nothing more: without a thread.
#pragma once

#include <string>
#include <vector>

#include "ground/base/clock.h"
#include "ground/base/result.h"
#include "ground/os/fd.h"
#include "shared/abi/wire.h"

namespace firebreak::link {

/// The agent's answer, and the descriptors that came along.
struct Answer {
  abi::Message message;
  std::vector<os::Fd> descriptors;
};

/// A refusal as a failure with the agent's reason: NotYet, InvalidArgument, ResourceExhausted, or
/// PermissionDenied.
Result<Answer> as_result(Answer answer);

/// Waits for the answer, `timeout` at most. Errors as as_result(); NotFound: there is no such socket;
/// Unavailable: nobody listens there; Timeout: no answer came; Protocol: something else did.
Result<Answer> ask_once(const std::string& socket_path, const abi::Message& question, Milliseconds timeout);

}  // namespace firebreak::link
