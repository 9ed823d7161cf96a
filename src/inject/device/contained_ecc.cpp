// SPDX-License-Identifier: Apache-2.0
#include "inject/device/device_fault.h"
#include "inject/kinds.h"

namespace firebreak::inject {
namespace {

constexpr int xids[] = {94};

}  // namespace

constinit const Kind contained_ecc{
    .name = "contained-ecc",
    .summary = "memory loses bits, and only those who used them are harmed",
    .fault_class = fault::FaultClass::Device,
    .expectation = {.faulter = CUDA_ERROR_CONTAINED,
                    .co_client = CUDA_ERROR_CONTAINED,
                    .xids = xids,
                    .first_seen_by = fault::FaultSource::Xid,
                    .measured = false},
    .ptx = {},
    .prepare = &prepare_device_fault<xids[0]>,
};

}  // namespace firebreak::inject
