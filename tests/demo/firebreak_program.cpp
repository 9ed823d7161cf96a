// SPDX-License-Identifier: Apache-2.0
#include "tests/demo/firebreak_program.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <unistd.h>

#include <algorithm>
#include <thread>

#include "ground/os/self.h"

namespace firebreak::tests {
namespace {

/// Between two questions: each takes a processor's time, which what is awaited may need.
constexpr Milliseconds pause{5};

}  // namespace

Sandbox::Sandbox()
    : files_(std::move(os::TemporaryDirectory::create().value())),
      temporary_(std::move(os::TemporaryDirectory::create().value())),
      shared_memory_before_(names_in("/dev/shm")) {}

Sandbox::~Sandbox() {
  for (const auto& [pid, pidfd] : started_) (void)os::kill_child(kernel_, pid, pidfd);
}

Sandbox::Environment Sandbox::environment() const {
  return {{"FIREBREAK_GPU", "soft"},
          {"FIREBREAK_WITHOUT", "guard,spare"},  // what a test wants of these it says
          {"FIREBREAK_SOFTGPU_SPEED", "4"},
          {"TMPDIR", temporary_.path()},
          {"XDG_RUNTIME_DIR", files_.path()},
          {"FIREBREAK_TEST_MARK", temporary_.path()}};
}

os::SpawnRequest Sandbox::request(const std::string& program, std::vector<std::string> arguments,
                                  Environment extra) const {
  os::SpawnRequest request;
  request.command = {std::string(FIREBREAK_PROGRAMS) + "/" + program};
  request.command.insert(request.command.end(), arguments.begin(), arguments.end());
  request.environment = environment();
  for (auto& [name, value] : extra) {
    std::erase_if(request.environment, [&name](const auto& variable) { return variable.first == name; });
    request.environment.emplace_back(name, value);
  }
  return request;
}

os::ProgramResult Sandbox::run(const std::string& program, std::vector<std::string> arguments,
                               Environment extra, Milliseconds timeout) {
  auto result =
      os::run_program(kernel_, request(program, std::move(arguments), std::move(extra)), "", timeout);
  if (!result) {
    ADD_FAILURE() << program << ": " << to_string(result.error());
    return {};
  }
  return std::move(*result);
}

void Sandbox::await_agent(const std::string& socket) {
  while (!run("firebreak", {"status", "--json", "--socket", socket}).status.clean())
    std::this_thread::sleep_for(pause);
}

nlohmann::json Sandbox::await_tenant(const std::string& socket, const std::string& name,
                                     const std::function<bool(const nlohmann::json&)>& wanted) {
  for (;; std::this_thread::sleep_for(pause)) {
    const std::string text = run("firebreak", {"status", "--json", "--socket", socket}).output;
    const auto now = nlohmann::json::parse(text, nullptr, false);
    if (!now.is_object()) continue;
    for (const nlohmann::json& tenant : now.at("tenants")) {
      if (tenant.at("name") == name && wanted(tenant)) return tenant;
    }
  }
}

pid_t Sandbox::start(const std::string& program, std::vector<std::string> arguments, Environment extra) {
  const pid_t pid = kernel_.spawn(request(program, std::move(arguments), std::move(extra))).value();
  started_.emplace_back(pid, std::move(kernel_.pidfd_open(pid).value()));
  return pid;
}

void Sandbox::signal(pid_t pid, int number) {
  const auto found = std::ranges::find(started_, pid, &std::pair<pid_t, os::Fd>::first);
  ASSERT_NE(found, started_.end());
  ASSERT_TRUE(kernel_.send_signal(found->second, number).has_value());
}

os::ExitStatus Sandbox::wait(pid_t pid) {
  const auto found = std::ranges::find(started_, pid, &std::pair<pid_t, os::Fd>::first);
  const auto exit = os::wait_for_child(kernel_, pid, found->second, Milliseconds(240'000)).value();
  EXPECT_TRUE(exit.has_value()) << "process " << pid << " does not end";
  if (exit) started_.erase(found);
  return exit.value_or(os::ExitStatus{});
}

std::vector<std::string> Sandbox::names_in(const std::string& folder) {
  std::vector<std::string> names;
  if (auto listed = kernel_.list_directory(folder)) names = std::move(*listed);
  std::ranges::sort(names);
  return names;
}

/// Every descendant inherited the mark in its environment, wherever it moved since.
std::vector<std::string> Sandbox::marked_processes() {
  std::vector<std::string> found;
  for (const std::string& name : names_in("/proc")) {
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const auto environment = kernel_.read_file("/proc/" + name + "/environ");
    if (!environment || environment->find("FIREBREAK_TEST_MARK=" + temporary_.path()) == std::string::npos)
      continue;
    found.push_back("process " + name + " (" + kernel_.read_file("/proc/" + name + "/comm").value_or("?") +
                    ")");
  }
  return found;
}

std::vector<std::string> Sandbox::left_behind() {
  std::vector<std::string> left = marked_processes();
  for (const std::string& name : names_in(temporary_.path())) left.push_back("TMPDIR/" + name);
  // The driver's copies for spare instances, which all processes of a user share, are to stay.
  const std::string copies = "firebreak-" + std::to_string(::geteuid());
  for (const std::string& name : names_in("/dev/shm")) {
    const bool ours = name.find("firebreak") != std::string::npos && name != copies;
    if (ours && !std::ranges::binary_search(shared_memory_before_, name)) left.push_back("/dev/shm/" + name);
  }
  return left;
}

std::vector<std::string> Sandbox::left_behind_at_last() {
  std::vector<std::string> left = left_behind();
  for (int looks = 1; !left.empty() && looks < 400; ++looks) {
    std::this_thread::sleep_for(Milliseconds(50));
    left = left_behind();
  }
  return left;
}

}  // namespace firebreak::tests
