// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <string_view>

#include "commands/cli/commands.h"
#include "ground/os/memory.h"
#include "ground/os/real_kernel.h"
#include "kernels/access/describe.h"
#include "kernels/fatbin/describe.h"
#include "kernels/fatbin/image.h"
#include "kernels/ptx/parse.h"

namespace firebreak::cli {
namespace {

// A text of that size is no PTX that a compiler wrote.
constexpr std::size_t most_ptx_bytes = std::size_t{1} << 30;

/// Mapped: libraries with code for GPUs have hundreds of MB.
Result<os::Mapping> map_file(const std::string& path) {
  os::RealKernel kernel;
  const auto file = kernel.open(path, O_RDONLY);
  if (!file) return propagate(file);
  const auto size_bytes = os::file_size(file->get());
  if (!size_bytes) return propagate(size_bytes);
  if (*size_bytes == 0) return fail(ErrorCode::InvalidArgument, path + " is empty");
  return os::Mapping::of_file(file->get(), *size_bytes, os::Protection::Read);
}

/// The kernels of one text; how many there were.
Result<int> explain(const fatbin::PtxText& ptx, const std::string& path, const std::string& kernel) {
  if (ptx.text.size() > most_ptx_bytes)
    return fail(ErrorCode::InvalidArgument, path + " is larger than 1 GiB");
  const auto module = ptx::parse(ptx.text, path, ptx::UnknownInstructions::Kept);
  if (!module) return propagate(module);
  int found = 0;
  for (const ptx::Function& function : module->functions) {
    if (!function.is_entry || !function.has_body || (!kernel.empty() && function.name != kernel)) continue;
    if (found++ == 0 && ptx.arch != 0)
      fmt::print("PTX for compute capability {}.{}\n", ptx.arch / 10, ptx.arch % 10);
    fmt::print("{}", access::explain(access::summarise(*module, function)));
  }
  return found;
}

int run(const std::string& path, const std::string& kernel, bool only_variables) {
  const auto file = map_file(path);
  if (!file) return complain(to_string(file.error()));
  const std::string_view content(reinterpret_cast<const char*>(file->data()), file->size_bytes());
  if (only_variables) {
    const auto text = fatbin::describe(content);
    if (!text) return complain(to_string(text.error()));
    fmt::print("{}", *text);
    return 0;
  }
  const auto texts = fatbin::ptx_texts_in(content);
  if (!texts) return complain(to_string(texts.error()));
  if (texts->empty()) return complain(path + " has no PTX");
  int found = 0;
  for (const fatbin::PtxText& ptx : *texts) {
    const auto count = explain(ptx, path, kernel);
    if (!count) return complain(to_string(count.error()));
    found += *count;
  }
  if (found == 0)
    return complain(kernel.empty() ? path + " has no kernels" : path + " has no kernel " + kernel);
  return 0;
}

}  // namespace

void add_explain(CLI::App& app, Action& action) {
  auto path = std::make_shared<std::string>();
  auto kernel = std::make_shared<std::string>();
  CLI::App* command =
      app.add_subcommand("explain", "Tells which launches of a file's kernels may run again after a fault");
  command->add_option("FILE", *path, "PTX, a fat binary, or a program or library with some in it")
      ->required()
      ->check(CLI::ExistingFile);
  command->add_option("--kernel", *kernel, "Only this one");
  auto variables = std::make_shared<bool>(false);
  command->add_flag("--variables", *variables,
                    "Tells instead which code is in it, and its variables on the GPU");
  command->callback([path, kernel, variables, &action] {
    action = [path, kernel, variables] { return run(*path, *kernel, *variables); };
  });
}

}  // namespace firebreak::cli
