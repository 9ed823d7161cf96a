// SPDX-License-Identifier: Apache-2.0
/// This tells whether PTX keeps the address of a variable or function of its own in memory that outlives a
/// kernel: in another instance of the driver nothing is at that address.
#pragma once

#include <string>
#include <string_view>
#include <unordered_set>

namespace firebreak::fatbin {

/// `variables`: those of its .global and .const space. True where it cannot be ruled out.
///
/// An address may be loaded from, stored to, compared, and given to printf and assert. All that is computed
/// with it counts as that address, in whatever order the instructions run. What a kernel stores in local
/// memory counts for whatever its function loads from there.
bool may_keep_addresses(std::string_view text, const std::unordered_set<std::string>& variables);

}  // namespace firebreak::fatbin
