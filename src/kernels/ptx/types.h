// SPDX-License-Identifier: Apache-2.0
/// The fundamental types and state spaces of PTX (PTX ISA, chapter "State Spaces, Types, and Variables").
#pragma once

#include <cstdint>

namespace firebreak::ptx {

/// A PTX type. `None`: the instruction names none.
enum class Type : std::uint8_t {
  None,
  Pred,
  B8,
  B16,
  B32,
  B64,
  B128,
  U8,
  U16,
  U32,
  U64,
  S8,
  S16,
  S32,
  S64,
  F16,
  Bf16,
  F32,
  F64,
  Tf32,
  F16x2,
  Bf16x2,
  F32x2,
  U16x2,
  S16x2,
  E4m3x2,
  E5m2x2,
};

/// The place of a variable or an address. `None`: generic addressing, or the instruction has no state space.
enum class StateSpace : std::uint8_t { None, Reg, Const, Global, Local, Param, Shared, SharedCluster };

enum class TypeKind : std::uint8_t { None, Predicate, Bits, Unsigned, Signed, Float };

/// Bytes of one value in memory; 0 for None and Pred.
std::uint32_t size_bytes(Type type);
/// Packed types: Float for F16x2, Bf16x2, F32x2 and the fp8 pairs; Unsigned and Signed for U16x2 and S16x2.
TypeKind kind_of(Type type);
/// "f32" for F32: the name as in the source, without the dot. "" for None.
const char* name_of(Type type);
/// "global", "shared", "shared::cluster"... "" for None.
const char* name_of(StateSpace space);

}  // namespace firebreak::ptx
