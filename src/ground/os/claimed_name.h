// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "ground/base/result.h"
#include "ground/os/fd.h"

namespace firebreak::os {

/// Takes a name that one process at a time has, for as long as the descriptor is open; it is of this network
/// namespace, and no file. Unavailable: another one has it. InvalidArgument: it is too long.
Result<Fd> claim_name(const std::string& name);

}  // namespace firebreak::os
