// SPDX-License-Identifier: Apache-2.0
/// Parked domains: after an exception of one client's kernel the others go on, and leave, before the domain
/// falls (agent/parking/park/parking.h). Off unless AgentOptions::park says how long they have.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/faults/fault/core_dump.h"
#include "agent/loop/fair_queue.h"
#include "agent/loop/surroundings.h"
#include "agent/parking/park/dump_pipe.h"
#include "agent/parking/park/parking.h"
#include "agent/parking/parked_incidents.h"
#include "agent/parking/parking_client.h"
#include "agent/parking/run_limit.h"
#include "agent/parking/spares.h"
#include "agent/settings/options.h"
#include "agent/tenants/process.h"
#include "agent/tenants/teller.h"
#include "agent/tenants/tenants.h"
#include "ground/os/event_loop.h"
#include "ground/os/kernel.h"

namespace firebreak::agent {

/// How parking stands in one domain.
struct ParkingReport {
  park::ParkingPhase phase = park::ParkingPhase::Off;
  std::vector<pid_t> culprits;
  std::vector<std::string> prevented_by;  ///< processes whose dumps would be in another's pipe, in words
  std::vector<std::string> not_in_mode;   ///< processes that are lost with the domain, in words
  std::string news;                       ///< why the parking client is not there; empty: it is, or will be
};

/// Belongs to the loop's thread.
class Parking {
 public:
  struct Knows {
    const AgentOptions& options;
    os::EventLoop& loop;
    os::Kernel& kernel;
    ApartStarter& starter;
    Domains& domains;
    const Clock& clock;
    Tenants& tenants;
    Processes& processes;
    Teller& teller;
    Spares& spares;
  };
  struct Callbacks {
    /// A tenant is to go on in its standby, in good order.
    std::function<Status(const std::string& tenant)> hand_over;
    /// The dump of that process names an exception of its own.
    std::function<void(pid_t pid, const fault::CoreDumpException&)> on_exception;
    /// Tells that a domain has had an exception and has not fallen yet; or that it has.
    std::function<void(const std::string& domain, bool is_to_fall)> on_phase;
    /// The report of an exception has been begun.
    ParkedIncidents::OnReport on_report;
  };
  Parking(Knows knows, Callbacks callbacks)
      : at_(knows),
        callbacks_(std::move(callbacks)),
        incidents_(knows.loop, knows.kernel, knows.clock, knows.options.dump_directory,
                   callbacks_.on_report) {}
  Parking(const Parking&) = delete;
  Parking& operator=(const Parking&) = delete;
  ~Parking();

  /// Ends: no domain has a parking client from now on, nor gets one.
  void end();
  /// Starts a parking client in each domain that serves, now and whenever one serves again.
  void begin();

  /// Where a process of that user is to dump to that is to start in that domain, or is to have its spare
  /// there. Empty: it need not be in the mode.
  /// `connection`: which asks for it.
  std::string new_dump_path(const std::string& domain, uid_t user, std::uint64_t connection);
  /// That connection is gone, and whoever it has asked for has come by now, or never will.
  void on_closed(std::uint64_t connection);
  /// Those pipes are that process's, and go with it.
  void give_pipes(pid_t pid, std::vector<std::string> paths);
  /// Of who does not come any more.
  void remove_pipes(const std::vector<std::string>& paths);
  /// Returns where a process is to dump to that is none of those, and puts itself into the mode by the
  /// driver's calls. Empty: it need not, or is in it. NotYet: nobody knows it as a client so far.
  Result<std::string> offer_pipe(pid_t pid, uid_t user);
  /// Takes the process's word that it has done so, or why it cannot. The word binds itself alone: who says so
  /// and is not in the mode stands still until its domain falls.
  void on_mode_by_calls(pid_t pid, const std::string& why_not);
  /// A process in that domain, ours or not, from now on. One that is not known there is in nobody's way, and
  /// its dump tells nobody, until on_known().
  void follow(pid_t pid, const std::string& domain);
  /// It has come to be known in that domain (Process::is_known_in()).
  void on_known(pid_t pid, const std::string& domain);
  /// Notes that it has initialised CUDA, so that its environment is what its program has.
  void on_gpu_opened(pid_t pid);
  void on_exit(pid_t pid);
  /// Returns these clients of a domain without the parking client.
  std::vector<pid_t> without_ours(const std::string& domain, std::vector<pid_t> clients) const;

  /// Returns the domain whose parking client that is; empty: nobody's.
  std::string domain_of_client(pid_t pid) const;

