// SPDX-License-Identifier: Apache-2.0
#include "agent/root/own_user.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "agent/settings/options.h"
#include "ground/os/self.h"
#include "ground/os/terminal.h"
#include "ground/platform/platform.h"

namespace firebreak::agent {
namespace {

constexpr const char* lock_name = "/agent.lock";
/// The helper of an agent before has the lock, and ends after that.
constexpr Milliseconds helper_end_limit(5'000);
/// Time of the start, in which the GPU is chosen.
constexpr Milliseconds start_limit(10'000);

/// Finds the user with the groups that it gives its sockets to, which only their members may.
Result<os::User> user_with_groups(const CommandLine& options, const Sockets& sockets) {
  auto user = os::user_named(options.user);
  if (!user) return user;
  for (const os::SocketGroup& group :
       {sockets.operator_group, sockets.tenant_group, sockets.observer_group}) {
    if (group == gid_t{0})
      return fail(ErrorCode::InvalidArgument, "with --user no socket is for root's group", "leave that out");
    if (group) user->groups.push_back(*group);
  }
  // Its members could take away and put there what the agent may.
  if (std::ranges::count(user->groups, user->gid) > 0)
    return fail(ErrorCode::InvalidArgument,
                "the group of user '" + options.user + "' is one of those for whom the agent has sockets",
                "give that user a group of its own");
  return user;
}

/// Hands over what an agent of root's has left there. Nobody listens at its sockets any more. An agent of
/// that user's that was taken over may have left something so that no other one starts.
Status hand_over_what_was_left(const CommandLine& options, const Sockets& sockets, const os::User& user) {
  const std::string dumps = options.directory + "/core-dumps";
  for (const std::string& path : {sockets.operators, sockets.tenants, sockets.observers}) {
    os::remove_socket_of_others(path, user.uid);
    if (auto gone = os::remove_if_of_other_type(path, user.uid, os::FileType::Socket); !gone) return gone;
  }
  for (const std::string& folder : {dumps + "/" + AgentOptions::dump_pipe_folder, dumps}) {
    if (auto gone = os::remove_if_of_other_type(folder, user.uid, os::FileType::Folder); !gone) return gone;
    if (auto given = os::hand_over_folder(folder, user.uid, user.gid); !given) return given;
  }
  return {};
}

/// The lock is the helper's from then on: a child of the agent's would go on to hold it.
Result<std::shared_ptr<PrivilegedHelper>> start_helper(const std::vector<std::string>& arguments,
                                                       const os::FileLock& lock) {
  auto program = os::executable_path();
  if (!program) return propagate(program);
  std::vector<std::string> command{std::move(*program)};
  command.insert(command.end(), arguments.begin(), arguments.end());
  command.emplace_back("--privileged-helper");
  auto process = os::HelperProcess::start(std::move(command), start_limit, {lock.fd().get()});
  if (!process) return propagate(process, "start the process that stays root's");
  return std::make_shared<PrivilegedHelper>(std::move(*process));
}

/// Opens a bell; software GPUs have none.
Result<os::KernelLogBell> open_bell(const CommandLine& options) {
  const auto wanted = platform::wanted_gpu(options.gpu_kind);
  if (wanted && *wanted == platform::Gpu::Real) return os::KernelLogBell::open();
  return fail(ErrorCode::Unsupported, "this kernel log has no bell");
}

}  // namespace

Result<os::FileLock> take_directory(const std::string& directory, Milliseconds longest) {
  const auto until = std::chrono::steady_clock::now() + longest;
  const std::string path = directory + lock_name;
  auto lock = os::FileLock::take(path);
  const auto is_held = [&lock] { return !lock && lock.error().code == ErrorCode::Unavailable; };
  while (is_held() && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(Milliseconds(5));
    lock = os::FileLock::take(path);
  }
  if (is_held()) return propagate(lock, "another agent uses this directory");
  return lock;
}

Result<OwnUser> become_own_user(const CommandLine& options, const Sockets& sockets,
                                const std::vector<std::string>& arguments) {
  if (!os::is_root())
    return fail(ErrorCode::PermissionDenied, "only root becomes user '" + options.user + "'",
                "leave --user out, or start it as root");
  const auto user = user_with_groups(options, sockets);
  if (!user) return propagate(user);
  if (auto left = os::leave_terminal(); !left) return propagate(left);
  if (auto gone = os::remove_if_by_user(options.directory + lock_name, user->uid); !gone)
    return propagate(gone);
  const auto lock = take_directory(options.directory, helper_end_limit);
  if (!lock) return propagate(lock);
  if (auto shared = os::share_folder(options.directory, user->gid); !shared) return propagate(shared);
  if (auto handed = hand_over_what_was_left(options, sockets, *user); !handed) return propagate(handed);
  auto helper = start_helper(arguments, *lock);
  if (!helper) return propagate(helper);
  auto bell = open_bell(options);
  std::vector<os::Capability> kept{os::Capability::Kill, os::Capability::Syslog};
  if (const Status allowed = os::allow_prompt_waking(); !allowed) {
    spdlog::warn("CAP_SYS_NICE is kept: {}", to_string(allowed.error()));
    kept.push_back(os::Capability::SysNice);
  }
  if (auto became = os::become_user(*user, kept); !became) return propagate(became);
  return OwnUser{std::move(*helper), std::move(bell)};
}

}  // namespace firebreak::agent
