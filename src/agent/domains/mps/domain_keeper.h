// SPDX-License-Identifier: Apache-2.0
/// Keeps one MPS domain going: watches its daemon and servers, starts again what ends, bounds its logs, and
/// says whether it takes clients.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "agent/domains/mps/backoff.h"
#include "agent/domains/mps/domain.h"
#include "ground/base/clock.h"
#include "ground/os/event_loop.h"
#include "ground/os/kernel.h"

namespace firebreak::mps {

enum class DomainState {
  Serving,     ///< takes clients
  Draining,    ///< had a fault: takes nobody until those whom it has hit are gone, and its server is
  Restarting,  ///< its daemon or its server has ended, and comes again
};

/// "serving", "draining", "restarting".
const char* to_string(DomainState state);

struct KeeperOptions {
  DomainOptions domain;  ///< options of the domain, with the limits of its logs
  Milliseconds first_backoff{100};
  Milliseconds longest_backoff{30'000};
  Milliseconds forgets_failures_after{60'000};
  /// A fault is under way for so long; before, MPS may not have heard of it, or may not answer.
  Milliseconds fault_lasts{2'000};
  Milliseconds second_fault_look{250};
  /// Until the driver has taken everything of a domain that it has reset apart.
  Milliseconds fall_lasts{200};
  Milliseconds first_drain_look{250};
  Milliseconds longest_drain_look{5'000};
  /// A client that has come to a server since its fault, and lives on for so long, has its context.
  Milliseconds newcomers_prove{10'000};
  /// A server whose clients have all ended, and which MPS says that it has still, is replaced after so long.
  Milliseconds dead_are_waited_for{10'000};
  /// Time for which MPS's daemon may answer nobody after a fault before its servers are killed. Their clients
  /// never got their error otherwise (H200, beside compute-sanitizer).
  Milliseconds silence_is_waited_for{15'000};
  Milliseconds between_log_looks{10'000};
  /// Pause after a client has come, while no server is there: twice as long each time.
  Milliseconds first_server_look{50};
  Milliseconds longest_server_look{30'000};
  /// Nobody has to tell us of a client; the server's log does, in words that no document promises.
  Milliseconds between_client_looks{5'000};
  Milliseconds second_client_look{500};
  /// Its clients do no work and go by no fault, so nobody waits for them to go after one, and nobody but MPS
  /// tells of it, which is asked that often. 0: they work.
  Milliseconds idle_clients_asked_every{0};
};

/// How a domain is.
struct DomainReport {
  std::string name;
  DomainState state = DomainState::Serving;
  std::string gpu;       ///< UUID; empty: what CUDA finds
  pid_t daemon_pid = 0;  ///< 0: none runs
  std::vector<pid_t> servers;
  std::uint32_t daemon_restarts = 0;
  std::uint32_t server_restarts = 0;
  bool silent = false;         ///< its daemon runs, and answers no commands
  std::string news;            ///< the last event in words; empty: nothing happened
  std::string gpu_needs = {};  ///< before it takes anybody, in words; empty: the GPU is well
  bool takes_clients() const { return state == DomainState::Serving && !silent && gpu_needs.empty(); }
};

/// Its state, or "silent", or "gpu_failed".
const char* describe_state(const DomainReport& report);

/// The clients of a domain at one time, whoever started them.
struct ClientList {
  Monotonic asked{};  ///< time at which MPS was asked
  std::vector<pid_t> pids;
};

/// Functions that are called on the keeper's thread.
struct KeeperCallbacks {
  /// Takes news in words, for the log.
  std::function<void(const std::string& news)> on_news;
  /// A server has ended, or all of them, or had a fault while nobody looked: its clients can do nothing any
  /// more, and those that sleep do not know.
  std::function<void()> on_clients_lost = [] {};
  /// A server is there that was not known.
  std::function<void(pid_t server)> on_server = [](pid_t) {};
  /// Takes what MPS has answered, also where it is as before.
  std::function<void(const ClientList&)> on_clients = [](const ClientList&) {};
};

/// Has a thread of its own, since control commands can take seconds. Thread safe.
class DomainKeeper {
 public:
  /// Starts the domain, or takes it over, and returns when it answers; its failure is this one's.
  static Result<std::unique_ptr<DomainKeeper>> start(os::Kernel& kernel, KeeperOptions options,
                                                     KeeperCallbacks callbacks);
  DomainKeeper(const DomainKeeper&) = delete;
  DomainKeeper& operator=(const DomainKeeper&) = delete;
  /// Ends the domain; but one that outlives us, and that another process had started, is left alone unless
  /// end_for_good() was called.
  ~DomainKeeper();
  /// Whoever made the domain, it is to end with this object.
  void end_for_good() { ends_for_good_.store(true, std::memory_order_relaxed); }

  const std::string& name() const { return options_.domain.name; }
  Environment client_environment() const { return environment_; }
  DomainReport report() const;
  bool takes_clients() const { return report().takes_clients(); }
  /// True when that process is one of its servers, by MPS's own list. A server that has ended still is one
  /// while a fault may be told of that names it (fault_lasts), unless another server has come since or
  /// another process has its number: so whoever is in the domain then was its client. A server that lives is
  /// not looked at: whose fault it was is asked before anybody is promoted.
  bool is_server(pid_t pid) const;
  /// Returns the domain for control commands; null while no daemon runs. It may end meanwhile.
  std::shared_ptr<Domain> domain() const;

  /// A client has come up: a server has started since, or will.
  void look_for_servers();
  /// Has MPS asked for the domain's clients, now and once more soon, when one that is just coming is one.
  void look_for_clients();
  /// The domain has had a fault that ends its clients. It takes nobody from now on, until a fresh server is
  /// there.
  void note_fault();
  /// The driver has reset the domain: nothing more of the fault is to come, so whether it has drained is
  /// looked at soon.
  void note_fall();
  /// One may have come while nobody looked: a server that is in FAULT has lost its clients. MPS may not have
  /// heard of it yet, so it is asked again until a fault that is under way has passed. A server that has no
  /// clients is replaced, since it would not say.
  void look_for_faults();

 private:
  struct Server {
    std::shared_ptr<const os::Fd> process;
    os::Watch watch;
    uid_t user = 0;
    Monotonic began;
  };

  struct KnownServer {
    pid_t pid = 0;
    std::string start_time;  ///< start time of the process; another process of the same number has another
    std::shared_ptr<const os::Fd> process;
    std::optional<Monotonic> ended = {};
  };

  /// The clients of all servers, in MPS's words.
  struct Occupancy {
    std::vector<pid_t> idle;     ///< have no clients
    std::vector<pid_t> of_dead;  ///< name clients that are no processes any more, and no others
    bool hit = false;            ///< one is in FAULT, and waits for clients that the fault has hit
    bool newcomers = false;      ///< one is in order, and has clients
  };

  DomainKeeper(os::Kernel& kernel, KeeperOptions options, std::unique_ptr<os::EventLoop> loop,
               KeeperCallbacks callbacks);

  // These run on the keeper's thread.
  Status bring_up();
  void run(const std::function<void(Status)>& started);
  void end();
  void daemon_ended();
  std::shared_ptr<Domain> let_go_of_daemon();
  void try_again(Nanoseconds lived, const std::string& what, std::function<void()> start);
  void start_daemon();
  void look_until_found(Milliseconds next);
  Result<std::vector<pid_t>> look();
  void list_clients();
  void note_answer(const Result<std::vector<pid_t>>& answer);
  void take_server(pid_t pid);
  void server_ended(pid_t pid);
  void start_server(uid_t user);
  void ask_for_faults();
  void ask_for_faults_from(Milliseconds passed);
  bool has_fault();
  void begin_drain();
  void look_whether_drained();
  void look_again_whether_drained();
  std::optional<Occupancy> who_is_there();
  void kill_servers_of_the_silent(bool has_answered);
  bool are_served(const Occupancy& there);
  bool let_go_of_dead(Occupancy& there);
  void replace(const std::vector<pid_t>& servers, const std::string& why);
  void renew(const std::vector<pid_t>& servers, const std::string& why);
  void renew_under_idle_clients();
  void renew_daemon();
  bool end_servers(const std::vector<pid_t>& servers, const std::string& why);
  void replace_unwatched();
  void bound_logs();

  void set_state(DomainState state);
  void tell(const std::string& news);
  uid_t user_of(pid_t pid);
  std::string start_time_of(pid_t pid) const;
  std::optional<KnownServer> known_server(pid_t pid) const;
  bool lives(const os::Fd& process) const;
  void note_end(pid_t pid);

  os::Kernel& kernel_;
  const KeeperOptions options_;
  const KeeperCallbacks callbacks_;
  std::unique_ptr<os::EventLoop> loop_;
  Environment environment_;
  const SystemClock clock_;
  Backoff backoff_;
  Backoff drain_looks_;
  int silences_ = 0;                          ///< questions in a row that the daemon did not answer
  bool drains_after_fault_ = false;           ///< the domain drains because of a fault
  bool has_fallen_ = false;                   ///< and the driver has reset it
  std::optional<Monotonic> silent_since_;     ///< since when nobody has answered, while it drains
  std::optional<Monotonic> only_dead_since_;  ///< since when only the dead are named, while it drains
  std::optional<Monotonic> served_since_;     ///< since when somebody has come after the fault, while it
                                              ///< drains
  Monotonic began_{};
  bool had_fault_ = false;  ///< this daemon's domain had a fault: its clients of then may come again
  os::Watch daemon_watch_;
  os::Watch next_start_;
  os::Watch next_look_;
  os::Watch next_drain_look_;
  os::Watch next_fault_look_;
  os::Watch next_client_look_;
  os::Watch client_looks_;
  os::Watch idle_looks_;
  std::atomic<bool> clients_wanted_ = false;  ///< relaxed: what is posted orders it
  std::atomic<bool> ends_for_good_ = false;   ///< relaxed: the loop's stop orders it
  os::Watch log_looks_;
  std::map<pid_t, Server> servers_;

  mutable std::mutex mutex_;  ///< guards all below
  std::shared_ptr<Domain> domain_;
  DomainReport report_;
  std::vector<KnownServer> known_servers_;  ///< servers that run, and the one that was there last
  std::thread thread_;  ///< guarded by nothing: begun by start(), joined by the destructor
};

}  // namespace firebreak::mps
