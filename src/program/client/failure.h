// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <firebreak/firebreak.h>

#include <string>
#include <tl/expected.hpp>

#include "ground/base/result.h"

namespace firebreak::client {

/// A failure in the terms of the C ABI.
struct Failure {
  fb_status status = FB_ERROR_INVALID_ARGUMENT;
  std::string message;
};
template <class T>
using Outcome = tl::expected<T, Failure>;

tl::unexpected<Failure> failure(fb_status status, std::string message);
/// What the agent, or the way to it, said.
tl::unexpected<Failure> agent_failure(const Error& error);
/// What the driver said.
tl::unexpected<Failure> cuda_failure(const Error& error);

}  // namespace firebreak::client
