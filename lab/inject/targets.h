// SPDX-License-Identifier: Apache-2.0
/// Places where kernels go that must not: one way to find or make each. All are FindTargets.
#pragma once

#include "inject/kernel_fault.h"

namespace firebreak::inject {

/// Takes any number: an address, an offset, a depth.
template <CUdeviceptr number>
Result<Target> the_number(const cuda::ContextView&, const Options&) {
  return Target{number, nullptr};
}

/// Finds a place where nothing is mapped; the caller's stray address where one is given.
Result<Target> unmapped_address(const cuda::ContextView& context, const Options& options);
/// A pointer cut to 32 bits.
Result<Target> low_address(const cuda::ContextView& context, const Options& options);
/// Lies as far past an allocation's end, or before its begin, as a negative index of 32 bits times eight
/// bytes.
Result<Target> far_past_end(const cuda::ContextView& context, const Options& options);
Result<Target> far_before_begin(const cuda::ContextView& context, const Options& options);
/// The first byte behind an allocation, on its next page; nothing else can be mapped there.
Result<Target> next_page(const cuda::ContextView& context, const Options& options);
/// A GiB beyond the begin of an allocation that is smaller; nothing else can be mapped there.
Result<Target> one_gib_beyond(const cuda::ContextView& context, const Options& options);
/// Memory that is mapped read-only.
Result<Target> read_only_memory(const cuda::ContextView& context, const Options& options);
/// Memory that is mapped and that nobody was given rights to.
Result<Target> memory_without_rights(const cuda::ContextView& context, const Options& options);
/// Mapped memory that was used and then unmapped.
Result<Target> unmapped_memory(const cuda::ContextView& context, const Options& options);
/// An allocation (cuMemAlloc) that was used and then freed.
Result<Target> freed_memory(const cuda::ContextView& context, const Options& options);
/// Ordinary host memory. Unsupported where the GPU reaches it.
Result<Target> host_memory(const cuda::ContextView& context, const Options& options);
/// One byte into good memory.
Result<Target> odd_address(const cuda::ContextView& context, const Options& options);
/// Good memory full of bytes that are no instruction.
Result<Target> memory_full_of_ones(const cuda::ContextView& context, const Options& options);

}  // namespace firebreak::inject
