// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <cstdio>
#include <iostream>

#include "base/clock.h"
#include "cli/commands.h"
#include "cli/kinds.h"
#include "client/process_end.h"
#include "cuda/context.h"
#include "inject/catalogue.h"
#include "platform/platform.h"

namespace firebreak::cli {
namespace {

struct Options {
  std::string kind;
  bool list = false;
  bool wait = false;
};

/// A process that saw its fault; the same as the sample tenants' status for a GPU error.
constexpr int faulted_status = 3;

int list() {
  std::string group;
  for (const inject::Kind* kind : inject::catalogue()) {
    const std::string of = fault::to_string(kind->fault_class);
    if (of != group) fmt::print("{}\n", of);
    group = of;
    fmt::print("  {:<24} {}\n", kind->name, kind->summary);
  }
  return 0;
}

void say(const std::string& line) {
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

/// Says that the fault is being raised (there is no later), then ends this process.
void end_self(os::Kernel& kernel, inject::Ending ending) {
  say(fmt::format("raised {}", to_ns(SystemClock().now())));
  client::end_process(kernel, ending);
}

/// One line on standard input lets the fault go; its end means that none is wanted.
bool told_to_go() {
  say("prepared");
  std::string line;
  return static_cast<bool>(std::getline(std::cin, line));
}

Result<int> inject_into_self(const inject::Kind& kind, bool wait) {
  auto platform = platform::choose();
  if (!platform) return propagate(platform);
  const auto driver = cuda::Driver::open(platform->cuda_library);
  if (!driver) return propagate(driver);
  const auto device = cuda::Device::get(**driver, 0);
  if (!device) return propagate(device);
  const auto context = cuda::Context::create(*device);
  if (!context) return propagate(context);
  inject::Options options;
  options.end_process = [&](inject::Ending ending) { end_self(*platform->kernel, ending); };
  auto injection = kind.prepare(**driver, context->view(), options);
  if (!injection) return propagate(injection);
  if (wait && !told_to_go()) return 0;
  const inject::Report report = (*injection)->raise();
  say(fmt::format("raised {}", report.launched_at_ns));
  say(fmt::format("answered {} {}", report.answered_at_ns, report.error_name));
  if (report.answered == CUDA_SUCCESS) {
    if (!is_fault(kind)) return 0;
    return fail(ErrorCode::Device, fmt::format("{} was raised and nothing came of it", kind.name));
  }
  fmt::print(stderr, "{}: {} after {:.2f} ms\n", kind.name, report.error_name,
             to_ms(Nanoseconds(report.answered_at_ns - report.launched_at_ns)));
  return report.answered == kind.expectation.faulter ? faulted_status : 1;
}

int run(const Options& options) {
  if (options.list) return list();
  const inject::Kind* kind = inject::find(options.kind);
  if (kind == nullptr) return complain(no_such_kind(options.kind));
  const auto status = inject_into_self(*kind, options.wait);
  return status ? *status : complain(to_string(status.error()));
}

}  // namespace

void add_inject(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(
      "inject", "Raises one kind of fault in this process and prints what the driver answered");
  CLI::Option* kind = command->add_option("KIND", options->kind, "The kind of fault");
  CLI::Option* list_flag = command->add_flag("--list", options->list, "Show all kinds");
  kind->excludes(list_flag);
  command->add_flag("--wait", options->wait,
                    "Prepare it, say 'prepared', and wait for a line on standard input");
  command->callback([options, command, &action] {
    if (!options->list && options->kind.empty()) throw CLI::RequiredError("KIND or --list");
    action = [options] { return run(*options); };
  });
}

}  // namespace firebreak::cli
