// SPDX-License-Identifier: Apache-2.0
/// The kinds, one file each; catalogue.h lists them.
#pragma once

#include "inject/kind.h"

namespace firebreak::inject {

extern const Kind unmapped_store;
extern const Kind unmapped_load;
extern const Kind unmapped_atomic;
extern const Kind read_only_store;
extern const Kind read_only_atomic;
extern const Kind use_after_unmap;
extern const Kind host_pointer;
extern const Kind bad_program_counter;
extern const Kind copy_engine_unmap;
extern const Kind write_value_unmap;
extern const Kind misaligned_load;
extern const Kind trap;
extern const Kind shared_out_of_bounds;
extern const Kind non_canonical_address;
extern const Kind stack_overflow;
extern const Kind sigkill;

}  // namespace firebreak::inject
