// SPDX-License-Identifier: Apache-2.0
/// How far a program has given up its GPU (docs/how/rest.md).
#pragma once

#include <cstdint>

namespace firebreak::abi {

enum class RestLevel : std::uint32_t {
  Awake,            ///< it works
  Still,            ///< no call of the program's comes to the driver, and all of its work has ended
  WithoutContexts,  ///< likewise, and it has no driver; its memory stays on the GPU
  WithoutMemory,    ///< likewise, and the content of its memory lies in the host's
};

}  // namespace firebreak::abi
