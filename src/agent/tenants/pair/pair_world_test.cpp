// SPDX-License-Identifier: Apache-2.0
/// A tenant's processes, its GPU and what the agent hears of them, played: signals come late, twice, or
/// never, alarms are false, commits land when the GPU gets to them, and the agent itself is killed between
/// deciding and acting. Promises 1 to 3 and 6 of ARCHITECTURE.md are checked against what is physically so.
/// One seed replays a whole life.
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "agent/tenants/pair/pair.h"
#include "tests/doubles/base/test_seed.h"

namespace firebreak::pair {
namespace {

struct Process {
  int id = 0;
  int domain = 0;
  std::uint32_t epoch = 0;  ///< epoch of which it believes to be the active one
  bool alive = true;
  bool can_write = true;     ///< its channels are there
  bool stands_down = false;  ///< it has given its word not to use them
  int queued_commits = 0;
};

struct Signal {
  enum class Kind { Danger, Fence, ContextLost, Exit } kind{};
  int subject = 0;  ///< a domain; of an Exit, a process
};

/// The memory that every process of the tenant maps.
struct SharedMemory {
  std::uint32_t epoch = 0;
  int committed = 0;
};

class World {
 public:
  explicit World(std::uint64_t seed) : random_(seed) { begin(); }

  /// Something happens, to the GPU, the processes or the agent.
  void live() {
    switch (random_() % 26) {
      case 0:
        return fault(pick_domain());
      case 1:
        return server_dies(pick_domain());
      case 2:
        return kill(pick(processes_));
      case 3:
        signals_.push_back({Signal::Kind::Danger, pick_domain()});  // the active was only slow
        return;
      case 4:
        agent_dies_ = true;
        return;
      case 5:
        return pass_deadline();
      case 6:
      case 7:
      case 8:
        return start_standby();
      case 9:
      case 10:
      case 11:
        return standby_gets_ready();
      case 12:
      case 13:
        return successor_runs();
      case 14:
      case 15:
        return queue_commit();
      case 16:
      case 17:
        return land_commit();
      case 18:
      case 19:
        return hand_over();
      default:
        return deliver_one();
    }
  }

  /// Nothing new happens; all that has is heard of. Who cannot work any more ends sooner or later.
  void settle() {
    for (int round = 0; round < 4; ++round) {
      for (Process& process : processes_) {
        if (!process.can_write) kill(&process);
      }
      while (!signals_.empty()) deliver_one();
      standby_gets_ready();
      successor_runs();
      pass_deadline();
    }
    check_settled();
  }

  const std::string& broken() const { return broken_; }
  std::uint32_t promotions() const { return memory_.epoch; }
  const std::vector<std::string>& history() const { return history_; }

 private:
  void begin() {
    active_ = add_process(0).id;
    advance_by(EventType::ActiveJoined);
  }

  // --- the machine
  Process& add_process(int domain) {
    processes_.push_back({.id = ++last_id_, .domain = domain, .epoch = memory_.epoch});
    return processes_.back();
  }
  Process* process(int id) {
    const auto found = std::ranges::find(processes_, id, &Process::id);
    return found == processes_.end() ? nullptr : &*found;
  }
  int pick_domain() { return static_cast<int>(random_() % 2); }
  Process* pick(std::vector<Process>& from) {
    return from.empty() ? nullptr : &from[random_() % from.size()];
  }

  /// The alarm comes before the channels are gone, their end is told after it; each up to twice, or never.
  void fault(int domain) {
    note("fault in domain " + std::to_string(domain));
    repeat(Signal::Kind::Danger, domain);
    if (random_() % 2 == 0) {
      while (!signals_.empty() && random_() % 2 == 0) deliver_one();
    }
    stop_domain(domain);
    repeat(Signal::Kind::Fence, domain);
  }
  void server_dies(int domain) {
    note("server of domain " + std::to_string(domain) + " dies");
    repeat(Signal::Kind::ContextLost, domain);
    if (random_() % 2 == 0) stop_domain(domain);  // nothing promises that its clients write no more
  }
  void stop_domain(int domain) {
    for (Process& each : processes_) {
      if (each.domain == domain) each.can_write = false;
    }
  }
  void repeat(Signal::Kind kind, int subject) {
    for (std::uint64_t times = random_() % 3; times > 0; --times) signals_.push_back({kind, subject});
  }
  void kill(Process* victim) {
    if (victim == nullptr || !victim->alive) return;
    note("process " + std::to_string(victim->id) + " ends");
    victim->alive = victim->can_write = false;
    signals_.push_back({Signal::Kind::Exit, victim->id});
  }
  void queue_commit() {
    Process* writer = pick(processes_);
    if (writer == nullptr || !writer->alive || writer->id == standby_ || writer->epoch != memory_.epoch ||
        writer->stands_down)
      return;
    ++writer->queued_commits;
  }
  /// A commit may also land of a process that is gone, if its channels are not.
  void land_commit() {
    Process* writer = pick(processes_);
    if (writer == nullptr || writer->queued_commits == 0 || !writer->can_write) return;
    --writer->queued_commits;
    ++memory_.committed;
    if (writer->epoch != memory_.epoch) broken_ = "a write of an old active landed after the promotion";
  }

  /// The active waits for its GPU work, then gives its word; where nobody is ready it goes on.
  void hand_over() {
    Process* active = process(active_);
    if (active == nullptr || !active->alive || !active->can_write || active->epoch != memory_.epoch) return;
    note("process " + std::to_string(active->id) + " hands over");
    const int id = active->id;
    memory_.committed += std::exchange(active->queued_commits, 0);
    active->stands_down = true;
    advance_by(EventType::ActiveStoodDown);
    if (active_ == id) {
      process(id)->stands_down = false;
      return;
    }
    if (old_ != id || standby_ != 0) return;
    standby_ = std::exchange(old_, 0);
    advance_by(EventType::StandbyJoined);
  }

