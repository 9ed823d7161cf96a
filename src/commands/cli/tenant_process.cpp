// SPDX-License-Identifier: Apache-2.0
#include "commands/cli/tenant_process.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <span>
#include <utility>

#include "agent/faults/fault/core_dump.h"
#include "commands/cli/placed_environment.h"
#include "ground/os/program.h"
#include "ground/os/self.h"
#include "ground/platform/platform.h"
#include "program/guard/guard.h"
#include "shared/abi/spare_page.h"
#include "shared/dump_mode/mode.h"
#include "shared/guard_page/probe_program.h"

namespace firebreak::cli {
namespace {

/// A kernel's mangled name may be long; what it begins with is enough, and fits into a message.
constexpr std::size_t longest_line_told = 4096;

/// What the tenant's environment will have: what the agent says goes before our own.
std::optional<std::string> tenant_variable(const abi::Placed& placed, const std::string& name) {
  for (const auto& [its_name, value] : placed.environment) {
    if (its_name == name) return value;
  }
  return os::environment_variable(name);
}

/// A program that has settings of its own for its core dumps keeps them, and is not parked.
std::vector<std::pair<std::string, std::string>> without_what_is_its_own(
    std::vector<std::pair<std::string, std::string>> placed, bool parking) {
  const bool has_its_own = std::ranges::any_of(placed, [](const auto& variable) {
    return park::is_of_mode(variable.first) && os::environment_variable(variable.first).has_value();
  });
  // A pipe that nobody reads would hold up whoever dumps into it.
  if (has_its_own || !parking)
    std::erase_if(placed, [](const auto& each) { return is_of_dumps(each.first); });
  return without_dumps_to_files(std::move(placed));
}

/// The agent's word alone loads nothing here.
Status check_environment(const abi::Placed& placed, Environment& environment) {
  // Of a real GPU nothing is needed that an agent may not say anyway.
  const auto gpu = tenant_variable(placed, "FIREBREAK_GPU");
  const auto own = gpu == "soft" ? platform::choose({}, *gpu) : fail(ErrorCode::NotFound, "it is real");
  const Environment needed = own ? own->environment : Environment{};
  prefer_own_driver(environment, needed);
  return check_placed_environment(environment, needed, own ? own->state_variable : std::string());
}

/// In a mount namespace of our own the agent's socket may lie elsewhere: where we have found it.
void use_reachable_socket(std::vector<std::pair<std::string, std::string>>& environment,
                          const std::string& ours) {
  std::error_code ignored;
  for (auto& [name, value] : environment) {
    if (name == "FIREBREAK_SOCKET" && !std::filesystem::exists(value, ignored))
      value = std::filesystem::absolute(ours);
  }
}

/// Null: CUDA will print nothing about faults there, and the tenant's standard error is ours.
Result<std::unique_ptr<ErrorRelay>> relay_for(const abi::Placed& placed) {
  if (tenant_variable(placed, fault::core_dump_progress_variable) != "1") return nullptr;
  return ErrorRelay::create();
}

/// Tells the agent of the lines that name who faulted, and stops where it does not listen any more.
ErrorRelay::OnLine core_dump_teller(link::AgentLink& link, pid_t pid) {
  return [&link, pid, listens = true](std::string_view line) mutable {
    if (!listens || !fault::is_about_exception(line)) return;
    const std::string text(line.substr(0, longest_line_told));
    listens = link.tell(abi::Output{pid, text + "\n"}).has_value();
  };
}

/// The library that is the guard, and the spare driver instance.
Status add_preload(os::SpawnRequest& request, const TenantOptions& options) {
  const bool has_spare = std::ranges::count(request.environment, abi::spare_variable,
                                            [](const auto& each) { return each.first; }) != 0;
  if (options.guard == Part::No && !has_spare) return {};
  auto preload = platform::guard_preload();
  if (!preload) return propagate(preload);
  request.environment.push_back(std::move(*preload));
  if (options.guard == Part::No) request.environment.emplace_back(guard::guard_variable, "0");
  return {};
}

/// What the tenant is guarded by; whether that works here is known by then, and the guard itself says so.
Status prepare_guard(os::SpawnRequest& request, const abi::Placed& placed, bool shares_memory) {
  if (shares_memory) request.environment.emplace_back(guard::sharing_variable, "1");
  const auto platform = platform::choose({}, tenant_variable(placed, "FIREBREAK_GPU").value_or(""));
  if (!platform) return propagate(platform);
  (void)guard::known_or_new_probe_result(*platform->kernel, guard::Probed::GuardRanges,
                                         platform::probe(*platform, "guard-probe"));
  return {};
}

abi::StrayPolicy stray_policy(const TenantOptions& options) {
  return options.report_only ? abi::StrayPolicy::Report : abi::StrayPolicy::Default;
}

}  // namespace

int status_of(const os::ExitStatus& exit) { return exit.signal != 0 ? 128 + exit.signal : exit.exit_code; }

std::unique_ptr<TenantProcess> TenantProcess::start(os::EventLoop& loop, const TenantOptions& options,
                                                    abi::Role role, Callbacks callbacks) {
  std::unique_ptr<TenantProcess> made(new TenantProcess(loop, options, role, std::move(callbacks)));
  made->ask(abi::Place{options.name, role, options.gpu, options.sm_percent, options.memory_mib,
                       options.spare == Part::Yes, options.spare == Part::IfPossible},
            next_agent_patience, nullptr,
            [raw = made.get()](const auto& answer, auto link) { raw->on_placed(answer, std::move(link)); });
  return made;
}

TenantProcess::~TenantProcess() {
  if (pidfd_ && !exit_) (void)os::kill_child(kernel_, pid_, pidfd_);
}

void TenantProcess::ask(abi::Message message, Milliseconds patience, std::unique_ptr<link::AgentLink> first,
                        AgentRequest::Done done) {
  AgentRequest::Question question{options_.socket_path, std::move(message), patience};
  // Who has not been placed knows of no agent that was ever there.
  question.awaits_first_agent = pid_ != 0;
  question.not_yet_patience = options_.domain_patience;
  question.on_not_yet = [](const std::string& why) { fmt::print(stderr, "firebreak: waits: {}\n", why); };
  request_ = std::make_unique<AgentRequest>(loop_, std::move(question), std::move(first), std::move(done));
}

void TenantProcess::on_placed(const Result<link::Answer>& answer, std::unique_ptr<link::AgentLink> link) {
  if (!answer) return give_up(answer.error());
  const auto* placed = std::get_if<abi::Placed>(&answer->message);
  if (placed == nullptr) return give_up({ErrorCode::Protocol, "the agent did not say where to run", {}});
  if (auto spawned = spawn(*placed); !spawned) return give_up(spawned.error());
  if (auto watched = watch(); !watched) return give_up(watched.error());
  // By the next agent where this one is gone before it has answered: it knows where the process was told to
  // run. One that has done so already says so again.
  ask(abi::Adopt{options_.name, role_, pid_, stray_policy(options_)}, Milliseconds(placed->agent_returns_ms),
      std::move(link), [this](const auto& adopted, auto its) { on_adopted(adopted, std::move(its)); });
  if (callbacks_.on_started) callbacks_.on_started();
}

Status TenantProcess::spawn(const abi::Placed& placed) {
  auto relay = relay_for(placed);
  if (!relay) return propagate(relay);
  relay_ = std::move(*relay);
  os::SpawnRequest request;
  request.command = options_.command;
  request.environment = without_what_is_its_own(placed.environment, options_.parking);
  if (const Status checked = check_environment(placed, request.environment); !checked) return checked;
  use_reachable_socket(request.environment, options_.socket_path);
  if (!options_.turn_class.empty()) request.environment.emplace_back("FIREBREAK_CLASS", options_.turn_class);
  if (const Status added = add_preload(request, options_); !added) return added;
  if (options_.guard != Part::No) {
    if (const Status prepared = prepare_guard(request, placed, options_.guard_ipc); !prepared)
      return prepared;
  }
  request.standard_input = 0;
  request.standard_error = relay_ ? relay_->tenant_end() : -1;
  auto held = os::spawn_held(request);
  if (!held) return propagate(held);
  pid_ = held->pid;
  held_ = std::move(*held);
  auto pidfd = kernel_.pidfd_open(pid_);
  if (!pidfd) return propagate(pidfd);
  pidfd_ = std::move(*pidfd);
  return {};
}

Status TenantProcess::watch() {
  auto watch = loop_.watch_readable(pidfd_.get(), [this] { on_exit(); });
  if (!watch) return propagate(watch);
  watch_ = std::move(*watch);
  return {};
}

/// Once it is adopted, so that whatever its program does is seen from its first instruction on.
void TenantProcess::begin() {
  os::HeldStart held = std::move(*held_);
  held_.reset();
  const Status began = os::let_begin(std::move(held));
  if (began) return;
  watch_.cancel();
  pidfd_.reset();  // it has been reaped
  give_up(began.error());
}

void TenantProcess::on_adopted(const Result<link::Answer>& answer, std::unique_ptr<link::AgentLink> link) {
  if (!answer) return give_up(answer.error());
  is_adopted_ = true;
  const auto* done = std::get_if<abi::Done>(&answer->message);
  if (done != nullptr) agents_number_ = static_cast<pid_t>(done->pid);
  link_ = std::move(link);
  if (relay_) {
    const Status relayed = relay_->start(core_dump_teller(*link_, pid_));
    if (!relayed) return give_up(relayed.error());
  }
  begin();
  if (callbacks_.on_adopted) callbacks_.on_adopted();
}

/// Of one that has ended there is nothing to adopt, and what it said last is passed on.
void TenantProcess::on_exit() {
  const auto reaped = kernel_.try_wait(pid_);
  exit_ = reaped && *reaped ? **reaped : os::ExitStatus{1, 0};
  if (relay_ && !is_adopted_) (void)relay_->start([](std::string_view) {});
  end_asking();
  watch_.cancel();
  if (callbacks_.on_end) callbacks_.on_end();
}

/// A process that nobody adopts is not left alone.
void TenantProcess::give_up(Error why) {
  if (pidfd_) {
    watch_.cancel();
    (void)os::kill_child(kernel_, pid_, pidfd_);
    pidfd_.reset();
  }
  failure_ = std::move(why);
  end_asking();
  if (callbacks_.on_end) callbacks_.on_end();
}

void TenantProcess::end_asking() {
  request_.reset();
  held_.reset();
}

void TenantProcess::signal(int number) {
  if (has_ended()) return;
  if (pid_ != 0) return (void)kernel_.send_signal(pidfd_, number);
  exit_ = os::ExitStatus{0, number};
  end_asking();
  if (callbacks_.on_end) callbacks_.on_end();
}

void TenantProcess::pass_on(int number) {
  // Whose program has not begun harms nobody.
  const bool is_request = number == SIGTERM && is_adopted_ && !std::exchange(asked_for_end_, true);
  is_request ? ask_for_end() : signal(number);
}

/// It may be another agent by now, or one that is about to come: without an agent, the end of a kernel under
/// way is its neighbours' end.
void TenantProcess::ask_for_end() {
  ask(abi::EndProcess{options_.name, pid_}, next_agent_patience, nullptr,
      [this](const auto& answer, const auto&) {
        if (!answer) signal(SIGTERM);
      });
}

}  // namespace firebreak::cli
