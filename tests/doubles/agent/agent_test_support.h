// SPDX-License-Identifier: Apache-2.0
/// The agent's tests share this: peers that are real processes, and surroundings that are not.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/faults/fault/source_traits.h"
#include "agent/faults/watch/subject.h"
#include "agent/firebreakd/agent.h"
#include "ground/os/file.h"
#include "ground/os/processes.h"
#include "ground/os/real_kernel.h"
#include "tests/doubles/agent/surroundings_test_support.h"

namespace firebreak::agent {

/// One process that talks to the agent; the test reads and writes its socket.
class Peer {
 public:
  Peer(os::Kernel& kernel, const std::string& socket_path, const std::string& how = {},
       const Environment& environment = {}) {
    auto [ours, theirs] = std::move(os::socket_pair().value());
    os::SpawnRequest request;
    request.command = {FIREBREAK_TEST_PEER, socket_path};
    if (!how.empty()) request.command.push_back(how);
    request.inherited = {{theirs.fd().get(), 3}};
    request.environment = environment;
    pid_ = kernel.spawn(request).value();
    control_.emplace(std::move(ours));
    take_connection();
  }

  /// The message goes to the agent that is there now.
  void reconnect() {
    socket_.reset();
    const std::byte again{1};
    ASSERT_TRUE(control_->send(std::span(&again, 1), {}, Milliseconds(5000)).has_value());
    take_connection();
  }
  /// Its process ends, and nobody is told.
  void end(os::Kernel& kernel) {
    control_.reset();
    while (!kernel.try_wait(pid_).value()) {
    }
  }

  /// The process is `sleep` from now on, without a connection and without what it had on the GPU.
  void become_another_program(os::Kernel& kernel) {
    const std::byte become_another{2};
    ASSERT_TRUE(control_->send(std::span(&become_another, 1), {}, Milliseconds(5000)).has_value());
    const std::string stat = os::proc_folder(pid_) + "/stat";
    while (os::program_name(kernel.read_file(stat).value()) != "sleep" ||
           os::image_of(kernel, pid_).empty()) {
    }
    socket_.reset();
  }

  pid_t pid() const { return pid_; }
  /// The message has no number, like those of programs before 0.7.
  void send(const abi::Message& message, int descriptor = -1, std::uint64_t number = 0) {
    ASSERT_TRUE(try_to_send(message, descriptor, number));
  }
  /// False: the agent has closed the connection.
  bool try_to_send(const abi::Message& message, int descriptor = -1, std::uint64_t number = 0) {
    return try_to_send_text(abi::encode(message, number), descriptor);
  }
  bool try_to_send_text(std::string_view text, int descriptor = -1) {
    const std::span<const int> descriptors(&descriptor, descriptor >= 0 ? 1 : 0);
    return socket_->send(std::as_bytes(std::span(text)), descriptors, Milliseconds(1000)).has_value();
  }
  struct Received {
    abi::Message message;
    std::vector<os::Fd> descriptors;
    std::uint64_t number = 0;
  };
  std::optional<Received> receive() {
    auto got = socket_->receive(Milliseconds(0));
    if (!got) return std::nullopt;
    const std::string_view text(reinterpret_cast<const char*>(got->bytes.data()), got->bytes.size());
    abi::Letter letter = abi::decode_letter(text).value();
    return Received{std::move(letter.message), std::move(got->descriptors), letter.number};
  }
  /// This tells whether the agent has closed the connection; a test asks when all has been received.
  bool is_cut_off() { return socket_->receive(Milliseconds(0)).error().code == ErrorCode::Unavailable; }
  void hang_up() { socket_.reset(); }

 private:
  void take_connection() {
    socket_.emplace(std::move(control_->receive(Milliseconds(5000)).value().descriptors.at(0)));
    EXPECT_TRUE(control_->receive(Milliseconds(5000)).has_value());
  }

  pid_t pid_ = 0;
  std::optional<os::Socket> control_;
  std::optional<os::Socket> socket_;
};

/// Memory files stand for GPU address spaces here.
struct KernelWithSpaces final : os::RealKernel {
  std::string uvm_link_target() const override { return "/memfd:test-space (deleted)"; }
  std::map<std::string, std::string> files;  ///< These stand in the place of real ones.
  Result<std::string> read_file(const std::string& path) override {
    const auto found = files.find(path);
    return found == files.end() ? os::RealKernel::read_file(path) : found->second;
  }
  int environment_looks = 0;  ///< at anybody's
  Result<std::string> read_memory_file(const std::string& path) override {
    environment_looks += path.ends_with("/environ") ? 1 : 0;
    return os::RealKernel::read_memory_file(path);
  }
  std::function<void()> before_read;
  Result<std::size_t> read(const os::Fd& fd, std::span<std::byte> into) override {
    if (before_read) before_read();
    return os::RealKernel::read(fd, into);
  }
  std::function<void(pid_t)> before_stop;  ///< of that process, but for its writers
  Result<std::unique_ptr<os::Standstill>> stop_all_but_writers(pid_t pid, const os::Fd& pipe) override {
    if (before_stop) before_stop(pid);
    return os::RealKernel::stop_all_but_writers(pid, pipe);
  }
  std::function<void(pid_t)> before_pidfd;  ///< of that process, is opened
  Result<os::Fd> pidfd_open(pid_t pid) override {
    if (before_pidfd) before_pidfd(pid);
    return os::RealKernel::pidfd_open(pid);
  }
};

struct AgentTest : testing::Test {
  os::TemporaryDirectory directory = std::move(os::TemporaryDirectory::create().value());
  std::string path = directory.path() + "/agent";
  std::unique_ptr<os::EventLoop> loop = std::move(os::EventLoop::create().value());
  KernelWithSpaces kernel;
  FakeClock clock;
  FakeDomains domains;
  FakeDetectors detectors;
  FakeServiceManager manager;
  std::unique_ptr<Agent> agent = start_agent({path, {{"LD_LIBRARY_PATH", "/soft"}}});

