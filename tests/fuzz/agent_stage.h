// SPDX-License-Identifier: Apache-2.0
/// A whole agent on fakes, with peers of several users, one step at a time; and what must hold after each
/// step. It is what the target `agent` plays on.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "agent/firebreakd/agent.h"
#include "ground/base/clock.h"
#include "ground/os/event_loop.h"
#include "ground/os/file.h"
#include "ground/os/socket.h"
#include "tests/doubles/agent/surroundings_test_support.h"
#include "tests/doubles/os/fake_kernel.h"
#include "tests/fuzz/thin_process.h"

namespace firebreak::fuzz {

/// Two users who are nobody, and have nothing to do with each other. From the beginning there are three
/// processes of the second, two with a pair, "b-pair", and one that was told to start one of "b-placed"; four
/// of the first, one with a tenant, "a-1", and one another's child; and an operator.
inline constexpr uid_t user_a = 65533;
inline constexpr uid_t user_b = 65534;
inline constexpr gid_t users_group = 65534;

/// A process, with a connection to the agent or without.
struct Peer {
  std::unique_ptr<ThinProcess> process;
  uid_t user = 0;
  agent::Entrance entrance = agent::Entrance::Tenants;
  std::optional<os::Socket> socket = {};
  os::Fd page = {};         ///< of its tenant, once it has joined
  std::string asked = {};   ///< the tenant of its last Place
  std::string placed = {};  ///< where that was answered, and the process has not come; empty: none

  pid_t pid() const { return process->pid(); }
};

/// Belongs to one thread. Ends the process with a sentence where something does not hold (targets.h).
class AgentStage {
 public:
  static constexpr std::size_t peers_max = 12;
  static constexpr std::size_t tenants_of_user_max = 3;

  /// False: this process cannot be several users, so there is nothing to play.
  static bool is_possible();

  /// `holds`: what the dead had on the GPU is held for a while.
  explicit AgentStage(bool holds);
  ~AgentStage();

  // What happens. A number of a peer is taken by what there are; without any nothing happens.
  void start(uid_t user, agent::Entrance entrance, bool has_gpu, std::optional<std::size_t> parent);
  void connect(std::size_t peer, agent::Entrance entrance);
  void disconnect(std::size_t peer);
  void send(std::size_t peer, const std::string& text, int descriptor);
  /// So many bytes somewhere in the page that its tenant shares with the agent.
  void write_page(std::size_t peer, std::size_t offset, std::string_view bytes);
  void end(std::size_t peer);
  void pass(Nanoseconds time);
  void change_domain(const std::string& domain, mps::DomainState state);
  void lose_clients(const std::string& domain);
  void name_clients(const std::string& domain);
  void answer_termination(bool is_good);
  void hear(fault::FaultSource source, fault::FaultClass of, pid_t pid);
  void open_gpu(std::size_t peer);
  void restart_agent();
  /// Everybody goes, and time passes: then nothing is left.
  void end_all();

  std::size_t peers() const { return peers_.size(); }
  pid_t pid_of(std::size_t peer) const { return peers_.empty() ? 1 : peers_[peer % peers_.size()].pid(); }
  std::string tenant_asked_by(std::size_t peer) const;
  /// What that peer's user was told for that tenant; empty: nothing.
  std::string token_for(std::size_t peer, const std::string& tenant) const;

 private:
  struct Seen {
    std::string text;                      ///< of the status
    std::map<uid_t, std::string> tenants;  ///< of each user, as operators see them
    std::map<uid_t, std::set<std::string>> names;
    /// What the dead had is held still: closing it is another thread's, which endangers others whenever it is
    /// done.
    bool awaits_threads = false;
    std::size_t signals = 0, expected = 0;
    std::set<pid_t> terminations;
    std::map<pid_t, std::string> output;
  };

  void start_agent();
  void set_up();
  void settle();
  void hear_of_dead();
  void drain();
  void drain(Peer& peer);
  void hear_answer(Peer& peer, const abi::Message& message);
  void note_descriptor(const Peer& peer, int descriptor);
  Peer* find(std::size_t peer);
  const Peer* find(std::size_t peer) const;
  void forget(pid_t pid);
  Result<pid_t> start_shelf(const os::SpawnRequest& request);
  Seen look() const;
  void read_status(const nlohmann::json& status, Seen& seen) const;
  void check(uid_t actor, const Seen& before, const Seen& now);
  void check_room(const Seen& now) const;
  void check_budgets() const;
  bool is_anything_kept() const;
  void check_nothing_is_left();
  std::size_t descriptors_of_agent() const;
  /// One step: what `acts` does, all that follows, and whether what must hold does.
  void step(std::optional<uid_t> actor, const std::function<void()>& acts);
  std::optional<uid_t> actor_of(const Peer& peer) const;

  FakeClock clock_;
  os::FakeKernel kernel_;
  os::TemporaryDirectory directory_;
  std::unique_ptr<os::EventLoop> loop_;
  agent::FakeDomains domains_;
  agent::FakeDetectors detectors_;
  agent::FakeServiceManager manager_;
  agent::AgentOptions options_;
  std::unique_ptr<agent::Agent> agent_;
  std::vector<Peer> peers_;
  std::map<pid_t, uid_t> user_of_;
  std::map<std::pair<uid_t, std::string>, std::string> tokens_;
  std::map<os::FileIdentity, std::set<uid_t>> files_;  ///< who has had which
  std::list<std::thread> shelves_;
  std::optional<Seen> seen_;  ///< after the last step; none: nobody has looked
  bool is_set_up_ = false;
  std::size_t descriptors_at_start_ = 0;
  std::size_t signals_heard_ = 0;
  pid_t next_shelf_ = 2'000'000;
};

}  // namespace firebreak::fuzz
