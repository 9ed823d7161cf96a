// SPDX-License-Identifier: Apache-2.0
/// Where core dumps of the program's instances go.
#include "ground/os/claimed_name.h"
#include "ground/os/file.h"
#include "program/virtual/process.h"

namespace firebreak::virtual_driver {
namespace {

/// Of the machine's processes only those with the same pipe say the same. A name has room for so much of it.
std::string claim_on(const std::string& pipe) {
  constexpr std::size_t longest = 88;
  return "firebreak-dumps-" + pipe.substr(pipe.size() > longest ? pipe.size() - longest : 0);
}

}  // namespace

/// Whoever was started by the program has its environment. Two dumps in one pipe nobody could read, so the
/// first process that comes to CUDA has the pipes. Another one writes no dumps, and is lost where its domain
/// is; likewise one whose pipes have gone with the first: whose dump cannot be opened ends its neighbours.
void VirtualProcess::claim_dumps() {
  if (settings_.dumps[0].empty()) return;
  bool are_ours = true;
  for (const std::string& path : settings_.dumps) {
    auto claim = os::claim_name(claim_on(path));
    are_ours = are_ours && os::is_fifo_of(path, began_as_.user) &&
               (claim || claim.error().code != ErrorCode::Unavailable);
    if (claim) claims_.push_back(std::move(*claim));
  }
  if (!are_ours) settings_.dumps = {no_dump, no_dump};
}

}  // namespace firebreak::virtual_driver
