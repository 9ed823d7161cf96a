// SPDX-License-Identifier: Apache-2.0
#include "kernels/ptx/modifier_table.h"

#include <array>

namespace firebreak::ptx {
namespace {

using G = ModifierGroup;

template <class Enum>
constexpr ModifierWord row(std::string_view word, G group, Enum value) {
  return {word, group, static_cast<std::uint8_t>(value)};
}

constexpr std::array words{
    row("rn", G::Rounding, Rounding::Rn),
    row("rna", G::Rounding, Rounding::Rna),
    row("rz", G::Rounding, Rounding::Rz),
    row("rm", G::Rounding, Rounding::Rm),
    row("rp", G::Rounding, Rounding::Rp),
    row("rni", G::IntegerRounding, Rounding::Rni),
    row("rzi", G::IntegerRounding, Rounding::Rzi),
    row("rmi", G::IntegerRounding, Rounding::Rmi),
    row("rpi", G::IntegerRounding, Rounding::Rpi),
    row("eq", G::Compare, Compare::Eq),
    row("ne", G::Compare, Compare::Ne),
    row("lt", G::Compare, Compare::Lt),
    row("le", G::Compare, Compare::Le),
    row("gt", G::Compare, Compare::Gt),
    row("ge", G::Compare, Compare::Ge),
    row("lo", G::Compare, Compare::Lo),
    row("ls", G::Compare, Compare::Ls),
    row("hi", G::Compare, Compare::Hi),
    row("hs", G::Compare, Compare::Hs),
    row("equ", G::Compare, Compare::Equ),
    row("neu", G::Compare, Compare::Neu),
    row("ltu", G::Compare, Compare::Ltu),
    row("leu", G::Compare, Compare::Leu),
    row("gtu", G::Compare, Compare::Gtu),
    row("geu", G::Compare, Compare::Geu),
    row("num", G::Compare, Compare::Num),
    row("nan", G::Compare, Compare::Nan),
    row("and", G::BoolOp, BoolOp::And),
    row("or", G::BoolOp, BoolOp::Or),
    row("xor", G::BoolOp, BoolOp::Xor),
    row("popc", G::BoolOp, BoolOp::Popc),
    row("lo", G::Half, Half::Lo),
    row("hi", G::Half, Half::Hi),
    row("wide", G::Half, Half::Wide),
    row("weak", G::Order, MemoryOrder::Weak),
    row("relaxed", G::Order, MemoryOrder::Relaxed),
    row("acquire", G::Order, MemoryOrder::Acquire),
    row("release", G::Order, MemoryOrder::Release),
    row("acq_rel", G::Order, MemoryOrder::AcqRel),
    row("sc", G::Order, MemoryOrder::Sc),
    row("volatile", G::Order, MemoryOrder::Volatile),
    row("mmio", G::Order, MemoryOrder::Mmio),
    row("cta", G::Scope, Scope::Cta),
    row("cluster", G::Scope, Scope::Cluster),
    row("gpu", G::Scope, Scope::Gpu),
    row("gl", G::Scope, Scope::Gpu),
    row("sys", G::Scope, Scope::Sys),
    row("const", G::Space, StateSpace::Const),
    row("global", G::Space, StateSpace::Global),
    row("local", G::Space, StateSpace::Local),
    row("param", G::Space, StateSpace::Param),
    row("param::entry", G::Space, StateSpace::Param),
    row("param::func", G::Space, StateSpace::Param),
    row("shared", G::Space, StateSpace::Shared),
    row("shared::cta", G::Space, StateSpace::Shared),
    row("shared::cluster", G::Space, StateSpace::SharedCluster),
    row("global", G::SourceSpace, StateSpace::Global),
    row("add", G::AtomicOp, AtomicOp::Add),
    row("and", G::AtomicOp, AtomicOp::And),
    row("cas", G::AtomicOp, AtomicOp::Cas),
    row("dec", G::AtomicOp, AtomicOp::Dec),
    row("exch", G::AtomicOp, AtomicOp::Exch),
    row("inc", G::AtomicOp, AtomicOp::Inc),
    row("max", G::AtomicOp, AtomicOp::Max),
    row("min", G::AtomicOp, AtomicOp::Min),
    row("or", G::AtomicOp, AtomicOp::Or),
    row("xor", G::AtomicOp, AtomicOp::Xor),
    row("up", G::ShuffleMode, ShuffleMode::Up),
    row("down", G::ShuffleMode, ShuffleMode::Down),
    row("bfly", G::ShuffleMode, ShuffleMode::Bfly),
    row("idx", G::ShuffleMode, ShuffleMode::Idx),
    row("all", G::VoteMode, VoteMode::All),
    row("any", G::VoteMode, VoteMode::Any),
    row("uni", G::VoteMode, VoteMode::Uni),
    row("ballot", G::VoteMode, VoteMode::Ballot),
    row("f4e", G::PermuteMode, PermuteMode::F4e),
    row("b4e", G::PermuteMode, PermuteMode::B4e),
    row("rc8", G::PermuteMode, PermuteMode::Rc8),
    row("ecl", G::PermuteMode, PermuteMode::Ecl),
    row("ecr", G::PermuteMode, PermuteMode::Ecr),
    row("rc16", G::PermuteMode, PermuteMode::Rc16),
    row("wrap", G::ShiftMode, ShiftMode::Wrap),
    row("clamp", G::ShiftMode, ShiftMode::Clamp),
    row("l", G::ShiftDirection, ShiftDirection::Left),
    row("r", G::ShiftDirection, ShiftDirection::Right),
    row("ca", G::Cache, CacheOperator::Ca),
    row("cg", G::Cache, CacheOperator::Cg),
    row("cs", G::Cache, CacheOperator::Cs),
    row("lu", G::Cache, CacheOperator::Lu),
    row("cv", G::Cache, CacheOperator::Cv),
    row("wb", G::Cache, CacheOperator::Wb),
    row("wt", G::Cache, CacheOperator::Wt),
    row("finite", G::TestKind, TestKind::Finite),
    row("infinite", G::TestKind, TestKind::Infinite),
    row("number", G::TestKind, TestKind::Number),
    row("notanumber", G::TestKind, TestKind::NotANumber),
    row("normal", G::TestKind, TestKind::Normal),
    row("subnormal", G::TestKind, TestKind::Subnormal),
    row("m8n8", G::MatrixShape, MatrixShape::M8n8),
    row("m8n8k4", G::MatrixShape, MatrixShape::M8n8k4),
    row("m16n8k4", G::MatrixShape, MatrixShape::M16n8k4),
    row("m16n8k8", G::MatrixShape, MatrixShape::M16n8k8),
    row("m16n8k16", G::MatrixShape, MatrixShape::M16n8k16),
    row("m16n8k32", G::MatrixShape, MatrixShape::M16n8k32),
    row("row", G::LayoutA, MatrixLayout::Row),
    row("col", G::LayoutA, MatrixLayout::Col),
    row("row", G::LayoutB, MatrixLayout::Row),
    row("col", G::LayoutB, MatrixLayout::Col),
    row("x1", G::MatrixCount, 1),
    row("x2", G::MatrixCount, 2),
    row("x4", G::MatrixCount, 4),
    row("v2", G::Vector, 2),
    row("v4", G::Vector, 4),
    row("v8", G::Vector, 8),
    row("ftz", G::Ftz, true),
    row("sat", G::Saturate, true),
    row("satfinite", G::SaturateFinite, true),
    row("approx", G::Approximate, true),
    row("full", G::Full, true),
    row("relu", G::Relu, true),
    row("NaN", G::Nan, true),
    row("xorsign", G::Hint, true),
    row("abs", G::XorsignAbs, true),
    row("cc", G::Carry, true),
    row("shiftamt", G::ShiftAmount, true),
    row("uni", G::Uniform, true),
    row("nc", G::NonCoherent, true),
    row("to", G::To, true),
    row("aligned", G::Aligned, true),
    row("trans", G::Transposed, true),
    row("add", G::Accumulate, true),
    row("parity", G::Parity, true),
    row("expect_tx", G::ExpectTx, true),
    row("noComplete", G::NoComplete, true),
    row("L2::cache_hint", G::CacheHint, true),
    row("noftz", G::Hint, true),
    row("L1", G::Hint, true),
    row("L2", G::Hint, true),
    row("L1::evict_normal", G::Hint, true),
    row("L1::evict_unchanged", G::Hint, true),
    row("L1::evict_first", G::Hint, true),
    row("L1::evict_last", G::Hint, true),
    row("L1::no_allocate", G::Hint, true),
    row("L2::evict_last", G::Hint, true),
    row("L2::evict_normal", G::Hint, true),
    row("L2::evict_first", G::Hint, true),
    row("L2::64B", G::Hint, true),
    row("L2::128B", G::Hint, true),
    row("L2::256B", G::Hint, true),
    row("proxy", G::Hint, true),
    row("alias", G::Hint, true),
    row("async", G::Hint, true),
    row("async::global", G::Hint, true),
    row("async::shared::cta", G::Hint, true),
    row("mbarrier_init", G::Hint, true),
    row("launch_dependents", G::Hint, true),
    row("wait", G::Hint, true),
    row("b", G::Hint, true),
};

// A field of Modifiers as a byte: every one is an enum of a byte, a byte or a bool.
struct Field {
  ModifierGroup group;
  std::uint8_t (*get)(const Modifiers&);
  void (*set)(Modifiers&, std::uint8_t);
  std::string_view description;
};

template <auto Member>
constexpr Field field(ModifierGroup group, std::string_view description) {
  using Value = std::remove_cvref_t<decltype(std::declval<Modifiers>().*Member)>;
  return {group, [](const Modifiers& modifiers) { return static_cast<std::uint8_t>(modifiers.*Member); },
          [](Modifiers& modifiers, std::uint8_t value) { modifiers.*Member = static_cast<Value>(value); },
          description};
}

// The order is the enumeration's, so that a group indexes its field.
constexpr std::array fields{
    field<&Modifiers::aligned>(G::Aligned, ".aligned"),
    field<&Modifiers::shuffle_mode>(G::ShuffleMode, "one of .up, .down, .bfly, .idx"),
    field<&Modifiers::vote_mode>(G::VoteMode, "one of .all, .any, .uni, .ballot"),
    field<&Modifiers::test_kind>(G::TestKind, "what to test for, as .finite"),
    field<&Modifiers::shift_direction>(G::ShiftDirection, "one of .l, .r"),
    field<&Modifiers::shift_mode>(G::ShiftMode, "one of .wrap, .clamp"),
    field<&Modifiers::compare>(G::Compare, "a comparison, as .eq"),
    field<&Modifiers::bool_op>(G::BoolOp, "one of .and, .or, .xor, .popc"),
    field<&Modifiers::half>(G::Half, "one of .lo, .hi, .wide"),
    field<&Modifiers::carry_out>(G::Carry, ".cc"),
    field<&Modifiers::expect_tx>(G::ExpectTx, ".expect_tx"),
    field<&Modifiers::no_complete>(G::NoComplete, ".noComplete"),
    field<&Modifiers::parity>(G::Parity, ".parity"),
    field<&Modifiers::shift_amount>(G::ShiftAmount, ".shiftamt"),
    field<&Modifiers::order>(G::Order, "a memory order, as .acquire"),
    field<&Modifiers::scope>(G::Scope, "a scope, as .gpu"),
    field<&Modifiers::to_space>(G::To, ".to"),
    field<&Modifiers::space>(G::Space, "a state space, as .global"),
    field<&Modifiers::source_space>(G::SourceSpace, "a state space for the source"),
    field<&Modifiers::non_coherent>(G::NonCoherent, ".nc"),
    field<&Modifiers::cache>(G::Cache, "a cache operator, as .cg"),
    field<&Modifiers::cache_hint>(G::CacheHint, ".L2::cache_hint"),
    field<&Modifiers::atomic_op>(G::AtomicOp, "an operation, as .add"),
    field<&Modifiers::matrix_shape>(G::MatrixShape, "a shape, as .m16n8k16"),
    field<&Modifiers::matrix_count>(G::MatrixCount, "one of .x1, .x2, .x4"),
    field<&Modifiers::transposed>(G::Transposed, ".trans"),
    field<&Modifiers::matrix_layout_a>(G::LayoutA, "one of .row, .col for a"),
    field<&Modifiers::matrix_layout_b>(G::LayoutB, "one of .row, .col for b"),
    field<&Modifiers::rounding>(G::Rounding, "a rounding, as .rn"),
    field<&Modifiers::rounding>(G::IntegerRounding, "a rounding to an integer, as .rzi"),
    field<&Modifiers::approximate>(G::Approximate, ".approx"),
    field<&Modifiers::full>(G::Full, ".full"),
    field<&Modifiers::uniform>(G::Uniform, ".uni"),
    field<&Modifiers::ftz>(G::Ftz, ".ftz"),
    field<&Modifiers::nan>(G::Nan, ".NaN"),
    field<&Modifiers::xorsign_abs>(G::XorsignAbs, ".xorsign.abs"),
    field<&Modifiers::saturate>(G::Saturate, ".sat"),
    field<&Modifiers::saturate_finite>(G::SaturateFinite, ".satfinite"),
    field<&Modifiers::relu>(G::Relu, ".relu"),
    field<&Modifiers::permute_mode>(G::PermuteMode, "a mode, as .b4e"),
    field<&Modifiers::accumulate>(G::Accumulate, ".add"),
    field<&Modifiers::vector_arity>(G::Vector, "one of .v2, .v4, .v8"),
};
static_assert(fields.size() + 1 == modifier_group_count);

constexpr bool fields_are_in_order() {
  for (std::size_t i = 0; i < fields.size(); ++i)
    if (static_cast<std::size_t>(fields[i].group) != i) return false;
  return true;
}
static_assert(fields_are_in_order());

bool is_integer_rounding(std::uint8_t value) { return value >= static_cast<std::uint8_t>(Rounding::Rni); }

}  // namespace

std::span<const ModifierWord> modifier_words() { return words; }

std::uint8_t modifier_value(const Modifiers& modifiers, ModifierGroup group) {
  return group == G::Hint ? std::uint8_t{0} : fields[static_cast<std::size_t>(group)].get(modifiers);
}

bool modifier_given(const Modifiers& modifiers, ModifierGroup group) {
  const std::uint8_t value = modifier_value(modifiers, group);
  if (group == G::Vector) return value != 1;
  if (group == G::Rounding) return value != 0 && !is_integer_rounding(value);
  if (group == G::IntegerRounding) return is_integer_rounding(value);
  return value != 0;
}

void set_modifier(Modifiers& modifiers, ModifierGroup group, std::uint8_t value) {
  if (group != G::Hint) fields[static_cast<std::size_t>(group)].set(modifiers, value);
}

std::string_view modifier_word(const Modifiers& modifiers, ModifierGroup group) {
  if (!modifier_given(modifiers, group)) return {};
  const std::uint8_t value = modifier_value(modifiers, group);
  for (const ModifierWord& word : words)
    if (word.group == group && word.value == value) return group == G::XorsignAbs ? "xorsign.abs" : word.word;
  return {};
}

std::string_view describe(ModifierGroup group) {
  return group == G::Hint ? "a hint" : fields[static_cast<std::size_t>(group)].description;
}

}  // namespace firebreak::ptx
