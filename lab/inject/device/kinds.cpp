// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "inject/device/device_fault.h"
#include "inject/kinds.h"

namespace firebreak::inject {
namespace {

template <int xid>
constexpr std::array xids{xid};

/// `outsider`: the CUDA error in everybody else on the GPU.
template <int xid>
constexpr Kind device_kind(std::string_view name, std::string_view summary, CUresult faulter,
                           CUresult outsider) {
  return {.name = name,
          .summary = summary,
          .fault_class = fault::FaultClass::Device,
          .expectation = {.faulter = faulter,
                          .co_client = faulter,
                          .outsider = outsider,
                          .xids = xids<xid>,
                          .first_seen_by = fault::FaultSource::Xid,
                          .measured = false},
          .ptx = {},
          .prepare = &prepare_device_fault<xid>};
}

constexpr std::array kinds{
    device_kind<48>("double-bit-ecc", "memory loses two bits of one word", CUDA_ERROR_ECC_UNCORRECTABLE,
                    CUDA_ERROR_ECC_UNCORRECTABLE),
    device_kind<94>("contained-ecc", "memory loses bits, and only those who used them are harmed",
                    CUDA_ERROR_CONTAINED, CUDA_SUCCESS),
    device_kind<95>("uncontained-ecc", "memory loses bits, and nobody knows whom that harmed",
                    CUDA_ERROR_ECC_UNCORRECTABLE, CUDA_ERROR_ECC_UNCORRECTABLE),
    device_kind<74>("nvlink-error", "a link to another GPU fails", CUDA_ERROR_NVLINK_UNCORRECTABLE,
                    CUDA_ERROR_NVLINK_UNCORRECTABLE),
    device_kind<79>("fallen-off-the-bus", "the GPU no longer answers on the PCI bus",
                    CUDA_ERROR_LAUNCH_FAILED, CUDA_ERROR_LAUNCH_FAILED),
    device_kind<119>("gsp-timeout", "the GPU's own processor (GSP) no longer answers the driver",
                     CUDA_ERROR_LAUNCH_FAILED, CUDA_ERROR_LAUNCH_FAILED),
};

}  // namespace

std::span<const Kind> device_kinds() { return kinds; }

}  // namespace firebreak::inject
