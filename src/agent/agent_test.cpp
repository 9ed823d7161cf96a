// SPDX-License-Identifier: Apache-2.0
/// The agent's decisions, with peers that are real processes and surroundings that are not: no GPU, no MPS,
/// no waiting.
#include "agent/agent.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "os/real_kernel.h"
#include "os/temporary_directory.h"

namespace firebreak::agent {
namespace {

using testing::HasSubstr;

struct FakeDetectors final : Detectors {
  OnFault on_fault;
  OnExit on_exit;
  std::vector<pid_t> followed;
  std::map<pid_t, watch::ReadProgress> progress;
  std::vector<pid_t> expected;  ///< to end
  std::map<pid_t, std::string> output;

  std::vector<std::string> start(OnFault fault, OnExit exit) override {
    on_fault = std::move(fault);
    on_exit = std::move(exit);
    return {};
  }
  Status follow(const watch::Target& target) override {
    followed.push_back(target.pid);
    return {};
  }
  Status follow_progress(pid_t pid, watch::ReadProgress read) override {
    progress[pid] = std::move(read);
    return {};
  }
  void note_output(pid_t pid, std::string_view text) override { output[pid] += text; }
  void expect_exit(pid_t pid) override { expected.push_back(pid); }
};

struct FakeDomains final : Domains {
  static constexpr pid_t server_of_a = 1000001;

  Status start() override { return {}; }
  std::vector<std::string> names() const override { return {"a", "b"}; }
  Environment environment(const std::string& domain) const override {
    return {{"CUDA_MPS_PIPE_DIRECTORY", "/mps/" + domain}};
  }
  std::string log_directory(const std::string& domain) const override { return "/mps-log/" + domain; }
  std::optional<std::string> domain_of_server(pid_t pid) override {
    return pid == server_of_a ? std::optional<std::string>("a") : std::nullopt;
  }
  void refresh_servers() override {}
};

/// One process that talks to the agent; the test reads and writes its socket.
class Peer {
 public:
  Peer(os::Kernel& kernel, const std::string& socket_path) {
    auto [ours, theirs] = std::move(os::socket_pair().value());
    os::SpawnRequest request;
    request.command = {FIREBREAK_TEST_PEER, socket_path};
    request.inherited = {{theirs.fd().get(), 3}};
    pid_ = kernel.spawn(request).value();
    control_.emplace(std::move(ours));
    socket_.emplace(std::move(control_->receive(Milliseconds(5000)).value().descriptors.at(0)));
    EXPECT_TRUE(control_->receive(Milliseconds(5000)).has_value());
  }

  pid_t pid() const { return pid_; }
  void send(const abi::Message& message, int descriptor = -1) {
    const std::string text = abi::encode(message);
    const std::span<const int> descriptors(&descriptor, descriptor >= 0 ? 1 : 0);
    ASSERT_TRUE(socket_->send(std::as_bytes(std::span(text)), descriptors, Milliseconds(1000)).has_value());
  }
  struct Received {
    abi::Message message;
    std::vector<os::Fd> descriptors;
  };
  std::optional<Received> receive() {
    auto got = socket_->receive(Milliseconds(0));
    if (!got) return std::nullopt;
    const std::string_view text(reinterpret_cast<const char*>(got->bytes.data()), got->bytes.size());
    return Received{abi::decode(text).value(), std::move(got->descriptors)};
  }
  void hang_up() { socket_.reset(); }

 private:
  pid_t pid_ = 0;
  std::optional<os::Socket> control_;
  std::optional<os::Socket> socket_;
};

struct AgentTest : testing::Test {
  os::TemporaryDirectory directory = std::move(os::TemporaryDirectory::create().value());
  std::string path = directory.path() + "/agent";
  std::unique_ptr<os::EventLoop> loop = std::move(os::EventLoop::create().value());
  os::RealKernel kernel;
  FakeClock clock;
  FakeDomains domains;
  FakeDetectors detectors;
  std::unique_ptr<Agent> agent = std::move(
      Agent::start({path, {{"LD_LIBRARY_PATH", "/soft"}}}, *loop, kernel, clock, domains, detectors).value());

