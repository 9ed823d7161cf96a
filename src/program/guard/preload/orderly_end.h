// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace firebreak::guard {

/// From now on SIGTERM is a wish that the agent carries out, where the program has no plan of its own for it
/// and was started by `firebreak run`: a client that ends with a kernel under way takes its neighbours along,
/// so MPS takes it off the GPU first. Where no agent answers, and at the second SIGTERM, the process ends as
/// it would without us. Once; the program may set another handler at any time.
void end_orderly_at_sigterm();

}  // namespace firebreak::guard
