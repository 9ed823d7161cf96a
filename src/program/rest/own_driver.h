// SPDX-License-Identifier: Apache-2.0
/// What the program's own driver has of the GPU while the program rests: something harmless comes to lie in
/// its place. That driver does no work; what needs no GPU it answers still.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "ground/os/stand_in.h"

namespace firebreak::rest {

/// The device of that name in /proc is NVIDIA's, or is what the software GPU has in the place of one.
bool is_of_gpu(std::string_view name);
/// A socket of those names belongs to a client of the MPS daemon with that pipe directory.
bool is_of_mps(std::string_view name, std::string_view peer, const std::string& pipe_directory);

/// Why the program's own driver cannot be told from others here; null: it can.
const char* why_not_told_apart();

struct Replaced {
  std::size_t descriptors = 0;
  std::size_t mappings = 0;
};

/// No driver but the program's own is there. `socket` comes to lie in the places, where that driver uses it
/// for as long as the process lives. `kept`: descriptors of memory that stays on the GPU. What cannot be
/// replaced stays as it is.
Replaced replace_own_driver(const os::QuietSocket& socket, const std::set<int>& kept,
                            const std::string& pipe_directory);

}  // namespace firebreak::rest
