// SPDX-License-Identifier: Apache-2.0
#include "agent/settings/command_line.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <cstdio>

#include "agent/settings/configuration.h"
#include "ground/os/real_kernel.h"
#include "ground/pages/arguments.h"
#include "ground/pages/pages.h"
#include "ground/platform/machine.h"

namespace firebreak::agent {
namespace {

/// Adds the options about tenants.
void add_tenant_options(CLI::App& app, CommandLine& options) {
  app.set_version_flag("--version", "firebreakd " + platform::version());
  app.add_option("--config", options.configuration,
                 "A TOML file with more options, under their names without dashes; what is said here counts "
                 "before what is said there");
  app.add_flag("--check", options.check, "Only say whether the file of --config is in order")
      ->needs("--config");
  app.add_option("--directory", options.directory,
                 "For MPS directories and the default socket; short, private to us")
      ->capture_default_str();
  app.add_option("--socket", options.socket_path,
                 "Where operators reach the agent (default: DIRECTORY/agent.sock; tenants: "
                 "DIRECTORY/tenants.sock)");
  app.add_option(
      "--user", options.user,
      "Which user the agent becomes, with few rights, once it has started; a process that does for it "
      "what only root may stays root's (default: none, it stays who has started it)");
  app.add_option("--operator-group", options.operator_group,
                 "Whose members are operators, besides root and our user: they may do everything");
  app.add_option("--tenant-group", options.tenant_group,
                 "Whose members may run tenants, besides root and our user, and see and end their own");
  app.add_option(
      "--observer-group", options.observer_group,
      "Whose members may read the status of all tenants, at DIRECTORY/status.sock, and do nothing: "
      "for firebreak-exporter");
  app.add_option("--strays", options.strays,
                 "What becomes of a guarded tenant that strays, where its operator says nothing else: end or "
                 "report")
      ->check(CLI::IsMember({"end", "report"}))
      ->capture_default_str();
  app.add_option("--stray-blocks", options.stray_blocks,
                 "A tenant that is only to be reported is ended beyond this many stray blocks of 2 MiB")
      ->capture_default_str();
  app.add_option("--hold-s", options.hold_s,
                 "How long a dead client's last kernels have to end, while others share its domain; 0: none "
                 "are waited for")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--longest-hold-s", options.longest_hold_s,
                 "The same where work is known to run on; then its domain is given up")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--fence-wait-s", options.fence_wait_s,
                 "The same for a dead active whose standby waits to take over, where work is known to run")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--lease-s", options.lease_s,
                 "How long a tenant's GPU memory outlives its last process, unless it had finished; a "
                 "process that is "
                 "started meanwhile goes on with it")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--park-s", options.park_s,
                 "How long the other tenants of a domain go on after an exception of one's kernel, so that "
                 "they can leave before the domain falls; costs a small context a domain (default: 0, not "
                 "at all)")
      ->check(CLI::Range(0.0, 86400.0));
  app.add_flag("--spares", options.spares,
               "Give spare driver instances to programs that `firebreak run --spare` starts; costs an MPS "
               "daemon more on each GPU");
  app.add_option("--quota-mib", options.quota_mib,
                 "Of GPU memory that outlives its processes, for each tenant (default: "
                 "no limit)")
      ->check(CLI::Range(std::uint64_t{0}, std::uint64_t{1} << 30));
}

