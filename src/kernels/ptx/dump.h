// SPDX-License-Identifier: Apache-2.0
/// A module as text, for tests and for people: one line an instruction, every name with its index.
#pragma once

#include <string>

#include "kernels/ptx/ir.h"

namespace firebreak::ptx {

/// The whole module. Thread safe.
std::string dump(const Module& module);

/// One instruction of `function`, without a line end: "@!%p1#3 add.s32 %r1#0, %r2#1, 0x5".
std::string dump(const Module& module, const Function& function, const Instruction& instruction);

}  // namespace firebreak::ptx
