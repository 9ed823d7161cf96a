// SPDX-License-Identifier: Apache-2.0
/// CUDA's GPU core dump mode, as far as a process is put into it so that its MPS domain can be parked. On an
/// exception every client of a domain that is in the mode writes a dump, and the driver resets the domain
/// only when all their dumps are complete. Whoever's dump is complete goes on meanwhile, without an error
/// (H100, driver 580: docs/how/parking.md).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace firebreak::park {

/// The variable that says where a dump goes.
inline constexpr std::string_view dump_file_variable = "CUDA_COREDUMP_FILE";

using Environment = std::vector<std::pair<std::string, std::string>>;

/// The value of a variable in an environment as /proc/PID/environ has it; empty: it has none, or is not set.
std::optional<std::string_view> variable_in(std::string_view environment, std::string_view name);

/// The variables that put a CUDA process into the mode, with its dump to go to `dump_path`. A dump has the
/// state of the warps, and no memory: the process is not aborted after it.
Environment mode_environment(const std::string& dump_path);

/// True when a variable of that name sets something of the mode. A program that has such settings of its own
/// keeps them.
bool is_of_mode(std::string_view variable);

/// Returns where a process dumps to that is in the mode as mode_environment() says; empty: it is not, or has
/// settings of its own. `environment`: as /proc/PID/environ has it.
std::string dump_path_in(std::string_view environment);

}  // namespace firebreak::park
