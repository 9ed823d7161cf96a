// SPDX-License-Identifier: Apache-2.0
#include "soak/supervised_agent.h"

#include <signal.h>

#include "ground/os/logs.h"
#include "ground/os/processes.h"

namespace firebreak::soak {
namespace {

/// Holds some eighty lines: what the agent did in about a second.
constexpr std::size_t last_words_bytes = 12'000;

}  // namespace

Result<std::unique_ptr<SupervisedAgent>> SupervisedAgent::raise(stage::Stage& stage, os::Kernel& kernel,
                                                                const Settings& settings,
                                                                Environment environment) {
  std::unique_ptr<SupervisedAgent> supervised(new SupervisedAgent(stage, kernel, settings.agent_log));
  const std::string directory = settings.directory + "/fb";
  supervised->socket_path_ = directory + "/agent.sock";
  // Kernels of the dead are waited for, but not for as long as an operator would.
  std::vector<std::string> command = {settings.programs + "/firebreakd", "--directory", directory,
                                      "--supervised",
                                      // The plan says when it stands still, and for how long.
                                      "--watchdog-s", "0", "--hold-s", "0.5", "--longest-hold-s", "2"};
  environment.emplace_back("FIREBREAK_LOG", "info");
  if (settings.agent_descriptors != 0)
    command.insert(command.end(), {"--descriptors", std::to_string(settings.agent_descriptors)});
  command.insert(command.begin(), {"sh", "-c", R"(exec "$@" 2>>"$0")", settings.agent_log});
  auto supervisor = stage.enter({"agent", "agent", std::move(command), std::move(environment)});
  if (!supervisor) return propagate(supervisor);
  supervised->supervisor_ = *supervisor;
  const Status up = stage.wait("the agent's start", settings.patience,
                               [&] { return supervised->status() || supervised->supervisor_->ended(); });
  if (!up) return propagate(up);
  if (supervised->supervisor_->ended()) {
    return fail(ErrorCode::Unavailable,
                "the agent did not start: " + supervised->supervisor_->record().last_words);
  }
  return supervised;
}

pid_t SupervisedAgent::agent() const {
  for (const pid_t child : os::children_of(kernel_, supervisor())) {
    const auto command = kernel_.read_file(os::proc_folder(child) + "/cmdline").value_or("");
    if (command.find("--second-supervisor") == std::string::npos) return child;
  }
  return 0;
}

bool SupervisedAgent::kill_agent() {
  const pid_t pid = agent();
  const auto pidfd = pid != 0 ? kernel_.pidfd_open(pid) : Result<os::Fd>(os::Fd());
  return pid != 0 && pidfd && kernel_.send_signal(*pidfd, SIGKILL);
}

bool SupervisedAgent::stall_agent(Milliseconds time) {
  const pid_t pid = stalled_ ? 0 : agent();
  auto pidfd = pid != 0 ? kernel_.pidfd_open(pid) : Result<os::Fd>(os::Fd());
  if (pid == 0 || !pidfd || !kernel_.send_signal(*pidfd, SIGSTOP)) return false;
  stalled_ = std::move(*pidfd);
  stall_ends_ = stage_.loop().after_or_now(time, [this] {
    (void)kernel_.send_signal(stalled_, SIGCONT);
    stalled_.reset();
  });
  return true;
}

std::optional<link::StatusView> SupervisedAgent::status() const {
  if (stalled_) return std::nullopt;
  const auto link = link::AgentLink::connect(socket_path_);
  if (!link) return std::nullopt;
  const auto status = (*link)->status();
  return status ? std::optional(link::parse_status(*status)) : std::nullopt;
}

void SupervisedAgent::listen(const std::function<void(const abi::Event&)>& on_event) {
  auto link = link::AgentLink::connect(socket_path_);
  if (!link) return;
  const Status subscribed = (*link)->subscribe([this, on_event](const abi::Event& event) {
    stage_.loop().post([on_event, event] { on_event(event); });
  });
  if (subscribed) events_ = std::move(*link);
}

std::string SupervisedAgent::last_words() const {
  const std::string tail = os::read_tail(log_, last_words_bytes).value_or("");
  return tail.substr(tail.find('\n') + 1);
}

Status SupervisedAgent::end(Milliseconds patience) {
  if (supervisor_->ended()) {
    return fail(ErrorCode::Unavailable, "the agent had ended: " + supervisor_->record().last_words);
  }
  supervisor_->signal(SIGINT);
  return stage_.wait("the agent's end", patience, [this] { return supervisor_->ended(); });
}

}  // namespace firebreak::soak
