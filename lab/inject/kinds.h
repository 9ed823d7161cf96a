// SPDX-License-Identifier: Apache-2.0
/// The kinds: one table a class, each in a file of its own. catalogue.h lists them all.
#pragma once

#include <span>

#include "inject/kind.h"

namespace firebreak::inject {

/// An SM's own accesses that the MMU refuses.
std::span<const Kind> mmu_kinds();
/// Kinds of the copy engines and of PBDMA.
std::span<const Kind> engine_kinds();
/// Exceptions inside a streaming multiprocessor.
std::span<const Kind> sm_kinds();
/// A process that ends while its kernel runs.
std::span<const Kind> termination_kinds();
/// The device itself: on the software GPU only.
std::span<const Kind> device_kinds();

}  // namespace firebreak::inject
