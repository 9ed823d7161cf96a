// SPDX-License-Identifier: Apache-2.0
/// `firebreak run` of one process: it asks the agent where to run, has itself followed, and becomes the
/// program. So the program has our number, our parent, our streams and our terminal, and signals are its own.
#pragma once

#include "commands/cli/command.h"
#include "commands/cli/tenant_start.h"

namespace firebreak::cli {

/// Becomes that file. Returns only where that failed, and has said why: own_failure_status, or what shells
/// say of a program that is not there (127) or cannot be run (126). `tells_on_stderr`: what is to be told of
/// the tenant also goes to our standard error.
int become_tenant(const TenantOptions& options, const std::string& file, abi::Role role,
                  bool tells_on_stderr);

/// That status for why a program could not be run.
int status_of_failed_start(const Error& error);

}  // namespace firebreak::cli
