// SPDX-License-Identifier: Apache-2.0
/// Fate sharing under the stand-in for MPS, with real processes.
#include <gmock/gmock.h>

#include <csignal>
#include <fstream>

#include "ground/base/units.h"
#include "ground/os/program.h"
#include "softgpu/machine/shared_gpu.h"
#include "tests/softgpu_driver/machine_test.h"

namespace firebreak::test {
namespace {

class Mps : public MachineTest {
 protected:
  /// Whether the server's log says so: of who dies in mid-kernel, after the fault.
  bool has_disconnected(pid_t pid) const {
    std::ifstream file(directory() + "/a.log/server.log");
    const std::string log{std::istreambuf_iterator<char>(file), {}};
    return log.find("Client process " + std::to_string(pid) + " disconnected") != std::string::npos;
  }
};

std::string words(std::initializer_list<pid_t> pids) {
  std::string text;
  for (const pid_t pid : pids) text += std::to_string(pid) + "\n";
  return text;
}

TEST_F(Mps, ClientsOfOneServerDieTogetherAndTheOthersLive) {
  start_mps("b");
  const auto elsewhere = start_working_client();
  start_mps("a");
  const auto faulter = start_working_client();
  const Sweeper co_client = start_sweeper();

  ASSERT_EQ(faulter->tell("launch misaligned"), CUDA_SUCCESS);
  EXPECT_EQ(faulter->tell("sync"), CUDA_ERROR_MISALIGNED_ADDRESS);
  EXPECT_EQ(co_client.client->tell("sync"), CUDA_ERROR_MISALIGNED_ADDRESS);
  EXPECT_EQ(co_client.client->tell("sync"), CUDA_ERROR_MISALIGNED_ADDRESS);

  // Its kernel stopped where it was: what was written stays, half of a sweep.
  const std::uint32_t first = co_client.word(0);
  const std::uint32_t last = co_client.word((1 << 18) - 1);
  EXPECT_EQ(co_client.word(0), first);
  EXPECT_TRUE(first == last || first == last + 1) << first << " " << last;

  ASSERT_EQ(elsewhere->tell("launch add_one"), CUDA_SUCCESS);
  EXPECT_EQ(elsewhere->tell("sync"), CUDA_SUCCESS);
  EXPECT_EQ(elsewhere->ask("read 0").value, 1u);

  // The same server takes the next client as soon as the last one that was hit has left.
  const pid_t server = mps_server();
  EXPECT_EQ(start_client()->tell("init"), CUDA_ERROR_MPS_SERVER_NOT_READY);
  faulter->kill();
  EXPECT_EQ(start_client()->tell("init"), CUDA_ERROR_MPS_SERVER_NOT_READY);
  co_client.client->kill();
  EXPECT_TRUE(eventually([&] { return start_client()->tell("init") == CUDA_SUCCESS; }));
  const auto next = start_working_client();
  EXPECT_EQ(next->tell("launch add_one"), CUDA_SUCCESS);
  EXPECT_EQ(next->tell("sync"), CUDA_SUCCESS);
  EXPECT_EQ(mps_server(), server);
}

TEST_F(Mps, ClientKilledInMidKernelTakesItsDomainAlong) {
  start_mps();
  const auto co_client = start_working_client();
  const Sweeper victim = start_sweeper();
  victim.client->kill();
  EXPECT_TRUE(eventually([&] { return co_client->tell("sync") == CUDA_ERROR_ILLEGAL_ADDRESS; }));
  co_client->kill();
  EXPECT_TRUE(eventually([&] { return start_client()->tell("init") == CUDA_SUCCESS; }));
}

TEST_F(Mps, ClientKilledWithoutWorkHarmsNobody) {
  start_mps();
  const auto co_client = start_working_client();
  const auto victim = start_working_client();
  ASSERT_EQ(victim->tell("launch add_one"), CUDA_SUCCESS);
  ASSERT_EQ(victim->tell("sync"), CUDA_SUCCESS);
  const std::string server = std::to_string(mps_server());
  victim->kill();
  EXPECT_TRUE(
      eventually([&] { return mps_command("get_client_list " + server) == words({co_client->pid()}); }));
  EXPECT_EQ(co_client->tell("launch add_one"), CUDA_SUCCESS);
  EXPECT_EQ(co_client->tell("sync"), CUDA_SUCCESS);
}

TEST_F(Mps, TerminatedClientEndsAloneEvenInAnEndlessKernel) {
  start_mps();
  const auto co_client = start_working_client();
  const Sweeper victim = start_sweeper();
  const std::string server = std::to_string(mps_server());
  const std::string terminate = "terminate_client " + server + " " + std::to_string(victim.client->pid());
  EXPECT_EQ(mps_command(terminate), "");
  EXPECT_EQ(victim.client->tell("sync"), CUDA_ERROR_MPS_CLIENT_TERMINATED);
  EXPECT_EQ(victim.client->tell("context"), CUDA_ERROR_MPS_CLIENT_TERMINATED);
  EXPECT_EQ(mps_command(terminate), "Invalid process\n");
  EXPECT_TRUE(eventually([&] {
    const std::uint32_t before = victim.word(0);
    return before == victim.word(0);
  }));
  victim.client->kill();
  EXPECT_EQ(co_client->tell("launch add_one"), CUDA_SUCCESS);
  EXPECT_EQ(co_client->tell("sync"), CUDA_SUCCESS);
}

TEST_F(Mps, CopyEngineFaultEndsItsClientAlone) {
  start_mps();
  const auto co_client = start_working_client();
  const auto faulter = start_working_client();
  ASSERT_EQ(faulter->tell("copy_into_hole"), CUDA_SUCCESS);
  EXPECT_EQ(faulter->tell("sync"), CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_EQ(faulter->tell("context"), CUDA_ERROR_LAUNCH_FAILED);
  faulter->kill();
  EXPECT_EQ(co_client->tell("launch add_one"), CUDA_SUCCESS);
  EXPECT_EQ(co_client->tell("sync"), CUDA_SUCCESS);
}

TEST_F(Mps, ListsItsServerAndItsClients) {
  start_mps();
  EXPECT_EQ(mps_command("get_server_list"), "");
  const auto one = start_working_client();
  const std::string server = std::to_string(mps_server());
  EXPECT_EQ(mps_command("get_client_list " + server), words({one->pid()}));
  EXPECT_THAT(mps_command("ps"), ::testing::HasSubstr("softgpu_driver_"));
  EXPECT_THAT(mps_command("get_client_list 1"), ::testing::HasSubstr("not found"));
  EXPECT_THAT(mps_command("make_coffee"), ::testing::HasSubstr("Unknown command"));
}

TEST_F(Mps, QuitEndsServerAndDaemonAndTellsTheClients) {
  start_mps();
  const auto client = start_working_client();
  const auto server = kernel_.pidfd_open(mps_server());
  ASSERT_TRUE(server);
  std::ifstream pid_file(directory() + "/a/nvidia-cuda-mps-control.pid");
  pid_t daemon_pid = 0;
  pid_file >> daemon_pid;
  const auto daemon = kernel_.pidfd_open(daemon_pid);
  ASSERT_TRUE(daemon);
  EXPECT_EQ(mps_command("quit -t 0"), "");
  for (const os::Fd* process : {&*server, &*daemon}) {
    const int number = process->get();
    const auto ended = kernel_.poll(std::span(&number, 1), std::chrono::seconds(30));
    EXPECT_TRUE(ended && !ended->empty());
  }
  EXPECT_TRUE(eventually([&] { return client->tell("sync") == CUDA_ERROR_MPS_RPC_FAILURE; }));
  EXPECT_FALSE(kernel_.read_file(directory() + "/a/nvidia-cuda-mps-control.pid"));
}

TEST_F(Mps, SecondDaemonInTheSameFolderIsRefused) {
  start_mps();
  os::SpawnRequest request;
  request.command = {FIREBREAK_MPS_CONTROL, "-f"};
  request.environment = environment();
  const auto second = os::run_program(kernel_, request, "", Milliseconds(30'000));
  ASSERT_TRUE(second);
  EXPECT_EQ(second->status.exit_code, 1);
  EXPECT_THAT(second->output, ::testing::HasSubstr("already running"));
}

TEST_F(Mps, SocketOfADeadDaemonIsAConnectionFailure) {
  start_mps();
  std::ifstream pid_file(directory() + "/a/nvidia-cuda-mps-control.pid");
  pid_t daemon_pid = 0;
  pid_file >> daemon_pid;
  const auto daemon = kernel_.pidfd_open(daemon_pid);
  ASSERT_TRUE(daemon);
  ASSERT_TRUE(kernel_.send_signal(*daemon, SIGKILL));
  const int number = daemon->get();
  ASSERT_TRUE(kernel_.poll(std::span(&number, 1), std::chrono::seconds(30)));
  EXPECT_EQ(start_client()->tell("init"), CUDA_ERROR_MPS_CONNECTION_FAILED);
}

TEST_F(Mps, TwoGpusShareTheKernelLogAndNothingElse) {
  choose_gpu(0);
  start_mps("a");
  const auto other = start_working_client();
  choose_gpu(1);
  start_mps("b");
  const auto faulter = start_working_client();
  EXPECT_EQ(other->ask("gpu").value, unsigned{'0'});
  EXPECT_EQ(faulter->ask("gpu").value, unsigned{'1'});
  EXPECT_EQ(other->tell("allocate_mib 40"), CUDA_SUCCESS);
  EXPECT_EQ(faulter->tell("allocate_mib 40"), CUDA_SUCCESS) << "each has 64 MiB";

  ASSERT_EQ(faulter->tell("launch misaligned"), CUDA_SUCCESS);
  EXPECT_EQ(faulter->tell("sync"), CUDA_ERROR_MISALIGNED_ADDRESS);
  const auto log = softgpu::SharedGpu::open(state_directory()).value();
  EXPECT_THAT(log->kmsg().read(0)->text, ::testing::HasSubstr("NVRM: Xid (PCI:0000:00:06): 13"));
  EXPECT_EQ(other->tell("launch add_one"), CUDA_SUCCESS);
  EXPECT_EQ(other->tell("sync"), CUDA_SUCCESS);
}

TEST_F(Mps, CommandWithoutADaemonSaysSo) {
  EXPECT_EQ(mps_command("ps"), "Cannot find MPS control daemon process\n");
}

TEST_F(Mps, LimitsOfAClientAreItsOwn) {
  start_mps();
  Environment limited = environment();
  limited.emplace_back("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "50");
  limited.emplace_back("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "0=32M");
  Client client(kernel_, limited);
  ASSERT_EQ(client.tell("init"), CUDA_SUCCESS);
  EXPECT_EQ(client.ask("sms").value, 2u);
  EXPECT_EQ(client.ask("free_mib").value, 32u);
  EXPECT_EQ(client.tell("allocate_mib 20"), CUDA_SUCCESS);
  EXPECT_EQ(client.ask("free_mib").value, 12u);
  EXPECT_EQ(client.tell("allocate_mib 16"), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(client.tell("allocate_mib 12"), CUDA_SUCCESS);

  const auto other = start_working_client();
  EXPECT_EQ(other->ask("sms").value, 4u);
  EXPECT_EQ(other->tell("allocate_mib 16"), CUDA_SUCCESS);
}

TEST_F(Mps, LimitsAreForClientsAlone) {
  Environment limited = environment();
  limited.emplace_back("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "50");
  limited.emplace_back("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "0=16M");
  Client client(kernel_, limited);
  ASSERT_EQ(client.tell("init"), CUDA_SUCCESS);
  EXPECT_EQ(client.ask("sms").value, 4u);
  EXPECT_EQ(client.tell("allocate_mib 32"), CUDA_SUCCESS);
}

TEST_F(Mps, AContextOfFewSmsTakesLittleMemory) {
  start_mps();
  const auto gpu = softgpu::SharedGpu::open(state_directory()).value();
  const auto client = start_client();
  const auto memory_mib = [&] {
    std::uint64_t bytes = 0;
    for (const auto& process : gpu->processes())
      bytes += process.pid == client->pid() ? process.used_bytes : 0;
    return bytes / mib;
  };
  ASSERT_EQ(client->tell("init"), CUDA_SUCCESS);
  EXPECT_EQ(client->ask("context_sms").value, 4u);
  EXPECT_EQ(memory_mib(), 519u);
  ASSERT_EQ(client->tell("small_context 2"), CUDA_SUCCESS);
  EXPECT_EQ(client->ask("context_sms").value, 2u);
  EXPECT_EQ(memory_mib(), 519u + 64u);
  ASSERT_EQ(client->tell("limit_stack 0"), CUDA_SUCCESS);
  EXPECT_EQ(memory_mib(), 519u + 48u);
  ASSERT_EQ(client->tell("end_context"), CUDA_SUCCESS);
  EXPECT_EQ(memory_mib(), 519u);
  EXPECT_EQ(client->tell("small_context 0"), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Mps, ExecutionAffinityIsForClientsAlone) {
  const auto client = start_client();
  ASSERT_EQ(client->tell("init"), CUDA_SUCCESS);
  EXPECT_EQ(client->tell("small_context 2"), CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY);
}

TEST_F(Mps, AServerIsInFaultUntilThoseWhomItHasHitAreGone) {
  start_mps();
  const auto faulter = start_working_client();
  const std::string question = "get_server_status " + std::to_string(mps_server());
  EXPECT_EQ(mps_command(question), "ACTIVE\n");
  ASSERT_EQ(faulter->tell("launch misaligned"), CUDA_SUCCESS);
  EXPECT_EQ(faulter->tell("sync"), CUDA_ERROR_MISALIGNED_ADDRESS);
  EXPECT_EQ(mps_command(question), "FAULT\n");
  faulter->kill();
  EXPECT_TRUE(eventually([&] { return mps_command(question) == "ACTIVE\n"; }));
}

// H100 20 of 20, H200 21 of 21 (results/h100/forked-children.json, results/h200/).
TEST_F(Mps, AnOnlyClientThatDiesInMidKernelFailsTheNextOneOnce) {
  start_mps();
  const Sweeper victim = start_sweeper();
  const pid_t server = mps_server();
  const std::string question = "get_server_status " + std::to_string(server);
  const pid_t victims_pid = victim.client->pid();
  victim.client->kill();
  // Whoever comes before the fault is a co-client, whom it ends too: the server leaves the process out of its
  // list as soon as it has hung up, and its kernel runs until its address space is gone.
  EXPECT_TRUE(eventually([&] { return has_disconnected(victims_pid); }));
  std::unique_ptr<Client> next;
  CUresult answer = CUDA_ERROR_MPS_SERVER_NOT_READY;
  EXPECT_TRUE(eventually([&] {
    next = start_client();
    answer = next->tell("init");
    return answer != CUDA_ERROR_MPS_SERVER_NOT_READY;  // as long as the fault is under way
  }));
  EXPECT_EQ(answer, CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_EQ(mps_command(question), "ACTIVE\n");
  EXPECT_EQ(mps_server(), server);
  next->kill();
  EXPECT_TRUE(eventually([&] { return mps_server() != server; }));
  const auto after_that = start_working_client();
  EXPECT_EQ(after_that->tell("launch add_one"), CUDA_SUCCESS);
  EXPECT_EQ(after_that->tell("sync"), CUDA_SUCCESS);
}

// As characterized: 80 of 80 ends in mid-kernel beside a co-client.
TEST_F(Mps, BesideACoClientADeathInMidKernelFailsNobodyAfterTheRestart) {
  start_mps();
  const auto co_client = start_working_client();
  const Sweeper victim = start_sweeper();
  const pid_t server = mps_server();
  victim.client->kill();
  EXPECT_TRUE(eventually([&] { return co_client->tell("sync") == CUDA_ERROR_ILLEGAL_ADDRESS; }));
  co_client->kill();
  CUresult answer = CUDA_ERROR_MPS_SERVER_NOT_READY;
  EXPECT_TRUE(eventually([&] {
    answer = start_client()->tell("init");
    return answer != CUDA_ERROR_MPS_SERVER_NOT_READY;
  }));
  EXPECT_EQ(answer, CUDA_SUCCESS);
  EXPECT_EQ(mps_server(), server);
}

TEST_F(Mps, AServerThatIsShutDownEndsWithItsLastClient) {
  start_mps();
  const auto client = start_working_client();
  const pid_t server = mps_server();
  EXPECT_EQ(mps_command("shutdown_server " + std::to_string(server)), "");
  EXPECT_EQ(start_client()->tell("init"), CUDA_ERROR_MPS_SERVER_NOT_READY);
  EXPECT_EQ(client->tell("launch add_one"), CUDA_SUCCESS);
  EXPECT_EQ(client->tell("sync"), CUDA_SUCCESS);
  EXPECT_EQ(mps_server(), server);
  client->kill();
  EXPECT_TRUE(eventually([&] { return mps_server() != server; }));
  EXPECT_EQ(start_client()->tell("init"), CUDA_SUCCESS);
}

TEST_F(Mps, AServerThatIsShutDownByForceTakesItsClientsAlong) {
  start_mps();
  const auto client = start_working_client();
  const pid_t server = mps_server();
  EXPECT_EQ(mps_command("shutdown_server " + std::to_string(server) + " -f"), "");
  EXPECT_TRUE(eventually([&] { return client->tell("sync") == CUDA_ERROR_MPS_RPC_FAILURE; }));
  EXPECT_TRUE(eventually([&] { return mps_server() != server; }));
}

}  // namespace
}  // namespace firebreak::test