  /// Its progress lines name a process. False: its domain does not park, and falls at once.
  bool on_named(pid_t pid, const std::string& domain);
  /// Its clients run on after an exception, so that no word of a fault in it is a fence but its server's end.
  bool holds(const std::string& domain) const;
  /// Nothing that is there may be given back: it has had an exception, and has not fallen yet.
  bool is_to_fall(const std::string& domain) const;
  /// The driver has reset that domain, or its server has ended.
  void on_fell(const std::string& domain);
  /// A word of a fault in a domain that is held, whatever it means elsewhere.
  void note_fault(const fault::Fault& fault);
  /// The account of a fault, whose reports say the same.
  void settle(const PastFault& fault) { incidents_.settle(fault); }

  ParkingReport report(const std::string& domain) const;
  /// Returns why that process would not outlive an exception of another client of the domain; empty: it
  /// would.
  std::string why_lost_in(const std::string& domain, pid_t pid) const;

 private:
  /// Who writes into its pipe, and is not found, or not named by MPS, does not stand still for longer.
  static constexpr Milliseconds unknown_dump_limit{6'000};
  /// A process in a domain. One with a spare driver instance is in two, and has a dump of its own in each.
  using InDomain = std::pair<pid_t, std::string>;
  /// How far the dump is.
  enum class Dump {
    NotBegun,
    Unheeded,      ///< of who is not known to be a client there, or of what may be no dump: it tells nobody
    Dropped,       ///< the same, as it is read and thrown away
    Begun,         ///< its end is not known yet
    Held,          ///< a culprit's: its process stands still in it until the domain is to fall
    HeldUnjudged,  ///< longer than there was room for: held until others are judged
    LetOut,        ///< the process was held
    Complete,
  };
  /// What is to be done to a process once it is its turn.
  enum class Turn {
    None,
    Stop,  ///< it is stopped but for its dump
    End,   ///< stopped, and let write the rest of it and end
  };
  /// A process, as far as its dump goes.
  struct Dumper {
    std::string path;                    ///< empty: it is not in the mode, or not known to be
    std::string offered;                 ///< pipe of offer_pipe(): nobody has said yet what became of it
    std::optional<park::DumpPipe> pipe;  ///< its reader
    os::Watch watch;
    Monotonic since{};
    Monotonic began_at{};  ///< time when it began to dump
    Dump dump = Dump::NotBegun;
    bool is_in_doubt = true;  ///< it may not have begun its program yet, or has not let itself be looked at
    bool is_out = false;      ///< it was told not to be in the mode
    bool is_told_of_drop = false;  ///< the log has a line of what was no dump
    bool has_anothers_pipe =
        false;             ///< it is in the mode, with a pipe that is another's: nobody could read either
    bool has_gpu = false;  ///< the process has opened the GPU
    bool is_named = false;
    bool has_spare = false;        ///< its process may be in another domain, or in both
    bool fails_by_itself = false;  ///< a culprit, in each call from now on
    Turn turn = Turn::None;        ///< what waits to be done to a culprit
    int asked = 0;                 ///< how often MPS was asked whether it is a client, before it dumps
    bool is_asked = false;         ///< the same, since its dump began
    bool has_trapped = false;      ///< a culprit: others may never begin their dumps
    bool was_readable = false;     ///< its dump, to its end
    bool is_to_end = false;        ///< a culprit: it is ended once its dump is complete
    bool has_outlived = false;     ///< its domain, which fell before its dump was read to the end
    bool has_fallen = false;  ///< its domain has fallen, of which it is no client any more unless it dumps
                              ///< again
    std::unique_ptr<os::Standstill> standstill;  ///< standstill of a culprit but for its dump
    RunLimit end_of_dump;                        ///< the limit of that
    Milliseconds between_looks{0};
    std::size_t judged_bytes = 0;  ///< size of its dump when that was last looked through
    os::Watch looking_ahead;

    bool has_begun() const {
      return dump != Dump::NotBegun && dump != Dump::Unheeded && dump != Dump::Dropped;
    }
    bool is_held() const { return dump == Dump::Held || dump == Dump::HeldUnjudged; }
    /// True when all that can be known of it is known.
    bool is_judged() const { return has_begun() && dump != Dump::Begun; }
  };
  /// A pipe that was given out, until somebody is known to have it.
  struct Given {
    std::uint64_t connection = 0;  ///< that has asked for it; 0: its name says whose it is
    std::optional<park::DumpPipe> pipe;
    os::Watch watch;
    std::optional<Monotonic> began_at;  ///< somebody to dump there
    bool is_emptied = false;            ///< nobody was found who it could be
    bool is_given_up = false;           ///< that connection is gone
    bool is_told = false;               ///< the log has a line of it
  };
  /// A pipe of a process that is in the mode, of an agent that does not park.
  struct Emptied {
    pid_t pid = 0;
    std::optional<park::DumpPipe> pipe;
    os::Watch watch;
  };
  struct Place {
    park::ParkingState state;
    std::unique_ptr<ParkingClient> client;  ///< null: none
    std::string news;
    bool is_read = false;             ///< its clients' dumps are
    os::Watch limit;                  ///< the operator's
    RunLimit run_limit;               ///< of what the driver does
    RunLimit reading;                 ///< alarm for those who do not begin to dump
    bool beginners_are_late = false;  ///< nobody waits any more for those that have not opened the GPU
    bool had_others = false;          ///< the culprit, when the first dump began
    RunLimit ending;                  ///< alarm for culprits that outlive their domain
    os::Watch leaving;                ///< looks whether somebody is left
    Monotonic leaving_since{};
    bool is_asked_who_works = false;  ///< MPS, since then
    os::Watch thawing;
    RunLimit giving_up;  ///< alarm for those who have not begun to dump
    bool is_too_late_to_begin = false;
    int turns = 0;  ///< turns of other domains' parking clients, in this life of the domain
  };

  bool is_known_in(pid_t pid, const std::string& domain) const;
  bool may_be_in(pid_t pid, const std::string& domain) const;
  /// Root's where that is not to be seen.
  uid_t user_of(pid_t pid) const;
  /// What the dumps of that process's user may take of our memory.
  std::shared_ptr<park::DumpBudget> budget_of(pid_t pid);
  bool is_on() const { return at_.options.park > Milliseconds(0); }
  Result<std::string> new_pipe_path(const std::string& begin);
  Status make_pipe(const std::string& path, uid_t user);
  Status give(const std::string& path, uid_t user) const;
  Status mark_pipe(const std::string& path, bool is_marked);
  /// Returns the pipe that offer_pipe() has made, also an agent's before this one; empty: none.
  std::string pipe_by_calls(pid_t pid) const;
  static bool is_by_calls(const std::string& path);
  void await_dump_in(const std::string& path, std::uint64_t connection);
  void watch_given(const std::string& path, Given& given);
  void on_dump_of_unknown(const std::string& path);
  void look_for_unknown();
  void empty_given(const std::string& path);
  void forget_given_up();
  void take_its_word(const InDomain& who, Dumper& dumper);
  void enter_by_calls(const InDomain& who, Dumper& dumper, const std::string& path);
  Result<park::DumpPipe> pipe_at(const std::string& path, pid_t pid);
  void withdraw(Dumper& dumper);
  void remove_pipes_of_the_dead();
  void remove_pipes_of_nobody();
  void end_clients();
  void ask_for_the_unconfirmed();
  bool is_unconfirmed(const InDomain& who, const Dumper& dumper) const;
  bool awaits_names(const std::string& domain);
  void enter(const InDomain& who, Dumper& dumper, std::string path);
  void look_after_clients();
  Status start_client(const std::string& domain, Place& place);
  void on_client_ready(const std::string& domain);
  void on_client_exit(const std::string& domain);
  void end_client(Place& place);
  void end_culprits(Place& place);
  void read_rest_of_client(const std::string& domain);
  /// Looks whether it is in the mode; `for_good`: the answer counts also where it is no.
  void look_at(const InDomain& who, Dumper& dumper, bool for_good);
  void look_at_the_doubtful();
  void empty_pipes_of(pid_t pid);
  void begin_to_empty(pid_t pid, const std::string& path);
  void empty(const std::string& path);
  pid_t other_with(const std::string& path, const InDomain& who) const;
  bool is_its_pipe(pid_t pid, const std::string& path) const;
  void open_pipe(const InDomain& who, Dumper& dumper);
  void outlive(const InDomain& who, Dumper& dumper, bool was_read);
  void await_next_dump(const InDomain& who, Dumper& dumper);
  /// Says whether this process may still write a core dump for that domain's exception.
  bool is_there(const InDomain& who, const Dumper& dumper) const;
  /// Says whether this process is in the domain's way: it is a client that dumps there, or cannot.
  bool is_client(const InDomain& who, const Dumper& dumper) const;
  std::size_t clients_of(const std::string& domain) const;
  bool has_culprit(const std::string& domain) const;
  void on_dump(const InDomain& who);
  void heed_dump(const InDomain& who, Dumper& dumper);
  void take_dump(const InDomain& who, Dumper& dumper);
  void drop_dump(const InDomain& who, Dumper& dumper);
  void read_dropped(const InDomain& who);
  void look_whether_all_began(const std::string& domain);
  void await_the_slow(const std::string& domain);
  void read_all(const std::string& domain);
  void begin_to_read(const InDomain& who, Dumper& dumper);
  void let_out(const InDomain& who, Dumper& dumper);
  void read_dump(const InDomain& who);
  void read_what_is_left(const InDomain& who);
  void judge_early(const InDomain& who, Dumper& dumper);
  static std::optional<fault::CoreDumpException> look_through(Dumper& dumper, bool is_all);
  void end_late_culprit(const InDomain& who, const fault::CoreDumpException& exception);
  void end_now(pid_t pid);
  void let_go(pid_t pid);
  bool has_others(const InDomain& culprit) const;
  void let_culprits_end(const std::string& domain);
  void await_turn(const InDomain& who, Dumper& dumper, Turn turn);
  void take_turn(pid_t pid);
  bool is_to_be_ended(const InDomain& who, const Dumper& dumper) const;
  void let_culprit_end(const InDomain& who, Dumper& dumper);
  Status stop_but_for_its_dump(const InDomain& who, Dumper& dumper);
  void let_dump_and_end(const InDomain& who, Dumper& dumper);
  void judge(const InDomain& who, Dumper& dumper);
  void note_exception(const InDomain& who, const fault::CoreDumpException& exception);
  void began(const std::string& domain);
  void look_whether_all_dumped(const std::string& domain);
  void judge_the_rest(const std::string& domain);
  void look_whether_all_left(const std::string& domain);
  std::vector<pid_t> who_works_in(const std::string& domain) const;
  bool never_begins(const InDomain& who) const;
  void await_beginners(const std::string& domain);
  void happened(const std::string& domain, const park::ParkingEvent& event);
  void tell_phase(const std::string& domain);
  void mark_all();
  void mark(const std::string& domain);
  void write_down(const std::string& domain, const park::ParkingEvent& event, park::ParkingPhase before,
                  park::ParkingPhase after);
  void act(const std::string& domain, Place& place, park::ParkingAction action);
  void let_leave(const std::string& domain, const Place& place);
  RunLimit::Knows limits() const { return {at_.loop, at_.kernel}; }
  RunLimit::For of_beginners(const std::string& domain) const;
  RunLimit::For of_all(const std::string& domain) const;
  std::vector<pid_t> servers_of(const std::string& domain) const;
  void on_deadline(const std::string& domain);
  void begin_to_thaw(const std::string& domain);
  void let_others_take_a_turn(const std::string& domain);
  void start_limit(const std::string& domain, Place& place, Milliseconds limit);
  void tell(const std::string& domain, pid_t pid, const std::string& text);
  std::vector<std::string> not_in_mode(const std::string& domain) const;
  std::vector<std::string> in_the_way(const std::string& domain) const;
  std::string name_of(pid_t pid) const;
  std::int64_t ms_since(Monotonic then) const;

  Knows at_;
  Callbacks callbacks_;
  std::map<std::string, Place> places_;
  std::map<InDomain, Dumper> dumpers_;
  std::set<std::string> wrongly_marked_;    ///< domains, by their files, which cannot be put right
  std::map<std::string, Emptied> emptied_;  ///< emptied pipes by their paths
  std::map<std::string, Given> given_;      ///< likewise
  std::map<pid_t, std::vector<std::string>> pipes_of_;
  std::vector<std::string> pipes_before_;  ///< of an agent before: nobody knows yet whose they are
  os::Watch claiming_;
  std::set<pid_t> with_gpu_;  ///< processes that have opened it, whether or not we follow them yet
  ParkedIncidents incidents_;
  park::DumpBudgets budgets_{at_.options.dumps_bytes_max};
  FairQueue turns_{at_.loop, at_.clock, [this](pid_t pid) { take_turn(pid); }};
  std::optional<Monotonic> looked_for_unknown_;  ///< last time
  unsigned next_pipe_ = 1;
  Monotonic may_start_{};  ///< the parking clients
  os::Watch looking_;
  os::Watch marking_;
};

}  // namespace firebreak::agent
