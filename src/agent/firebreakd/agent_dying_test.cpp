// SPDX-License-Identifier: Apache-2.0
/// Clients that have died, and what the agent holds of them. Here every peer has a GPU.
#include <nlohmann/json.hpp>

#include "shared/guard_page/guard_view.h"
#include "shared/link/status_view.h"
#include "tests/doubles/agent/agent_test_support.h"

namespace firebreak::agent {
namespace {

struct EveryoneHasAGpu final : os::RealKernel {
  std::string uvm_link_target() const override { return "/memfd:test-everyones (deleted)"; }
};

class AgentDying : public AgentTest {
 protected:
  explicit AgentDying(Milliseconds hold = std::chrono::hours(1)) {
    agent.reset();
    AgentOptions options;
    options.socket_path = path;
    options.tenants_socket_path = tenants_path;
    options.hold = options.fence_wait = hold;
    options.longest_hold = hold + std::chrono::hours(1);
    agent = std::move(Agent::start(options, *loop, gpus_, clock, domains, detectors, manager).value());
  }
  /// What it holds is closed by a kernel that is still there.
  ~AgentDying() override { agent.reset(); }
  std::optional<pair::Phase> phase() { return link::parse_status(agent->status_json()).tenant("llm")->phase; }
  /// Work of that process is known to be under way.
  void let_run(pid_t pid) {
    const os::Fd file = std::move(os::create_memory_file("guard", sizeof(abi::GuardPage)).value());
    guard_ = std::move(
        os::Mapping::of_file(file.get(), sizeof(abi::GuardPage), os::Protection::ReadWrite).value());
    auto* page = guard_.as<abi::GuardPage>();
    page->magic = abi::guard_page_magic;
    page->version = abi::guard_page_version;
    page->work.slots = 1;
    page->work.launches[0].begun = page->work.launches[0].marked = 1;
    detectors.guards[pid] =
        std::make_shared<guard::GuardView>(std::move(guard::GuardView::of(file.get()).value()));
  }
  /// An active of "llm" that has died alone, with work under way; and who begins anew, and has to wait.
  Peer await_a_dying_one() {
    Peer active = peer();
    join(active, "llm", abi::Role::Active);
    detectors.callbacks.on_gpu_opened(active.pid());
    let_run(active.pid());
    active.end(kernel);
    detectors.callbacks.on_exit(active.pid());
    EXPECT_EQ(tenants(), 1u);
    Peer next(kernel, tenants_path);
    settle();
    next.send(abi::Join{"llm", abi::Role::Active});
    settle();
    EXPECT_FALSE(next.receive());
    return next;
  }
  std::string tenants_path = directory.path() + "/tenants";
  std::size_t tenants() { return nlohmann::json::parse(agent->status_json())["tenants"].size(); }
  void run_for(Milliseconds time) {
    bool is_over = false;
    const auto timer = loop->after(time, [&is_over] { is_over = true; });
    while (!is_over) loop->run_once(Milliseconds(1000));
  }

