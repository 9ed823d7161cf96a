// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <fstream>

#include "commands/cli/agent_socket.h"
#include "commands/cli/cdi_spec.h"
#include "commands/cli/commands.h"
#include "commands/seats/seats.h"
#include "ground/os/self.h"
#include "shared/link/agent_link.h"
#include "shared/link/status_view.h"

namespace firebreak::cli {
namespace {

struct Options {
  std::string socket_path;
  std::string what;  ///< "generate": others may come
  std::string output;
  std::string shared_memory = "/dev/shm";
  std::uint32_t seats = 1;
  bool without_guard = false;
  bool without_group = false;
};

Result<link::StatusView> status_of_agent(const std::string& socket_path) {
  auto link = link::AgentLink::connect(socket_path);
  if (!link) return propagate(link);
  const auto status = (*link)->status();
  if (!status) return propagate(status);
  return link::parse_status(*status);
}

/// Of the socket that a container's user, whoever that is, has to be let in by.
Result<gid_t> group_of(const std::string& path) {
  struct stat found {};
  if (!path.empty() && ::stat(path.c_str(), &found) == 0) return found.st_gid;
  return fail(ErrorCode::NotFound, "the agent has no socket for tenants",
              "start firebreakd with --tenant-group");
}

/// There is the old file or the new one. All may read it: containers are not root's alone.
Status replace(const std::string& path, const std::string& content) {
  const std::filesystem::path next =
      std::filesystem::path(path).replace_filename("." + std::to_string(os::own_pid()) + ".firebreak");
  std::ofstream file(next);
  file << content;
  file.close();
  std::error_code failed;
  if (file) std::filesystem::rename(next, path, failed);
  if (file && !failed) return {};
  std::error_code ignored;
  std::filesystem::remove(next, ignored);
  return fail(ErrorCode::PermissionDenied, "cannot write " + path,
              "is its folder there, and yours to write?");
}

Result<CdiOptions> ask(const Options& options) {
  const auto status = status_of_agent(options.socket_path);
  if (!status) return propagate(status);
  CdiOptions spec;
  spec.seats = options.seats;
  spec.common.shared_memory = options.shared_memory;
  spec.common.tenants_socket = status->tenants_socket;
  const auto group = group_of(status->tenants_socket);
  if (!group) return propagate(group);
  if (auto its = seats::check_tenants_socket(status->tenants_socket, options.socket_path); !its)
    return propagate(its);
  if (!options.without_group) spec.group = *group;
  spec.domains = seats::domains_in(*status);
  for (const seats::SeatDomain& domain : spec.domains) {
    if (auto its = seats::check_directory(domain); !its) return propagate(its);
  }
  const auto library = seats::choose_guard_library({}, options.without_guard);
  if (!library) return propagate(library);
  spec.common.guard_library = *library;
  return spec;
}

Status generate(const Options& options) {
  const auto asked = ask(options);
  if (!asked) return propagate(asked);
  const auto spec = cdi_spec(*asked);
  if (!spec) return propagate(spec);
  const std::string text = spec->dump(2) + "\n";
  if (!options.output.empty()) return replace(options.output, text);
  fmt::print("{}", text);
  return {};
}

}  // namespace

void add_cdi(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("cdi",
                                         "Writes what container runtimes read (Container Device Interface): "
                                         "a seat in an MPS domain is a device");
  command->footer("podman run --device firebreak.dev/seat=a-1 ... is then in domain a.");
  command->add_option("WHAT", options->what, "To write the file")
      ->required()
      ->check(CLI::IsMember({"generate"}));
  command->add_option("--output", options->output,
                      "The file, as /etc/cdi/firebreak.json (default: standard output)");
  command->add_option("--seats", options->seats, "How many devices each domain has")
      ->capture_default_str()
      ->check(CLI::Range(1U, 1000U));
  command->add_flag("--no-guard", options->without_guard, "Containers do not load the guard");
  command->add_flag(
      "--no-group", options->without_group,
      "Leave out the group that may use the agent's socket, for runtimes that read CDI 0.5 alone "
      "(podman 4.3): they are told by --group-add");
  command
      ->add_option("--shm", options->shared_memory,
                   "The host's folder that is /dev/shm in containers, which MPS needs; empty: their own")
      ->capture_default_str();
  add_socket_option(*command, options->socket_path);
  command->callback([options, &action] {
    action = [options] {
      const Status done = generate(*options);
      return done ? 0 : complain(to_string(done.error()));
    };
  });
}

}  // namespace firebreak::cli