  // --- what the agent hears
  void deliver_one() {
    if (signals_.empty()) return;
    const auto at = signals_.begin() + static_cast<std::ptrdiff_t>(random_() % signals_.size());
    const Signal signal = *at;
    signals_.erase(at);
    if (signal.kind == Signal::Kind::Exit) return exited(signal.subject);
    const Process* active = process(active_);
    if (active == nullptr || active->domain != signal.subject) return;
    // The channels that a fence speaks of may be those of an earlier client of the domain.
    if (signal.kind == Signal::Kind::Fence && active->can_write) return;
    advance_by(signal.kind == Signal::Kind::Fence         ? EventType::FenceSeen
               : signal.kind == Signal::Kind::ContextLost ? EventType::ContextLost
                                                          : EventType::DangerSeen);
  }
  void exited(int id) {
    const bool was_active = id == active_;
    const bool was_standby = id == standby_;
    if (was_active) active_ = 0;
    if (was_standby) standby_ = 0;
    if (id == old_) old_ = 0;
    std::erase_if(processes_, [id](const Process& each) { return each.id == id; });
    if (was_active) advance_by(EventType::ActiveExited);
    if (was_standby) advance_by(EventType::StandbyExited);
  }
  void start_standby() {
    const Process* active = process(active_);
    if (standby_ != 0 || old_ != 0 || active == nullptr || state_.phase == Phase::Lost) return;
    standby_ = add_process(1 - active->domain).id;
    advance_by(EventType::StandbyJoined);
  }
  void standby_gets_ready() {
    const Process* standby = process(standby_);
    if (standby != nullptr && standby->alive && standby->can_write) advance_by(EventType::StandbyReady);
  }
  void successor_runs() {
    const Process* active = process(active_);
    if (active != nullptr && active->can_write && state_.phase == Phase::Promoting)
      advance_by(EventType::Resumed);
  }
  void pass_deadline() {
    if (!std::exchange(deadline_, false)) return;
    advance_by(EventType::DeadlinePassed);
  }

  // --- what the agent does
  void advance_by(EventType event) {
    const Step step = advance(state_, event);
    note(std::string(to_string(event)) + ": " + to_string(state_.phase) + " -> " +
         to_string(step.state.phase));
    state_ = step.state;  // kept first, then acted upon
    if (!std::exchange(agent_dies_, false)) return act(step);
    note("the agent dies before it acts, and is started anew");
    deadline_ = false;
    std::erase_if(signals_, [](const Signal& each) { return each.kind != Signal::Kind::Exit; });
    act(resume(state_));
  }
  void act(const Step& step) {
    for (const Action& action : step.actions) {
      if (action.type == ActionType::Promote) promote(action.epoch);
      if (action.type == ActionType::StartDeadline) deadline_ = true;
      if (action.type == ActionType::EndActive) kill(process(active_));
      if (action.type == ActionType::EndOldActive) kill(process(old_));
      if (action.type == ActionType::EndStandby) kill(process(standby_));
      if (action.type == ActionType::TellLost) told_lost_ = !action.reason.empty();
    }
  }
  void promote(std::uint32_t epoch) {
    if (memory_.epoch == epoch) return;
    note("promotion to epoch " + std::to_string(epoch));
    for (const Process& each : processes_) {
      if (each.id != standby_ && each.can_write && !each.stands_down)
        broken_ = "a promotion while another process can write";
    }
    memory_.epoch = epoch;
    old_ = active_;
    active_ = standby_;
    standby_ = 0;
    if (Process* successor = process(active_)) {
      successor->epoch = epoch;
      successor->stands_down = false;
    }
  }

  void check_settled() {
    const Process* active = process(active_);
    const Process* standby = process(standby_);
    const bool serves = active != nullptr && active->can_write && active->epoch == memory_.epoch;
    if (serves && (state_.phase == Phase::Lost || state_.phase == Phase::Orphaned))
      broken_ = "a loss of what runs";
    if (!serves && state_.phase != Phase::Lost) broken_ = "a service that has ended in silence";
    if (!serves && !told_lost_) broken_ = "a loss that nobody was told of";
    if (!serves && standby != nullptr && standby->can_write)
      broken_ = "a loss though somebody could take over";
  }
  void note(std::string text) { history_.push_back(std::move(text)); }

  std::mt19937_64 random_;
  std::vector<Process> processes_;
  std::vector<Signal> signals_;  ///< signals on their way; in any order
  SharedMemory memory_;
  State state_;
  int last_id_ = 0;
  int active_ = 0;
  int standby_ = 0;
  int old_ = 0;
  bool deadline_ = false;
  bool agent_dies_ = false;  ///< the next time it has decided something
  bool told_lost_ = false;
  std::string broken_;
  std::vector<std::string> history_;
};

TEST(PairWorld, KeepsItsPromisesWhateverHappens) {
  const std::uint64_t seed = test_seed();
  std::uint64_t promotions = 0;
  for (std::uint64_t life = 0; life < 30'000; ++life) {
    World world(seed + life);
    for (int happening = 0; happening < 60 && world.broken().empty(); ++happening) world.live();
    if (world.broken().empty()) world.settle();
    ASSERT_EQ(world.broken(), "") << "FIREBREAK_TEST_SEED=" << seed + life << ": "
                                  << testing::PrintToString(world.history());
    promotions += world.promotions();
  }
  EXPECT_GT(promotions, 10'000u);  // else little was tried
}

}  // namespace
}  // namespace firebreak::pair
