// SPDX-License-Identifier: Apache-2.0
/// libfirebreak-inject.so: the catalogue of faults, for tenants that allow them.
#include "program/client/injection_library.h"

#include <functional>
#include <string>

#include "ground/os/real_kernel.h"
#include "inject/catalogue.h"
#include "inject/process_end.h"
#include "program/cuda/context.h"

namespace firebreak::inject {
namespace {

Status raise_fault(const std::string& name, const std::function<void()>& about_to) {
  const Kind* kind = find(name);
  if (kind == nullptr) return fail(ErrorCode::NotFound, "there is no fault kind '" + name + "'");
  auto driver = cuda::Driver::load();
  if (!driver) return propagate(driver);
  const auto context = cuda::ContextView::current(**driver);
  if (!context) return propagate(context);
  os::RealKernel kernel;
  Options options;
  options.end_process = [&kernel](Ending ending) { end_process(kernel, ending); };
  const auto injection = kind->prepare(**driver, *context, options);
  if (!injection) return propagate(injection);
  about_to();
  (void)(*injection)->raise();
  return {};
}

}  // namespace
}  // namespace firebreak::inject

extern "C" __attribute__((visibility("default"))) int firebreak_raise_fault(const char* kind,
                                                                            void (*about_to)(void* argument),
                                                                            void* argument, char* why,
                                                                            std::size_t why_bytes) {
  const auto raised = firebreak::inject::raise_fault(kind, [&] { about_to(argument); });
  if (raised) return 0;
  const std::string text = to_string(raised.error());
  if (why_bytes > 0) why[text.copy(why, why_bytes - 1)] = '\0';
  return 1;
}
