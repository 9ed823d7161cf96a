// SPDX-License-Identifier: Apache-2.0
/// Measures what it costs to read a program's code: PTX a MB, compressed and not. FIREBREAK_BENCH_FILES names
/// libraries, separated by colons, whose images are read as well, for compute capability 9.0.
#include <benchmark/benchmark.h>
#include <fcntl.h>

#include <cstdlib>
#include <sstream>
#include <string>

#include "ground/os/memory.h"
#include "ground/os/real_kernel.h"
#include "kernels/fatbin/image.h"

namespace firebreak {
namespace {

constexpr fatbin::TargetGpu hopper{9, 0};

/// Kernels as nvcc writes them, and one variable.
std::string ptx_text(std::size_t size_bytes) {
  std::string text = ".version 9.0\n.target sm_90\n.address_size 64\n.visible .global .align 4 .u32 steps;\n";
  for (std::size_t i = 0; text.size() < size_bytes; ++i) {
    text += ".visible .entry kernel_" + std::to_string(i) +
            "(.param .u64 p)\n{\n.reg .b64 %rd<4>;\n.reg .f32 %f<4>;\n";
    for (int line = 0; line < 64; ++line)
      text += "\tld.global.f32 \t%f1, [%rd1+" + std::to_string(line * 4) +
              "];\n\tfma.rn.f32 \t%f2, %f1, %f2, 0f3F800000;\n";
    text += "\tst.global.u32 \t[steps], 1;\n\tret;\n}\n";
  }
  return text;
}

void fat_binary_ptx(benchmark::State& state) {
  const std::string text = ptx_text(static_cast<std::size_t>(state.range(0)) << 20);
  for (auto _ : state) benchmark::DoNotOptimize(fatbin::code_of_image(text, hopper).variables.size());
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * text.size()));
}
BENCHMARK(fat_binary_ptx)->Arg(1)->Arg(16)->Unit(benchmark::kMillisecond);

void fat_binary_library(benchmark::State& state, const std::string& path) {
  os::RealKernel kernel;
  const auto file = kernel.open(path, O_RDONLY);
  const auto size_bytes = file ? os::file_size(file->get()) : Result<std::size_t>(propagate(file));
  const auto mapping = size_bytes ? os::Mapping::of_file(file->get(), *size_bytes, os::Protection::Read)
                                  : Result<os::Mapping>(propagate(size_bytes));
  if (!mapping) return state.SkipWithError(("cannot read " + path).c_str());
  const std::string_view content(reinterpret_cast<const char*>(mapping->data()), mapping->size_bytes());
  const auto images = fatbin::images_in(content);
  if (!images) return state.SkipWithError(images.error().message.c_str());
  for (auto _ : state) {
    for (const std::string_view image : *images)
      benchmark::DoNotOptimize(fatbin::code_of_image(image, hopper).variables.size());
  }
  state.counters["images"] = static_cast<double>(images->size());
}

}  // namespace
}  // namespace firebreak

int main(int count, char** arguments) {
  const char* const named = std::getenv("FIREBREAK_BENCH_FILES");
  std::istringstream files(named == nullptr ? "" : named);
  for (std::string path; std::getline(files, path, ':');) {
    benchmark::RegisterBenchmark(("fat_binary_library/" + path.substr(path.rfind('/') + 1)).c_str(),
                                 firebreak::fat_binary_library, path)
        ->Unit(benchmark::kMillisecond);
  }
  benchmark::Initialize(&count, arguments);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