/// Adds the options about who computes when.
void add_turn_options(CLI::App& app, CommandLine& options) {
  app.add_option("--turns", options.turns,
                 "Who computes now, of the tenants of a GPU that ask for their turns (fb_turn): free, all of "
                 "them at once; priority, those of `firebreak run --class live` first; deadline, whose "
                 "deadline leaves the least time")
      ->check(CLI::IsMember({"free", "priority", "deadline"}))
      ->capture_default_str();
  app.add_option("--turn-max-ms", options.turn_max_ms,
                 "How long such a tenant waits while others are more urgent, before it has a turn of a tenth "
                 "of that; and no longer after an agent's end")
      ->check(CLI::Range(10.0, 60'000.0))
      ->capture_default_str();
}

/// Adds the options about the machine.
void add_machine_options(CLI::App& app, CommandLine& options) {
  app.add_flag(
      "--sparse", options.sparse,
      "Let low addresses of tenants without a guard swallow strays (below 4 GiB): contained, and told "
      "to nobody");
  app.add_option(
      "--gpu", options.gpus,
      "A GPU with two MPS domains of its own, by its UUID or how that begins (nvidia-smi -L); may be "
      "given again (default: one, the one that CUDA finds)");
  app.add_option("--gpu-kind", options.gpu_kind,
                 "real, for which the agent waits where its driver is not loaded, or soft, to try Firebreak "
                 "without a GPU (default: FIREBREAK_GPU, else real)")
      ->check(CLI::IsMember({"real", "soft"}));
  app.add_option("--sm-percent", options.limits.sm_percent,
                 "Of the SMs, for each tenant of which `firebreak run` says nothing else")
      ->check(CLI::Range(1, 100));
  app.add_option("--memory-mib", options.limits.memory_mib,
                 "Of device memory, for each tenant of which `firebreak run` says nothing else")
      ->check(CLI::Range(1U, 1U << 30));
  // The option asked for what is so by itself now; a unit file that has it need not change.
  app.add_flag("--keep-domains")->group("");
  auto* supervised =
      app.add_flag("--supervised", options.supervised,
                   "Be started again after a failure and after a SIGTERM, with everything that is known of "
                   "the tenants and "
                   "their memory; for machines without systemd, whose descriptor store does the same");
  app.add_option(
         "--watchdog-s", options.watchdog_s,
         "With --supervised: an agent whose loop gives no sign of life for so long is killed and started "
         "again; 0: none is, as for a debugger (by systemd: WatchdogSec=)")
      ->check(CLI::Range(0.0, 86400.0))
      ->capture_default_str();
  app.add_flag(
         "--end-domains", options.end_domains,
         "Whatever ends the agent ends its MPS daemons, and with them the tenants; without it they go on, "
         "for the next agent on this directory, unless it ends by SIGINT or `firebreak shutdown`")
      ->excludes(supervised);
  app.add_flag("--shelf", options.shelf, "What agents start themselves, to hold descriptors for them")
      ->group("");
  app.add_flag("--second-supervisor", options.second_supervisor,
               "What --supervised starts itself, to take its place where it is killed")
      ->group("");
  app.add_flag("--rights-keeper", options.rights_keeper,
               "What the agent starts itself, to look at other processes for it")
      ->group("");
  app.add_flag("--privileged-helper", options.privileged_helper,
               "What the agent starts itself, to do for it what only root may")
      ->group("");
  app.add_option("--log-mib", options.log_mib, "Size of an MPS log above which its older part is moved away")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 20))
      ->capture_default_str();
  app.add_option(
         "--descriptors", options.descriptors,
         "How many the agent may have, for how many tenants it has room (default: as many as the hard "
         "limit allows, and root may raise)")
      ->check(CLI::Range(std::uint64_t{128}, std::uint64_t{1} << 20));
  app.add_option("--log-files", options.log_files, "How many such parts are kept of each log")
      ->capture_default_str();
}

/// Options of one start, and those that agents give to programs that they start.
constexpr std::array not_in_a_file = {"config",           "check", "help",          "version",
                                      "supervised",       "shelf", "rights-keeper", "privileged-helper",
                                      "second-supervisor"};

