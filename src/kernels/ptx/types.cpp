// SPDX-License-Identifier: Apache-2.0
#include "kernels/ptx/types.h"

#include <array>

#include "kernels/ptx/type_names.h"

namespace firebreak::ptx {
namespace {

struct TypeRow {
  Type type;
  const char* name;
  std::uint32_t size_bytes;
  TypeKind kind;
};

// The order is the enumeration's, so that a type indexes its row.
constexpr std::array type_rows{
    TypeRow{Type::None, "", 0, TypeKind::None},          TypeRow{Type::Pred, "pred", 0, TypeKind::Predicate},
    TypeRow{Type::B8, "b8", 1, TypeKind::Bits},          TypeRow{Type::B16, "b16", 2, TypeKind::Bits},
    TypeRow{Type::B32, "b32", 4, TypeKind::Bits},        TypeRow{Type::B64, "b64", 8, TypeKind::Bits},
    TypeRow{Type::B128, "b128", 16, TypeKind::Bits},     TypeRow{Type::U8, "u8", 1, TypeKind::Unsigned},
    TypeRow{Type::U16, "u16", 2, TypeKind::Unsigned},    TypeRow{Type::U32, "u32", 4, TypeKind::Unsigned},
    TypeRow{Type::U64, "u64", 8, TypeKind::Unsigned},    TypeRow{Type::S8, "s8", 1, TypeKind::Signed},
    TypeRow{Type::S16, "s16", 2, TypeKind::Signed},      TypeRow{Type::S32, "s32", 4, TypeKind::Signed},
    TypeRow{Type::S64, "s64", 8, TypeKind::Signed},      TypeRow{Type::F16, "f16", 2, TypeKind::Float},
    TypeRow{Type::Bf16, "bf16", 2, TypeKind::Float},     TypeRow{Type::F32, "f32", 4, TypeKind::Float},
    TypeRow{Type::F64, "f64", 8, TypeKind::Float},       TypeRow{Type::Tf32, "tf32", 4, TypeKind::Float},
    TypeRow{Type::F16x2, "f16x2", 4, TypeKind::Float},   TypeRow{Type::Bf16x2, "bf16x2", 4, TypeKind::Float},
    TypeRow{Type::F32x2, "f32x2", 8, TypeKind::Float},   TypeRow{Type::U16x2, "u16x2", 4, TypeKind::Unsigned},
    TypeRow{Type::S16x2, "s16x2", 4, TypeKind::Signed},  TypeRow{Type::E4m3x2, "e4m3x2", 2, TypeKind::Float},
    TypeRow{Type::E5m2x2, "e5m2x2", 2, TypeKind::Float},
};

constexpr bool rows_are_in_order() {
  for (std::size_t i = 0; i < type_rows.size(); ++i)
    if (static_cast<std::size_t>(type_rows[i].type) != i) return false;
  return true;
}
static_assert(rows_are_in_order());

const TypeRow& row_of(Type type) { return type_rows[static_cast<std::size_t>(type)]; }

}  // namespace

std::uint32_t size_bytes(Type type) { return row_of(type).size_bytes; }
TypeKind kind_of(Type type) { return row_of(type).kind; }
const char* name_of(Type type) { return row_of(type).name; }

const char* name_of(StateSpace space) {
  constexpr std::array names{"", "reg", "const", "global", "local", "param", "shared", "shared::cluster"};
  return names[static_cast<std::size_t>(space)];
}

Type type_from_name(std::string_view name) {
  if (name.empty()) return Type::None;
  for (const TypeRow& row : type_rows)
    if (name == row.name) return row.type;
  return Type::None;
}

StateSpace space_from_name(std::string_view name) {
  if (name == "shared::cta") return StateSpace::Shared;
  if (name == "param::entry" || name == "param::func") return StateSpace::Param;
  for (const StateSpace space : {StateSpace::Reg, StateSpace::Const, StateSpace::Global, StateSpace::Local,
                                 StateSpace::Param, StateSpace::Shared, StateSpace::SharedCluster})
    if (name == name_of(space)) return space;
  return StateSpace::None;
}

}  // namespace firebreak::ptx
