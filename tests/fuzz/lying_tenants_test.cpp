// SPDX-License-Identifier: Apache-2.0
/// Tenants that know the protocol and say plausible things that are not true, beside two honest ones: of
/// these neither the memory and the output that is in it, nor the protection, nor a decision about them
/// changes.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <memory>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "agent/firebreakd/agent.h"
#include "agent/service/shelf.h"
#include "ground/os/descriptors.h"
#include "ground/os/file.h"
#include "ground/os/memory.h"
#include "ground/os/processes.h"
#include "shared/abi/guard_page.h"
#include "shared/abi/spare_page.h"
#include "shared/guard_page/guard_view.h"
#include "tests/doubles/agent/surroundings_test_support.h"
#include "tests/doubles/os/fake_kernel.h"
#include "tests/fuzz/thin_process.h"

namespace firebreak::fuzz {
namespace {

constexpr uid_t alice = 65531, bob = 65532, mallory = 65533;
constexpr gid_t group = 65534;
constexpr std::string_view uvm = "/dev/nvidia-uvm";
constexpr int seeds_max = 10'000;
constexpr Milliseconds held{100}, held_longest{1'000};

std::string stat_of(pid_t pid) {
  std::string stat = fmt::format("{} (peer) S 1", pid);
  for (int field = 5; field <= 50; ++field)
    stat += fmt::format(" {}", field == 22 ? 1000 + pid : field + pid);
  return stat;
}

std::string status_of(pid_t pid, uid_t user) {
  return fmt::format(
      "Name:\tpeer\nState:\tS (sleeping)\nPid:\t{0}\nPPid:\t1\nUid:\t{1}\t{1}\t{1}\t{1}\nNSpid:\t{0}\n", pid,
      user);
}

struct Somebody {
  std::unique_ptr<ThinProcess> process;
  std::optional<os::Socket> socket = {};
  std::vector<std::byte> page = {};
  pid_t pid() const { return process->pid(); }
};

/// A whole agent on fakes. MPS names the honest tenants' processes, and no liar's.
class LyingTenants : public testing::Test {
 protected:
  void SetUp() override {
#ifdef __SANITIZE_THREAD__
    GTEST_SKIP() << "the thread sanitizer takes a process that shares our memory for a thread of it";
#endif
    if (::geteuid() != 0) GTEST_SKIP() << "only root can be several users";
    ASSERT_TRUE(os::let_through(directory_.path()));
    kernel_.set_uvm_link_target(std::string(uvm));
    kernel_.add_process(::getpid());  // which is each domain's MPS server
    kernel_.set_file(os::proc_folder(::getpid()) + "/stat", stat_of(::getpid()));
    agent::AgentOptions options;
    options.socket_path = directory_.path() + "/agent";
    options.tenants_socket_path = directory_.path() + "/tenants";
    options.tenant_group = group;
    options.hold = options.fence_wait = held;
    options.longest_hold = held_longest;
    options.lease = Milliseconds(0);
    agent_ = std::move(
        agent::Agent::start(options, *loop_, kernel_, clock_, domains_, detectors_, manager_).value());
    active_ = start(alice, true);
    standby_ = start(alice, true);
    other_ = start(bob, true);
    newcomer_ = start(bob, false);
    say(active_, abi::Join{"honest", abi::Role::Active});
    say(standby_, abi::Join{"honest", abi::Role::Standby});
    mps_names("a", active_);
    mps_names("b", standby_);
    say(standby_, abi::Ready{});
    say(other_, abi::Join{"other", abi::Role::Active, "", "", "/mps/a"});
    mps_names("a", other_);
    before_ = seen();
    ASSERT_NE(before_.find(R"("standby_state": "ready")"), std::string::npos) << before_;
  }

  Somebody start(uid_t user, bool has_gpu) {
    Somebody made{ThinProcess::start(user, group)};
    const pid_t pid = made.pid();
    kernel_.add_process(pid);
    kernel_.set_file(os::proc_folder(pid) + "/stat", stat_of(pid));
    kernel_.set_file(os::proc_folder(pid) + "/status", status_of(pid, user));
    if (has_gpu)
      kernel_.give_descriptor(pid, 7, std::string(uvm), os::create_memory_file("space", 4096).value());
    made.socket.emplace(made.process->connect(directory_.path() + "/tenants"));
    settle();
    return made;
  }
  void say(Somebody& who, const abi::Message& message, int descriptor = -1) {
    const std::string text = abi::encode(message, next_number_++);
    const std::span<const int> attached(&descriptor, descriptor >= 0 ? 1 : 0);
    (void)who.socket->send(std::as_bytes(std::span(text)), attached, Milliseconds(0));
    settle();
  }
  std::optional<abi::Message> last_answer(Somebody& who) {
    std::optional<abi::Message> last;
    while (auto received = who.socket->receive(Milliseconds(0))) {
      const std::string_view text(reinterpret_cast<const char*>(received->bytes.data()),
                                  received->bytes.size());
      if (auto letter = abi::decode_letter(text)) last = std::move(letter->message);
    }
    return last;
  }
  void mps_names(const std::string& domain, const Somebody& who) {
    domains_.callbacks.on_clients(domain, {clock_.now(), {who.pid()}});
    settle();
  }
  void settle() {
    while (loop_->run_once(Milliseconds(0))) {
    }
  }
  void pass(Nanoseconds time) {
    clock_.advance(time);
    settle();
  }
  void end(Somebody& who) {
    const pid_t pid = who.pid();
    who.socket.reset();
    detectors_.guards.erase(pid);
    for (const char* file : {"/stat", "/status", "/environ"}) kernel_.remove(os::proc_folder(pid) + file);
    kernel_.exit_process(pid, {});
    (void)kernel_.try_wait(pid);
    detectors_.callbacks.on_exit(pid);
    settle();
    who.process.reset();
  }

  /// All of the honest tenants that anybody sees, and what is done to them.
  std::string seen() {
    std::string text;
    const auto status = nlohmann::json::parse(agent_->status_json());
    for (auto each : status["tenants"]) {
      if (each["name"] == "liar") continue;
      each.erase("unprotected_ms");
      text += each.dump(1) + "\n";
    }
    for (const auto& each : status["domains"])
      text += fmt::format("{} is {}\n", each["name"].dump(), each["state"].dump());
    for (const Somebody* each : {&active_, &standby_, &other_}) {
      if (domains_.terminations.contains(each->pid())) text += "MPS takes an honest process off the GPU\n";
      if (std::ranges::count(detectors_.expected, each->pid()) > 0) text += "an honest process is to end\n";
      if (!detectors_.output[each->pid()].empty()) text += "an honest process is blamed\n";
    }
    for (const os::SentSignal& each : kernel_.signals()) {
      if (each.pid == active_.pid() || each.pid == standby_.pid() || each.pid == other_.pid())
        text += "an honest process is signalled\n";
    }
    say(newcomer_, abi::Place{"newcomer", abi::Role::Active});
    const auto answer = last_answer(newcomer_);
    const auto* placed = answer ? std::get_if<abi::Placed>(&*answer) : nullptr;
    text += placed == nullptr ? "a newcomer is refused"
                              : "a newcomer is told " + placed->environment.at(0).second;
    return text;
  }

  FakeClock clock_;
  os::FakeKernel kernel_;
  os::TemporaryDirectory directory_ = std::move(os::TemporaryDirectory::create().value());
  std::unique_ptr<os::EventLoop> loop_ = std::move(os::EventLoop::create(&clock_).value());
  agent::FakeDomains domains_;
  agent::FakeDetectors detectors_;
  agent::FakeServiceManager manager_;
  std::unique_ptr<agent::Agent> agent_;
  Somebody active_, standby_, other_, newcomer_;
  std::string before_;
  std::uint64_t next_number_ = 1;
};

/// One process's lies, by a seed.
class Liar {
 public:
  explicit Liar(unsigned seed) : random_(seed) {}

  int below(int bound) { return std::uniform_int_distribution<int>(0, bound - 1)(random_); }
  bool coin() { return below(2) == 1; }
  template <class T, std::size_t Count>
  const T& one_of(const std::array<T, Count>& all) {
    return all[static_cast<std::size_t>(below(static_cast<int>(Count)))];
  }
  std::string domain() {
    static const std::array<std::string, 5> all = {"/mps/a", "/mps/b", "/mps/anchor", "/mps/none", ""};
    return one_of(all);
  }
  std::string tenant() {
    static const std::array<std::string, 4> all = {"liar", "liar", "honest", "other"};
    return one_of(all);
  }
  abi::Role role() { return coin() ? abi::Role::Active : abi::Role::Standby; }

 private:
  std::mt19937 random_;
};

class Lies : public LyingTenants {
 protected:
  void play(unsigned seed) {
    Liar liar(seed);
    Somebody process = start(mallory, liar.coin());
    const int lies = 2 + liar.below(8);
    for (int i = 0; i < lies && process.socket; ++i) lie(liar, process);
    end(process);
    pass(held);
    pass(held_longest);
    pass(std::chrono::seconds(liar.below(3)));
  }

 protected:
  void lie(Liar& liar, Somebody& process) {
    const std::array<pid_t, 4> pids = {process.pid(), active_.pid(), standby_.pid(), other_.pid()};
    switch (liar.below(22)) {
      case 0:
      case 1:
      case 2:
        return say(process, abi::Join{"liar", liar.role(), "", liar.coin() ? "again" : "", liar.domain()});
      case 3:
        return say(process, abi::Join{liar.tenant(), liar.role(), "guessed", "", liar.domain()});
      case 4:
        return say(process,
                   abi::Adopt{liar.tenant(), liar.role(), liar.one_of(pids), abi::StrayPolicy::Report});
      case 5:
        return say(process, abi::Output{liar.one_of(pids), "CUDA Exception: Warp Illegal Instruction\n"});
      case 6:
        return show_guard(process);
      case 7:
        return show_spare(liar, process);
      case 8:
        detectors_.callbacks.on_gpu_opened(process.pid());
        return settle();
      case 9:
      case 10:
        return fault(liar, process);
      case 11:
        detectors_.callbacks.on_contained(process.pid(), "contained");
        return settle();
      case 12:
        return say(process, abi::CoreDumpMode{liar.coin() ? "" : "it cannot"});
      case 13:
        return say(process, abi::GiveCoreDumpPipe{});
      case 14:
        return say(process, abi::Rejoin{liar.tenant(), "", liar.coin()});
      case 15:
        return say(process, abi::EndProcess{liar.tenant(), liar.one_of(pids)});
      case 16:
        return say(process, liar.coin() ? abi::Message(abi::HandOver{liar.tenant()}) : abi::StandDown{1});
      case 17:
        return say(process, liar.coin() ? abi::Message(abi::Ready{}) : abi::Resumed{1'000'000});
      case 18:
        return say(process, liar.coin() ? abi::Message(abi::Finish{}) : abi::Injected{1, ""});
      case 19:
      case 20:
        return be_placed(liar, process);
      default:
        return pass(Milliseconds(liar.below(200)));
    }
  }
  /// It is told where to run, and runs nowhere.
  void be_placed(Liar& liar, Somebody& process) {
    const abi::Role role = liar.role();
    abi::Place place{"liar", role};
    place.spare = liar.coin();
    say(process, place);
    std::string environment;
    if (const auto answer = last_answer(process)) {
      if (const auto* placed = std::get_if<abi::Placed>(&*answer)) {
        for (const auto& [name, value] : placed->environment) environment += name + "=" + value + '\0';
      }
    }
    kernel_.set_file(os::proc_folder(process.pid()) + "/environ", environment);
    say(process, abi::Adopt{"liar", role, process.pid()});
  }
  /// That a kernel of it runs.
  void show_guard(const Somebody& process) {
    const os::Fd file = std::move(os::create_memory_file("guard", sizeof(abi::GuardPage)).value());
    auto mapping =
        os::Mapping::of_file(file.get(), sizeof(abi::GuardPage), os::Protection::ReadWrite).value();
    auto* page = mapping.as<abi::GuardPage>();
    page->magic = abi::guard_page_magic;
    page->version = abi::guard_page_version;
    page->work.slots = 1;
    page->work.launches[0].begun = page->work.launches[0].marked = 1;
    detectors_.guards[process.pid()] =
        std::make_shared<guard::GuardView>(std::move(guard::GuardView::of(file.get()).value()));
  }
  /// That it works in one domain and has a spare in another.
  void show_spare(Liar& liar, const Somebody& process) {
    auto file = os::create_memory_file(abi::spare_page_name, os::page_size(), os::MemorySeal::Size).value();
    auto mapping = os::Mapping::of_file(file.get(), os::page_size(), os::Protection::ReadWrite).value();
    auto* page = new (mapping.data()) abi::SparePage;
    const auto write = [](auto& into, const std::string& text) { std::ranges::copy(text, into.begin()); };
    const std::string first = liar.domain(), second = liar.domain();
    write(page->domains[0], first);
    write(page->domains[1], second);
    write(page->active_domain, liar.coin() ? first : second);
    write(page->spare_domain, liar.coin() ? first : second);
    page->state = abi::SpareState::Protected;
    kernel_.set_file(os::proc_folder(process.pid()) + "/environ",
                     fmt::format("FIREBREAK_SPARE={}:{}", first, second) + '\0');
    kernel_.give_descriptor(process.pid(), 9, os::memory_file_link(abi::spare_page_name), std::move(file));
    detectors_.callbacks.on_gpu_opened(process.pid());
    settle();
    pass(Milliseconds(60));
  }
  /// What it does outside of MPS is true, and in the domain that it says. Of who was told to run there the
  /// driver tells no fault: it would be one of the domain.
  void fault(Liar& liar, const Somebody& process) {
    constexpr std::array sources = {fault::FaultSource::UvmEvent, fault::FaultSource::Xid,
                                    fault::FaultSource::CoreDump, fault::FaultSource::ProcessExit,
                                    fault::FaultSource::CudaError};
    constexpr std::array classes = {fault::FaultClass::Sm, fault::FaultClass::MmuReplayable,
                                    fault::FaultClass::MmuNonReplayable};
    constexpr std::array own_words = {fault::FaultSource::CoreDump, fault::FaultSource::ProcessExit,
                                      fault::FaultSource::CudaError};
    const auto target = detectors_.targets.find(process.pid());
    const bool is_told = target != detectors_.targets.end() && target->second.is_told;
    fault::Fault fault;
    fault.source = is_told ? liar.one_of(own_words) : liar.one_of(sources);
    fault.fault_class = liar.one_of(classes);
    fault.pid = process.pid();
    fault.conclusive = true;
    fault.when = clock_.now();
    if (target != detectors_.targets.end()) fault.domain = target->second.said;
    detectors_.callbacks.on_fault(fault);
    settle();
  }
};

TEST_F(Lies, ChangeNothingOfTheHonest) {
  const char* const only = std::getenv("FIREBREAK_TEST_SEED");
  const unsigned first = only == nullptr ? 1 : static_cast<unsigned>(std::strtoul(only, nullptr, 10));
  const unsigned last = only == nullptr ? seeds_max : first;
  for (unsigned seed = first; seed <= last; ++seed) {
    play(seed);
    ASSERT_EQ(seen(), before_) << "seed " << seed;
  }
}

/// Else a test that nothing changes would hold of an agent that hears nothing.
TEST_F(Lies, OfWhomMpsNamesTheSameWordsChangeThem) {
  Somebody process = start(mallory, true);
  say(process, abi::Join{"liar", abi::Role::Active, "", "", "/mps/a"});
  mps_names("a", process);
  fault::Fault fault;
  fault.fault_class = fault::FaultClass::MmuReplayable;
  fault.pid = process.pid();
  fault.domain = "a";
  fault.conclusive = true;
  fault.when = clock_.now();
  for (const auto source : {fault::FaultSource::UvmEvent, fault::FaultSource::Xid}) {
    fault.source = source;
    detectors_.callbacks.on_fault(fault);
    settle();
  }
  EXPECT_NE(seen(), before_);
}

}  // namespace
}  // namespace firebreak::fuzz
