// SPDX-License-Identifier: Apache-2.0
/// Probes are processes of their own, which say what came of it. The probe of the guard ranges
/// (program/guard/probe.h) lays one and has the GPU stray into it. Where they do not work, that process dies
/// of a fatal fault, so it must be in no MPS domain. The probe of spares (commands/cli/spare_probe.cpp) has
/// domains of its own.
#pragma once

#include "ground/base/clock.h"
#include "ground/os/kernel.h"
#include "shared/guard_page/probe_result.h"

namespace firebreak::guard {

/// Returns the exit status of a program that did probe_guard_ranges(); it prints the reason on standard
/// output.
int exit_status_of(const ProbeResult& result);

/// Returns the known result. Where nothing is known, `program` (an error is the reason why there is none) is
/// run in no MPS domain, whatever this process's environment says, and its answer kept (see exit_status_of).
/// Blocks until it has ended, at most `patience`.
ProbeResult known_or_new_probe_result(os::Kernel& kernel, Probed what, Result<os::SpawnRequest> program,
                                      Milliseconds patience = Milliseconds(30'000));

}  // namespace firebreak::guard
