// SPDX-License-Identifier: Apache-2.0
#include "inject/device/device_fault.h"
#include "inject/kinds.h"

namespace firebreak::inject {
namespace {

constexpr int xids[] = {74};

}  // namespace

constinit const Kind nvlink_error{
    .name = "nvlink-error",
    .summary = "a link to another GPU fails",
    .fault_class = fault::FaultClass::Device,
    .expectation = {.faulter = CUDA_ERROR_NVLINK_UNCORRECTABLE,
                    .co_client = CUDA_ERROR_NVLINK_UNCORRECTABLE,
                    .outsider = CUDA_ERROR_NVLINK_UNCORRECTABLE,
                    .xids = xids,
                    .first_seen_by = fault::FaultSource::Xid,
                    .measured = false},
    .ptx = {},
    .prepare = &prepare_device_fault<xids[0]>,
};

}  // namespace firebreak::inject
