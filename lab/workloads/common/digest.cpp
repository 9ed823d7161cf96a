// SPDX-License-Identifier: Apache-2.0
#include "workloads/common/digest.h"

#include <fmt/format.h>

#include "ground/base/text.h"

namespace firebreak::workloads {

std::uint64_t digest(std::string_view bytes) { return fnv1a(bytes); }

std::string hexadecimal(std::uint64_t value) { return fmt::format("{:016x}", value); }

}  // namespace firebreak::workloads
