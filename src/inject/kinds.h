// SPDX-License-Identifier: Apache-2.0
/// The kinds, one file each; catalogue.h lists them.
#pragma once

#include "inject/kind.h"

namespace firebreak::inject {

// MMU, replayable: an SM's own accesses (mmu/)
extern const Kind unmapped_store_far;
extern const Kind unmapped_load_far;
extern const Kind unmapped_atomic_far;
extern const Kind unmapped_reduction_far;
extern const Kind unmapped_prefetch_far;
extern const Kind unmapped_store_low;
extern const Kind unmapped_store_near;
extern const Kind unmapped_store_before;
extern const Kind unmapped_load_near;
extern const Kind unmapped_atomic_near;
extern const Kind load_next_page;
extern const Kind load_beyond_1gib;
extern const Kind read_only_store;
extern const Kind read_only_atomic;
extern const Kind use_after_unmap;
extern const Kind use_after_free;
extern const Kind null_load;
extern const Kind host_pointer;
extern const Kind no_access_mapping;
extern const Kind bad_program_counter;
extern const Kind constant_beyond_window;

// MMU, non-replayable: the copy engines and PBDMA (engine/)
extern const Kind copy_source_unmap;
extern const Kind copy_engine_unmap;
extern const Kind copy_2d_unmap;
extern const Kind memset_unmap;
extern const Kind write_value_unmap;
extern const Kind wait_value_unmap;

// Exceptions inside a streaming multiprocessor (sm/)
extern const Kind misaligned_load;
extern const Kind misaligned_store;
extern const Kind misaligned_atomic;
extern const Kind shared_out_of_bounds;
extern const Kind local_out_of_bounds;
extern const Kind non_canonical_address;
extern const Kind trap;
extern const Kind breakpoint;
extern const Kind illegal_instruction;
extern const Kind stack_overflow;
extern const Kind barrier_misuse;

// A process that ends while its kernel runs (termination/)
extern const Kind sigkill;
extern const Kind sigterm;
extern const Kind sigsegv;
extern const Kind exit;
extern const Kind exec;
extern const Kind sigkill_short_kernel;
extern const Kind sigkill_endless;
extern const Kind sigkill_full_gpu;

// The device itself: on the software GPU only (device/)
extern const Kind double_bit_ecc;
extern const Kind contained_ecc;
extern const Kind uncontained_ecc;
extern const Kind nvlink_error;
extern const Kind fallen_off_the_bus;
extern const Kind gsp_timeout;

}  // namespace firebreak::inject