 private:
  EveryoneHasAGpu gpus_;
  os::Mapping guard_;
};

// The suspicion's deadline comes while its last kernel may still write: it serves no more.
TEST_F(AgentDying, AHeldDeadActiveGivesNoAllClear) {
  auto [active, standby, page] = pair("llm");
  Peer neighbour = peer();
  ask(neighbour, abi::Adopt{"neighbour", abi::Role::Active, neighbour.pid()});
  detectors.callbacks.on_gpu_opened(active.pid());
  let_run(active.pid());
  active.end(kernel);
  detectors.callbacks.on_exit(active.pid());
  EXPECT_EQ(phase(), pair::Phase::Suspecting);
  run_for(Milliseconds(pair::suspicion_ms + 1));
  EXPECT_EQ(phase(), pair::Phase::Suspecting);
  EXPECT_EQ(word(page).epoch, 0u);
}

// Its fault or its server's end has stopped all that ran there: the end is a fence at once.
TEST_F(AgentDying, NobodyIsWaitedForWhereTheDomainHasLostItsClients) {
  Peer neighbour = peer();
  ask(neighbour, abi::Adopt{"neighbour", abi::Role::Active, neighbour.pid()});
  for (const mps::DomainState state : {mps::DomainState::Draining, mps::DomainState::Restarting}) {
    domains.states.clear();
    const std::string name = mps::to_string(state);
    auto [active, standby, page] = pair(name);
    detectors.callbacks.on_gpu_opened(active.pid());
    let_run(active.pid());  // otherwise it would not be waited for elsewhere either
    domains.states["a"] = state;
    active.end(kernel);
    detectors.callbacks.on_exit(active.pid());
    while (word(page).epoch == 0) loop->run_once(Milliseconds(1000));
  }
}

// The tenant was made for who waited, and nobody else would ever end it.
TEST_F(AgentDying, WhoHangsUpWhileItWaitsToBeginAnewLeavesNoTenant) {
  Peer neighbour = peer();
  ask(neighbour, abi::Adopt{"neighbour", abi::Role::Active, neighbour.pid()});
  const std::size_t kept = manager.kept.size();
  Peer next = await_a_dying_one(), another = peer();
  another.send(abi::Join{"llm", abi::Role::Active});
  settle();
  next.hang_up();
  settle();
  EXPECT_EQ(tenants(), 2u);  // the other one still waits
  another.hang_up();
  settle();
  EXPECT_EQ(tenants(), 1u);
  EXPECT_EQ(manager.kept.size(), kept);
}

TEST_F(AgentDying, WhoIsRefusedAfterItHasWaitedToBeginAnewLeavesNoTenant) {
  Peer neighbour = peer();
  ask(neighbour, abi::Adopt{"neighbour", abi::Role::Active, neighbour.pid()});
  const std::size_t kept = manager.kept.size();
  Peer next = await_a_dying_one();
  next.end(kernel);  // its connection is open, and nobody's
  neighbour.end(kernel);
  detectors.callbacks.on_exit(neighbour.pid());  // the neighbour goes, so that nobody is waited for
  std::optional<Peer::Received> answer;
  while (!answer) {
    loop->run_once(Milliseconds(10));
    answer = next.receive();
  }
  EXPECT_TRUE(std::holds_alternative<abi::Refused>(answer->message));
  EXPECT_EQ(tenants(), 0u);
  EXPECT_LT(manager.kept.size(), kept);
}

/// Of whom MPS does not name there, nobody in that domain ends for the sake of its kernels.
class AgentDyingLiars : public AgentDying {
 protected:
  AgentDyingLiars() : AgentDying(std::chrono::milliseconds(20)) {}
  /// Whether somebody else is told to end, by the time when nothing of it is held any more.
  bool takes_along(const Peer& other, Peer& liar) {
    Peer watcher = peer();
    ask(watcher, abi::Subscribe{});
    detectors.callbacks.on_gpu_opened(liar.pid());
    let_run(liar.pid());
    liar.end(kernel);
    detectors.callbacks.on_exit(liar.pid());
    for (;;) {
      if (domains.terminations.contains(other.pid())) return true;
      while (const auto received = watcher.receive()) {
        const auto* event = std::get_if<abi::Event>(&received->message);
        if (event != nullptr && event->what == abi::EventKind::Released && event->pid == liar.pid())
          return false;
      }
      loop->run_once(Milliseconds(100));
    }
  }
};

TEST_F(AgentDyingLiars, WhoSaysThatItIsInADomainTakesNobodyAlong) {
  auto llm = pair("llm");
  Peer liar = peer();
  liar.send(abi::Join{"liar", abi::Role::Active, "", "", "/mps/a"});
  settle();
  ASSERT_TRUE(liar.receive());
  EXPECT_FALSE(takes_along(llm.active, liar));
}

TEST_F(AgentDyingLiars, WhomMpsNamesThereDoes) {
  auto llm = pair("llm");
  Peer rogue = peer();
  rogue.send(abi::Join{"rogue", abi::Role::Active, "", "", "/mps/a"});
  settle();
  domains.callbacks.on_clients("a", {clock.now(), {rogue.pid()}});
  EXPECT_TRUE(takes_along(llm.active, rogue));
}

}  // namespace
}  // namespace firebreak::agent
