// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace firebreak::test {

/// Kernels with one parameter, an address: one for every way to fault, and some that do not.
inline constexpr const char* kernels = R"(
.version 7.0
.target sm_70
.address_size 64

.visible .entry add_one(.param .u64 address) {
  .reg .b64 p;
  .reg .b32 v;
  ld.param.u64 p, [address];
  atom.global.add.u32 v, [p], 1;
  ret;
}

// Adds one to every word of the first MiB, over and over, for ever.
.visible .entry sweep(.param .u64 address) {
  .reg .b64 p, end;
  .reg .b32 v;
  .reg .pred more;
again:
  ld.param.u64 p, [address];
  add.u64 end, p, 1048576;
next:
  ld.global.u32 v, [p];
  add.u32 v, v, 1;
  st.global.u32 [p], v;
  add.u64 p, p, 4;
  setp.lt.u64 more, p, end;
  @more bra next;
  bra again;
}

// Each block adds one to its word, the first one's is the second, once the first word is not 0. Word 2048 says
// that one has begun.
.visible .entry gated(.param .u64 address) {
  .reg .b64 p, at;
  .reg .b32 v, i;
  .reg .pred shut;
  ld.param.u64 p, [address];
  st.volatile.global.u32 [p+8192], 1;
look:
  ld.volatile.global.u32 v, [p];
  setp.eq.u32 shut, v, 0;
  @shut bra look;
  mov.u32 i, %ctaid.x;
  mul.wide.u32 at, i, 4;
  add.u64 at, p, at;
  atom.global.add.u32 v, [at+4], 1;
  ret;
}

.visible .entry trap_in_block(.param .u64 block) {
  .reg .b64 which, own;
  .reg .pred is_it;
  ld.param.u64 which, [block];
  cvt.u64.u32 own, %ctaid.x;
  setp.eq.u64 is_it, which, own;
  @is_it trap;
  ret;
}

.visible .entry unmapped_store(.param .u64 address) {
  .reg .b64 p;
  mov.u64 p, 0x7000dead0000;
  st.global.u32 [p], 7;
  ret;
}

.visible .entry load(.param .u64 address) {
  .reg .b64 p;
  .reg .b32 v;
  ld.param.u64 p, [address];
  ld.volatile.global.u32 v, [p];
  ret;
}

.visible .entry store(.param .u64 address) {
  .reg .b64 p;
  ld.param.u64 p, [address];
  st.volatile.global.u32 [p], 7;
  ret;
}

.visible .entry jump(.param .u64 address) {
  .reg .b64 p;
  ld.param.u64 p, [address];
  code: .callprototype _ ();
  call p, (), code;
  ret;
}

.visible .entry misaligned(.param .u64 address) {
  .reg .b64 p;
  .reg .b32 v;
  ld.param.u64 p, [address];
  ld.volatile.global.u32 v, [p+1];
  ret;
}

.visible .entry trap_now(.param .u64 address) {
  trap;
  ret;
}
)";

}  // namespace firebreak::test
