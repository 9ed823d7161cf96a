// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <fstream>
#include <iterator>

#include "access/describe.h"
#include "cli/commands.h"
#include "ptx/parse.h"

namespace firebreak::cli {
namespace {

// A file of that size is no PTX that a compiler wrote.
constexpr std::size_t most_bytes = std::size_t{1} << 30;

Result<std::string> read_source(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return fail(ErrorCode::NotFound, "cannot open " + path);
  std::string text;
  for (std::istreambuf_iterator<char> next(file), end; next != end && text.size() <= most_bytes; ++next)
    text += *next;
  if (text.size() > most_bytes) return fail(ErrorCode::InvalidArgument, path + " is larger than 1 GiB");
  return text;
}

int run(const std::string& path, const std::string& kernel) {
  const auto text = read_source(path);
  if (!text) return complain(to_string(text.error()));
  const auto module = ptx::parse(*text, path, ptx::UnknownInstructions::Kept);
  if (!module) return complain(to_string(module.error()));
  int found = 0;
  for (const ptx::Function& function : module->functions) {
    if (!function.is_entry || !function.has_body || (!kernel.empty() && function.name != kernel)) continue;
    fmt::print("{}", access::explain(access::summarise(*module, function)));
    ++found;
  }
  if (found == 0)
    return complain(kernel.empty() ? path + " has no kernels" : path + " has no kernel " + kernel);
  return 0;
}

}  // namespace

void add_explain(CLI::App& app, Action& action) {
  auto path = std::make_shared<std::string>();
  auto kernel = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand(
      "explain", "Tells which launches of a PTX file's kernels may run again after a fault");
  command->add_option("FILE", *path, "PTX text")->required()->check(CLI::ExistingFile);
  command->add_option("--kernel", *kernel, "Only this one");
  command->callback([path, kernel, &action] { action = [path, kernel] { return run(*path, *kernel); }; });
}

}  // namespace firebreak::cli
