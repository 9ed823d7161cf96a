// SPDX-License-Identifier: Apache-2.0
#include "inject/device/device_fault.h"
#include "inject/kinds.h"

namespace firebreak::inject {
namespace {

constexpr int xids[] = {48};

}  // namespace

constinit const Kind double_bit_ecc{
    .name = "double-bit-ecc",
    .summary = "memory loses two bits of one word",
    .fault_class = fault::FaultClass::Device,
    .expectation = {.faulter = CUDA_ERROR_ECC_UNCORRECTABLE,
                    .co_client = CUDA_ERROR_ECC_UNCORRECTABLE,
                    .outsider = CUDA_ERROR_ECC_UNCORRECTABLE,
                    .xids = xids,
                    .first_seen_by = fault::FaultSource::Xid,
                    .measured = false},
    .ptx = {},
    .prepare = &prepare_device_fault<xids[0]>,
};

}  // namespace firebreak::inject
