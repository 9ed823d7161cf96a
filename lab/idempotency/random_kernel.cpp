// SPDX-License-Identifier: Apache-2.0
#include "idempotency/random_kernel.h"

#include <fmt/format.h>

#include <cstring>

namespace firebreak::idempotency {
namespace {

constexpr std::uint64_t buffer_bytes = 32U << 10;
constexpr std::uint64_t room_bytes = 16U << 10;

class KernelWriter {
 public:
  explicit KernelWriter(std::mt19937_64& random) : random_(random) {}

  std::string write() {
    start();
    const std::size_t statements = 1 + below(4);
    for (std::size_t i = 0; i < statements; ++i) below(5) == 0 ? loop() : statement("");
    body_ += "DONE:\n  ret;\n";
    return ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 a, .param .u64 b, "
           ".param .u64 c, .param .u32 n, .param .u32 s, .param .u32 m)\n{\n  .reg .pred %p<400>;\n"
           "  .reg .b32 %r<900>;\n  .reg .b64 %rd<900>;\n" +
           body_ + "}\n";
  }

 private:
  std::uint64_t below(std::uint64_t bound) { return random_() % bound; }
  std::string new_register() { return fmt::format("%r{}", next_++); }
  std::string new_wide() { return fmt::format("%rd{}", next_wide_++); }
  std::string new_predicate() { return fmt::format("%p{}", next_predicate_++); }
  void line(const std::string& text) { body_ += "  " + text + ";\n"; }

  void start() {
    for (const char* const each : {"a", "b", "c"})
      line(fmt::format("ld.param.u64 %rd{}, [{}]", next_wide_++, each));
    line("ld.param.u32 %r0, [n]");
    line("ld.param.u32 %r1, [s]");
    line("ld.param.u32 %r2, [m]");
    line("mov.u32 %r3, %tid.x");
    line("mov.u32 %r4, %ctaid.x");
    line("mov.u32 %r5, %ntid.x");
    line("mad.lo.s32 %r6, %r4, %r5, %r3");
    line("add.s32 %r7, %r1, 1");  // a divisor
    next_ = 8;
    if (below(5) == 0) return;
    const bool reversed = below(2) == 0;
    line(reversed ? "setp.lt.s32 %p0, %r6, %r0" : "setp.ge.s32 %p0, %r6, %r0");
    next_predicate_ = 1;
    line(reversed ? "@!%p0 bra DONE" : "@%p0 bra DONE");
  }

  // An index of elements, in a new register; `counter` is a loop's, or empty.
  std::string index(const std::string& counter) {
    const std::string r = new_register();
    switch (below(counter.empty() ? 15 : 18)) {
      case 0:
      case 1:
      case 2:
        return "%r6";
      case 3:
        line(fmt::format("mul.lo.s32 {}, %r6, %r1", r));
        return r;
      case 4:
        line(fmt::format("add.s32 {}, %r6, %r1", r));
        return r;
      case 5:
        line(fmt::format("sub.s32 {}, %r0, %r6", r));
        return r;
      case 6:
        line(fmt::format("div.{}32 {}, %r6, %r7", below(2) == 0 ? "u" : "s", r));
        return r;
      case 7:
        line(fmt::format("rem.{}32 {}, %r6, %r7", below(2) == 0 ? "u" : "s", r));
        return r;
      case 8:
        line(fmt::format("and.b32 {}, %r6, {}", r, below(2) == 0 ? "7" : "-4"));
        return r;
      case 9:
        return rows(r);
      case 10:
        line(fmt::format("{}.b32 {}, %r6, 1", below(2) == 0 ? "xor" : "or", r));
        return r;
      case 11:
        return chosen(r);
      case 12:
        line(fmt::format("shl.b32 {}, %r6, {}", r, 1 + below(2)));
        return r;
      case 13:
        line(fmt::format("{}.s32 {}, %r6, %r1", below(2) == 0 ? "min" : "max", r));
        return r;
      case 14:
        return data(r);
      default:
        return with_counter(r, counter);
    }
  }

  std::string rows(const std::string& r) {
    const std::string row = new_register();
    const std::string column = new_register();
    const std::string whole = new_register();
    line(fmt::format("div.u32 {}, %r6, %r7", row));
    line(fmt::format("mul.lo.s32 {}, {}, %r7", whole, row));
    line(fmt::format("sub.s32 {}, %r6, {}", column, whole));
    line(fmt::format("mad.lo.s32 {}, {}, {}, {}", r, row, below(2) == 0 ? "%r2" : "8", column));
    return r;
  }

  std::string chosen(const std::string& r) {
    const std::string p = new_predicate();
    const std::string other = new_register();
    line(fmt::format("add.s32 {}, %r6, %r2", other));
    line(fmt::format("setp.{}.s32 {}, %r6, %r1", below(2) == 0 ? "lt" : "ge", p));
    line(fmt::format("selp.b32 {}, %r6, {}, {}", r, other, p));
    return r;
  }

  std::string data(const std::string& r) {
    const std::string raw = new_register();
    load(raw, "%r6");
    line(fmt::format("and.b32 {}, {}, 63", r, raw));
    return r;
  }

