// SPDX-License-Identifier: Apache-2.0
/// Opcodes, modifiers and special registers: everything of an instruction that is a fixed word.
#pragma once

#include <cstdint>

#include "kernels/ptx/types.h"

namespace firebreak::ptx {

/// One per instruction family; words like `.sync` that choose the family are part of the opcode (shfl.sync:
/// ShflSync).
enum class Opcode : std::uint8_t {
  // Integer and floating-point arithmetic
  Abs,
  Add,
  Addc,
  Bfe,
  Bfi,
  Bfind,
  Bmsk,
  Brev,
  Clz,
  Copysign,
  Cos,
  Div,
  Dp2a,
  Dp4a,
  Ex2,
  Fma,
  Fns,
  Lg2,
  Mad,
  Mad24,
  Madc,
  Max,
  Min,
  Mul,
  Mul24,
  Neg,
  Popc,
  Rcp,
  Rem,
  Rsqrt,
  Sad,
  Sin,
  Sqrt,
  Sub,
  Subc,
  Szext,
  Tanh,
  Testp,
  // Comparison and selection
  Selp,
  Set,
  Setp,
  Slct,
  // Logic and shift
  And,
  Cnot,
  Lop3,
  Not,
  Or,
  Shf,
  Shl,
  Shr,
  Xor,
  // Movement and conversion
  Cvt,
  CvtPack,
  Cvta,
  Isspacep,
  Ld,
  Ldu,
  Mapa,
  Mov,
  Prefetch,
  Prefetchu,
  Prmt,
  Shfl,  ///< the form without .sync: before sm_70
  ShflSync,
  St,
  // Asynchronous copy
  CpAsync,
  CpAsyncCommitGroup,
  CpAsyncWaitAll,
  CpAsyncWaitGroup,
  // Synchronisation
  Activemask,
  Atom,
  BarArrive,  ///< bar.arrive, barrier.arrive (.cta or not)
  BarRed,     ///< bar.red, barrier.red
  BarSync,    ///< bar.sync, barrier.sync
  BarWarpSync,
  BarrierClusterArrive,
  BarrierClusterWait,
  ElectSync,
  Fence,     ///< the form without an order: .acq_rel if there is a scope, else a proxy fence
  MatchAll,  ///< match.all.sync
  MatchAny,  ///< match.any.sync
  Membar,
  Red,
  ReduxSync,
  Vote,  ///< the form without .sync: before sm_70
  VoteSync,
  MbarrierInit,
  MbarrierInval,
  MbarrierArrive,
  MbarrierTestWait,
  MbarrierTryWait,
  // Control flow
  Bra,
  BrxIdx,
  Call,
  Exit,
  Ret,
  // Matrix
  Ldmatrix,
  Mma,  ///< mma.sync.aligned
  Movmatrix,
  Stmatrix,
  // Miscellaneous
  Alloca,  ///< d, size{, alignment}
  Brkpt,
  Discard,
  Griddepcontrol,
  Nanosleep,
  Pmevent,
  Stackrestore,
  Stacksave,
  Trap,
  Vabsdiff4,  ///< d, a, b, c: four bytes at a time
  // Opcodes that are not of the language follow
  Opaque,  ///< one that this parser does not know: Function::opaque_instructions
};

enum class Rounding : std::uint8_t { None, Rn, Rna, Rz, Rm, Rp, Rni, Rzi, Rmi, Rpi };

enum class Compare : std::uint8_t {
  None,
  Eq,
  Ne,
  Lt,
  Le,
  Gt,
  Ge,
  Lo,
  Ls,
  Hi,
  Hs,
  Equ,
  Neu,
  Ltu,
  Leu,
  Gtu,
  Geu,
  Num,
  Nan
};

/// Combines a comparison with a predicate (set, setp), or threads with each other (bar.red, then also Popc).
enum class BoolOp : std::uint8_t { None, And, Or, Xor, Popc };

/// The part of a product (mul, mad, madc, mul24, mad24) or of an operand (dp2a) that is meant.
enum class Half : std::uint8_t { None, Lo, Hi, Wide };

enum class MemoryOrder : std::uint8_t { None, Weak, Relaxed, Acquire, Release, AcqRel, Sc, Volatile, Mmio };

/// membar.cta, .gl and .sys are Cta, Gpu and Sys.
enum class Scope : std::uint8_t { None, Cta, Cluster, Gpu, Sys };

/// atom, red, redux.sync.
enum class AtomicOp : std::uint8_t { None, Add, And, Cas, Dec, Exch, Inc, Max, Min, Or, Xor };

/// The effect of an instruction at one of its addresses.
enum class EffectKind : std::uint8_t { None, Read, Write, Atomic };

enum class ShuffleMode : std::uint8_t { None, Up, Down, Bfly, Idx };
enum class VoteMode : std::uint8_t { None, All, Any, Uni, Ballot };
enum class PermuteMode : std::uint8_t { None, F4e, B4e, Rc8, Ecl, Ecr, Rc16 };
/// shf, bmsk, szext: what happens with an amount beyond the width.
enum class ShiftMode : std::uint8_t { None, Wrap, Clamp };
enum class ShiftDirection : std::uint8_t { None, Left, Right };
enum class CacheOperator : std::uint8_t { None, Ca, Cg, Cs, Lu, Cv, Wb, Wt };
enum class TestKind : std::uint8_t { None, Finite, Infinite, Number, NotANumber, Normal, Subnormal };
enum class MatrixShape : std::uint8_t { None, M8n8, M8n8k4, M16n8k4, M16n8k8, M16n8k16, M16n8k32 };
enum class MatrixLayout : std::uint8_t { None, Row, Col };

/// The modifiers that an instruction can carry; one that is absent has its None or false.
struct Modifiers {
  Rounding rounding = Rounding::None;
  Compare compare = Compare::None;
  BoolOp bool_op = BoolOp::None;
  Half half = Half::None;
  MemoryOrder order = MemoryOrder::None;
  Scope scope = Scope::None;
  StateSpace space =
      StateSpace::None;  ///< ld, st, atom, red, cvta, isspacep, prefetch; cp.async: destination
  StateSpace source_space = StateSpace::None;  ///< cp.async: source
  AtomicOp atomic_op = AtomicOp::None;
  ShuffleMode shuffle_mode = ShuffleMode::None;
  VoteMode vote_mode = VoteMode::None;
  PermuteMode permute_mode = PermuteMode::None;
  ShiftMode shift_mode = ShiftMode::None;
  ShiftDirection shift_direction = ShiftDirection::None;
  CacheOperator cache = CacheOperator::None;
  TestKind test_kind = TestKind::None;
  MatrixShape matrix_shape = MatrixShape::None;
  MatrixLayout matrix_layout_a = MatrixLayout::None;
  MatrixLayout matrix_layout_b = MatrixLayout::None;
  std::uint8_t matrix_count = 0;  ///< ldmatrix, stmatrix: .x1, .x2, .x4
  std::uint8_t vector_arity = 1;  ///< 1, 2, 4 or 8: .v2, .v4, .v8
  bool ftz = false;
  bool saturate = false;         ///< .sat
  bool saturate_finite = false;  ///< .satfinite
  bool approximate = false;      ///< .approx
  bool full = false;             ///< div.full
  bool relu = false;
  bool nan = false;           ///< min, max: a NaN operand gives NaN
  bool xorsign_abs = false;   ///< min, max
  bool carry_out = false;     ///< .cc: writes the carry flag
  bool shift_amount = false;  ///< bfind.shiftamt
  bool uniform = false;       ///< .uni: a hint
  bool non_coherent = false;  ///< ld.global.nc
  bool to_space = false;      ///< cvta.to: from generic to `space`; without it the other way
  bool aligned = false;       ///< barrier, mma, ldmatrix: all threads of the warp execute it together
  bool transposed = false;    ///< ldmatrix, stmatrix
  bool cache_hint = false;    ///< .L2::cache_hint: one more operand, the last, a .b64 policy to ignore
  bool parity = false;        ///< mbarrier.test_wait.parity, .try_wait.parity
  bool expect_tx = false;     ///< mbarrier.arrive.expect_tx
  bool accumulate = false;    ///< vabsdiff4.add: adds the four results to c
  bool no_complete = false;   ///< mbarrier.arrive.noComplete
};

/// Special registers; a vector one has one value a component.
enum class SpecialRegister : std::uint8_t {
  None,
  TidX,
  TidY,
  TidZ,
  NtidX,
  NtidY,
  NtidZ,
  CtaidX,
  CtaidY,
  CtaidZ,
  NctaidX,
  NctaidY,
  NctaidZ,
  ClusteridX,
  ClusteridY,
  ClusteridZ,
  NclusteridX,
  NclusteridY,
  NclusteridZ,
  ClusterCtaidX,
  ClusterCtaidY,
  ClusterCtaidZ,
  ClusterNctaidX,
  ClusterNctaidY,
  ClusterNctaidZ,
  ClusterCtarank,
  ClusterNctarank,
  IsExplicitCluster,  ///< a predicate
  Laneid,
  Warpid,
  Nwarpid,
  Smid,
  Nsmid,
  Gridid,
  LanemaskEq,
  LanemaskLe,
  LanemaskLt,
  LanemaskGe,
  LanemaskGt,
  Clock,
  ClockHi,
  Clock64,
  Globaltimer,
  GlobaltimerLo,
  GlobaltimerHi,
  DynamicSmemSize,
  TotalSmemSize,
  AggrSmemSize,
  ReservedSmemOffsetBegin,
  ReservedSmemOffsetEnd,
  ReservedSmemOffsetCap,
  ReservedSmemOffset0,
  ReservedSmemOffset1,
  Envreg,  ///< %envreg0 to %envreg31: set by drivers for themselves; ours sets none, so one stands for all
  CurrentGraphExec,
};

}  // namespace firebreak::ptx
