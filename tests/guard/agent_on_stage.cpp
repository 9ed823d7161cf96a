// SPDX-License-Identifier: Apache-2.0
#include "tests/guard/agent_on_stage.h"

#include <signal.h>

#include <algorithm>

#include "ground/os/program.h"

namespace firebreak::tests {
namespace {

constexpr Milliseconds patience{120'000};

}  // namespace

bool Player::said(const std::string& words) const {
  return std::ranges::any_of(lines,
                             [&](const std::string& line) { return line.find(words) != std::string::npos; });
}

int Player::exit_status() const {
  const auto& exit = actor->record().exit;
  if (!exit) return -1;
  return exit->signal != 0 ? 128 + exit->signal : exit->exit_code;
}

AgentOnStage::AgentOnStage() : stage_(std::move(stage::Stage::create(kernel_, clock_).value())) {}

void AgentOnStage::TearDown() {
  if (agent_ != nullptr) {
    agent_->actor->signal(SIGINT);
    wait_for_end(*agent_);
    EXPECT_EQ(agent_->exit_status(), 0) << testing::PrintToString(agent_->lines);
  }
  stage_.reset();
  EXPECT_THAT(sandbox_.left_behind_at_last(), testing::IsEmpty());
}

Player& AgentOnStage::start(std::vector<std::string> command, Sandbox::Environment extra) {
  auto& player = *players_.emplace_back(std::make_unique<Player>());
  stage::Casting casting{command.back(), "", std::move(command), sandbox_.environment()};
  for (const auto* more : {&environment_, &extra}) {
    for (const auto& [name, value] : *more) {
      std::erase_if(casting.environment, [&](const auto& variable) { return variable.first == name; });
      casting.environment.emplace_back(name, value);
    }
  }
  player.actor =
      stage_->enter(casting, [&player](const std::string& line) { player.lines.push_back(line); }).value();
  return player;
}

bool AgentOnStage::may_unshare(const std::vector<std::string>& options) {
  os::SpawnRequest request;
  request.command = {"unshare"};
  request.command.insert(request.command.end(), options.begin(), options.end());
  request.command.emplace_back("true");
  const auto tried = os::run_program(kernel_, request, "", Milliseconds(10'000));
  return tried && tried->status.clean();
}

void AgentOnStage::start_agent(std::vector<std::string> arguments, std::vector<std::string> by) {
  std::vector<std::string> command = {"sh", "-c", R"(exec "$@" 2>&1)", "sh"};
  command.insert(command.end(), by.begin(), by.end());
  for (const auto& word : {program("firebreakd"), std::string("--directory"), sandbox_.file("d")})
    command.push_back(word);
  command.insert(command.end(), arguments.begin(), arguments.end());
  agent_ = &start(std::move(command));
  wait("the agent", [&] { return agent_->said("firebreakd: "); });
}

Player& AgentOnStage::start_tenant(const std::string& name, std::vector<std::string> command,
                                   std::vector<std::string> run_arguments) {
  std::vector<std::string> whole = {program("firebreak"), "run", "--socket", socket_, "--name", name};
  whole.insert(whole.end(), run_arguments.begin(), run_arguments.end());
  whole.push_back("--");
  whole.insert(whole.end(), command.begin(), command.end());
  return start(std::move(whole));
}

Player& AgentOnStage::start_neighbour(const std::string& name) {
  Player& neighbour = start_tenant(name, {program("firebreak-lab"), "victim", "--pace-ms", "5"});
  wait("the neighbour", [&] { return neighbour.said("ready"); });
  wait_until_adopted(name);
  return neighbour;
}

Player& AgentOnStage::start_spinner(const std::string& argument, std::vector<std::string> run_arguments) {
  std::vector<std::string> command = {program("guard_test_spinner")};
  if (!argument.empty()) command.push_back(argument);
  Player& spinner = start_tenant("spinner", std::move(command), std::move(run_arguments));
  wait("the spinner", [&] { return spinner.said("spinning"); });
  wait_until_adopted("spinner");
  return spinner;
}

os::ProgramResult AgentOnStage::command(std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), {"--socket", socket_});
  return sandbox_.run("firebreak", std::move(arguments));
}

void AgentOnStage::wait(const std::string& what, const std::function<bool()>& done) {
  const Status waited = stage_->wait(what, patience, done);
  if (waited) return;
  std::string said;
  if (agent_ != nullptr)
    for (const std::string& line : agent_->lines) said += "\n  " + line;
  FAIL() << to_string(waited.error()) << "\nthe agent:" << said;
}

void AgentOnStage::wait_for_end(const Player& player) {
  wait("the end of " + player.actor->record().name, [&] { return player.actor->ended(); });
}

void AgentOnStage::ask_until(const std::string& what, const std::function<bool()>& holds) {
  // A question takes a processor's time, which what is awaited may need.
  constexpr Milliseconds pause{5};
  while (!holds()) {
    ASSERT_EQ(::getppid(), started_by_) << "nobody waits any more for " << what;
    (void)stage_->loop().run_once(pause);
    while (stage_->loop().run_once(Milliseconds(0))) {
    }
  }
}

void AgentOnStage::expect_unharmed(Player& neighbour) {
  // Its record begins anew, so that what follows ran after everything before.
  neighbour.actor->tell("begin");
  wait("the neighbour's kernels", [&] { return neighbour.said("begun") || neighbour.actor->ended(); });
  neighbour.actor->tell("end");
  wait_for_end(neighbour);
  EXPECT_EQ(neighbour.exit_status(), 0) << testing::PrintToString(neighbour.lines);
}

nlohmann::json AgentOnStage::status_of(const std::string& tenant) {
  const auto all = nlohmann::json::parse(command({"status", "--json"}).output, nullptr, false);
  if (!all.is_object()) return nullptr;
  for (const auto& entry : all["tenants"]) {
    if (entry["name"] == tenant) return entry;
  }
  return nullptr;
}

void AgentOnStage::wait_for_status(const std::string& tenant,
                                   const std::function<bool(const nlohmann::json&)>& wanted) {
  ask_until("tenant " + tenant, [&] {
    const nlohmann::json now = status_of(tenant);
    return now.is_object() && wanted(now);
  });
}

void AgentOnStage::wait_until_adopted(const std::string& tenant) {
  wait_for_status(tenant, [](const auto& now) {
    return now.contains("active") && now["active"].is_object() && now["active"].value("pid", 0) != 0;
  });
}

void AgentOnStage::send(pid_t pid, int signal) {
  ASSERT_TRUE(kernel_.send_signal(kernel_.pidfd_open(pid).value(), signal));
}

}  // namespace firebreak::tests
