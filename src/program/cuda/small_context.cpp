// SPDX-License-Identifier: Apache-2.0
#include "program/cuda/small_context.h"

namespace firebreak::cuda {

Result<SmallContext> create_small_context(const Device& device, unsigned int multiprocessors) {
  auto context = Context::create(device, {.multiprocessors = multiprocessors});
  const bool is_small = context.has_value();
  if (!is_small && context.error().code == ErrorCode::Unsupported) context = Context::create(device);
  if (!context) return propagate(context);
  if (const Status limited = (*context)->set_limit(CU_LIMIT_STACK_SIZE, 0); !limited)
    return propagate(limited);
  return SmallContext{std::move(*context), is_small};
}

Status go_on_in(const Stream& from, const ContextView& context, const Stream& to) {
  const auto end = Event::create(from.driver());
  if (!end) return propagate(end);
  if (const Status marked = end->record(from.handle()); !marked) return marked;
  if (const Status current = context.make_current(); !current) return current;
  return to.wait_for(*end);
}

}  // namespace firebreak::cuda
