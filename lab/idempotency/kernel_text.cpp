// SPDX-License-Identifier: Apache-2.0
#include "idempotency/kernel_text.h"

namespace firebreak::idempotency {

std::string KernelText::changing_value(const std::string& data) {
  line("ld.global.u32 %v6, [{}]", data);
  line("and.b32 %v6, %v6, {}", coin() ? 1 : 15);
  switch (below(7)) {
    case 0:
      line("setp.ne.u32 %p3, %v6, 0");
      line("selp.b32 %v7, {}, {}, %p3", between(2, 6), between(2, 6));
      return "%v7";
    case 1:
      line("or.b32 %v7, %v6, {}", between(1, 12));
      return "%v7";
    case 2: {
      const std::string skip = new_label("SKIP");
      line("mov.u32 %v7, {}", between(2, 6));
      line("setp.ne.u32 %p3, %v6, 0");
      line("@%p3 bra {}", skip);
      line("mov.u32 %v7, {}", between(2, 6));
      label(skip);
      return "%v7";
    }
    case 3:
      line("mad.lo.u32 %v1, %v1, {}, {}", between(1, 3), between(1, 3));
      return "%v1";
    case 4:
      line("sub.u32 %v7, {}, %v6", between(3, 20));
      return "%v7";
    case 5:
      line("mov.u32 %v8, %v1");
      line("mov.u32 %v1, %v2");
      line("add.u32 %v2, %v8, {}", below(3));
      return "%v1";
    default:
      line("xor.b32 %v1, %v1, %v6");
      return "%v1";
  }
}

void KernelText::leave_or_stay(const std::string& counter, const std::string& bound) {
  const std::uint64_t width = std::uint64_t{16} << below(3);
  const std::string prefix = width == 16 ? "%h" : width == 32 ? "%v" : "%x";
  const std::string left = prefix + "50";
  const std::string right = prefix + "51";
  std::string moving = counter;
  const bool is_sum = coin();
  const std::uint64_t start = is_sum && coin() ? (width == 16   ? 65'500
                                                  : width == 32 ? 4'294'967'200
                                                                : 100)
                                               : 0;
  if (is_sum) {
    line("add.u32 %v52, {}, {}", counter, bound);
    if (width == 32) line("add.u32 %v52, %v52, {}", start);
    if (width == 16) line("add.u32 %v52, %v52, {}", start);
    moving = "%v52";
  }
  const std::string from = width == 32 ? "mov.u32" : fmt::format("cvt.u{}.u32", width);
  line("{} {}, {}", from, left, moving);
  if (is_sum && width == 64 && start != 0) line("add.u64 {}, {}, 18446744073709551500", left, left);
  const std::uint64_t limit = is_sum ? start + between(8, 36) : 0;
  if (!is_sum) line("{} {}, {}", from, right, bound);
  if (is_sum && width == 64 && start != 0)
    line("mov.u64 {}, {}", right, 18'446'744'073'709'551'500U + limit - start);
  if (is_sum && (width != 64 || start == 0)) line("mov.u{} {}, {}", width, right, limit);
  constexpr const char* compares[] = {"lt.u", "lt.s", "le.u", "ne.u"};
  const char* const compare = coin() ? "ne.u" : compares[below(4)];
  line("setp.{}{} %p2, {}, {}", compare, width, left, right);
  if (coin()) {
    line("@%p2 bra LOOP");
    return;
  }
  line("@!%p2 bra END");
  line("bra LOOP");
}

std::string KernelText::kernel() const {
  return ".version 8.0\n.target sm_80\n.address_size 64\n" + before_ +
         ".visible .entry k(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n, .param .u32 s, "
         ".param .u32 m)\n{\n  .reg .pred %p<900>;\n  .reg .b16 %h<900>;\n  .reg .b32 %r<8>;\n"
         "  .reg .b32 %v<900>;\n  .reg .b64 %rd<8>;\n  .reg .b64 %x<900>;\n"
         "  .shared .align 16 .b8 tile[4096];\n  .local .align 16 .b8 frame[64];\n"
         "  ld.param.u64 %rd0, [a];\n  ld.param.u64 %rd1, [b];\n  ld.param.u64 %rd2, [c];\n"
         "  ld.param.u32 %r0, [n];\n  ld.param.u32 %r1, [s];\n  ld.param.u32 %r2, [m];\n"
         "  mov.u32 %r3, %tid.x;\n  mov.u32 %r4, %ctaid.x;\n  mov.u32 %r5, %ntid.x;\n"
         "  mad.lo.s32 %r6, %r4, %r5, %r3;\n" +
         body_ + "  ret;\n}\n";
}

}  // namespace firebreak::idempotency
