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
/// The agent, or the way to it, said this.
tl::unexpected<Failure> agent_failure(const Error& error);
/// The driver said this.
tl::unexpected<Failure> cuda_failure(const Error& error);

}  // namespace firebreak::client
