// SPDX-License-Identifier: Apache-2.0
#include "idempotency/adversarial_kernel.h"

#include <fmt/format.h>

#include <cstring>

#include "idempotency/kernel_text.h"
#include "idempotency/mixed_kernel.h"

namespace firebreak::idempotency {
namespace {

constexpr std::uint64_t buffer_bytes = 32U << 10;

// A read of a place that a loop may reach, and the loop. It ends where a counter meets something that is not
// the same in each round.
std::string changing_bound(KernelText& text) {
  const std::string counter = "%v0";
  const std::uint64_t cap = text.between(8, 40);
  const std::uint64_t read_at = text.below(cap + 8);
  text.line("mov.u32 %v0, 0");
  text.line("mov.u32 %v1, {}", text.below(4));
  text.line("mov.u32 %v2, {}", text.below(4));
  text.line("ld.global.u32 %v5, [%rd0+{}]", 4 * read_at);
  text.label("LOOP");
  text.line("mul.wide.u32 %x0, %v0, 4");
  text.line("add.s64 %x1, %rd0, %x0");
  text.line("add.s64 %x2, %rd1, %x0");
  text.line("add.s32 %v5, %v5, 1");
  const bool writes_first = text.coin();
  if (writes_first) text.line("st.global.u32 [%x1], %v5");
  const std::string bound = text.changing_value("%x2");
  if (!writes_first) text.line("st.global.u32 [%x1], %v5");
  text.line("add.s32 %v0, %v0, {}", text.between(1, 2));
  text.line("setp.ge.u32 %p1, %v0, {}", cap);
  text.line("@%p1 bra END");
  text.leave_or_stay(counter, bound);
  text.label("END");
  return text.kernel();
}

// The outer loop has no test of its own.
std::string nested_exit(KernelText& text) {
  const std::uint64_t columns = text.between(2, 6);
  const bool is_unguarded = text.coin();
  text.line("mov.u32 %v0, 0");
  text.line("and.b32 %v9, %r0, 15");
  text.label("OUTER");
  text.line("mov.u32 %v1, 0");
  text.label("INNER");
  text.line("mad.lo.u32 %v2, %v0, {}, %v1", columns);
  text.line("mul.wide.u32 %x0, %v2, 4");
  text.line("add.s64 %x1, %rd{}, %x0", text.below(3));
  if (is_unguarded) text.line("st.global.u32 [%x1], %v2");
  switch (text.below(3)) {
    case 0:
      text.line("add.u32 %v3, %v0, %v1");
      break;
    case 1:
      text.line("mad.lo.u32 %v3, %v0, 2, %v1");
      break;
    default:
      text.line("max.u32 %v3, %v0, %v1");
      break;
  }
  text.line("setp.lt.u32 %p1, %v3, %v9");
  text.line("@!%p1 bra END");
  if (!is_unguarded) text.line("st.global.u32 [%x1], %v2");
  text.line("add.u32 %v1, %v1, 1");
  text.line("setp.lt.u32 %p2, %v1, {}", columns);
  text.line("@%p2 bra INNER");
  text.line("add.u32 %v0, %v0, 1");
  if (text.below(3) == 0) {
    text.line("setp.ge.u32 %p3, %v0, {}", text.between(4, 30));
    text.line("@%p3 bra END");
  }
  text.line("bra OUTER");
  text.label("END");
  return text.kernel();
}

std::string constant_alias(KernelText& text) {
  text.add_module(".const .align 16 .b8 cc[1024];\n");
  text.line("ld.const.u32 %v0, [cc+{}]", 4 * text.below(40));
  if (text.coin()) {
    text.line("mul.wide.u32 %x4, %r3, 4");
    text.line("mov.u64 %x5, cc");
    text.line("add.s64 %x4, %x4, %x5");
    text.line("ld.const.u32 %v1, [%x4]");
    text.line("add.u32 %v0, %v0, %v1");
  }
  text.line("add.u32 %v0, %v0, 1");
  text.line("mov.u64 %x0, cc");
  text.line("cvta.const.u64 %x1, %x0");
  text.line("and.b32 %v2, %r6, 127");
  text.line("mul.wide.u32 %x2, %v2, 4");
  text.line("add.s64 %x3, %x1, %x2");
  if (text.coin()) {
    text.line("st.u32 [%x3], %v0");
  } else {
    text.line("cvta.to.global.u64 %x3, %x3");
    text.line("st.global.u32 [%x3], %v0");
  }
  return text.kernel();
}

std::string no_return(KernelText& text) {
  const std::uint64_t which = text.below(4);
  const char* const name = which == 0   ? "__assertfail"
                           : which == 1 ? "__assert_fail"
                           : which == 2 ? "vprintf"
                                        : "finish";
  const bool ends = text.coin();
  text.add_module(fmt::format(
      ".func {}(.param .b64 at, .param .b32 value){}\n{{\n  .reg .b64 %rd<3>;\n  .reg .b32 %r<3>;\n"
      "  ld.param.u64 %rd1, [at];\n  ld.param.u32 %r1, [value];\n  ld.global.u32 %r2, [%rd1+{}];\n"
      "  add.u32 %r2, %r2, %r1;\n  st.global.u32 [%rd1], %r2;\n  {};\n}}\n",
      name, ends ? " .noreturn" : "", 4 * text.below(2), ends ? "exit" : "ret"));
  text.line("mul.wide.u32 %x0, %r6, 4");
  text.line("add.s64 %x0, %x0, %rd{}", text.below(3));
  text.line("ld.global.u32 %v0, [%x0]");
  text.line("and.b32 %v0, %v0, 7");
  if (text.coin()) text.line("setp.ne.u32 %p1, %v0, 0");
  const bool is_guarded = text.coin();
  if (is_guarded) text.line("setp.lt.u32 %p1, %v0, 4");
  if (is_guarded) text.line("@%p1 bra END");
  text.raw(
      fmt::format("  {{ .param .b64 p0; st.param.b64 [p0], %x0; .param .b32 p1; st.param.b32 [p1], %v0; "
                  "call {}, (p0, p1); }}\n",
                  name));
  text.label("END");
  return text.kernel();
}

// The index comes out of memory, and keeps the address in one array: if memory holds small numbers.
std::string end_of_array(KernelText& text) {
  const std::uint64_t from = text.below(3);
  const std::uint64_t to = text.below(3);
  text.line("and.b32 %v0, %r6, 31");
  text.line("mul.wide.u32 %x0, %v0, 4");
  const bool reads_behind = text.coin();
  text.line("add.s64 %x1, %rd{}, %x0", from);
  text.line("ld.global.u32 %v1, [%x1{}]", reads_behind ? "" : "+-256");
  text.line("ld.global.u32 %v2, [%x1{}]", text.coin() ? "+512" : "+-512");
  if (text.below(3) == 0) text.line("and.b32 %v2, %v2, 63");
  if (text.below(3) != 0) text.line("not.b32 %v2, %v2");
  text.line("mul.wide.s32 %x2, %v2, 4");
  text.line("add.s64 %x3, %rd{}, %x2", to);
  text.line("add.u32 %v1, %v1, 1");
  text.line("st.global.u32 [%x3], %v1");
  return text.kernel();
}

std::string generic_arithmetic(KernelText& text) {
  const bool is_local = text.below(3) == 0;
  text.line("mul.wide.u32 %x0, %r6, 4");
  text.line("add.s64 %x1, %rd{}, %x0", text.below(3));
  text.line("mov.u64 %x2, {}", is_local ? "frame" : "tile");
  text.line("cvta.{}.u64 %x3, %x2", is_local ? "local" : "shared");
  switch (text.below(5)) {
    case 0:
      text.line("sub.s64 %x4, %x3, %x1");
      text.line("sub.s64 %x5, %x3, %x4");
      break;
    case 1:
      text.line("sub.s64 %x4, %x1, %x3");
      text.line("add.s64 %x5, %x3, %x4");
      break;
    case 2:
      text.line("xor.b64 %x4, %x3, %x1");
      text.line("xor.b64 %x5, %x4, %x3");
      break;
    case 3:
      text.line("setp.eq.u32 %p1, %r2, 3");
      text.line("selp.b64 %x5, %x3, %x1, %p1");
      break;
    default:
      text.line("add.s64 %x4, %x3, %x1");
      text.line("neg.s64 %x6, %x3");
      text.line("add.s64 %x5, %x4, %x6");
      break;
  }
  text.line("ld.global.u32 %v0, [%x1{}]", text.coin() ? "+4" : "");
  text.line("add.u32 %v0, %v0, 3");
  text.line("st.u32 [%x5], %v0");
  return text.kernel();
}

std::string relative_pointer(KernelText& text) {
  const bool is_local = text.below(3) == 0;
  const char* const space = is_local ? "local" : "shared";
  const std::uint64_t from = text.below(3);
  const std::uint64_t to = text.below(3);
  text.line("mul.wide.u32 %x0, %r6, 4");
  text.line("sub.s64 %x1, %rd{}, %rd{}", to, from);
  if (text.coin()) text.line("add.s64 %x1, %x1, %x0");
  text.line("mul.wide.u32 %x2, %r3, 8");
  text.line("mov.u64 %x3, {}", is_local ? "frame" : "tile");
  if (!is_local) text.line("add.s64 %x3, %x3, %x2");
  text.line("st.{}.u64 [%x3], %x1", space);
  if (!is_local && text.coin()) text.line("bar.sync 0");
  text.line("ld.{}.u64 %x4, [%x3]", space);
  text.line("add.s64 %x5, %x4, %rd{}", from);
  if (text.coin()) text.line("add.s64 %x5, %x5, %x0");
  text.line("add.s64 %x6, %rd{}, %x0", text.below(3));
  text.line("ld.global.u32 %v0, [%x6]");
  text.line("add.u32 %v0, %v0, 1");
  text.line("st.global.u32 [%x5], %v0");
  return text.kernel();
}

// Who is first, or last, is found out in global or shared memory; what is written then depends on that.
std::string others_writes(KernelText& text) {
  text.line("mul.wide.u32 %x0, %r6, 4");
  text.line("add.s64 %x1, %rd1, %x0");
  text.line("mov.u32 %v3, 0");
  switch (text.below(5)) {
    case 0:
    case 1:  // the last who wrote
      text.line("st{}.global.u32 [%rd0], %r6", text.coin() ? ".volatile" : "");
      if (text.coin()) text.line("bar.sync 0");
      text.line("ld{}.global.u32 %v0, [%rd0]", text.coin() ? ".volatile" : "");
      break;
    case 2:  // the same of neighbours
      text.line("shr.u32 %v1, %r6, 2");
      text.line("mul.wide.u32 %x2, %v1, 4");
      text.line("add.s64 %x2, %rd0, %x2");
      text.line("st.global.u32 [%x2], %r6");
      text.line("ld.global.u32 %v0, [%x2]");
      break;
    case 3:
      text.line("st.shared.u32 [tile], %r6");
      if (text.coin()) text.line("bar.sync 0");
      text.line("ld.shared.u32 %v0, [tile]");
      break;
    default:
      text.line("atom.shared.add.u32 %v0, [tile], 1");
      text.line("mad.lo.u32 %v0, %v0, {}, %r4", text.between(1, 2));
      break;
  }
  if (text.coin()) {
    text.line("setp.{}.u32 %p1, %v0, %r6", text.coin() ? "eq" : "ge");
    text.line("@%p1 st.global.u32 [%x1], %r6");
  } else {
    text.line("and.b32 %v0, %v0, 127");
    text.line("mul.wide.u32 %x3, %v0, 4");
    text.line("add.s64 %x3, %rd2, %x3");
    text.line("st.global.u32 [%x3], %r6");
  }
  return text.kernel();
}

}  // namespace

const char* to_string(AdversarialKind kind) {
  constexpr std::array names{
      "a bound that changes",   "an exit out of nested loops", "constant memory's alias",
      "a function that writes", "the end of an array",         "generic arithmetic",
      "a relative pointer",     "what others write",           "a mixture"};
  return names.at(static_cast<std::size_t>(kind));
}

std::string make_adversarial_kernel(AdversarialKind kind, std::mt19937_64& random) {
  KernelText text(random);
  switch (kind) {
    case AdversarialKind::ChangingBound:
      return changing_bound(text);
    case AdversarialKind::NestedExit:
      return nested_exit(text);
    case AdversarialKind::ConstantAlias:
      return constant_alias(text);
    case AdversarialKind::NoReturn:
      return no_return(text);
    case AdversarialKind::EndOfArray:
      return end_of_array(text);
    case AdversarialKind::GenericArithmetic:
      return generic_arithmetic(text);
    case AdversarialKind::RelativePointer:
      return relative_pointer(text);
    case AdversarialKind::OthersWrites:
      return others_writes(text);
    case AdversarialKind::Mixed:
      break;
  }
  return mixed_kernel(text);
}

RandomBuffers allocate_adjacent_buffers(TracedGpu& gpu) {
  RandomBuffers buffers;
  buffers.address[0] = gpu.allocate(buffer_bytes);
  for (std::size_t i = 1; i < 3; ++i) buffers.address[i] = gpu.allocate_behind(buffer_bytes);
  return buffers;
}

LaunchCase make_adversarial_launch(const RandomBuffers& buffers, std::mt19937_64& random) {
  struct {
    std::uint64_t pointers[3];
    std::uint32_t n, s, m, unused;
  } packed = {};
  for (std::size_t i = 0; i < 3; ++i) {
    const std::size_t which = random() % 4 == 0 ? random() % 3 : i;
    packed.pointers[i] = buffers.address[which] + buffer_bytes / 2;
    const std::uint64_t how = random() % 8;
    if (how < 3) packed.pointers[i] += 4 * (random() % 300);
    // Where the middle one begins or ends.
    if (how == 3) packed.pointers[i] = buffers.address[1];
    if (how == 4) packed.pointers[i] = buffers.address[2];
    if (how == 5) packed.pointers[i] = buffers.address[1 + random() % 2] - 4;
  }
  LaunchCase launch;
  launch.kernel = "k";
  launch.grid.x = static_cast<std::uint32_t>(1 + random() % 3);
  launch.block.x = static_cast<std::uint32_t>(1 + random() % 70);
  packed.n = static_cast<std::uint32_t>(random() % 130);
  packed.s = static_cast<std::uint32_t>(random() % 5);
  packed.m = static_cast<std::uint32_t>(random() % 5);
  launch.parameters.resize(36);
  std::memcpy(launch.parameters.data(), &packed, 36);
  return launch;
}

}  // namespace firebreak::idempotency
