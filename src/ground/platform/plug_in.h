// SPDX-License-Identifier: Apache-2.0
/// How a GPU comes in that is none of NVIDIA's: a library, loaded where it is asked for and never otherwise.
#pragma once

#include <string>

#include "ground/platform/platform.h"

namespace firebreak::platform {

struct PlugInRequest {
  std::string installation;     ///< the folder that has bin/ and lib/ in it
  std::string state_directory;  ///< folder of the GPU's state, unless the environment says another; empty:
                                ///< its own choice
};

/// The one function of such a library, between it and programs of the same build: `made` becomes the
/// platform, or why there is none. The library stays loaded, since the platform's kernel is its code.
using MakePlatform = void(const PlugInRequest& request, Result<Platform>& made);
inline constexpr const char* make_platform_symbol = "firebreak_make_platform";

}  // namespace firebreak::platform
