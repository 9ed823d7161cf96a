// SPDX-License-Identifier: Apache-2.0
/// Reads what nvidia-cuda-mps-control prints. Pure.
#pragma once

#include <sys/types.h>

#include <string_view>
#include <vector>

#include "ground/base/result.h"

namespace firebreak::mps {

/// A list of process ids, one a line; nothing is an empty list. Protocol when something else stands there.
Result<std::vector<pid_t>> parse_process_ids(std::string_view output);

/// The answer of terminate_client or start_server: nothing when it worked, else a sentence. NotFound when
/// there is no such server or client (any more).
Status parse_answer(std::string_view output);

}  // namespace firebreak::mps