  void settle() {
    while (loop->run_once(Milliseconds(0))) {
    }
  }
  Peer peer() {
    Peer made(kernel, path);
    settle();
    return made;
  }
  abi::Message ask(Peer& peer, const abi::Message& message, int descriptor = -1) {
    peer.send(message, descriptor);
    settle();
    auto received = peer.receive();
    EXPECT_TRUE(received.has_value());
    return received ? std::move(received->message) : abi::Message{};
  }
  std::string refusal(Peer& peer, const abi::Message& message, int descriptor = -1) {
    const abi::Message answer = ask(peer, message, descriptor);
    const auto* refused = std::get_if<abi::Refused>(&answer);
    return refused == nullptr ? "(not refused)" : refused->reason;
  }
  /// Joins and returns the tenant's shared page.
  os::Mapping join(Peer& peer, const std::string& tenant, abi::Role role) {
    peer.send(abi::Join{tenant, role});
    settle();
    auto received = peer.receive();
    EXPECT_TRUE(received && std::holds_alternative<abi::Joined>(received->message) &&
                received->descriptors.size() == 1);
    return std::move(os::Mapping::of_file(received->descriptors.at(0).get(), sizeof(abi::SharedPage),
                                          os::Protection::ReadWrite)
                         .value());
  }
  static abi::PromotionWord word(const os::Mapping& page) {
    return abi::PromotionWord::from(page.as<abi::SharedPage>()->promotion.load());
  }
  void xid(pid_t pid) {
    fault::Fault fault;
    fault.fault_class = fault::FaultClass::Sm;
    fault.pid = pid;
    fault.source = fault::FaultSource::Xid;
    detectors.on_fault(fault);
  }
  os::Fd memory() { return std::move(os::create_memory_file("test", 4096).value()); }
};

TEST_F(AgentTest, PlacesTheStandbyInTheOtherDomain) {
  Peer command = peer();
  const auto active = std::get<abi::Placed>(ask(command, abi::Place{"llm", abi::Role::Active})).environment;
  const auto standby = std::get<abi::Placed>(ask(command, abi::Place{"llm", abi::Role::Standby})).environment;
  EXPECT_THAT(active,
              testing::Contains(std::pair<std::string, std::string>("CUDA_MPS_PIPE_DIRECTORY", "/mps/a")));
  EXPECT_THAT(standby,
              testing::Contains(std::pair<std::string, std::string>("CUDA_MPS_PIPE_DIRECTORY", "/mps/b")));
  EXPECT_THAT(standby, testing::Contains(std::pair<std::string, std::string>("FIREBREAK_ROLE", "standby")));
  EXPECT_THAT(standby, testing::Contains(std::pair<std::string, std::string>("LD_LIBRARY_PATH", "/soft")));
}

TEST_F(AgentTest, AFaultThatNamesTheServerPromotesTheReadyStandby) {
  Peer active = peer(), standby = peer();
  const os::Mapping page = join(active, "llm", abi::Role::Active);
  join(standby, "llm", abi::Role::Standby);
  EXPECT_TRUE(std::holds_alternative<abi::Done>(ask(standby, abi::Ready{})));
  xid(FakeDomains::server_of_a);
  EXPECT_EQ(word(page).epoch, 1u);
}

TEST_F(AgentTest, WhatATenantWroteToItsStandardErrorIsEvidence) {
  Peer tenant = peer(), command = peer();
  ask(command, abi::Adopt{"llm", abi::Role::Active, tenant.pid()});
  command.send(abi::Output{tenant.pid(), "one\n"});
  command.send(abi::Output{tenant.pid(), "two\n"});
  settle();
  EXPECT_EQ(detectors.output[tenant.pid()], "one\ntwo\n");
  EXPECT_FALSE(command.receive().has_value());
}

TEST_F(AgentTest, AFaultOfANeighbourInTheSameDomainPromotesAndNamesIt) {
  Peer active = peer(), standby = peer(), rogue = peer(), watcher = peer();
  const os::Mapping page = join(active, "llm", abi::Role::Active);
  join(standby, "llm", abi::Role::Standby);
  ask(standby, abi::Ready{});
  ask(rogue, abi::Adopt{"rogue", abi::Role::Active, rogue.pid()});
  ask(watcher, abi::Subscribe{});
  xid(rogue.pid());
  EXPECT_EQ(word(page).epoch, 1u);
  std::optional<abi::Event> fault;
  while (auto received = watcher.receive()) {
    const auto& event = std::get<abi::Event>(received->message);
    if (event.what == "fault") fault = event;
  }
  ASSERT_TRUE(fault.has_value());
  EXPECT_EQ(fault->tenant, "rogue");
  EXPECT_EQ(fault->domain, "a");
}

TEST_F(AgentTest, AFaultInTheOtherDomainPromotesNobody) {
  Peer active = peer(), standby = peer();
  const os::Mapping page = join(active, "llm", abi::Role::Active);
  join(standby, "llm", abi::Role::Standby);
  ask(standby, abi::Ready{});
  xid(standby.pid());
  EXPECT_EQ(word(page).epoch, 0u);
}

TEST_F(AgentTest, AFaultOfAProcessThatNobodyKnowsPromotesNobody) {
  Peer active = peer(), standby = peer();
  const os::Mapping page = join(active, "llm", abi::Role::Active);
  join(standby, "llm", abi::Role::Standby);
  ask(standby, abi::Ready{});
  xid(4194304);
  EXPECT_EQ(word(page).epoch, 0u);
}

TEST_F(AgentTest, TheActivesEndPromotesWithoutAnyOtherSign) {
  Peer active = peer(), standby = peer();
  const os::Mapping page = join(active, "llm", abi::Role::Active);
  join(standby, "llm", abi::Role::Standby);
  ask(standby, abi::Ready{});
  detectors.on_exit(active.pid());
  EXPECT_EQ(word(page).epoch, 1u);
}

TEST_F(AgentTest, AStandbyThatHungUpIsNotPromoted) {
  Peer active = peer(), standby = peer();
  const os::Mapping page = join(active, "llm", abi::Role::Active);
  join(standby, "llm", abi::Role::Standby);
  ask(standby, abi::Ready{});
  standby.hang_up();
  settle();
  xid(FakeDomains::server_of_a);
  EXPECT_EQ(word(page).epoch, 0u);
}

TEST_F(AgentTest, TheStandbyGetsEveryAllocationOldAndNew) {
  Peer active = peer(), standby = peer();
  join(active, "llm", abi::Role::Active);
  const os::Fd weights = memory(), state = memory();
  EXPECT_TRUE(std::holds_alternative<abi::Done>(
      ask(active, abi::Publish{"weights", 0x500000000000, 2 << 20}, weights.get())));
  join(standby, "llm", abi::Role::Standby);
  auto old_one = standby.receive();
  ask(active, abi::Publish{"state", 0x500000200000, 2 << 20}, state.get());
  auto new_one = standby.receive();
  ASSERT_TRUE(old_one && new_one);
  EXPECT_EQ(std::get<abi::Allocation>(old_one->message).name, "weights");
  EXPECT_EQ(std::get<abi::Allocation>(new_one->message).address, 0x500000200000u);
  EXPECT_EQ(new_one->descriptors.size(), 1u);
}

TEST_F(AgentTest, HeartbeatsOfTheActiveAreWatchedForHangs) {
  Peer active = peer(), standby = peer();
  const os::Mapping page = join(active, "llm", abi::Role::Active);
  join(standby, "llm", abi::Role::Standby);
  ask(standby, abi::Ready{});
  abi::CommitArea& area = page.as<abi::SharedPage>()->areas[0];
  const auto progress = detectors.progress.at(active.pid());
  area.queued_step = 1;
  EXPECT_EQ(progress(), std::nullopt);  // a long step, and nothing else is known
  area.beats_queued = 2;
  area.beats_done = 1;
  EXPECT_EQ(progress(), 1u);
  area.next_step = 1;
  area.beats_done = 2;
  EXPECT_EQ(progress(), std::nullopt);

  xid(FakeDomains::server_of_a);
  ask(standby, abi::Resumed{1});
  EXPECT_THAT(detectors.expected, testing::ElementsAre(active.pid()));
  area.beats_queued = 3;
  EXPECT_EQ(progress(), std::nullopt);  // it is no active any more
  page.as<abi::SharedPage>()->areas[1].beats_queued = 5;
  EXPECT_EQ(detectors.progress.at(standby.pid())(), 0u);
}

TEST_F(AgentTest, FinishingDismissesTheStandby) {
  Peer active = peer(), standby = peer();
  const os::Mapping page = join(active, "llm", abi::Role::Active);
  join(standby, "llm", abi::Role::Standby);
  ask(standby, abi::Ready{});
  ask(active, abi::Finish{});
  EXPECT_TRUE(word(page).finished);
  detectors.on_exit(active.pid());
  EXPECT_EQ(word(page).epoch, 0u);
}

TEST_F(AgentTest, ATenantIsForgottenWithItsLastProcess) {
  Peer active = peer();
  join(active, "llm", abi::Role::Active);
  EXPECT_THAT(agent->status_json(), HasSubstr("llm"));
  detectors.on_exit(active.pid());
  EXPECT_THAT(agent->status_json(), testing::Not(HasSubstr("llm")));
}

TEST_F(AgentTest, RefusesWhatDoesNotFit) {
  Peer one = peer(), two = peer();
  join(one, "llm", abi::Role::Active);
  EXPECT_THAT(refusal(two, abi::Join{"llm", abi::Role::Active}), HasSubstr("already has an active"));
  EXPECT_THAT(refusal(two, abi::Join{"a b", abi::Role::Active}), HasSubstr("letters, digits"));
  EXPECT_THAT(refusal(two, abi::Ready{}), HasSubstr("role"));
  EXPECT_THAT(refusal(two, abi::Publish{"x", 0x500000000000, 2 << 20}), HasSubstr("role"));
  EXPECT_THAT(refusal(one, abi::Publish{"x", 0x500000000000, 2 << 20}), HasSubstr("one descriptor"));
  EXPECT_THAT(refusal(one, abi::Done{}), HasSubstr("agent's to say"));
}

TEST_F(AgentTest, NonsenseEndsTheConnectionAndNotTheAgent) {
  Peer next = peer();
  for (const std::string text : {"{", "[]", "{\"type\":\"join\"}"}) {
    auto raw = os::connect(path, Milliseconds(1000));
    ASSERT_TRUE(raw->send(std::as_bytes(std::span(text)), {}, Milliseconds(1000)).has_value());
    settle();
    auto answer = raw->receive(Milliseconds(1000));
    ASSERT_TRUE(answer.has_value());
    EXPECT_FALSE(raw->receive(Milliseconds(1000)).has_value());
  }
  join(next, "llm", abi::Role::Active);
}

TEST_F(AgentTest, AFaultOnPurposeIsTheTenantsToTakeOrRefuse) {
  Peer active = peer(), operator_ = peer(), watcher = peer();
  join(active, "llm", abi::Role::Active);
  ask(watcher, abi::Subscribe{});
  operator_.send(abi::Inject{"llm", "trap", 3});
  settle();
  EXPECT_FALSE(operator_.receive().has_value());
  const auto forwarded = std::get<abi::Inject>(active.receive().value().message);
  EXPECT_EQ(forwarded.kind, "trap");
  EXPECT_EQ(forwarded.commits, 3u);
  active.send(abi::Injected{17, ""});
  settle();
  EXPECT_EQ(std::get<abi::Injected>(operator_.receive().value().message).raised_at_ns, 17);
  const auto event = std::get<abi::Event>(watcher.receive().value().message);
  EXPECT_EQ(event.what, "injected");
  EXPECT_EQ(event.tenant, "llm");
  EXPECT_EQ(event.pid, active.pid());
  EXPECT_EQ(event.at_ns, 17);
  EXPECT_EQ(event.text, "trap");

  operator_.send(abi::Inject{"llm", "trap", 1});
  settle();
  active.send(abi::Injected{0, "not today"});
  settle();
  EXPECT_EQ(std::get<abi::Refused>(operator_.receive().value().message).reason, "not today");
  EXPECT_FALSE(watcher.receive().has_value());
}

TEST_F(AgentTest, AFaultOnPurposeNeedsATenantThatIsThereAndFree) {
  Peer active = peer(), operator_ = peer(), other = peer();
  EXPECT_THAT(refusal(operator_, abi::Inject{"llm", "trap", 1}), HasSubstr("no tenant 'llm'"));
  join(active, "llm", abi::Role::Active);
  operator_.send(abi::Inject{"llm", "trap", 1});
  settle();
  EXPECT_THAT(refusal(other, abi::Inject{"llm", "trap", 1}), HasSubstr("already waits"));
  active.hang_up();
  settle();
  EXPECT_EQ(std::get<abi::Refused>(operator_.receive().value().message).reason, "the tenant ended first");
}

TEST_F(AgentTest, AnAnswerToAFaultThatNobodyAskedForIsNothing) {
  Peer active = peer(), watcher = peer();
  join(active, "llm", abi::Role::Active);
  ask(watcher, abi::Subscribe{});
  active.send(abi::Injected{17, ""});
  settle();
  EXPECT_FALSE(watcher.receive().has_value());
  EXPECT_FALSE(active.receive().has_value());
}

}  // namespace
}  // namespace firebreak::agent
