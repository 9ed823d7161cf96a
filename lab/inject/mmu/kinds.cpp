// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "inject/accesses.h"
#include "inject/engine/waiting_fault.h"
#include "inject/kinds.h"
#include "inject/targets.h"

namespace firebreak::inject {
namespace {

constexpr Expectation fatal{.faulter = CUDA_ERROR_ILLEGAL_ADDRESS,
                            .co_client = CUDA_ERROR_ILLEGAL_ADDRESS,
                            .xids = mmu_xids,
                            .first_seen_by = fault::FaultSource::UvmEvent};

constexpr Expectation fatal_unless_guarded(UnderGuard under_guard, bool measured) {
  Expectation expected = fatal;
  expected.under_guard = under_guard;
  expected.measured = measured;
  return expected;
}

constexpr Expectation contained = fatal_unless_guarded(UnderGuard::Contained, true);
constexpr Expectation contained_with_page_zero =
    fatal_unless_guarded(UnderGuard::ContainedWithPageZero, true);
constexpr Expectation contained_unmeasured = fatal_unless_guarded(UnderGuard::Contained, false);
constexpr Expectation let_pass{.xids = {}, .first_seen_by = std::nullopt};

// Inside no code segment of any driver seen so far.
constexpr CUdeviceptr no_code = 0x1234'5670;
// A bank has 64 KiB.
constexpr CUdeviceptr beyond_the_bank = CUdeviceptr{64} << 20;

constexpr Kernel prefetch{.ptx = R"(.version 7.0
.target sm_70
.address_size 64

.visible .entry unmapped_prefetch(.param .u64 target, .param .u64 sink)
{
  .reg .u64 %address;
  ld.param.u64 %address, [target];
  prefetch.global.L2 [%address];
  ret;
}
)",
                          .name = "unmapped_prefetch"};

constexpr Kernel load_constant{.ptx = R"(.version 7.0
.target sm_70
.address_size 64

.const .align 4 .b32 bank[16];

.visible .entry constant_beyond_window(.param .u64 target, .param .u64 sink)
{
  .reg .u64 %address, %offset, %sink;
  .reg .u32 %value;
  ld.param.u64 %offset, [target];
  ld.param.u64 %sink, [sink];
  mov.u64 %address, bank;
  add.u64 %address, %address, %offset;
  ld.const.u32 %value, [%address];
  st.u32 [%sink], %value;
  ret;
}
)",
                               .name = "constant_beyond_window"};

CUresult queue_fill(const cuda::Driver& driver, CUstream stream, CUdeviceptr target,
                    std::span<std::byte> staging) {
  return driver->cuMemsetD8Async(target, 5, staging.size(), stream);
}

template <const Kernel& kernel, FindTarget find_target>
constexpr Kind mmu_kind(std::string_view name, std::string_view summary, const Expectation& expected) {
  return {.name = name,
          .summary = summary,
          .fault_class = fault::FaultClass::MmuReplayable,
          .expectation = expected,
          .ptx = kernel.ptx,
          .prepare = &prepare_kernel<kernel, find_target>};
}

constexpr std::array kinds{
    mmu_kind<store_word, &unmapped_address>(
        "unmapped-store-far", "a kernel stores to 0x7000dead0000, far from every allocation", fatal),
    mmu_kind<load_word, &unmapped_address>(
        "unmapped-load-far", "a kernel loads from 0x7000dead0000, far from every allocation", fatal),
    mmu_kind<add_atomically, &unmapped_address>(
        "unmapped-atomic-far", "a kernel adds atomically at 0x7000dead0000, far from every allocation",
        fatal),
    mmu_kind<reduce_word, &unmapped_address>(
        "unmapped-reduction-far",
        "a kernel adds at 0x7000dead0000, far from every allocation and wants no answer", fatal),
    // A hint: the hardware may drop it.
    mmu_kind<prefetch, &unmapped_address>(
        "unmapped-prefetch-far",
        "a kernel prefetches into the L2 cache from 0x7000dead0000, far from every allocation", let_pass),
    mmu_kind<store_word, &low_address>("unmapped-store-low",
                                       "a kernel stores to 0xdead0000, a pointer cut to 32 bits",
                                       contained_unmeasured),
    mmu_kind<store_word, &far_past_end>(
        "unmapped-store-near", "a kernel stores 16 GiB past the end of an allocation", contained_unmeasured),
    mmu_kind<store_word, &far_before_begin>("unmapped-store-before",
                                            "a kernel stores 16 GiB before an allocation: a negative index",
                                            contained_unmeasured),
    mmu_kind<load_word, &far_past_end>("unmapped-load-near",
                                       "a kernel loads from 16 GiB past the end of an allocation",
                                       contained_unmeasured),
    mmu_kind<add_atomically, &far_past_end>("unmapped-atomic-near",
                                            "a kernel adds atomically 16 GiB past the end of an allocation",
                                            contained_unmeasured),
    mmu_kind<load_word, &next_page>(
        "load-next-page", "a kernel loads the first word behind an allocation, on its next page", contained),
    mmu_kind<load_word, &one_gib_beyond>("load-beyond-1gib",
                                         "a kernel loads from 1 GiB beyond an allocation's begin", contained),
    mmu_kind<store_word, &read_only_memory>("read-only-store",
                                            "a kernel stores to memory that is mapped read-only", fatal),
    mmu_kind<add_atomically, &read_only_memory>(
        "read-only-atomic", "a kernel adds atomically to memory that is mapped read-only", fatal),
    mmu_kind<store_word, &unmapped_memory>(
        "use-after-unmap", "a kernel stores to memory that was in use and then unmapped", contained),
    mmu_kind<store_word, &freed_memory>(
        "use-after-free", "a kernel stores to memory that was in use and then freed", contained),
    mmu_kind<load_word, &the_number<0>>("null-load", "a kernel loads through a null pointer",
                                        contained_with_page_zero),
    mmu_kind<load_word, &host_memory>("host-pointer",
                                      "a kernel loads through a pointer to ordinary host memory", fatal),
    mmu_kind<load_word, &memory_without_rights>(
        "no-access-mapping", "a kernel loads from memory that is mapped and that nobody was given rights to",
        contained),
    mmu_kind<call_target, &the_number<no_code>>(
        "bad-program-counter", "a kernel calls a function pointer that was made from a number", fatal),
    // An H100 says nothing and goes on.
    mmu_kind<load_constant, &the_number<beyond_the_bank>>(
        "constant-beyond-window", "a kernel loads from far beyond its bank of constants", let_pass),
    // The driver fills with a kernel of its own, which faults as a kernel does.
    Kind{.name = "memset-unmap",
         .summary = "a fill's memory is unmapped while the fill waits for its turn",
         .fault_class = fault::FaultClass::MmuReplayable,
         .expectation = contained,
         .ptx = {},
         .prepare = &prepare_waiting<&queue_fill>},
};

}  // namespace

std::span<const Kind> mmu_kinds() { return kinds; }

}  // namespace firebreak::inject
