// SPDX-License-Identifier: Apache-2.0
/// A CUDA driver that is none of NVIDIA's tells this of itself: where its processes' UVM descriptors are to
/// be found, and what it is called.
#pragma once

namespace firebreak::abi {

/// Texts that end with a zero byte, and stay as long as the library does.
struct StandInDriver {
  const char* uvm_link_target;  ///< the descriptor's link as /proc/PID/fd shows it
  const char* name;             ///< the driver's name in one line; drivers that behave in another way have
                                ///< another
};

/// The function that such a library exports; NVIDIA's has none of that name. Any thread may call it, also
/// before cuInit.
using DescribeStandIn = StandInDriver();
inline constexpr const char* describe_stand_in_symbol = "firebreakDescribeStandIn";

}  // namespace firebreak::abi
