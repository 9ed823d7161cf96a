// SPDX-License-Identifier: Apache-2.0
#include "agent/pairs/inner_pids.h"

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <variant>

#include "ground/os/processes.h"

namespace firebreak::agent {
namespace {

std::int64_t* pid_named_by(abi::Message& message) {
  if (auto* const adopt = std::get_if<abi::Adopt>(&message)) return &adopt->pid;
  if (auto* const end = std::get_if<abi::EndProcess>(&message)) return &end->pid;
  if (auto* const output = std::get_if<abi::Output>(&message)) return &output->pid;
  return nullptr;
}

}  // namespace

Status translate_pids(os::Kernel& kernel, pid_t asker, abi::Message& message) {
  std::int64_t* const named = pid_named_by(message);
  if (named == nullptr || !os::is_in_inner_namespace(kernel, asker)) return {};
  const auto found = os::find_numbered(kernel, asker, static_cast<pid_t>(*named));
  if (!found) {
    return fail(
        ErrorCode::NotFound,
        fmt::format("process {} of the PID namespace of process {} is no child of it", *named, asker));
  }
  *named = *found;
  return {};
}

}  // namespace firebreak::agent
