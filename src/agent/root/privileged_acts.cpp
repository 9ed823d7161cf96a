// SPDX-License-Identifier: Apache-2.0
#include "agent/root/privileged_acts.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "agent/domains/mps/control_output.h"
#include "agent/domains/mps/domain.h"
#include "agent/faults/watch/isolation.h"
#include "agent/root/privileged_helper.h"
#include "agent/service/daemon_units.h"
#include "agent/service/service_manager.h"
#include "agent/settings/options.h"
#include "ground/base/units.h"
#include "ground/os/capabilities.h"
#include "ground/os/file.h"
#include "ground/os/program.h"
#include "ground/os/real_kernel.h"
#include "ground/os/self.h"
#include "ground/platform/platform.h"
#include "shared/guard_page/probe_program.h"

namespace firebreak::agent {
namespace {

using Answer = Result<os::HelperAnswer>;
using Attached = std::vector<os::Fd>;

constexpr Milliseconds short_command{3'000};
constexpr Milliseconds for_ever{-1};

Answer answer_of(const Status& status) {
  if (!status) return propagate(status);
  return os::HelperAnswer{};
}

/// Checks that a file is of the agent's own making, and of nothing that anybody would run.
Status check_agents_own(const os::FileFacts& facts, const os::User& agent) {
  const bool is_own = facts.is_fifo && facts.names == 1 && !facts.runs_as_owner && facts.owner == agent.uid;
  return is_own ? Status{} : fail(ErrorCode::PermissionDenied, "that is no pipe of the agent's own");
}

class Acts {
 public:
  Acts(const CommandLine& options, os::User agent, std::optional<gid_t> tenants)
      : options_(options), agent_(std::move(agent)), tenants_(tenants), manager_(find_service_manager()) {}

  /// The software GPU is made by who is root, so that all may use it.
  Status make_software_gpu() {
    const auto wanted = platform::wanted_gpu(options_.gpu_kind);
    if (!wanted) return propagate(wanted);
    if (*wanted != platform::Gpu::Soft) return {};
    if (!os::environment_variable("FIREBREAK_SOFTGPU_DIR")) {
      if (auto made = os::make_directories(state_directory()); !made) return made;
      if (!os::is_roots_folder(state_directory()))
        return fail(ErrorCode::PermissionDenied, state_directory() + " is not root's", "remove it");
      if (auto through = os::let_through(state_directory()); !through) return through;
    }
    const auto chosen = platform();
    if (!chosen) return propagate(chosen);
    // The kernel is made as it is first used. That may need threads, which end here.
    const auto used = (*chosen)->kernel->open("/dev/kmsg", O_RDONLY | O_NONBLOCK);
    platform_.reset();
    return used ? Status{} : propagate(used);
  }

  Answer operator()(const PrivilegedQuestion& asked, const Attached& attached) {
    if (auto known = check_domain(asked); !known) return propagate(known);
    switch (asked.act) {
      case PrivilegedAct::Prepare:
        return prepare(asked);
      case PrivilegedAct::Clear:
        return with_host(asked, [](mps::DaemonHost& host) { return answer_of(host.clear_pipe_directory()); });
      case PrivilegedAct::Start:
        return with_host(asked, [](mps::DaemonHost& host) { return start(host); });
      case PrivilegedAct::Bound:
        return with_host(asked, [](mps::DaemonHost& host) { return answer_of(host.bound_logs()); });
      case PrivilegedAct::Control:
        return with_host(asked, [&](mps::DaemonHost& host) { return control(host, asked); });
      case PrivilegedAct::Parked:
        return mark_parked(asked);
      case PrivilegedAct::Name:
        return with_host(asked, [&](mps::DaemonHost& host) { return name(host, asked.pid); });
      case PrivilegedAct::DriverFile:
        return driver_file(asked.name);
      case PrivilegedAct::Give:
        return give(attached.front(), asked.user);
      case PrivilegedAct::Mark:
        return mark(attached.front(), asked.is_on);
      case PrivilegedAct::Probe:
        return probe(asked.name, true);
      case PrivilegedAct::Known:
        return probe(asked.name, false);
      case PrivilegedAct::Devices:
        return make_devices();
    }
    return fail(ErrorCode::InvalidArgument, "that is no question");
  }

 private:
  std::string state_directory() const { return options_.directory + "/softgpu"; }
  std::string directory_of(const std::string& domain) const { return options_.directory + "/" + domain; }

  Result<platform::Platform*> platform() {
    if (platform_) return &*platform_;
    auto chosen = platform::choose(state_directory(), options_.gpu_kind);
    if (!chosen) return propagate(chosen);
    platform_.emplace(std::move(*chosen));
    return &*platform_;
  }

  /// Checks that it is one that the command line asks for: of others root would start as many as somebody has
  /// names for.
  Status check_domain(const PrivilegedQuestion& asked) {
    if (asked.domain.empty()) return {};
    const auto number = gpu_of_domain(asked.domain, options_.gpus.size());
    if (!number || (asked.domain.ends_with("anchor") && !options_.spares))
      return fail(ErrorCode::PermissionDenied, "domain " + asked.domain + " is none of this agent's");
    if (asked.act != PrivilegedAct::Start) return {};
    std::string gpu;
    if (!options_.gpus.empty()) {
      const auto chosen = platform();
      if (!chosen) return propagate(chosen);
      auto found = platform::find_gpu(**chosen, options_.gpus.at(*number));
      if (!found) return propagate(found);
      gpu = std::move(*found);
    }
    if (asked.gpu == gpu) return {};
    return fail(ErrorCode::PermissionDenied, "domain " + asked.domain + " is not of that GPU");
  }

  Result<mps::DomainOptions> options_of(const PrivilegedQuestion& asked) {
    const auto chosen = platform();
    if (!chosen) return propagate(chosen);
    const auto program = os::find_program((*chosen)->control_program);
    if (!program)
      return fail(ErrorCode::NotFound, "no MPS: " + (*chosen)->control_program + " is not in PATH");
    mps::DomainOptions made;
    made.name = asked.domain;
    made.directory = directory_of(asked.domain);
    made.control_program = *program;
    made.environment = (*chosen)->environment;
    made.gpu = asked.gpu;
    made.outlives_us = !options_.end_domains;
    made.log = {options_.log_mib * mib, options_.log_files};
    made.group = tenants_;
    made.reader = agent_.gid;
    if (made.outlives_us) {
      made.start_apart = [this, domain = asked.domain](const mps::DaemonStart& daemon) {
        return start_daemon_apart(*manager_, domain, daemon);
      };
    }
    made.on_daemon = [this, domain = asked.domain](pid_t daemon) {
      move_daemon_out(*manager_, domain, daemon);
    };
    return made;
  }

  /// Checks directories in a folder in which the agent may make files. Once they are root's it cannot put
  /// others there.
  Status check_directories(const std::string& domain) const {
    const std::string directory = directory_of(domain);
    for (const std::string& path :
         {directory, mps::pipe_directory_in(directory), mps::log_directory_in(directory)}) {
      if (!os::is_roots_folder(path))
        return fail(ErrorCode::PermissionDenied, path + " is not a folder of root's alone", "remove it");
    }
    return {};
  }

  Answer prepare(const PrivilegedQuestion& asked) {
    const auto known = options_of(asked);
    if (!known) return propagate(known);
    if (auto made = os::make_directories(known->directory); !made) return propagate(made);
    if (!os::is_roots_folder(known->directory))
      return fail(ErrorCode::PermissionDenied, known->directory + " is not a folder of root's alone",
                  "remove it");
    const auto host = mps::own_daemon_host(*(*platform())->kernel, *known);
    if (auto made = host->make_directories(); !made) return propagate(made);
    return answer_of(check_directories(asked.domain));
  }

  template <class What>
  Answer with_host(const PrivilegedQuestion& asked, const What& what) {
    if (auto checked = check_directories(asked.domain); !checked) return propagate(checked);
    const auto known = options_of(asked);
    if (!known) return propagate(known);
    const auto host = mps::own_daemon_host(*(*platform())->kernel, *known);
    return what(*host);
  }

  /// Starts a child and waits for it, so that it ends with us where it is to, and is reaped.
  static Answer start(mps::DaemonHost& host) {
    auto daemon = host.start_daemon();
    if (!daemon) return propagate(daemon);
    os::HelperAnswer answer{std::to_string(daemon->pid)};
    if (daemon->is_child) {
      answer.afterwards = [pid = daemon->pid] {
        os::RealKernel kernel;
        const auto process = kernel.pidfd_open(pid);
        if (process) (void)os::wait_for_child(kernel, pid, *process, for_ever);
      };
    }
    answer.descriptors.push_back(std::move(daemon->process));
    return answer;
  }

  static Answer control(mps::DaemonHost& host, const PrivilegedQuestion& asked) {
    const auto result = host.control(asked.command, asked.timeout);
    if (!result) return propagate(result);
    return os::HelperAnswer{
        fmt::format("{} {}\n{}", result->status.exit_code, result->status.signal, result->output)};
  }

  /// MPS says who is a server of its own.
  Answer name(mps::DaemonHost& host, pid_t pid) {
    const auto listed = host.control("get_server_list", short_command);
    if (!listed) return propagate(listed);
    const auto servers = mps::parse_process_ids(listed->output);
    if (!servers || std::ranges::count(*servers, pid) == 0)
      return fail(ErrorCode::PermissionDenied, fmt::format("process {} is no server of that domain", pid));
    return answer_of(watch::name_mps_server(*(*platform())->kernel, pid));
  }

  Answer mark_parked(const PrivilegedQuestion& asked) const {
    if (auto checked = check_directories(asked.domain); !checked) return propagate(checked);
    return answer_of(set_parked_file(mps::pipe_directory_in(directory_of(asked.domain)), asked.is_on));
  }

  static Answer driver_file(const std::string& name) {
    auto file = os::RealKernel().open(std::string(os::driver_folder) + name, O_RDONLY | O_NONBLOCK);
    if (!file) return propagate(file);
    os::HelperAnswer answer;
    answer.descriptors.push_back(std::move(*file));
    return answer;
  }

  /// The agent could have put a link in place of each folder: the inner one is reached by a descriptor of the
  /// outer one.
  bool is_where_the_agents_are(const os::Fd& file) const {
    const auto outer = os::find_file(options_.directory + "/core-dumps");
    return outer &&
           os::lies_in(file, fmt::format("/proc/self/fd/{}/{}", outer->get(), AgentOptions::dump_pipe_folder),
                       agent_.uid);
  }

  /// Gives a pipe away, and no file: somebody would believe what is in it. Nor does a pipe come from anywhere
  /// else than where the agent's are.
  Answer give(const os::Fd& file, uid_t user) const {
    const auto facts = os::facts_of(file);
    if (!facts) return propagate(facts);
    if (auto own = check_agents_own(*facts, agent_); !own) return propagate(own);
    if (!is_where_the_agents_are(file))
      return fail(ErrorCode::PermissionDenied, "that pipe is not where the agent's are");
    return answer_of(os::give_file(file, user));
  }

  /// One that the agent gave away has its group still.
  Answer mark(const os::Fd& fifo, bool is_on) const {
    const auto facts = os::facts_of(fifo);
    if (!facts) return propagate(facts);
    if (!facts->is_fifo || facts->names != 1 || facts->group != agent_.gid)
      return fail(ErrorCode::PermissionDenied, "that is no pipe of the agent's making");
    return answer_of(os::mark_fifo(fifo, is_on));
  }

  Answer probe(const std::string& name, bool is_tried) {
    const auto chosen = platform();
    if (!chosen) return propagate(chosen);
    os::Kernel& kernel = *(*chosen)->kernel;
    const bool is_guard = name == "guard";
    const auto what = is_guard ? guard::Probed::GuardRanges : guard::Probed::Spares;
    const auto result =
        is_tried ? guard::known_or_new_probe_result(
                       kernel, what, platform::probe(**chosen, is_guard ? "guard-probe" : "spare-probe"))
                 : guard::known_probe_result(kernel, what);
    return os::HelperAnswer{fmt::format("{} {}", static_cast<int>(result.answer), result.reason)};
  }

  /// Makes devices as libraries of the driver's have it done where the program that does it may become root
  /// (nvidia-modprobe).
  Answer make_devices() {
    const auto chosen = platform();
    if (!chosen) return propagate(chosen);
    if ((*chosen)->gpu == platform::Gpu::Soft) return os::HelperAnswer{};
    os::SpawnRequest request;
    request.command = {"nvidia-modprobe", "-u"};
    const auto gpus = (*chosen)->kernel->list_directory("/proc/driver/nvidia/gpus");
    for (std::size_t number = 0; gpus && number < gpus->size(); ++number) {
      request.command.emplace_back("-c");
      request.command.push_back(std::to_string(number));
    }
    const auto ran = os::run_program(*(*chosen)->kernel, request, "", short_command);
    if (!ran) return propagate(ran);
    return ran->status.clean() ? Answer(os::HelperAnswer{})
                               : fail(ErrorCode::Unavailable, "nvidia-modprobe: " + ran->output);
  }

  const CommandLine& options_;
  const os::User agent_;
  const std::optional<gid_t> tenants_;
  std::unique_ptr<ServiceManager> manager_;
  std::optional<platform::Platform> platform_;
};

}  // namespace

Status be_privileged_helper(const CommandLine& options, os::Socket& asker, os::Fd lock) {
  auto agent = os::user_named(options.user);
  if (!agent) return propagate(agent);
  std::optional<gid_t> tenants;
  if (!options.tenant_group.empty()) {
    const auto group = os::group_named(options.tenant_group);
    if (!group) return propagate(group);
    tenants = *group;
  }
  Acts acts(options, std::move(*agent), tenants);
  if (auto made = acts.make_software_gpu(); !made) return made;
  const auto act = [&acts](const PrivilegedQuestion& asked, const Attached& attached) {
    return acts(asked, attached);
  };
  serve_privileged(asker, act, std::move(lock));
  return {};
}

}  // namespace firebreak::agent
