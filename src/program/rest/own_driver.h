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

/// Descriptors of the GPU that the program's own driver has opened: those that came during its calls. NVML
/// opens the same devices, and maps none of them (tests/hardware/rest.py). One call at a time.
class OwnDescriptors {
 public:
  /// Makes that call of the own driver's, and gives its result.
  template <class Call>
  auto during(const Call& call) {
    const std::set<int> before = of_gpu();
    auto result = call();
    note_new(before);
    return result;
  }
  const std::set<int>& all() const { return all_; }

 private:
  static std::set<int> of_gpu();
  void note_new(const std::set<int>& before);

  std::set<int> all_;
};

struct Replaced {
  std::size_t descriptors = 0;
  std::size_t mappings = 0;
};

/// No driver but the program's own is there, and maybe NVML: then its descriptors are `own`. `socket` comes
/// to lie in the places, where that driver uses it for as long as the process lives. `kept`: descriptors of
/// memory that stays on the GPU. What cannot be replaced stays as it is.
Replaced replace_own_driver(const os::QuietSocket& socket, const OwnDescriptors& own,
                            const std::set<int>& kept, const std::string& pipe_directory);

}  // namespace firebreak::rest
