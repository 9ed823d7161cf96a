// SPDX-License-Identifier: Apache-2.0
#include "kernels/ptx/signature.h"

namespace firebreak::ptx {

Signature signature_of(const Module& module, const Function& caller, const Call& call) {
  if (call.prototype_index != no_index) {
    const Prototype& prototype = caller.prototypes[call.prototype_index];
    return {&prototype.return_parameters, &prototype.parameters};
  }
  std::uint32_t callee = call.function_index;
  if (call.targets_index != no_index && !caller.call_targets[call.targets_index].function_indices.empty())
    callee = caller.call_targets[call.targets_index].function_indices.front();
  if (callee == no_index) return {};
  return {&module.functions[callee].return_parameters, &module.functions[callee].parameters};
}

}  // namespace firebreak::ptx
