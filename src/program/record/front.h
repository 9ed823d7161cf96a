// SPDX-License-Identifier: Apache-2.0
/// The recorder in front of the driver that a process uses. Where nobody wants to record it is not there.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "ground/base/result.h"
#include "program/cuda/backend.h"

namespace firebreak::record {

/// Names the folder (program/record/launch_folder.h), for developers.
inline constexpr const char* folder_variable = "FIREBREAK_RECORD_LAUNCHES";

/// `driver`, with the recorder in front of what it has to know of. Once a process; for good. A child of
/// fork() records nothing.
Result<cuda::Backend> start_recording(const cuda::Backend& driver, const std::string& folder);

/// What stands in front of an exported symbol, or of what cuGetProcAddress is asked for. Null: nothing does.
void* recording_symbol(std::string_view symbol);
void* recording_entry_point(std::string_view name, int cuda_version, std::uint64_t flags);

}  // namespace firebreak::record
