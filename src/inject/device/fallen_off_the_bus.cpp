// SPDX-License-Identifier: Apache-2.0
#include "inject/device/device_fault.h"
#include "inject/kinds.h"

namespace firebreak::inject {
namespace {

constexpr int xids[] = {79};

}  // namespace

constinit const Kind fallen_off_the_bus{
    .name = "fallen-off-the-bus",
    .summary = "the GPU no longer answers on the PCI bus",
    .fault_class = fault::FaultClass::Device,
    .expectation = {.faulter = CUDA_ERROR_LAUNCH_FAILED,
                    .co_client = CUDA_ERROR_LAUNCH_FAILED,
                    .outsider = CUDA_ERROR_LAUNCH_FAILED,
                    .xids = xids,
                    .first_seen_by = fault::FaultSource::Xid,
                    .measured = false},
    .ptx = {},
    .prepare = &prepare_device_fault<xids[0]>,
};

}  // namespace firebreak::inject
