// SPDX-License-Identifier: Apache-2.0
#include "kernels/ptx/opcode_table.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

namespace firebreak::ptx {
namespace {

using G = ModifierGroup;
using O = Opcode;

template <class... Types>
constexpr TypeSet set(Types... types) {
  return (bit(types) | ...);
}
template <class... Groups>
constexpr ModifierGroups with(Groups... groups) {
  return (bit(groups) | ... | ModifierGroups{0});
}

constexpr TypeSet none = bit(Type::None);
constexpr TypeSet pred = bit(Type::Pred);
constexpr TypeSet b32 = bit(Type::B32);
constexpr TypeSet u32 = bit(Type::U32);
constexpr TypeSet b64 = bit(Type::B64);
constexpr TypeSet bits_3 = set(Type::B16, Type::B32, Type::B64);
constexpr TypeSet bits_2 = set(Type::B32, Type::B64);
constexpr TypeSet signed_3 = set(Type::S16, Type::S32, Type::S64);
constexpr TypeSet unsigned_3 = set(Type::U16, Type::U32, Type::U64);
constexpr TypeSet integers = signed_3 | unsigned_3;
constexpr TypeSet integers_2 = set(Type::U32, Type::U64, Type::S32, Type::S64);
constexpr TypeSet integers_32 = set(Type::U32, Type::S32);
constexpr TypeSet packed_integers = set(Type::U16x2, Type::S16x2);
constexpr TypeSet f32 = bit(Type::F32);
constexpr TypeSet f64 = bit(Type::F64);
constexpr TypeSet f32_f64 = set(Type::F32, Type::F64);
constexpr TypeSet halves = set(Type::F16, Type::F16x2, Type::Bf16, Type::Bf16x2);
constexpr TypeSet floats = f32_f64 | halves;
constexpr TypeSet arithmetic_floats = floats | set(Type::F32x2);
constexpr TypeSet bytes = set(Type::B8, Type::U8, Type::S8);
constexpr TypeSet scalars = bytes | bits_3 | integers | f32_f64;
constexpr TypeSet memory = scalars | set(Type::F16, Type::Bf16, Type::F16x2, Type::Bf16x2, Type::B128);
constexpr TypeSet convertible = scalars | halves | set(Type::Tf32, Type::E4m3x2, Type::E5m2x2);
constexpr TypeSet addresses = set(Type::U32, Type::U64, Type::B32, Type::B64);
constexpr TypeSet matrix =
    set(Type::F16, Type::Bf16, Type::F32, Type::F64, Type::Tf32, Type::S8, Type::U8, Type::S32);

constexpr ModifierGroups float_add = with(G::Rounding, G::Ftz, G::Saturate);
constexpr ModifierGroups load =
    with(G::Order, G::Scope, G::Space, G::NonCoherent, G::Cache, G::CacheHint, G::Vector, G::Hint);
constexpr ModifierGroups store =
    with(G::Order, G::Scope, G::Space, G::Cache, G::CacheHint, G::Vector, G::Hint);
constexpr ModifierGroups atomic = with(G::Order, G::Scope, G::Space, G::CacheHint, G::Vector, G::Hint);
constexpr ModifierGroups mbarrier = with(G::Order, G::Scope, G::Space, G::Hint);

using Effects = std::array<EffectKind, 2>;
constexpr Effects reads{EffectKind::Read};
constexpr Effects writes{EffectKind::Write};
constexpr Effects updates{EffectKind::Atomic};
constexpr Effects copies{EffectKind::Write, EffectKind::Read};

// One row a line, however long.
// clang-format off
constexpr std::array table{
    // Arithmetic
    InstructionVariant{O::Abs, "abs", {signed_3}, 0, 0, "=0 0"},
    InstructionVariant{O::Abs, "abs", {floats}, with(G::Ftz), 0, "=0 0"},
    InstructionVariant{O::Add, "add", {integers | packed_integers}, with(G::Saturate, G::Carry), 0, "=0 0 0"},
    InstructionVariant{O::Add, "add", {arithmetic_floats}, float_add, 0, "=0 0 0"},
    InstructionVariant{O::Addc, "addc", {integers_2}, with(G::Carry), 0, "=0 0 0"},
    InstructionVariant{O::Bfe, "bfe", {integers_2}, 0, 0, "=0 0 u u"},
    InstructionVariant{O::Bfi, "bfi", {bits_2}, 0, 0, "=0 0 0 u u"},
    InstructionVariant{O::Bfind, "bfind", {integers_2}, with(G::ShiftAmount), 0, "=u 0"},
    InstructionVariant{O::Bmsk, "bmsk", {b32}, with(G::ShiftMode), 0, "=0 u u"},
    InstructionVariant{O::Brev, "brev", {bits_2}, 0, 0, "=0 0"},
    InstructionVariant{O::Clz, "clz", {bits_2}, 0, 0, "=u 0"},
    InstructionVariant{O::Copysign, "copysign", {f32_f64}, 0, 0, "=0 0 0"},
    InstructionVariant{O::Cos, "cos", {f32}, with(G::Ftz), with(G::Approximate), "=0 0"},
    InstructionVariant{O::Div, "div", {integers}, 0, 0, "=0 0 0"},
    InstructionVariant{O::Div, "div", {f32_f64}, with(G::Ftz, G::Rounding, G::Approximate, G::Full), 0, "=0 0 0"},
    InstructionVariant{O::Dp2a, "dp2a", {integers_32, integers_32}, 0, with(G::Half), "=u u u u"},
    InstructionVariant{O::Dp4a, "dp4a", {integers_32, integers_32}, 0, 0, "=u u u u"},
    InstructionVariant{O::Ex2, "ex2", {f32 | halves}, with(G::Ftz), with(G::Approximate), "=0 0"},
    InstructionVariant{O::Fma, "fma", {arithmetic_floats}, with(G::Ftz, G::Saturate, G::Relu), with(G::Rounding), "=0 0 0 0"},
    InstructionVariant{O::Fns, "fns", {b32}, 0, 0, "=u u u s"},
    InstructionVariant{O::Lg2, "lg2", {f32}, with(G::Ftz), with(G::Approximate), "=0 0"},
    InstructionVariant{O::Mad, "mad", {integers}, with(G::Saturate, G::Carry), with(G::Half), "=w 0 0 w"},
    InstructionVariant{O::Mad, "mad", {f32_f64}, float_add, 0, "=0 0 0 0"},
    InstructionVariant{O::Mad24, "mad24", {integers_32}, with(G::Saturate), with(G::Half), "=0 0 0 0"},
    InstructionVariant{O::Madc, "madc", {integers_2}, with(G::Carry), with(G::Half), "=0 0 0 0"},
    InstructionVariant{O::Max, "max", {integers | packed_integers}, with(G::Relu), 0, "=0 0 0"},
    InstructionVariant{O::Max, "max", {floats}, with(G::Ftz, G::Nan, G::XorsignAbs, G::Hint), 0, "=0 0 0"},
    InstructionVariant{O::Min, "min", {integers | packed_integers}, with(G::Relu), 0, "=0 0 0"},
    InstructionVariant{O::Min, "min", {floats}, with(G::Ftz, G::Nan, G::XorsignAbs, G::Hint), 0, "=0 0 0"},
    InstructionVariant{O::Mul, "mul", {integers}, 0, with(G::Half), "=w 0 0"},
    InstructionVariant{O::Mul, "mul", {arithmetic_floats}, float_add, 0, "=0 0 0"},
    InstructionVariant{O::Mul24, "mul24", {integers_32}, 0, with(G::Half), "=0 0 0"},
    InstructionVariant{O::Neg, "neg", {signed_3}, 0, 0, "=0 0"},
    InstructionVariant{O::Neg, "neg", {floats}, with(G::Ftz), 0, "=0 0"},
    InstructionVariant{O::Popc, "popc", {bits_2}, 0, 0, "=u 0"},
    InstructionVariant{O::Rcp, "rcp", {f32_f64}, with(G::Ftz, G::Rounding, G::Approximate), 0, "=0 0"},
    InstructionVariant{O::Rem, "rem", {integers}, 0, 0, "=0 0 0"},
    InstructionVariant{O::Rsqrt, "rsqrt", {f32_f64}, with(G::Ftz), with(G::Approximate), "=0 0"},
    InstructionVariant{O::Sad, "sad", {integers}, 0, 0, "=0 0 0 0"},
    InstructionVariant{O::Sin, "sin", {f32}, with(G::Ftz), with(G::Approximate), "=0 0"},
    InstructionVariant{O::Sqrt, "sqrt", {f32_f64}, with(G::Ftz, G::Rounding, G::Approximate), 0, "=0 0"},
    InstructionVariant{O::Sub, "sub", {integers}, with(G::Saturate, G::Carry), 0, "=0 0 0"},
    InstructionVariant{O::Sub, "sub", {arithmetic_floats}, float_add, 0, "=0 0 0"},
    InstructionVariant{O::Subc, "subc", {integers_2}, with(G::Carry), 0, "=0 0 0"},
    InstructionVariant{O::Szext, "szext", {integers_32}, with(G::ShiftMode), 0, "=0 0 u"},
    InstructionVariant{O::Tanh, "tanh", {f32 | halves}, 0, with(G::Approximate), "=0 0"},
    InstructionVariant{O::Testp, "testp", {f32_f64}, 0, with(G::TestKind), "=p 0"},
    InstructionVariant{O::Vabsdiff4, "vabsdiff4", {integers_32, integers_32, integers_32}, with(G::Saturate, G::Accumulate), 0, "=0 1 2 0"},
    // Comparison and selection
    InstructionVariant{O::Selp, "selp", {bits_3 | integers | f32_f64}, 0, 0, "=0 0 0 q"},
    InstructionVariant{O::Set, "set", {set(Type::U32, Type::S32, Type::U16, Type::S16) | f32 | halves, bits_3 | integers | floats}, with(G::BoolOp, G::Ftz), with(G::Compare), "=0 1 1 ?q"},
    InstructionVariant{O::Setp, "setp", {bits_3 | integers | floats}, with(G::BoolOp, G::Ftz), with(G::Compare), "=p| 0 0 ?q"},
    InstructionVariant{O::Slct, "slct", {bits_3 | integers | f32_f64, set(Type::S32, Type::F32)}, with(G::Ftz), 0, "=0 0 0 1"},
    // Logic and shift
    InstructionVariant{O::And, "and", {bits_3 | pred}, 0, 0, "=0 0 0"},
    InstructionVariant{O::Cnot, "cnot", {bits_3}, 0, 0, "=0 0"},
    InstructionVariant{O::Lop3, "lop3", {b32}, with(G::BoolOp), 0, "=0| 0 0 0 i ?q"},
    InstructionVariant{O::Not, "not", {bits_3 | pred}, 0, 0, "=0 0"},
    InstructionVariant{O::Or, "or", {bits_3 | pred}, 0, 0, "=0 0 0"},
    InstructionVariant{O::Shf, "shf", {b32}, 0, with(G::ShiftDirection, G::ShiftMode), "=0 0 0 u"},
    InstructionVariant{O::Shl, "shl", {bits_3}, 0, 0, "=0 0 u"},
    InstructionVariant{O::Shr, "shr", {bits_3 | integers}, 0, 0, "=0 0 u"},
    InstructionVariant{O::Xor, "xor", {bits_3 | pred}, 0, 0, "=0 0 0"},
    // Movement and conversion
    InstructionVariant{O::CvtPack, "cvt.pack", {set(Type::U16, Type::S16, Type::U8, Type::S8), bit(Type::S32), b32 | none}, 0, with(G::Saturate), "=b s s ?b"},
    InstructionVariant{O::Cvt, "cvt", {convertible, convertible}, with(G::Rounding, G::IntegerRounding, G::Ftz, G::Saturate, G::SaturateFinite, G::Relu), 0, "=~0 ~1 ?~1"},
    InstructionVariant{O::Cvta, "cvta", {addresses}, with(G::To), with(G::Space), "=0 a"},
    InstructionVariant{O::Isspacep, "isspacep", {}, 0, with(G::Space), "=p n"},
    InstructionVariant{O::Ld, "ld", {memory}, load, 0, "=v m ?l", reads},
    InstructionVariant{O::Ldu, "ldu", {memory}, with(G::Space, G::Vector), 0, "=v m", reads},
    InstructionVariant{O::Mapa, "mapa", {addresses}, with(G::Space), 0, "=0 a u"},
    InstructionVariant{O::Mov, "mov", {scalars | pred | set(Type::B128)}, 0, 0, "=M M"},
    InstructionVariant{O::Prefetch, "prefetch", {}, with(G::Space, G::Hint), 0, "m"},
    InstructionVariant{O::Prefetchu, "prefetchu", {}, with(G::Hint), 0, "m"},
    InstructionVariant{O::Prmt, "prmt", {b32}, with(G::PermuteMode), 0, "=0 0 0 u"},
    InstructionVariant{O::ShflSync, "shfl.sync", {b32}, 0, with(G::ShuffleMode), "=0| 0 u u u"},
    InstructionVariant{O::Shfl, "shfl", {b32}, 0, with(G::ShuffleMode), "=0| 0 u u"},
    InstructionVariant{O::St, "st", {memory}, store, 0, "m v ?l", writes},
    // Asynchronous copy
    InstructionVariant{O::CpAsyncCommitGroup, "cp.async.commit_group", {}, 0, 0, ""},
    InstructionVariant{O::CpAsyncWaitAll, "cp.async.wait_all", {}, 0, 0, ""},
    InstructionVariant{O::CpAsyncWaitGroup, "cp.async.wait_group", {}, 0, 0, "i"},
    InstructionVariant{O::CpAsync, "cp.async", {}, with(G::CacheHint, G::Hint), with(G::Cache, G::Space, G::SourceSpace), "m m i ?c ?l", copies},
    // Synchronisation
    InstructionVariant{O::Activemask, "activemask", {b32}, 0, 0, "=0"},
    InstructionVariant{O::Atom, "atom", {bits_3 | integers | floats | set(Type::B128)}, atomic, with(G::AtomicOp), "=v m v ?0 ?l", updates},
    InstructionVariant{O::BarArrive, "bar.arrive", {}, with(G::Aligned), 0, "u u"},
    InstructionVariant{O::BarRed, "bar.red", {u32 | pred}, with(G::Aligned), with(G::BoolOp), "=0 u q/=0 u u q"},
    InstructionVariant{O::BarSync, "bar.sync", {}, with(G::Aligned), 0, "u ?u"},
    InstructionVariant{O::BarWarpSync, "bar.warp.sync", {}, 0, 0, "u"},
    InstructionVariant{O::BarrierClusterArrive, "barrier.cluster.arrive", {}, with(G::Order, G::Aligned), 0, ""},
    InstructionVariant{O::BarrierClusterWait, "barrier.cluster.wait", {}, with(G::Order, G::Aligned), 0, ""},
    InstructionVariant{O::ElectSync, "elect.sync", {}, 0, 0, "=b| u"},
    InstructionVariant{O::Fence, "fence", {}, with(G::Order, G::Scope, G::Hint, G::Space), 0, ""},
    InstructionVariant{O::MatchAll, "match.all.sync", {bits_2}, 0, 0, "=b| 0 u"},
    InstructionVariant{O::MatchAny, "match.any.sync", {bits_2}, 0, 0, "=b 0 u"},
    InstructionVariant{O::Membar, "membar", {}, 0, with(G::Scope), ""},
    InstructionVariant{O::Red, "red", {bits_3 | integers | floats}, atomic, with(G::AtomicOp), "m v ?l", updates},
    InstructionVariant{O::ReduxSync, "redux.sync", {set(Type::B32, Type::U32, Type::S32)}, 0, with(G::AtomicOp), "=0 0 u"},
    InstructionVariant{O::VoteSync, "vote.sync", {pred | b32}, 0, with(G::VoteMode), "=0 q u"},
    InstructionVariant{O::Vote, "vote", {pred | b32}, 0, with(G::VoteMode), "=0 q"},
    InstructionVariant{O::MbarrierInit, "mbarrier.init", {b64}, mbarrier, 0, "m u", writes},
    InstructionVariant{O::MbarrierInval, "mbarrier.inval", {b64}, mbarrier, 0, "m", writes},
    InstructionVariant{O::MbarrierArrive, "mbarrier.arrive", {b64}, mbarrier | with(G::ExpectTx, G::NoComplete), 0, "=l m ?u/m ?u", updates},
    InstructionVariant{O::MbarrierTestWait, "mbarrier.test_wait", {b64}, mbarrier | with(G::Parity), 0, "=p m l/=p m u", reads},
    InstructionVariant{O::MbarrierTryWait, "mbarrier.try_wait", {b64}, mbarrier | with(G::Parity), 0, "=p m l ?u/=p m u ?u", reads},
    // Control flow
    InstructionVariant{O::Bra, "bra", {}, with(G::Uniform), 0, "L"},
    InstructionVariant{O::BrxIdx, "brx.idx", {}, with(G::Uniform), 0, "u T"},
    InstructionVariant{O::Call, "call", {}, with(G::Uniform), 0, ""},
    InstructionVariant{O::Exit, "exit", {}, 0, 0, ""},
    InstructionVariant{O::Ret, "ret", {}, with(G::Uniform), 0, ""},
    // Matrix
    InstructionVariant{O::Ldmatrix, "ldmatrix.sync", {bit(Type::B16)}, with(G::Aligned, G::Transposed, G::Space), with(G::MatrixShape, G::MatrixCount), "=V m", reads},
    InstructionVariant{O::Mma, "mma.sync", {matrix, matrix, matrix, matrix}, with(G::Aligned, G::SaturateFinite), with(G::MatrixShape, G::LayoutA, G::LayoutB), "=V V V V"},
    InstructionVariant{O::Movmatrix, "movmatrix.sync", {bit(Type::B16)}, with(G::Aligned, G::Transposed), with(G::MatrixShape), "=b b"},
    InstructionVariant{O::Stmatrix, "stmatrix.sync", {bit(Type::B16)}, with(G::Aligned, G::Transposed, G::Space), with(G::MatrixShape, G::MatrixCount), "m V", writes},
    // Miscellaneous
    InstructionVariant{O::Alloca, "alloca", {addresses}, 0, 0, "=0 0 ?i"},
    InstructionVariant{O::Brkpt, "brkpt", {}, 0, 0, ""},
    InstructionVariant{O::Discard, "discard", {}, with(G::Space, G::Hint), 0, "m i", writes},
    InstructionVariant{O::Griddepcontrol, "griddepcontrol", {}, 0, with(G::Hint), ""},
    InstructionVariant{O::Nanosleep, "nanosleep", {u32}, 0, 0, "u"},
    InstructionVariant{O::Pmevent, "pmevent", {}, 0, 0, "i"},
    InstructionVariant{O::Stackrestore, "stackrestore", {addresses}, 0, 0, "0"},
    InstructionVariant{O::Stacksave, "stacksave", {addresses}, 0, 0, "=0"},
    InstructionVariant{O::Trap, "trap", {}, 0, 0, ""},
};

// clang-format on

struct Alias {
  std::string_view name;
  std::string_view meaning;
};

constexpr std::array aliases{
    Alias{"bar.cta.arrive", "bar.arrive"},     Alias{"bar.cta.red", "bar.red"},
    Alias{"bar.cta.sync", "bar.sync"},         Alias{"barrier.arrive", "bar.arrive"},
    Alias{"barrier.red", "bar.red"},           Alias{"barrier.sync", "bar.sync"},
    Alias{"barrier.cta.arrive", "bar.arrive"}, Alias{"barrier.cta.red", "bar.red"},
    Alias{"barrier.cta.sync", "bar.sync"},
};

using NameIndex = std::unordered_map<std::string_view, const InstructionVariant*>;

NameIndex build_name_index() {
  NameIndex index;
  for (const InstructionVariant& variant : table) index.try_emplace(variant.name, &variant);
  for (const Alias& alias : aliases) index.emplace(alias.name, index.at(alias.meaning));
  return index;
}

std::vector<std::span<const InstructionVariant>> build_opcode_index() {
  std::vector<std::span<const InstructionVariant>> index(256);
  for (std::size_t first = 0; first < table.size();) {
    std::size_t last = first;
    while (last < table.size() && table[last].opcode == table[first].opcode) ++last;
    index[static_cast<std::size_t>(table[first].opcode)] = std::span(table).subspan(first, last - first);
    first = last;
  }
  return index;
}

}  // namespace

std::span<const InstructionVariant> instruction_variants() { return table; }

std::span<const InstructionVariant> variants_of(Opcode opcode) {
  static const auto index = build_opcode_index();
  return index[static_cast<std::size_t>(opcode)];
}

const InstructionVariant* find_variant(Opcode opcode, const std::array<Type, 4>& types) {
  for (const InstructionVariant& variant : variants_of(opcode)) {
    bool matches = true;
    for (std::size_t i = 0; i < types.size(); ++i)
      matches = matches && contains(variant.types[i] == 0 ? none : variant.types[i], types[i]);
    if (matches) return &variant;
  }
  return nullptr;
}

const InstructionVariant* find_by_prefix(std::string_view text, std::size_t& name_length) {
  constexpr int most_words = 4;  // the longest name: what follows need not be looked at
  static const NameIndex index = build_name_index();
  std::size_t end = 0;
  for (int word = 0; word < most_words && end < text.size(); ++word)
    end = std::min(text.find('.', end + 1), text.size());
  text = text.substr(0, end);
  while (true) {
    if (const auto found = index.find(text); found != index.end()) {
      name_length = text.size();
      return found->second;
    }
    const std::size_t dot = text.rfind('.');
    if (dot == std::string_view::npos) return nullptr;
    text = text.substr(0, dot);
  }
}

}  // namespace firebreak::ptx
