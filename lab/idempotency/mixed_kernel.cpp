// SPDX-License-Identifier: Apache-2.0
#include "idempotency/mixed_kernel.h"

#include <array>
#include <vector>

namespace firebreak::idempotency {
namespace {

constexpr std::uint64_t most_depth = 3;
constexpr std::uint64_t most_statements = 22;

// %v0 to %v5, %h0 to %h2, %x0 to %x2 (numbers) and %x10 to %x12 (pointers) are variables: they change
// wherever a statement says so.
class MixedWriter {
 public:
  explicit MixedWriter(KernelText& text) : text_(text) {}

  std::string write() {
    start();
    const std::uint64_t count = text_.between(3, 7);
    for (std::uint64_t i = 0; i < count; ++i) statement(0);
    text_.label("DONE");
    return text_.kernel();
  }

 private:
  std::uint64_t below(std::uint64_t bound) { return text_.below(bound); }
  bool coin() { return text_.coin(); }

  void start() {
    text_.add_module(".const .align 16 .b8 cc[512];\n.global .align 16 .b8 gg[512];\n");
    text_.line("mov.u32 %v0, %r6");
    text_.line("mov.u32 %v1, {}", below(4));
    text_.line("mov.u32 %v2, %r0");
    text_.line("mov.u32 %v3, {}", below(2) == 0 ? 0U : 0xFFFF'FFF8U);
    text_.line("ld.global.u32 %v4, [%rd{}+{}]", below(3), 4 * below(8));
    text_.line("add.u32 %v5, %r3, %r1");
    text_.line("cvt.u16.u32 %h0, %r6");
    text_.line("mov.u16 %h1, {}", coin() ? 65'530 : 0);
    text_.line("cvt.u16.u32 %h2, %v4");
    text_.line("cvt.u64.u32 %x0, %r6");
    text_.line("cvt.s64.s32 %x1, %v3");
    text_.line("mov.u64 %x2, {}", below(5));
    text_.line("mul.wide.u32 %x20, %r6, 4");
    for (int i = 10; i < 13; ++i) text_.line("add.s64 %x{}, %rd{}, %x20", i, below(3));
    if (below(3) == 0)
      text_.line("setp.ge.u32 %p1, %r6, %r0");
    else
      return;
    text_.line("@%p1 bra DONE");
  }

  // ---- Values ----

  std::string variable() { return fmt::format("%v{}", below(6)); }
  std::string half() { return fmt::format("%h{}", below(3)); }
  std::string wide() { return fmt::format("%x{}", below(3)); }
  std::string pointer() { return fmt::format("%x{}", 10 + below(3)); }

  // Below 64, mostly.
  std::string small() {
    const std::string to = text_.new_value();
    switch (below(8)) {
      case 0:
        return "%r3";
      case 1:
        return "%r6";
      case 2:
        text_.line("cvt.u32.u16 {}, {}", to, half());
        break;
      case 3:
        text_.line("cvt.u32.u64 {}, {}", to, wide());
        break;
      default:
        text_.line("mov.u32 {}, {}", to, variable());
        break;
    }
    if (below(6) == 0)
      text_.line("rem.u32 {}, {}, {}", to, to, text_.between(1, 64));
    else if (below(8) == 0)
      text_.line("min.u32 {}, {}, 60", to, to);
    else if (below(8) != 0)
      text_.line("and.b32 {}, {}, {}", to, to, coin() ? 63 : 15);
    return to;
  }

  void assign() {
    const std::string to = variable();
    switch (below(13)) {
      case 0:
        return text_.line("add.u32 {}, {}, {}", to, variable(), variable());
      case 1:
        return text_.line("add.u32 {}, {}, {}", to, to, static_cast<std::int64_t>(below(7)) - 3);
      case 2:
        return text_.line("sub.u32 {}, {}, {}", to, variable(), variable());
      case 3:
        return text_.line("mad.lo.u32 {}, {}, {}, {}", to, variable(), below(4), variable());
      case 4:
        return text_.line("xor.b32 {}, {}, {}", to, variable(), variable());
      case 5:
        return text_.line("shr.{}32 {}, {}, {}", coin() ? "u" : "s", to, variable(), below(4));
      case 6:
        return select(to);
      case 7:
        return swap();
      case 8:
        return text_.line("mov.u32 {}, {}", to, small());
      case 9:
        return text_.line("add.u16 {}, {}, {}", half(), half(), coin() ? 1 : 65'535);
      case 10:
        return text_.line("add.u64 {}, {}, {}", wide(), wide(), wide());
      case 11:
        return text_.line("cvt.{}.u32 {}, {}", coin() ? "u64" : "s64", wide(), variable());
      default:
        return text_.line("cvt.u16.u32 {}, {}", half(), variable());
    }
  }

  void select(const std::string& to) {
    text_.line("selp.b32 {}, {}, {}, {}", to, variable(), variable(), predicate());
  }

  void swap() {
    const std::string a = variable();
    const std::string b = variable();
    const std::string between = text_.new_value();
    text_.line("mov.u32 {}, {}", between, a);
    text_.line("mov.u32 {}, {}", a, b);
    text_.line("mov.u32 {}, {}", b, between);
  }

  std::string predicate() {
    const std::string to = text_.new_predicate();
    constexpr std::array compares{"lt", "le", "gt", "ge", "eq", "ne"};
    const char* const compare = compares[below(6)];
    const char* const sign = coin() ? "u" : "s";
    const bool is_bound = coin();
    switch (below(3)) {
      case 0:
        text_.line("setp.{}.{}16 {}, {}, {}", compare, sign, to, half(),
                   is_bound ? half() : std::to_string(below(40)));
        break;
      case 1:
        text_.line("setp.{}.{}64 {}, {}, {}", compare, sign, to, wide(),
                   is_bound ? wide() : std::to_string(below(40)));
        break;
      default:
        text_.line("setp.{}.{}32 {}, {}, {}", compare, sign, to, variable(),
                   is_bound ? (coin() ? "%r0" : variable()) : std::to_string(below(40)));
        break;
    }
    if (below(5) == 0) {
      const std::string both = text_.new_predicate();
      text_.line("setp.ne.u32 {}, {}, {}", both, variable(), below(3));
      text_.line("{}.pred {}, {}, {}", coin() ? "and" : "or", to, to, both);
    }
    return to;
  }

  // ---- Addresses ----

  struct Address {
    std::string text;  ///< with its brackets
    bool is_generic = false;
  };

  Address bracketed(const std::string& at, bool is_generic = false) {
    const std::uint64_t how = below(6);
    return {fmt::format("[{}{}]", at,
                        how == 0   ? "+4"
                        : how == 1 ? "+-8"
                        : how == 2 ? "+128"
                                   : ""),
            is_generic};
  }

  std::string of_index(const std::string& index, const std::string& base) {
    const std::string offset = text_.new_wide();
    const std::string at = text_.new_wide();
    text_.line("mul.wide.{} {}, {}, 4", coin() ? "u32" : "s32", offset, index);
    text_.line("add.s64 {}, {}, {}", at, base, offset);
    return at;
  }

  Address address() {
    const std::string base = fmt::format("%rd{}", below(3));
    switch (below(40)) {
      case 0:
        return bracketed(detour(base), true);
      case 1:
        return bracketed(through_memory(base));
      case 2:
        return {fmt::format("[{}]", of_variable()), coin()};
      case 3:
      case 4:
      case 5:
        return bracketed(wrapped(base));
      case 6:
      case 7:
      case 8:
        return bracketed(backwards(base));
      case 9:
      case 10:
      case 11:
        return bracketed(either());
      case 12:
      case 13:
      case 14:
      case 15:
      case 16:
      case 17:
        return bracketed(pointer());
      default:
        return bracketed(of_index(small(), base));
    }
  }

  // The index goes around 2^32 or 2^16, and comes back.
  std::string wrapped(const std::string& base) {
    const std::string index = text_.new_value();
    if (coin()) {
      text_.line("add.u32 {}, {}, 4294967{}", index, small(), 200 + below(90));
      text_.line("add.u32 {}, {}, {}", index, index, text_.between(60, 110));
      text_.line("and.b32 {}, {}, 127", index, index);
      return of_index(index, base);
    }
    const std::string narrow = text_.new_half();
    text_.line("add.u32 {}, {}, 65530", index, small());
    text_.line("cvt.u16.u32 {}, {}", narrow, index);
    text_.line("and.b16 {}, {}, 127", narrow, narrow);
    const std::string offset = text_.new_wide();
    text_.line("mul.wide.u16 {}, {}, 4", index, narrow);
    text_.line("cvt.u64.u32 {}, {}", offset, index);
    text_.line("add.s64 {}, {}, {}", offset, offset, base);
    return offset;
  }

  std::string backwards(const std::string& base) {
    const std::string index = text_.new_value();
    text_.line("not.b32 {}, {}", index, small());
    const std::string offset = text_.new_wide();
    text_.line("mul.wide.s32 {}, {}, 4", offset, index);
    text_.line("add.s64 {}, {}, {}", offset, base, offset);
    return offset;
  }

  std::string either() {
    const std::string at = text_.new_wide();
    const std::string a = pointer();
    const std::string b = of_index(small(), fmt::format("%rd{}", below(3)));
    text_.line("selp.b64 {}, {}, {}, {}", at, a, b, predicate());
    return at;
  }

  std::string detour(const std::string& base) {
    const std::string at = of_index(small(), base);
    const std::string shared = text_.new_wide();
    const std::string between = text_.new_wide();
    text_.line("mov.u64 {}, tile", shared);
    text_.line("cvta.shared.u64 {}, {}", shared, shared);
    text_.line("sub.s64 {}, {}, {}", between, shared, at);
    text_.line("sub.s64 {}, {}, {}", between, shared, between);
    return between;
  }

  std::string through_memory(const std::string& base) {
    const std::string own = text_.new_wide();
    const std::string at = text_.new_wide();
    const std::string other = fmt::format("%rd{}", below(3));
    text_.line("sub.s64 {}, {}, {}", at, base, other);
    if (coin()) {
      text_.line("mul.wide.u32 {}, %r3, 8", own);
      text_.line("mov.u64 {}, tile", at);
      text_.line("add.s64 {}, {}, {}", own, own, at);
      text_.line("sub.s64 {}, {}, {}", at, base, other);
      text_.line("st.shared.u64 [{}], {}", own, at);
      text_.line("ld.shared.u64 {}, [{}]", at, own);
    } else {
      text_.line("st.local.u64 [frame+8], {}", at);
      text_.line("ld.local.u64 {}, [frame+8]", at);
    }
    text_.line("add.s64 {}, {}, {}", at, at, other);
    return of_index(small(), at);
  }

  std::string of_variable() {
    const std::string at = text_.new_wide();
    const bool is_constant = below(4) == 0;
    text_.line("mov.u64 {}, {}", at, is_constant ? "cc" : "gg");
    text_.line("cvta.{}.u64 {}, {}", is_constant ? "const" : "global", at, at);
    return of_index(small(), at);
  }

  // ---- Statements ----

  std::string guard() {
    if (below(5) != 0) return "";
    const std::string p = predicate();
    return fmt::format("@{}{} ", coin() ? "!" : "", p);
  }

  void load() {
    if (below(12) == 0) return text_.line("ld.const.u32 {}, [cc+{}]", variable(), 4 * below(60));
    const Address at = address();
    const std::string when = guard();
    text_.line("{}ld{}.u32 {}, {}", when, at.is_generic ? "" : ".global", variable(), at.text);
  }

  void store() {
    const Address at = address();
    const std::string when = guard();
    const char* const space = at.is_generic ? "" : ".global";
    switch (below(8)) {
      case 0:
        return text_.line("{}st{}.u16 {}, {}", when, space, at.text, half());
      case 1:
        return text_.line("{}st{}.u8 {}, {}", when, space, at.text, variable());
      case 2:
        text_.line("st{}.u32 {}, {}", space, at.text, variable());
        return text_.line("ld{}.{} {}, {}", space, "u32", variable(), at.text);
      default:
        return text_.line("{}st{}.u32 {}, {}", when, space, at.text, variable());
    }
  }

  void shared() {
    const std::string slot = fmt::format("[tile+{}]", 2048 + 4 * below(4));
    switch (below(5)) {
      case 0:
        return text_.line("st.shared.u32 {}, {}", slot, variable());
      case 1:
        return text_.line("ld.shared.u32 {}, {}", variable(), slot);
      case 2:
        return text_.line("atom.shared.add.u32 {}, {}, 1", variable(), slot);
      default:
        return text_.line("add.s64 {}, {}, {}", pointer(), pointer(), coin() ? 4 : 64);
    }
  }

  void branch(std::uint64_t depth) {
    const std::string other = text_.new_label("ELSE");
    const std::string behind = text_.new_label("BEHIND");
    text_.line("@{}{} bra {}", coin() ? "!" : "", predicate(), other);
    for (std::uint64_t i = text_.between(1, 2); i > 0; --i) statement(depth + 1);
    const bool has_else = coin();
    if (has_else) text_.line("bra {}", behind);
    text_.label(other);
    if (has_else) statement(depth + 1);
    text_.label(behind);
  }

  // Ends after some rounds at the latest, mostly: a counter of its own says so.
  void loop(std::uint64_t depth) {
    const std::string head = text_.new_label("HEAD");
    const std::string end = text_.new_label("TAIL");
    const std::string rounds = text_.new_value();
    const std::uint64_t fuel = depth == 0 ? text_.between(2, 14) : text_.between(2, 6);
    const bool is_index = coin();
    text_.line("mov.u32 {}, {}", rounds, is_index ? below(3) : 0);
    if (is_index) text_.line("mov.u32 %v{}, {}", depth, below(4));
    ends_.push_back(end);
    text_.label(head);
    if (below(3) == 0) text_.line("@{} bra {}", predicate(), end);
    const std::uint64_t where = below(3);
    for (std::uint64_t i = 0; i < 3; ++i) {
      if (i == where) {
        text_.line("add.u32 {}, {}, 1", rounds, rounds);
        const std::string p = text_.new_predicate();
        text_.line("setp.gt.u32 {}, {}, {}", p, rounds, fuel);
        text_.line("@{} bra {}", p, out());
      }
      statement(depth + 1);
    }
    if (is_index) text_.line("add.u32 %v{}, %v{}, {}", depth, depth, text_.between(1, 2));
    if (below(4) == 0)
      text_.line("bra {}", head);
    else
      text_.line("@{} bra {}", predicate(), head);
    ends_.pop_back();
    text_.label(end);
  }

  // Out of the innermost loop, mostly.
  std::string out() {
    if (ends_.empty() || below(12) == 0) return "DONE";
    return below(5) == 0 ? ends_[below(ends_.size())] : ends_.back();
  }

  void statement(std::uint64_t depth) {
    if (++statements_ > most_statements) return assign();
    switch (below(depth < most_depth ? 16 : 11)) {
      case 0:
      case 1:
      case 2:
        return assign();
      case 3:
      case 4:
      case 5:
        return load();
      case 6:
      case 7:
      case 8:
        return store();
      case 9:
        return shared();
      case 10:
        return ends_.empty() && below(3) != 0 ? assign() : text_.line("@{} bra {}", predicate(), out());
      case 11:
      case 12:
        return branch(depth);
      default:
        return loop(depth);
    }
  }

  KernelText& text_;
  std::vector<std::string> ends_;  ///< of the loops around
  std::uint64_t statements_ = 0;
};

}  // namespace

std::string mixed_kernel(KernelText& text) { return MixedWriter(text).write(); }

}  // namespace firebreak::idempotency
