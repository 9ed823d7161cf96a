// SPDX-License-Identifier: Apache-2.0
/// The function that NVIDIA's library does not have: it says that this one stands in for it.
#include "shared/abi/stand_in_driver.h"
#include "softgpu/machine/self_description.h"

extern "C" {

firebreak::abi::StandInDriver firebreakDescribeStandIn();

firebreak::abi::StandInDriver firebreakDescribeStandIn() {
  return {firebreak::softgpu::uvm_link_target, firebreak::softgpu::driver_name()};
}

}  // extern "C"
