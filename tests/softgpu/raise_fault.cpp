// SPDX-License-Identifier: Apache-2.0
// Raises one kind of fault in this process and says whether the driver answered as the kind expects:
// 0 it did, 1 it did not, 2 the fault could not be prepared.
#include <cstdio>
#include <string>

#include "ground/os/real_kernel.h"
#include "inject/catalogue.h"
#include "inject/process_end.h"
#include "program/cuda/first_gpu.h"

namespace firebreak {
namespace {

int not_prepared(const Error& error) {
  std::fprintf(stderr, "%s\n", to_string(error).c_str());
  return 2;
}

/// Later calls of a process that faulted answer the same.
bool answers_as_expected(const cuda::Driver& driver, const inject::Kind& kind,
                         const inject::RaisedFault& report) {
  const CUresult later = driver->cuCtxSynchronize();
  std::printf("%s: %s (%d) after %.3f ms, later %s\n", std::string(kind.name).c_str(),
              report.error_name.c_str(), static_cast<int>(report.answered),
              static_cast<double>(report.answered_at_ns - report.launched_at_ns) / 1e6,
              driver.error_name(later).c_str());
  return report.answered == kind.expectation.faulter && later == report.answered;
}

int raise_fault(const inject::Kind& kind) {
  const auto gpu = cuda::FirstGpu::open();
  if (!gpu) return not_prepared(gpu.error());
  inject::Options options;
  os::RealKernel kernel;
  options.end_process = [&kernel](inject::Ending ending) { inject::end_process(kernel, ending); };
  const auto injection = kind.prepare(gpu->driver(), gpu->context(), options);
  if (!injection) return not_prepared(injection.error());
  return answers_as_expected(gpu->driver(), kind, (*injection)->raise()) ? 0 : 1;
}

}  // namespace
}  // namespace firebreak

int main(int argc, char** argv) {
  const auto* kind = argc == 2 ? firebreak::inject::find(argv[1]) : nullptr;
  if (kind == nullptr) {
    for (const auto* known : firebreak::inject::catalogue()) {
      std::fprintf(stderr, "%-24s %s\n", std::string(known->name).c_str(),
                   std::string(known->summary).c_str());
    }
    return 2;
  }
  return firebreak::raise_fault(*kind);
}
