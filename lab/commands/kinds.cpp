// SPDX-License-Identifier: Apache-2.0
#include "commands/kinds.h"

#include <fmt/format.h>

#include "inject/catalogue.h"

namespace firebreak::commands {

std::string no_such_kind(const std::string& name) {
  const inject::Kind* close = inject::closest(name);
  const std::string meant = close == nullptr ? "" : fmt::format("did you mean '{}'? ", close->name);
  return fmt::format("no fault kind '{}' ({}`firebreak-lab inject --list` shows all)", name, meant);
}

}  // namespace firebreak::commands