Result<std::vector<std::string>> arguments_of(const CLI::App& app, const std::string& path,
                                              const ConfiguredOption& configured) {
  const CLI::Option* option = app.get_option_no_throw("--" + configured.key);
  const bool is_flag = option != nullptr && option->get_expected_min() == 0;
  const auto refuse = [&](const char* why) {
    return fail(
        ErrorCode::InvalidArgument,
        fmt::format("{}, line {}: {}", path, configured.line, fmt::format(fmt::runtime(why), configured.key)),
        configuration_hint);
  };
  if (option == nullptr) return refuse("there is no key '{}'");
  if (std::ranges::count(not_in_a_file, configured.key) > 0)
    return refuse("'{}' is for the command line alone");
  if (is_flag != configured.is_switch) return refuse(is_flag ? "'{}' is true or false" : "'{}' has a value");
  std::vector<std::string> arguments;
  if (option->count() > 0) return arguments;
  for (const std::string& value : configured.values) {
    if (!is_flag) arguments.push_back(fmt::format("--{}={}", configured.key, value));
    if (is_flag && value == "true") arguments.push_back("--" + configured.key);
  }
  return arguments;
}

/// Returns those of the file that the command line does not have itself.
Result<std::vector<std::string>> arguments_of_file(const CLI::App& app, const CommandLine& told) {
  const auto text = os::RealKernel().read_file(told.configuration);
  if (!text && text.error().code == ErrorCode::NotFound && !told.check) {
    fmt::print(stderr, "firebreakd: there is no {}: only the command line counts\n", told.configuration);
    return std::vector<std::string>{};
  }
  if (!text) return propagate(text);
  const auto configured = parse_configuration(*text, told.configuration);
  if (!configured) return propagate(configured);
  std::vector<std::string> all;
  for (const ConfiguredOption& each : *configured) {
    auto arguments = arguments_of(app, told.configuration, each);
    if (!arguments) return propagate(arguments);
    all.insert(all.end(), arguments->begin(), arguments->end());
  }
  return all;
}

/// The mistake, if there is one.
std::optional<std::string> read_file_too(CLI::App& app, int argument_count, char** arguments,
                                         CommandLine& into) {
  auto all = arguments_of_file(app, into);
  if (!all) return to_string(all.error());
  const std::string path = into.configuration;
  all->insert(all->end(), arguments + 1, arguments + argument_count);
  std::ranges::reverse(*all);  // the order that CLI11 takes
  into = {};
  try {
    app.parse(std::move(*all));
  } catch (const CLI::ParseError& wrong) {
    return fmt::format("{}: {} ({})", path, wrong.what(), configuration_hint);
  }
  return std::nullopt;
}

/// Those of the manual.
std::vector<pages::Example> examples() {
  return {
      {"Serves one GPU, for the members of a group", "firebreakd --tenant-group firebreak"},
      {"The same where others are to outlive exceptions of kernels, too",
       "firebreakd --tenant-group firebreak --park-s 30 --spares"},
      {"Serves two GPUs of several (nvidia-smi -L)", "firebreakd --gpu GPU-5f3c --gpu GPU-91aa"},
      {"Tries Firebreak without a GPU", "firebreakd --gpu-kind soft --directory /tmp/firebreak"},
      {"Says whether a file of options is in order",
       "firebreakd --check --config /etc/firebreak/firebreakd.toml"},
  };
}

}  // namespace

std::optional<int> read_command_line(int argument_count, char** arguments, CommandLine& into) {
  CLI::App app{"The Firebreak agent: keeps the other tenants of a shared GPU alive when one faults."};
  add_tenant_options(app, into);
  add_turn_options(app, into);
  add_machine_options(app, into);
  const pages::Subject subject{"firebreakd", 8, platform::version(), examples()};
  if (pages::print_if_asked(app, subject, argument_count, arguments)) return 0;
  if (const auto status = pages::read_arguments(app, subject.name, argument_count, arguments)) return *status;
  if (!into.configuration.empty()) {
    if (const auto wrong = read_file_too(app, argument_count, arguments, into)) {
      fmt::print(stderr, "firebreakd: {}\n", *wrong);
      return 1;
    }
  }
  if (into.check) {
    fmt::print("firebreakd: {} is in order\n", into.configuration);
    return 0;
  }
  if (into.socket_path.empty()) into.socket_path = into.directory + "/agent.sock";
  return std::nullopt;
}

}  // namespace firebreak::agent
