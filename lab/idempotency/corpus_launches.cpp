// SPDX-License-Identifier: Apache-2.0
#include "idempotency/corpus_launches.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <utility>

#include "idempotency/check.h"
#include "kernels/ptx/parse.h"

namespace firebreak::idempotency {
namespace {

constexpr std::uint64_t buffer_bytes = 256U << 10;
constexpr std::size_t buffer_count = 4;

// "LINE: what in WHERE is not supported": what.
std::string cause_of(const std::string& message) {
  const std::size_t colon = message.find(": ");
  const std::size_t begin = colon == std::string::npos ? 0 : colon + 2;
  return message.substr(begin, message.find(" in ", begin) - begin);
}

class CorpusChecker {
 public:
  explicit CorpusChecker(const CorpusLaunchOptions& options) : options_(options), random_(options.seed) {}

  CorpusLaunchCounts run() {
    for (const std::string& path : options_.files) {
      std::ifstream file(path, std::ios::binary);
      const std::string text{std::istreambuf_iterator<char>(file), {}};
      auto module = ptx::parse(text, path, ptx::UnknownInstructions::Kept);
      if (module) check_file(path, *std::move(module));
    }
    return std::move(counts_);
  }

 private:
  // The software GPU takes a module as a whole, or not at all: each kernel gets one without the others.
  void check_file(const std::string& path, ptx::Module module) {
    std::vector<ptx::Function> kernels(module.functions.size());
    for (std::size_t i = 0; i < kernels.size(); ++i) {
      ptx::Function& function = module.functions[i];
      if (!function.is_entry || !function.has_body) continue;
      kernels[i] = function;
      function.has_body = false;
      function.instructions.clear();
    }
    for (std::size_t i = 0; i < kernels.size(); ++i) {
      if (kernels[i].has_body && number_++ % options_.every != 0) kernels[i].has_body = false;
      if (!kernels[i].has_body) continue;
      ptx::Module own = module;
      own.functions[i] = std::move(kernels[i]);
      check_kernel(path, std::move(own), i);
    }
  }

  void check_kernel(const std::string& path, ptx::Module module, std::size_t index) {
    ++counts_.kernels;
    const ptx::Function kernel = module.functions[index];
    const access::KernelSummary summary = access::summarise(module, kernel);
    TracedGpu gpu;
    std::array<std::uint64_t, buffer_count> buffers{};
    for (std::uint64_t& buffer : buffers) buffer = gpu.allocate(buffer_bytes);
    if (const Status loaded = gpu.load(std::move(module)); !loaded) {
      ++counts_.left_out[cause_of(loaded.error().message)];
      return;
    }
    access::DecisionWorkspace workspace;
    for (std::uint64_t i = 0; i < options_.launches; ++i) {
      constexpr std::array<std::uint32_t, 3> masks{63, 1, ~std::uint32_t{0}};
      gpu.scramble(random_(), masks[random_() % masks.size()]);
      const auto report = check_launch(gpu, summary, make_launch(kernel, buffers), workspace, random_);
      if (!report) return;
      ++counts_.launches;
      counts_.completed += report->end == RunEnd::Completed ? 1 : 0;
      counts_.truly_idempotent += report->truth.is_idempotent && report->end == RunEnd::Completed ? 1 : 0;
      counts_.called_idempotent += report->decision.verdict == access::Verdict::Idempotent ? 1 : 0;
      counts_.redone += report->redo_count;
      if (report->problem.empty()) continue;
      counts_.problems.push_back(fmt::format("{}: {}: {}", path, kernel.name, report->problem));
      return;
    }
  }

  // Eight bytes may be a pointer or a number, and so may each eight of a structure.
  LaunchCase make_launch(const ptx::Function& kernel,
                         const std::array<std::uint64_t, buffer_count>& buffers) {
    LaunchCase launch;
    launch.kernel = kernel.name;
    launch.grid.x = static_cast<std::uint32_t>(1 + random_() % 3);
    launch.block.x = 32U << random_() % 3;
    launch.parameters.assign(kernel.parameter_bytes, std::byte{0});
    const bool has_numbers = random_() % 2 == 0;
    for (const ptx::Parameter& parameter : kernel.parameters) {
      for (std::uint64_t at = 0; at < parameter.size_bytes;) {
        std::uint64_t value = random_() % (random_() % 4 == 0 ? 3 : 64);
        const bool is_wide = parameter.size_bytes - at >= 8 && at % 8 == 0;
        const bool is_pointer = is_wide && (!has_numbers || random_() % 3 != 0);
        if (is_pointer) value = buffers[random_() % buffer_count] + buffer_bytes / 2 + 16 * (random_() % 64);
        const std::uint64_t size = std::min<std::uint64_t>(is_wide ? 8 : 4, parameter.size_bytes - at);
        std::memcpy(launch.parameters.data() + parameter.offset_bytes + at, &value, size);
        at += size;
      }
    }
    return launch;
  }

  const CorpusLaunchOptions& options_;
  std::mt19937_64 random_;
  std::uint64_t number_ = 0;
  CorpusLaunchCounts counts_;
};

}  // namespace

CorpusLaunchCounts check_corpus(const CorpusLaunchOptions& options) { return CorpusChecker(options).run(); }

std::string to_text(const CorpusLaunchCounts& counts) {
  std::string text = fmt::format("{} kernels, {} launches, {} to their end\n", counts.kernels,
                                 counts.launches, counts.completed);
  text +=
      fmt::format("{} of these idempotent by their trace, {} launches called so, {} torn and done again\n",
                  counts.truly_idempotent, counts.called_idempotent, counts.redone);
  for (const auto& [what, kernels] : counts.left_out)
    text += fmt::format("{:8} left out: {}\n", kernels, what);
  for (const std::string& problem : counts.problems) text += "PROBLEM: " + problem + "\n";
  return text +
         (counts.problems.empty() ? "no problem\n" : fmt::format("{} problems\n", counts.problems.size()));
}

}  // namespace firebreak::idempotency