  std::string with_counter(const std::string& r, const std::string& counter) {
    if (below(2) == 0)
      line(fmt::format("mad.lo.s32 {}, {}, %r0, %r6", r, counter));
    else
      line(fmt::format("mad.lo.s32 {}, %r6, %r2, {}", r, counter));
    return r;
  }

  std::string address(const std::string& element) {
    const std::string offset = new_wide();
    const std::string at = new_wide();
    const std::uint64_t how = below(20);
    if (how == 0) {
      line(fmt::format("mul.wide.u32 {}, {}, 4", offset, element));
    } else if (how < 5) {
      const std::string wide = new_wide();
      line(fmt::format("cvt.s64.s32 {}, {}", wide, element));
      line(fmt::format("shl.b64 {}, {}, 2", offset, wide));
    } else {
      line(fmt::format("mul.wide.s32 {}, {}, 4", offset, element));
    }
    line(fmt::format("add.s64 {}, %rd{}, {}", at, below(3), offset));
    return at;
  }

  std::string displacement() {
    const std::uint64_t which = below(6);
    return which == 0 ? "+4" : which == 1 ? "+64" : "";
  }

  void load(const std::string& to, const std::string& element) {
    const std::string at = address(element);
    line(fmt::format("ld.global{}.u32 {}, [{}{}]", below(4) == 0 ? ".nc" : "", to, at, displacement()));
    value_ = to;
  }

  std::string guard() {
    if (below(4) != 0) return "";
    const std::string p = new_predicate();
    const std::uint64_t how = below(3);
    if (how == 0)
      line(fmt::format("setp.gt.s32 {}, %r6, %r1", p));
    else if (how == 1)
      line(fmt::format("setp.ne.s32 {}, %r2, 0", p));
    else
      line(fmt::format("setp.lt.s32 {}, {}, 0", p, value_));
    return fmt::format("@{}{} ", below(2) == 0 ? "!" : "", p);
  }

  void statement(const std::string& counter) {
    const std::string element = index(counter);
    const std::uint64_t what = below(20);
    if (what < 8) return load(new_register(), element);
    const std::string at = address(element);
    const std::string when = guard();
    if (what == 8) {
      line(fmt::format("{}red.global.add.u32 [{}], 1", when, at));
    } else if (what == 9) {
      line(fmt::format("{}atom.global.add.u32 {}, [{}], 1", when, new_register(), at));
    } else {
      line(fmt::format("{}st.global.u32 [{}{}], {}", when, at, displacement(), value_));
      if (below(6) == 0) line(fmt::format("ld.global.u32 {}, [{}]", new_register(), at));
    }
  }

  void loop() {
    const std::string counter = new_register();
    const std::string p = new_predicate();
    const std::uint64_t name = labels_++;
    const bool asks_first = below(2) == 0;
    const std::uint64_t step = 1 + below(2);
    line(fmt::format("mov.u32 {}, 0", counter));
    body_ += fmt::format("LOOP{}:\n", name);
    if (asks_first) {
      line(fmt::format("setp.ge.s32 {}, {}, %r2", p, counter));
      line(fmt::format("@{} bra END{}", p, name));
    }
    statement(counter);
    if (below(2) == 0) statement(counter);
    line(fmt::format("add.s32 {}, {}, {}", counter, counter, step));
    if (asks_first) {
      line(fmt::format("bra LOOP{}", name));
      body_ += fmt::format("END{}:\n", name);
    } else {
      line(fmt::format("setp.{}.s32 {}, {}, %r2", step == 1 && below(3) == 0 ? "ne" : "lt", p, counter));
      line(fmt::format("@{} bra LOOP{}", p, name));
    }
  }

  std::mt19937_64& random_;
  std::string body_;
  std::string value_ = "%r6";
  std::uint64_t next_ = 0;
  std::uint64_t next_wide_ = 0;
  std::uint64_t next_predicate_ = 0;
  std::uint64_t labels_ = 0;
};

}  // namespace

std::string make_random_kernel(std::mt19937_64& random) { return KernelWriter(random).write(); }

RandomBuffers allocate_buffers(TracedGpu& gpu) {
  RandomBuffers buffers;
  for (std::uint64_t& address : buffers.address) address = gpu.allocate(buffer_bytes);
  return buffers;
}

LaunchCase make_random_launch(const RandomBuffers& buffers, std::mt19937_64& random) {
  struct {
    std::uint64_t pointers[3];
    std::uint32_t n, s, m, unused;
  } packed = {};
  for (std::size_t i = 0; i < 3; ++i) {
    const std::size_t which = random() % 3 == 0 ? random() % 3 : i;
    const std::uint64_t shift = random() % 3 == 0 ? 4 * (random() % 300) : 0;
    packed.pointers[i] = buffers.address[which] + room_bytes + shift;
  }
  LaunchCase launch;
  launch.kernel = "k";
  launch.grid.x = static_cast<std::uint32_t>(1 + random() % 3);
  launch.block.x = static_cast<std::uint32_t>(1 + random() % 40);
  packed.n = static_cast<std::uint32_t>(random() % 130);
  packed.s = static_cast<std::uint32_t>(random() % 5);
  packed.m = static_cast<std::uint32_t>(random() % 5);
  launch.parameters.resize(36);
  std::memcpy(launch.parameters.data(), &packed, 36);
  return launch;
}

}  // namespace firebreak::idempotency
