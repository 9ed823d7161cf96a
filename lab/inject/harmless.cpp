// SPDX-License-Identifier: Apache-2.0
#include "inject/harmless.h"

#include "program/cuda/module.h"
#include "program/cuda/stream.h"

namespace firebreak::inject {
namespace {

constexpr std::string_view ptx = R"(.version 7.0
.target sm_70
.address_size 64

.visible .entry do_nothing()
{
  ret;
}
)";

}  // namespace

Status launch_harmless(const cuda::ContextView& context, std::uint64_t count) {
  if (count == 0) return {};
  const auto current = context.make_current();
  if (!current) return current;
  const auto module = cuda::Module::load_ptx(context.driver(), ptx);
  if (!module) return propagate(module);
  const auto function = module->function("do_nothing");
  if (!function) return propagate(function);
  const auto stream = cuda::Stream::create(context.driver());
  if (!stream) return propagate(stream);
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto launched = function->launch(stream->handle(), cuda::LaunchShape{});
    if (!launched) return launched;
  }
  return stream->synchronize();
}

}  // namespace firebreak::inject
