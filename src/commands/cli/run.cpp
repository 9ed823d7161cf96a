// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <filesystem>
#include <utility>

#include "commands/cli/agent_socket.h"
#include "commands/cli/become_tenant.h"
#include "commands/cli/commands.h"
#include "commands/cli/pair_keeper.h"
#include "ground/os/become.h"
#include "ground/os/self.h"
#include "ground/platform/platform.h"

namespace firebreak::cli {
namespace {

constexpr const char* without_variable = "FIREBREAK_WITHOUT";

struct Options {
  TenantOptions tenant;
  std::uint32_t wait_s = 60;
  bool standby = false;
  bool pair = false;
  bool guard = false;
  bool spare = false;
  bool notices = false;
  std::vector<std::string> without;
};

/// A program that comes alone has everything that works for it. One with a standby has what it is given: it
/// knows of us, and survives by that. Where our library is not installed nobody else has it either.
void choose_parts(Options& options) {
  const bool is_alone = !options.standby && !options.pair && platform::guard_preload();
  const auto part = [&](const char* name, bool asked_for) {
    if (asked_for) return Part::Yes;
    const bool is_without = std::ranges::count(options.without, name) != 0;
    return is_alone && !is_without ? Part::IfPossible : Part::No;
  };
  options.tenant.guard = part("guard", options.guard || options.tenant.guard_ipc);
  options.tenant.spare = part("spare", options.spare);
  options.tenant.parking = std::ranges::count(options.without, "parking") == 0;
}

/// What the environment says of all programs gives way to what is asked for of this one. Said in words, one
/// of the two is a mistake.
Status check_parts(const Options& options) {
  if (os::environment_variable(without_variable) == fmt::format("{}", fmt::join(options.without, ",")))
    return {};
  for (const auto& [part, is_asked_for] : {std::pair("guard", options.guard), {"spare", options.spare}}) {
    if (is_asked_for && std::ranges::count(options.without, part) != 0)
      return fail(ErrorCode::InvalidArgument,
                  fmt::format("--{0} and --without {0} contradict each other", part));
  }
  return {};
}

/// "python3-4242": nobody else has it in this PID namespace.
std::string name_after(const std::string& program) {
  constexpr std::size_t longest = 32;
  std::string name = std::filesystem::path(program).filename().string().substr(0, longest);
  std::ranges::replace_if(
      name, [](unsigned char c) { return !std::isalnum(c) && c != '-' && c != '_' && c != '.'; }, '_');
  return name + "-" + std::to_string(os::own_pid());
}

/// Its status for shells.
int run_pair(const TenantOptions& options) {
  const auto keeper = PairKeeper::create(options);
  const Result<int> status = keeper ? (*keeper)->run() : propagate(keeper);
  if (status) return *status;
  (void)complain(to_string(status.error()));
  return own_failure_status;
}

int run(Options& options) {
  const auto file = os::program_file(options.tenant.command.front());
  if (!file) {
    (void)complain(to_string(file.error()));
    return status_of_failed_start(file.error());
  }
  if (const Status chosen = choose_by_program(options.tenant, *file); !chosen) {
    (void)complain(to_string(chosen.error()));
    return own_failure_status;
  }
  if (options.pair) return run_pair(options.tenant);
  return become_tenant(options.tenant, *file, options.standby ? abi::Role::Standby : abi::Role::Active,
                       options.notices);
}

/// What a program is to have of all that protects it, and others from it.
void add_parts(CLI::App& command, Options& options, CLI::Option& standby, CLI::Option& pair) {
  command.add_flag(
      "--guard", options.guard,
      "Lay guard ranges over unused GPU addresses in the tenant's process: a stray access harms nobody and "
      "is reported. The default of a program that comes alone, as far as it is possible");
  command.add_flag(
      "--guard-ipc", options.tenant.guard_ipc,
      "Let the driver allocate, for programs that share memory with cuIpcGetMemHandle: less is guarded. Goes "
      "--without spare");
  command
      .add_flag("--spare", options.spare,
                "Give the program a spare driver instance in the other MPS domain: it goes on there when a "
                "neighbour's fault ends this one. The program needs no change. Likewise a default")
      ->excludes(&standby, &pair);
  command
      .add_option("--without", options.without,
                  "What of that the program is not to have: guard, spare, and parking, which is to wait in "
                  "a core dump after a neighbour's exception")
      ->delimiter(',')
      ->check(CLI::IsMember({"guard", "spare", "parking"}))
      ->envname(without_variable)
      ->type_name("PART,...");
}

/// What it may have of the GPU, and when.
void add_limits(CLI::App& command, TenantOptions& tenant) {
  command.add_flag(
      "--report-only", tenant.report_only,
      "Where the tenant is guarded and strays, say so and let it go on, up to a number of strays");
  command.add_option("--sm-percent", tenant.sm_percent, "The share of the GPU's SMs that it may use")
      ->check(CLI::Range(1, 100));
  command
      .add_option("--memory-mib", tenant.memory_mib,
                  "The device memory that it may have, CUDA's own in its process included")
      ->check(CLI::Range(1U, 1U << 30));
  command
      .add_option("--class", tenant.turn_class,
                  "How urgent the tenant's turns are, where the agent gives turns by priority: live, where "
                  "somebody waits for its results, or batch (default)")
      ->check(CLI::IsMember({"live", "batch"}));
  command.add_option("--gpu", tenant.gpu,
                     "On the GPU of this UUID, or how that begins, where the agent has several");
}

}  // namespace

void add_run(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(
      "run", "Starts a tenant under the agent: firebreak run [--name NAME] [--standby|--pair] -- COMMAND...");
  CLI::Option* name =
      command->add_option("--name", options->tenant.name,
                          "The tenant's name (default: its program's, and the number of this process)");
  CLI::Option* standby =
      command->add_flag("--standby", options->standby, "Start the tenant's standby, in the other MPS domain")
          ->needs(name);
  CLI::Option* pair =
      command
          ->add_flag(
              "--pair", options->pair,
              "Start its active and its standby, and a new standby whenever it has none, until it is done")
          ->excludes(standby)
          ->needs(name);
  command
      ->add_option(
          "--standby-sm-percent", options->tenant.standby_sm_percent,
          "The share of a standby: few SMs need less memory. Promoted it serves with it, until one without "
          "that limit is ready, to which it hands over")
      ->check(CLI::Range(1, 100))
      ->needs(pair);
  add_parts(*command, *options, *standby, *pair);
  add_limits(*command, options->tenant);
  command
      ->add_option(
          "--wait-s", options->wait_s,
          "How long to wait where no agent is there yet, or no MPS domain takes it; 0: fails at once")
      ->capture_default_str()
      ->check(CLI::Range(0, 86'400));
  command->add_flag("--notices", options->notices,
                    "Say on standard error, too, what is to be told of the tenant before it starts");
  add_socket_option(*command, options->tenant.socket_path);
  command->add_option("COMMAND", options->tenant.command, "The program and its arguments")->required();
  command->positionals_at_end();
  command->footer(
      "It becomes the program, whose status is its own. 127: there is no such program; 126: it cannot be "
      "run; "
      "125: firebreak itself has failed, and says why.");
  command->callback([options, &action, name] {
    const bool has_name = name->count() > 0;
    action = [options, has_name] {
      if (!has_name) options->tenant.name = name_after(options->tenant.command.front());
      if (const Status parts = check_parts(*options); !parts) {
        (void)complain(to_string(parts.error()));
        return own_failure_status;
      }
      if (const Status heeded = heed_environment(options->tenant); !heeded) {
        (void)complain(to_string(heeded.error()));
        return own_failure_status;
      }
      choose_parts(*options);
      options->tenant.domain_patience = std::chrono::seconds(options->wait_s);
      return run(*options);
    };
  });
}

}  // namespace firebreak::cli
