// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "characterize/scene.h"
#include "commands/cli/agent_socket.h"
#include "commands/commands.h"
#include "commands/inject_into.h"
#include "commands/inject_list.h"
#include "commands/inject_schedule.h"
#include "commands/kinds.h"
#include "gpu/either_gpu.h"
#include "ground/base/clock.h"
#include "ground/os/real_kernel.h"
#include "ground/platform/platform.h"
#include "inject/catalogue.h"
#include "inject/harmless.h"
#include "inject/process_end.h"
#include "program/cuda/first_gpu.h"

namespace firebreak::commands {
namespace {

struct Options {
  std::string kind;
  bool list = false;
  bool wait = false;
  bool json = false;
  std::int64_t after_ms = 0;
  std::uint32_t at_launch = 1;
  std::optional<std::uint64_t> address;
  std::string into;
  std::string schedule_path;
  std::optional<std::uint64_t> seed;
  std::string socket_path;
  double end_after_share = 0;
};

/// A process that saw its fault; the same as the sample tenants' status for a GPU error.
constexpr int faulted_status = 3;

void say(const std::string& line) {
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

/// Tells of a fault, as lines or as one JSON object.
class Teller {
 public:
  Teller(const inject::Kind& kind, bool json) : kind_(kind), json_(json) {}

  /// A process that ends has no later moment to tell it.
  void raised(std::int64_t at_ns) const {
    if (json_) {
      say(document(at_ns).dump());
    } else {
      say(fmt::format("raised {}", at_ns));
    }
  }

  void answered(const inject::RaisedFault& report) const {
    if (json_) {
      auto json = document(report.launched_at_ns);
      json["answered_ns"] = report.answered_at_ns;
      json["answered"] = report.error_name;
      json["as_expected"] = report.answered == kind_.expectation.faulter;
      say(json.dump());
      return;
    }
    raised(report.launched_at_ns);
    say(fmt::format("answered {} {}", report.answered_at_ns, report.error_name));
    fmt::print(stderr, "{}: {} after {:.2f} ms\n", kind_.name, report.error_name,
               to_ms(Nanoseconds(report.answered_at_ns - report.launched_at_ns)));
  }

 private:
  nlohmann::ordered_json document(std::int64_t raised_ns) const {
    return {{"kind", kind_.name},
            {"class", fault::to_string(kind_.fault_class)},
            {"raised_ns", raised_ns},
            {"answered", nullptr}};
  }

  const inject::Kind& kind_;
  bool json_;
};

/// One line on standard input lets the fault go; its end means that none is wanted.
bool told_to_go() {
  say("prepared");
  std::string line;
  return static_cast<bool>(std::getline(std::cin, line));
}

/// A program that no fault ended goes on, until its input ends.
void live_on() {
  for (std::string line; std::getline(std::cin, line);) {
  }
}

/// Waits for everything that was asked to come before the fault.
Status wait_for_its_time(const Options& options, os::Kernel& kernel, const cuda::ContextView& context) {
  if (options.after_ms > 0) (void)kernel.poll({}, Milliseconds(options.after_ms));
  return inject::launch_harmless(context, options.at_launch - 1);
}

Result<int> inject_into_self(const inject::Kind& kind, const Options& options) {
  auto platform = gpu::choose_either();
  if (!platform) return propagate(platform);
  const auto gpu = cuda::FirstGpu::open(platform->cuda_library);
  if (!gpu) return propagate(gpu);
  const Teller teller(kind, options.json);
  inject::Options how;
  how.stray_address = options.address;
  how.end_after_share = options.end_after_share;
  how.end_process = [&](inject::Ending ending) {
    teller.raised(to_ns(SystemClock().now()));
    inject::end_process(*platform->kernel, ending);
  };
  auto injection = kind.prepare(gpu->driver(), gpu->context(), how);
  if (!injection) return propagate(injection);
  if (options.wait && !told_to_go()) return 0;
  const auto time_has_come = wait_for_its_time(options, *platform->kernel, gpu->context());
  if (!time_has_come) return propagate(time_has_come);
  const inject::RaisedFault report = (*injection)->raise();
  teller.answered(report);
  if (report.answered == CUDA_SUCCESS) {
    if (options.wait) live_on();
    if (!is_fault(kind)) return 0;
    return fail(ErrorCode::Device, fmt::format("{} was raised and nothing came of it", kind.name));
  }
  return report.answered == kind.expectation.faulter ? faulted_status : 1;
}

Result<int> inject_into_tenant(const inject::Kind& kind, const Options& options) {
  if (options.after_ms > 0) (void)os::RealKernel().poll({}, Milliseconds(options.after_ms));
  const auto raised_ns = inject_into(options.socket_path, options.into, kind, options.at_launch);
  if (!raised_ns) return propagate(raised_ns);
  Teller(kind, options.json).raised(*raised_ns);
  return 0;
}

Result<int> run_one(const Options& options) {
  const inject::Kind* kind = inject::find(options.kind);
  if (kind == nullptr) return fail(ErrorCode::NotFound, no_such_kind(options.kind));
  return options.into.empty() ? inject_into_self(*kind, options) : inject_into_tenant(*kind, options);
}

int run(const Options& options) {
  if (options.list) {
    fmt::print("{}", options.json ? catalogue_json() : catalogue_text());
    return 0;
  }
  const auto status =
      options.schedule_path.empty()
          ? run_one(options)
          : run_schedule({options.schedule_path, options.seed, options.socket_path, options.json});
  if (status) return *status;
  const int failed = complain(to_string(status.error()));
  return status.error().code == ErrorCode::Unsupported ? characterize::refused_status : failed;
}

void add_options(CLI::App& command, Options& options) {
  CLI::Option* kind = command.add_option("KIND", options.kind, "The kind of fault");
  CLI::Option* list = command.add_flag("--list", options.list, "Show all kinds and what is expected of them");
  CLI::Option* schedule = command.add_option(
      "--schedule", options.schedule_path,
      "Raise the faults that a JSON file says, each in a process of its own or in a tenant");
  kind->excludes(list)->excludes(schedule);
  list->excludes(schedule);
  command
      .add_option("--seed", options.seed, "What a schedule leaves to chance; drawn and printed by default")
      ->needs(schedule);
  command.add_option("--after-ms", options.after_ms, "Raise it so many milliseconds after it was prepared")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{86'400'000}))
      ->needs(kind);
  command
      .add_option("--at-launch", options.at_launch,
                  "Raise it at the N-th launch, after N-1 harmless ones; in a tenant, at its N-th commit")
      ->check(CLI::Range(1U, 1'000'000'000U))
      ->needs(kind);
  command.add_option("--address", options.address, "Where kinds stray that stray just anywhere")->needs(kind);
  command
      .add_option("--end-after", options.end_after_share,
                  "Kinds that end the process: after this share of the kernel's time")
      ->check(CLI::Range(0.0, 1.0))
      ->needs(kind);
  CLI::Option* into = command.add_option(
      "--into", options.into,
      "Raise it inside this tenant of the agent, which was started with FIREBREAK_ALLOW_INJECTION=1");
  into->needs(kind);
  CLI::Option* json = command.add_flag("--json", options.json, "Answer in JSON");
  command
      .add_flag("--wait", options.wait, "Prepare it, say 'prepared', and wait for a line on standard input")
      ->needs(kind)
      ->excludes(into)
      ->excludes(json);
  cli::add_socket_option(command, options.socket_path);
}

}  // namespace

void add_inject(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(
      "inject", "Raises one kind of fault in this process and prints what the driver answered");
  add_options(*command, *options);
  command->callback([options, &action] {
    if (!options->list && options->kind.empty() && options->schedule_path.empty())
      throw CLI::RequiredError("KIND, --list or --schedule");
    action = [options] { return run(*options); };
  });
}

}  // namespace firebreak::commands