  std::unique_ptr<Agent> start_agent(AgentOptions options) {
    options.shelf_command = {FIREBREAK_TEST_SHELF};
    return std::move(Agent::start(options, *loop, kernel, clock, domains, detectors, manager).value());
  }

  void settle() {
    for (;;) {
      const bool awaits_others = agent && (agent->awaits_shelves() || agent->awaits_clients());
      if (!loop->run_once(Milliseconds(awaits_others ? 10 : 0)) && !awaits_others) return;
    }
  }
  Peer peer(const std::string& how = {}, const Environment& environment = {}) {
    Peer made(kernel, path, how, environment);
    settle();
    return made;
  }
  abi::Message ask(Peer& peer, const abi::Message& message, int descriptor = -1) {
    peer.send(message, descriptor);
    settle();
    auto received = peer.receive();
    EXPECT_TRUE(received.has_value());
    if (const auto* adopt = std::get_if<abi::Adopt>(&message)) be_named(static_cast<pid_t>(adopt->pid));
    return received ? std::move(received->message) : abi::Message{};
  }
  /// MPS lists it, as a client of where it was expected.
  void be_named(pid_t pid) {
    const auto its = detectors.targets.find(pid);
    if (its != detectors.targets.end()) domains.callbacks.on_clients(its->second.said, {clock.now(), {pid}});
  }
  std::string refusal(Peer& peer, const abi::Message& message, int descriptor = -1) {
    const abi::Message answer = ask(peer, message, descriptor);
    const auto* refused = std::get_if<abi::Refused>(&answer);
    return refused == nullptr ? "(not refused)" : refused->reason;
  }
  /// Joins, is named by MPS as a client of where it was expected, and returns the tenant's shared page.
  os::Mapping join(Peer& peer, const std::string& tenant, abi::Role role) {
    os::Mapping page = join_unnamed(peer, tenant, role);
    be_named(peer.pid());
    return page;
  }
  /// MPS has not named it yet.
  os::Mapping join_unnamed(Peer& peer, const std::string& tenant, abi::Role role) {
    peer.send(abi::Join{tenant, role});
    settle();
    auto received = peer.receive();
    EXPECT_TRUE(received && std::holds_alternative<abi::Joined>(received->message) &&
                received->descriptors.size() == 1);
    return std::move(os::Mapping::of_file(received->descriptors.at(0).get(), sizeof(abi::SharedPage),
                                          os::Protection::ReadWrite)
                         .value());
  }
  /// A tenant with a ready standby.
  struct ProtectedTenant {
    Peer active;
    Peer standby;
    os::Mapping page;
  };
  ProtectedTenant pair(const std::string& name) {
    Peer active = peer(), standby = peer();
    os::Mapping page = join(active, name, abi::Role::Active);
    join(standby, name, abi::Role::Standby);
    ask(standby, abi::Ready{});
    return {std::move(active), std::move(standby), std::move(page)};
  }
  static abi::PromotionWord word(const os::Mapping& page) {
    return abi::PromotionWord::from(page.as<abi::SharedPage>()->promotion.load());
  }
  void xid(pid_t pid) { hear(fault::FaultSource::Xid, fault::FaultClass::Sm, pid); }
  void xid_31(pid_t pid) { hear(fault::FaultSource::Xid, fault::FaultClass::MmuReplayable, pid); }
  void xid_31_of_copy_engine(pid_t pid) {
    hear(fault::FaultSource::Xid, fault::FaultClass::MmuNonReplayable, pid);
  }
  /// UVM tells of a process's fault in this way, before the Xid.
  void uvm_event(pid_t pid) { hear(fault::FaultSource::UvmEvent, fault::FaultClass::MmuReplayable, pid); }
  void hear(fault::FaultSource source, fault::FaultClass fault_class, pid_t pid) {
    fault::Fault fault;
    fault.fault_class = fault_class;
    fault.pid = pid;
    fault.when = clock.now();
    fault.source = source;
    hear(fault);
  }
  /// The detectors tell it in this way: with its domain, as far as they know it.
  void hear(const fault::Fault& fault) { detectors.callbacks.on_fault(placed(fault)); }
  fault::Fault placed(fault::Fault fault) {
    const auto found = fault.pid ? detectors.targets.find(*fault.pid) : detectors.targets.end();
    const watch::Target* target = found == detectors.targets.end() ? nullptr : &found->second;
    if (target != nullptr && !fault::traits_of(fault.source).has_process_alone) set_subject(fault, *target);
    watch::Places places;
    places.domain_of_server = [this](pid_t pid) -> std::optional<std::string> {
      const auto domain = domains.domain_of_server(pid);
      return domain ? std::optional(std::string(*domain)) : std::nullopt;
    };
    return watch::completed(std::move(fault), target, places);
  }
  os::Fd memory() { return std::move(os::create_memory_file("test", 4096).value()); }
};

}  // namespace firebreak::agent
