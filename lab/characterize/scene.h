// SPDX-License-Identifier: Apache-2.0
/// One run's surroundings: two fresh MPS domains, the four processes, and whoever watches them.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "agent/domains/mps/domain.h"
#include "agent/endings/hold/holder.h"
#include "agent/faults/strays/guarded_watch.h"
#include "agent/faults/watch/watcher.h"
#include "characterize/gpu_memory.h"
#include "characterize/record.h"
#include "characterize/victim_log.h"
#include "ground/os/file.h"
#include "ground/os/self.h"
#include "ground/platform/platform.h"
#include "stage/fault_report.h"
#include "stage/stage.h"

namespace firebreak::characterize {

/// The exit status of `firebreak-lab inject` when this device cannot have the fault.
inline constexpr int refused_status = 4;

/// Settings that all runs share.
struct Settings {
  std::string programs;    ///< the folder with firebreak
  std::string gpu;         ///< "auto", "real", "soft", or empty: FIREBREAK_GPU decides
  bool guard = false;      ///< the faulter runs under the guard
  Milliseconds hold{0};    ///< how long its descriptors are held when it ends; 0: not at all
  std::uint64_t seed = 1;  ///< decides the moments at which held processes end
  /// pause between two kernels of a victim; a GPU that computes on our cores needs some
  Milliseconds pace{0};
  Milliseconds start_patience{20'000};
  /// A signal that is expected and was not seen is taken for missing after this long without any.
  Milliseconds quiet{600};
  Milliseconds settle_patience{10'000};
  Milliseconds restart_patience{5'000};
  Milliseconds end_patience{3'000};
};

/// Everything that one process has said.
struct Player {
  stage::Actor* actor = nullptr;
  std::int64_t ready_at_ns = 0;  ///< 0: not yet
  bool begun = false;            ///< a victim whose record started anew
  std::optional<VictimRecord> record;
  stage::FaultListener fault;  ///< the faulter's
};

/// One thread's. At its end all processes and daemons are gone, and the directory too.
class Scene {
 public:
  /// Starts the domains and the watcher, and nobody yet.
  static Result<std::unique_ptr<Scene>> create(const Settings& settings, const Clock& clock);
  Scene(const Scene&) = delete;
  Scene& operator=(const Scene&) = delete;
  ~Scene();

  /// Starts all four at once; Unsupported when this device cannot have this fault.
  /// `end_after_share`: when kinds that end their process do.
  Status enter(const std::string& kind, double end_after_share);
  /// The victims' records start anew.
  Status begin_records();
  /// Starts one more client in the faulter's domain, which ends after its first kernel.
  Result<Player*> enter_new_client();
  /// Tells everybody to end and waits for it; who does not end is killed with the scene.
  Status end();

  /// Ends all processes and daemons; nothing but the signals, the players and the notes may be asked for
  /// afterwards. The GPU memory that is in use more than before, empty where NVML does not tell.
  std::optional<std::int64_t> close();

  Player& of(Role role) { return players_.at(role); }
  const Player& of(Role role) const { return players_.at(role); }
  stage::Stage& stage() { return *stage_; }
  watch::Watcher& watcher() { return *watcher_; }
  platform::Platform& platform() { return *platform_; }

  /// Signals in the order in which they came.
  const std::vector<fault::Fault>& signals() const { return signals_; }
  /// Strays that the guard contained, in the order in which they were told.
  const std::vector<strays::Stray>& strays() const { return strays_; }
  /// Tells what became of the faulter's last kernels, once that is known.
  const std::optional<hold::Release>& release() const { return release_; }
  const std::map<std::uint64_t, fault::Incident>& incidents() const { return incidents_; }
  /// The moment when something was last heard or seen.
  Monotonic last_event() const { return last_event_; }
  /// Detectors that are not there, and processes whose events are not heard.
  const std::vector<std::string>& notes() const { return notes_; }
  /// "faulter", "server_a", …; "other" for a process that is not of the scene.
  std::string name_of(pid_t pid) const;

 private:
  Scene(const Settings& settings, const Clock& clock, os::TemporaryDirectory directory)
      : settings_(settings), clock_(clock), directory_(std::move(directory)) {}
  void look_at_memory();
  Status start_domains();
  void start_watcher();
  watch::WatcherCallbacks heard();
  void start_stray_watch();
  Status wait_for_guard();
  Status start(Role role, const std::string& kind, double end_after_share);
  void start_holder();
  Status wait_for_hold();
  Status wait_until_ready();
  void remember_servers();
  mps::Environment environment_of(Role role) const;
  void hear(Player& player, const std::string& line);
  std::vector<std::string> victim_command(const char* how) const;

  const Settings& settings_;
  const Clock& clock_;
  os::TemporaryDirectory directory_;
  std::optional<platform::Platform> platform_;
  std::optional<os::EnvironmentScope> environment_;  ///< set for NVML, which is loaded into this process
  std::optional<GpuMemory> memory_;
  std::int64_t used_before_bytes_ = 0;
  std::unique_ptr<mps::Domain> domain_a_;
  std::unique_ptr<mps::Domain> domain_b_;
  std::map<pid_t, std::string> servers_;  ///< maps a server to the domain's name
  std::map<Role, Player> players_;
  std::vector<std::unique_ptr<Player>> new_clients_;
  std::unique_ptr<stage::Stage> stage_;
  std::unique_ptr<strays::GuardedWatch> stray_watch_;  ///< exists with the guard only
  std::unique_ptr<hold::Holder> holder_;               ///< exists with holds only
  std::unique_ptr<watch::Watcher> watcher_;
  std::vector<strays::Stray> strays_;
  std::optional<hold::Release> release_;
  std::vector<fault::Fault> signals_;
  std::map<std::uint64_t, fault::Incident> incidents_;
  Monotonic last_event_{};
  std::vector<std::string> notes_;
};

}  // namespace firebreak::characterize
