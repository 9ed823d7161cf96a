// SPDX-License-Identifier: Apache-2.0
#include "tests/softgpu_driver/machine_test.h"

#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <span>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "ground/os/program.h"
#include "softgpu/machine/device_uuid.h"

namespace firebreak::test {

namespace {

constexpr Milliseconds patience(30'000);

os::TemporaryDirectory make_directory() {
  auto directory = os::TemporaryDirectory::create();
  if (!directory) throw std::runtime_error(directory.error().message);
  return std::move(*directory);
}

}  // namespace

bool eventually(const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::yield();
  }
  return true;
}

Client::Client(os::RealKernel& kernel, const Environment& environment, int standard_error)
    : Client(kernel, environment, FIREBREAK_CLIENT_PROGRAM, standard_error) {}

Client::Client(os::RealKernel& kernel, const Environment& environment, const std::string& program,
               int standard_error)
    : kernel_(kernel) {
  auto pair = os::socket_pair();
  if (!pair) throw std::runtime_error(pair.error().message);
  os::SpawnRequest request;
  request.command = {program, FIREBREAK_SOFTGPU_LIBRARY};
  request.environment = environment;
  request.standard_error = standard_error;
  request.inherited = {{pair->second.fd().get(), 3}};
  const auto pid = kernel_.spawn(request);
  if (!pid) throw std::runtime_error(pid.error().message);
  pid_ = *pid;
  pidfd_ = std::move(kernel_.pidfd_open(pid_).value());
  socket_.emplace(std::move(pair->first));
}

Client::~Client() { kill(); }

void Client::kill() {
  if (pid_ == 0) return;
  static_cast<void>(kernel_.send_signal(pidfd_, SIGKILL));
  wait_for_end();
}

std::optional<os::ExitStatus> Client::wait_for_end() {
  const auto status = os::wait_for_child(kernel_, pid_, pidfd_, patience);
  pid_ = 0;
  return status.value_or(std::nullopt);
}

void Client::send(const std::string& command, int descriptor) {
  const std::span<const int> descriptors(&descriptor, descriptor < 0 ? 0 : 1);
  EXPECT_TRUE(socket_->send(std::as_bytes(std::span(command)), descriptors, patience)) << command;
}

Client::Answer Client::take_answer() {
  auto message = socket_->receive(patience);
  if (!message) {
    ADD_FAILURE() << "no answer: " << message.error().message;
    return {};
  }
  std::istringstream words(
      std::string(reinterpret_cast<const char*>(message->bytes.data()), message->bytes.size()));
  int result = 0;
  Answer answer;
  words >> result >> answer.value;
  answer.result = static_cast<CUresult>(result);
  if (!message->descriptors.empty()) answer.descriptor = std::move(message->descriptors.front());
  return answer;
}

Client::Answer Client::ask(const std::string& command, int descriptor) {
  send(command, descriptor);
  return take_answer();
}

MachineTest::MachineTest() : directory_(make_directory()) {}

MachineTest::~MachineTest() {
  const std::set<std::string> running = running_mps_;
  for (const std::string& name : running) {
    mps_name_ = name;
    mps_command("quit -t 0");
  }
  const std::string path = directory();
  directory_.remove();
  // A server that is just ending may have written its log meanwhile.
  EXPECT_TRUE(eventually([&] {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
    return !std::filesystem::exists(path);
  }));
}

Environment MachineTest::environment() const {
  Environment all = {{"FIREBREAK_SOFTGPU_DIR", state_directory()},
                     {"FIREBREAK_SOFTGPU_SPEED", "5"},
                     {"FIREBREAK_SOFTGPU_MEMORY_MIB", std::to_string(memory_mib_)},
                     {"CUDA_MPS_PIPE_DIRECTORY", directory() + "/" + mps_name_},
                     {"CUDA_MPS_LOG_DIRECTORY", directory() + "/" + mps_name_ + ".log"}};
  if (gpu_) {
    all.emplace_back("FIREBREAK_SOFTGPU_COUNT", "2");
    all.emplace_back("CUDA_VISIBLE_DEVICES", softgpu::uuid_text(*gpu_));
  }
  return all;
}

std::unique_ptr<Client> MachineTest::start_client() {
  return std::make_unique<Client>(kernel_, environment());
}

std::unique_ptr<Client> MachineTest::start_working_client() {
  auto client = start_client();
  EXPECT_EQ(client->tell("init"), CUDA_SUCCESS);
  EXPECT_EQ(client->tell("buffer"), CUDA_SUCCESS);
  return client;
}

std::uint32_t MachineTest::Sweeper::word(std::size_t index) const {
  auto* words = static_cast<std::uint32_t*>(memory.data());
  return std::atomic_ref(words[index]).load(std::memory_order_relaxed);
}

MachineTest::Sweeper MachineTest::sweep(std::unique_ptr<Client> client) {
  Sweeper sweeper;
  sweeper.client = std::move(client);
  sweeper.descriptor = std::move(sweeper.client->ask("export").descriptor);
  sweeper.memory = os::Mapping::of_file(sweeper.descriptor.get(), 1 << 20, os::Protection::ReadWrite).value();
  EXPECT_EQ(sweeper.client->tell("launch sweep"), CUDA_SUCCESS);
  EXPECT_TRUE(eventually([&] { return sweeper.word(1000) > 0; }));
  return sweeper;
}

void MachineTest::start_mps(const std::string& name) {
  mps_name_ = name;
  os::SpawnRequest request;
  request.command = {FIREBREAK_MPS_CONTROL, "-d"};
  request.environment = environment();
  const auto started = os::run_program(kernel_, request, "", patience);
  ASSERT_TRUE(started && started->status.clean());
  running_mps_.insert(name);
}

std::string MachineTest::mps_command(const std::string& command) {
  os::SpawnRequest request;
  request.command = {FIREBREAK_MPS_CONTROL};
  request.environment = environment();
  const auto result = os::run_program(kernel_, request, command + "\n", patience);
  if (command.starts_with("quit")) running_mps_.erase(mps_name_);
  return result ? result->output : "failed: " + result.error().message;
}

pid_t MachineTest::mps_server() { return std::atoi(mps_command("get_server_list").c_str()); }

}  // namespace firebreak::test
