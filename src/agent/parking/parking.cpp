// SPDX-License-Identifier: Apache-2.0
#include "agent/parking/parking.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <utility>

#include "agent/parking/park/core_dump_file.h"
#include "ground/os/file.h"
#include "ground/os/processes.h"
#include "ground/os/self.h"
#include "ground/os/socket.h"
#include "shared/dump_mode/mode.h"

namespace firebreak::agent {
namespace {

constexpr Milliseconds between_client_looks{500};
constexpr Milliseconds between_leaving_looks{5};
/// A client's driver puts its code together before its dump begins: 99 ms after the first with 16 MB of it
/// (PyTorch's small layers), 510 to 650 ms with 91 MB (training). Who is read before the others have begun
/// keeps them from it (H100).
constexpr Milliseconds begin_limit{2'000};
/// After a trap a client's driver may answer its MPS server at once that it does not dump, and its kernels
/// then stand still for good (H200, docs/how/parking.md). Since the culprit's name. The driver itself lets
/// others go on after 4 s.
constexpr Milliseconds never_begins_after{4'000};
/// The same was seen after any other exception where 62 or 63 instances were left behind, and the server
/// stood still for 33 to 36 s (H200, results/h200/spare-guarded-2.json, results/h200/spare-alone.json).
/// Kernels that come later may keep a client from its dump for as long as the driver waits, so this is well
/// beyond that.
constexpr Milliseconds never_begins_after_others{12'000};
/// Limit for those that have not opened the GPU yet, as far as we know.
constexpr Milliseconds begin_limit_of_beginners{300};
/// A dump is complete some 60 ms after the exception (H100). The driver itself was seen to wait for 4 s.
constexpr Milliseconds name_limit{6'000};
/// The reset was seen to take up to 4 s (H100).
constexpr Milliseconds fall_limit{6'000};
/// Blocks of the others that share the halted multiprocessor stand still until the GPU takes turns between
/// domains (H100). So many turns, in such distances.
constexpr Milliseconds between_turns{25};
constexpr int turns_max = 16;
/// Whether a process goes on in its dump is looked at again and again, less and less often.
constexpr Milliseconds first_between_looks_ahead{1};
constexpr Milliseconds longest_between_looks_ahead{32};
/// A long dump is looked through again once so much more of it is there, in parts of it.
constexpr std::size_t short_dump_bytes = std::size_t{4} << 20;
constexpr std::size_t parts_more = 16;

/// True for an exception after which all calls of its process say so (H100).
bool fails_by_itself(const fault::CoreDumpException& exception) { return exception.type == park::trap_type; }

/// After these another client's driver may answer that it does not dump (H200, docs/how/parking.md). An
/// assertion that fails is a trap as well.
bool is_trap(const fault::CoreDumpException& exception) {
  return exception.type == park::trap_type || exception.type == park::assertion_type;
}

}  // namespace

Parking::~Parking() { end_clients(); }

void Parking::end_clients() {
  looking_.cancel();
  for (auto& [domain, place] : places_) end_client(place);
}

/// The domains end with us, and nobody is left who could dump.
void Parking::end() {
  end_clients();
  for (const auto& [who, dumper] : dumpers_) remove_pipes({dumper.path, dumper.offered});
  for (const auto& [pid, paths] : pipes_of_) remove_pipes(paths);
}

void Parking::begin() {
  auto marking = at_.loop.every(between_client_looks, [this] { mark_all(); });
  if (marking) marking_ = std::move(*marking);
  mark_all();  // marks of an agent before are over
  if (!is_on()) return;
  if (auto made = os::make_directories(at_.options.dump_pipe_directory()); !made) {
    spdlog::error("domains cannot be parked: {}", to_string(made.error()));
    return;
  }
  for (const std::string& folder : {at_.options.dump_directory, at_.options.dump_pipe_directory()}) {
    if (auto through = os::let_through(folder); !through)
      spdlog::warn("tenants of other users cannot be parked: {}", to_string(through.error()));
  }
  remove_pipes_of_the_dead();
  incidents_.open();
  auto looking = at_.loop.every(between_client_looks, [this] { look_after_clients(); });
  if (looking) looking_ = std::move(*looking);
  may_start_ = at_.clock.now() + at_.options.first_parking_client;
  for (const std::string& domain : at_.domains.names()) {
    places_[domain];
    callbacks_.on_phase(domain, is_to_fall(domain));
  }
  look_after_clients();
}

void Parking::mark_all() {
  for (const std::string& domain : at_.domains.names()) mark(domain);
}

/// Marks the domain. Others may write there, too: root in a container that was given the directory. While a
/// file says that a domain is parked nobody gets a spare there, and while none says it who comes stands still
/// until it falls.
void Parking::mark(const std::string& domain) {
  const std::string file = at_.domains.pipe_directory(domain) + "/" + abi::parked_file;
  const bool is_wanted = is_to_fall(domain);
  if (is_wanted ? !os::is_plain_file(file) : os::is_there(file))
    (void)at_.domains.mark_parked(domain, is_wanted);
  if (os::is_plain_file(file) == is_wanted) {
    wrongly_marked_.erase(domain);
  } else if (wrongly_marked_.insert(domain).second) {
    spdlog::warn("domain {}: {} {}", domain, file,
                 is_wanted ? "cannot be made: who comes while it is parked stands still"
                           : "cannot be removed: nobody gets a spare there");
  }
}

// --- the parking client of a domain
// ---------------------------------------------------------------------------------------------------

void Parking::look_after_clients() {
  ask_for_the_unconfirmed();
  look_at_the_doubtful();
  for (const mps::DomainReport& report : at_.domains.reports()) {
    Place& place = places_[report.name];
    // Its fall was told by nobody, and it serves again.
    const bool has_fallen = place.client == nullptr && place.state.phase == park::ParkingPhase::Released;
    if (has_fallen && report.takes_clients()) on_fell(report.name);
    // MPS names clients that run on, so its keeper may take it for well.
    if (is_to_fall(report.name) && place.client != nullptr && report.takes_clients())
      at_.domains.note_fault(report.name);
    // A fault that the driver does not reset the domain for (a texture that is none, H100).
    const bool drains = report.state == mps::DomainState::Draining && place.client != nullptr;
    if (drains && place.state.phase == park::ParkingPhase::Ready && clients_of(report.name) == 0)
      end_client(place);
    const bool may_come = place.client == nullptr && place.state.phase == park::ParkingPhase::Off &&
                          at_.clock.now() >= may_start_;
    if (!may_come || !report.takes_clients()) continue;
    const Status started = start_client(report.name, place);
    if (started) continue;
    if (place.news != to_string(started.error()))
      spdlog::warn("domain {} cannot be parked: {}", report.name, to_string(started.error()));
    place.news = to_string(started.error());
  }
}

Status Parking::start_client(const std::string& domain, Place& place) {
  const std::string name = fmt::format("{}-{}", os::own_pid(), next_pipe_++);
  const auto path = new_pipe_path(name);
  if (!path) return propagate(path);
  ParkingClient::Callbacks callbacks;
  callbacks.on_ready = [this, domain] { on_client_ready(domain); };
  callbacks.on_refused = [this, domain](const std::string& why) {
    places_[domain].news = why;
    spdlog::warn("domain {} cannot be parked: {}", domain, why);
  };
  callbacks.on_dump = [this, domain] {
    began(domain);
    look_whether_all_began(domain);
  };
  callbacks.on_dump_complete = [this, domain] { let_culprits_end(domain); };
  callbacks.on_exit = [this, domain] { on_client_exit(domain); };
  auto client = ParkingClient::start({at_.options, at_.loop, at_.kernel, at_.starter}, std::move(callbacks),
                                     {domain, fmt::format("firebreak-park-{}-{}", domain, name), *path},
                                     budgets_.whole(), at_.domains.environment(domain));
  if (!client) return propagate(client);
  place.client = std::move(*client);
  return {};
}

void Parking::on_client_ready(const std::string& domain) {
  Place& place = places_[domain];
  place.news.clear();
  if (place.reading) read_all(domain);  // a client may have begun before it came
  place.is_read = false;                // nobody's dump of this life
  happened(domain, {park::ParkingEventType::ClientReady});
  spdlog::info("domain {} can be parked: process {} is its parking client", domain, place.client->pid());
}

void Parking::on_client_exit(const std::string& domain) {
  places_[domain].client.reset();
  let_culprits_end(domain);
  happened(domain, {park::ParkingEventType::ClientGone});
}

void Parking::end_client(Place& place) {
  if (place.client != nullptr) place.client->end();
}

/// Culprits' dumps end after it.
void Parking::read_rest_of_client(const std::string& domain) {
  const Place& place = places_[domain];
  place.client == nullptr ? let_culprits_end(domain) : place.client->read_rest_of_dump();
}

// --- the dumps of everybody else
// ---------------------------------------------------------------------------------------------------

void Parking::follow(pid_t pid, const std::string& domain) {
  if (!is_on()) return empty_pipes_of(pid);
  if (!places_.contains(domain) || !may_be_in(pid, domain)) return;
  Dumper& dumper = dumpers_[{pid, domain}] = Dumper{};
  dumper.since = at_.clock.now();
  dumper.has_gpu = with_gpu_.contains(pid);
  // Who has come to the GPU has begun its program.
  look_at({pid, domain}, dumper, dumper.has_gpu || at_.processes.tenant_of(pid).empty());
}

void Parking::on_known(pid_t pid, const std::string& domain) {
  if (!is_on()) return;
  const InDomain who{pid, domain};
  const auto its = dumpers_.find(who);
  if (its == dumpers_.end()) return follow(pid, domain);
  if (its->second.is_out) look_at(who, its->second, true);  // what it says of itself counts from now on
  if (its->second.dump == Dump::Unheeded) heed_dump(who, its->second);
}

void Parking::on_gpu_opened(pid_t pid) {
  with_gpu_.insert(pid);
  for (auto& [who, dumper] : dumpers_) {
    // A process that comes to it only now had nothing there when its domain fell.
    if (who.first == pid && !std::exchange(dumper.has_gpu, true)) dumper.has_fallen = false;
    if (who.first == pid && dumper.is_in_doubt) look_at(who, dumper, true);
  }
}

/// Its domain has fallen. What it has still to write is read, and it stands in nobody's way.
void Parking::outlive(const InDomain& who, Dumper& dumper, bool was_read) {
  const bool is_over = dumper.pipe->state() == park::DumpPipe::State::Done;
  // The page of one with a spare that has not begun says where it is.
  dumper.has_fallen = dumper.has_begun() || (dumper.has_gpu && !dumper.has_spare);
  // Its next one there is read as well: it may make its context anew.
  const bool has_fallen = dumper.has_fallen && !dumper.has_spare;
  if (is_over) {
    await_next_dump(who, dumper);
    dumper.has_fallen = has_fallen;
    return;
  }
  dumper.has_outlived = dumper.has_spare && dumper.has_begun();
  if (dumper.dump == Dump::Begun && !was_read) begin_to_read(who, dumper);
}

/// The process has outlived its domain's fall: its next instance there may dump, too.
void Parking::await_next_dump(const InDomain& who, Dumper& dumper) {
  dumper.looking_ahead.cancel();
  dumper.between_looks = {};
  dumper.judged_bytes = 0;
  dumper.was_readable = false;
  dumper.turn = Turn::None;
  dumper.dump = Dump::NotBegun;
  dumper.is_named = dumper.has_outlived = dumper.has_fallen = false;
  open_pipe(who, dumper);
}

bool Parking::has_culprit(const std::string& domain) const {
  const auto place = places_.find(domain);
  return place != places_.end() && !place->second.state.culprits.empty();
}

/// Its process has ended, perhaps before we have read what it wrote last. That is no more than a pipe holds;
/// another process may go on writing into it.
void Parking::read_what_is_left(const InDomain& who) {
  constexpr int reads = 2;  // of as much as a pipe holds
  std::size_t before = 0;
  for (int i = 0; i < reads; ++i) {
    before = dumpers_.at(who).pipe->came_bytes();
    read_dump(who);
    if (dumpers_.at(who).dump != Dump::LetOut || dumpers_.at(who).pipe->came_bytes() == before) return;
  }
}

void Parking::on_exit(pid_t pid) {
  turns_.settle(pid);
  with_gpu_.erase(pid);
  if (const auto its = pipes_of_.extract(pid)) remove_pipes(its.mapped());
  std::erase_if(emptied_, [pid](const auto& each) { return each.second.pid == pid; });
  std::vector<InDomain> let_out;
  for (const auto& [who, dumper] : dumpers_) {
    if (who.first == pid && dumper.dump == Dump::LetOut) let_out.push_back(who);
  }
  for (const InDomain& who : let_out) read_what_is_left(who);
  std::vector<std::string> domains;
  std::erase_if(dumpers_, [&](const auto& each) {
    if (each.first.first != pid) return false;
    for (const std::string& path : {each.second.path, each.second.offered}) {
      if (!path.empty()) (void)os::remove_file(path);
      given_.erase(path);
    }
    domains.push_back(each.first.second);
    return true;
  });
  for (const std::string& domain : domains) {
    incidents_.note_exit(domain, pid);
    happened(domain, {park::ParkingEventType::CulpritGone, pid});
    look_whether_all_began(domain);
    look_whether_all_dumped(domain);
  }
}

std::vector<pid_t> Parking::without_ours(const std::string& domain, std::vector<pid_t> clients) const {
  const auto place = places_.find(domain);
  if (place != places_.end() && place->second.client != nullptr)
    std::erase(clients, place->second.client->pid());
  return clients;
}

std::string Parking::domain_of_client(pid_t pid) const {
  const auto place = std::ranges::find_if(places_, [pid](const auto& each) {
    return each.second.client != nullptr && each.second.client->pid() == pid;
  });
  return place == places_.end() ? std::string() : place->first;
}

/// Takes a dump. A process that has completed its dump goes on, and its new kernels keep the others from
/// beginning theirs: they then stood still for 4 s (H100). So nobody's is read before all have begun. That
/// holds for those who could leave at once, too: in 3 of 6 faults the others stood still for 4 s then (H100).
void Parking::on_dump(const InDomain& of) {
  const InDomain who = of;  // the watch that calls us goes
  Dumper& dumper = dumpers_.at(who);
  dumper.watch.cancel();
  dumper.dump = Dump::Unheeded;
  dumper.began_at = at_.clock.now();
  dumper.is_asked = false;
  heed_dump(who, dumper);
}

/// Anybody may write anything into its own pipe. It is a word about others once it is a dump of who is their
/// neighbour by MPS's word.
void Parking::heed_dump(const InDomain& who, Dumper& dumper) {
  dumper.looking_ahead.cancel();
  const park::DumpPipe::Beginning beginning = dumper.pipe->beginning();
  const bool is_dump = beginning == park::DumpPipe::Beginning::Dump;
  if (is_dump && is_known_in(who.first, who.second)) return take_dump(who, dumper);
  // Once for each: whoever writes something else has MPS asked nothing.
  if (is_dump && !std::exchange(dumper.is_asked, true)) at_.domains.look_for_clients(who.second);
  const bool is_too_late = at_.clock.now() - dumper.began_at >= unknown_dump_limit;
  if (beginning == park::DumpPipe::Beginning::Other || is_too_late) return drop_dump(who, dumper);
  dumper.looking_ahead = at_.loop.after_or_now(longest_between_looks_ahead, [this, who] {
    const InDomain its = who;  // the watch that calls us goes
    if (dumpers_.contains(its) && dumpers_.at(its).dump == Dump::Unheeded) heed_dump(its, dumpers_.at(its));
  });
}

/// A process may write something else as often as it likes: the log has a line of it.
void Parking::drop_dump(const InDomain& who, Dumper& dumper) {
  dumper.dump = Dump::Dropped;
  const auto level = std::exchange(dumper.is_told_of_drop, true) ? spdlog::level::debug : spdlog::level::warn;
  spdlog::log(level, "what {} writes into its pipe is dropped: it is no core dump of a client of domain {}",
              name_of(who.first), who.second);
  dumper.pipe->let_end();
  auto watch = at_.loop.watch_readable(dumper.pipe->fd(), [this, who] { read_dropped(who); });
  if (watch) dumper.watch = std::move(*watch);
  look_whether_all_began(who.second);  // nobody waits for it any more
  look_whether_all_dumped(who.second);
}

void Parking::read_dropped(const InDomain& of) {
  const InDomain who = of;  // the watch that calls us goes
  Dumper& dumper = dumpers_.at(who);
  const bool is_over = dumper.pipe->read() == park::DumpPipe::State::Done;
  dumper.pipe->clear();
  if (is_over) await_next_dump(who, dumper);
}

void Parking::take_dump(const InDomain& who, Dumper& dumper) {
  const std::string& domain = who.second;
  dumper.dump = Dump::Begun;
  dumper.has_fallen = false;
  began(domain);
  spdlog::info("{} has begun its core dump, in domain {}", name_of(who.first), domain);
  if (places_[domain].is_read) return begin_to_read(who, dumper);
  look_whether_all_began(domain);
}

void Parking::look_whether_all_began(const std::string& domain) {
  const auto found = places_.find(domain);
  if (found == places_.end() || found->second.is_read) return;
  Place& place = found->second;
  bool somebody = place.client != nullptr && place.client->has_begun();
  bool all = somebody || place.client == nullptr;
  bool all_with_gpu = all;
  for (const auto& [who, dumper] : dumpers_) {
    if (who.second != domain || !is_there(who, dumper)) continue;
    somebody |= dumper.has_begun();
    all &= dumper.has_begun();
    all_with_gpu &= dumper.has_begun() || !dumper.has_gpu;
  }
  if (!somebody) return;
  if (all || (all_with_gpu && place.beginners_are_late)) return read_all(domain);
  if (place.reading) return;
  place.reading.start(limits(), begin_limit_of_beginners, of_beginners(domain),
                      [this, domain] { await_the_slow(domain); });
  begin_to_thaw(domain);
}

/// A process that has not begun by now and has the GPU puts its code together; the others may have nothing to
/// dump yet.
void Parking::await_the_slow(const std::string& domain) {
  Place& place = places_[domain];
  place.beginners_are_late = true;
  place.reading.start(limits(), begin_limit - begin_limit_of_beginners, of_beginners(domain),
                      [this, domain] { read_all(domain); });
  look_whether_all_began(domain);
}

void Parking::begin_to_thaw(const std::string& domain) {
  Place& place = places_[domain];
  auto thawing = at_.loop.every(between_turns, [this, domain] { let_others_take_a_turn(domain); });
  if (thawing) place.thawing = std::move(*thawing);
}

/// The GPU has to take turns for it only where another domain has work. A parking client of one has, when it
/// is told.
void Parking::let_others_take_a_turn(const std::string& domain) {
  const auto reports = at_.domains.reports();
  const auto gpu_of = [&](const std::string& its) {
    const auto found = std::ranges::find(reports, its, &mps::DomainReport::name);
    return found == reports.end() ? std::string() : found->gpu;
  };
  const std::string gpu = gpu_of(domain);
  for (auto& [name, place] : places_) {
    const bool is_beside = name != domain && gpu_of(name) == gpu;
    if (!is_beside || place.client == nullptr || place.state.phase != park::ParkingPhase::Ready) continue;
    if (place.client->is_ready()) place.client->take_a_turn();
  }
  Place& halted = places_[domain];
  if (++halted.turns >= turns_max || !park::is_parked(halted.state.phase)) halted.thawing.cancel();
}

void Parking::read_all(const std::string& domain) {
  Place& place = places_[domain];
  place.reading.cancel();
  place.beginners_are_late = false;
  place.is_read = true;
  for (auto& [who, dumper] : dumpers_) {
    if (who.second == domain && dumper.dump == Dump::Begun) begin_to_read(who, dumper);
  }
}

void Parking::begin_to_read(const InDomain& who, Dumper& dumper) {
  auto watch = at_.loop.watch_readable(dumper.pipe->fd(), [this, who] { read_dump(who); });
  if (watch) dumper.watch = std::move(*watch);
}

/// Its dump may end, and it goes on.
void Parking::let_out(const InDomain& who, Dumper& dumper) {
  dumper.pipe->let_end();
  begin_to_read(who, dumper);
}

void Parking::read_dump(const InDomain& of) {
  const InDomain who = of;  // the watch that calls us goes
  Dumper& dumper = dumpers_.at(who);
  const park::DumpPipe::State state = dumper.pipe->read();
  if (state == park::DumpPipe::State::Nearly) return judge_early(who, dumper);
  if (state != park::DumpPipe::State::Done) return;
  dumper.watch.cancel();
  dumper.dump = Dump::Complete;
  spdlog::info("the core dump of {} is complete: {} bytes, {} ms after it began", name_of(who.first),
               dumper.pipe->came_bytes(), ms_since(dumper.began_at));
  if (std::exchange(dumper.is_to_end, false)) {
    tell(who.second, who.first,
         fmt::format("{} is ended: its calls could say that all was well", name_of(who.first)));
    end_now(who.first);
  }
  judge(who, dumper);
  if (dumper.has_outlived) await_next_dump(who, dumper);
}

/// A writer of single bytes does not keep us at it.
std::optional<fault::CoreDumpException> Parking::look_through(Dumper& dumper, bool is_all) {
  const auto bytes = dumper.pipe->bytes();
  const bool is_much_more = bytes.size() - dumper.judged_bytes >= dumper.judged_bytes / parts_more;
  if (bytes.size() > short_dump_bytes && !is_all && !is_much_more) return std::nullopt;
  dumper.judged_bytes = bytes.size();
  return park::own_exception_in_beginning(bytes);
}

/// A culprit does not get out of its dump: on an H100 its next call said CUDA_SUCCESS, of a kernel that was
/// torn. It has its error when its dump ends after all others, as without parking.
void Parking::judge_early(const InDomain& who, Dumper& dumper) {
  const auto& [pid, domain] = who;
  dumper.watch.cancel();
  dumper.looking_ahead.cancel();
  // What its process could write is in the pipe then.
  const bool stands_still = dumper.pipe->is_full();
  bool is_all = dumper.pipe->look_ahead();
  if (!is_all && stands_still) {
    spdlog::info("the end of the core dump of {} is not to be seen before it is let go", name_of(pid));
    is_all = true;
  }
  const auto exception = look_through(dumper, is_all);
  if (exception) dumper.fails_by_itself = fails_by_itself(*exception);
  if (exception) dumper.has_trapped = is_trap(*exception);
  if (exception && !holds(domain)) return let_culprit_end(who, dumper);
  if (!exception && !is_all) {
    dumper.between_looks =
        std::clamp(2 * dumper.between_looks, first_between_looks_ahead, longest_between_looks_ahead);
    dumper.looking_ahead = at_.loop.after_or_now(dumper.between_looks, [this, who] {
      const InDomain its = who;  // the watch that calls us goes
      if (dumpers_.contains(its)) judge_early(its, dumpers_.at(its));
    });
    return;
  }
  if (!exception && dumper.pipe->is_cut() && holds(domain)) {
    dumper.dump = Dump::HeldUnjudged;
    return look_whether_all_dumped(domain);
  }
  if (!exception) return let_out(who, dumper);
  dumper.dump = Dump::Held;
  dumper.is_named = true;
  spdlog::info("{} is held in its core dump: {} bytes, {} ms after it began", name_of(pid),
               dumper.pipe->came_bytes(), ms_since(dumper.began_at));
  note_exception(who, *exception);
  on_named(pid, domain);
  // It stands still so that it ends with us.
  if (is_to_be_ended(who, dumper)) await_turn(who, dumper, Turn::Stop);
  look_whether_all_dumped(domain);
}

/// Its dump is complete already, and it goes on. After a trap its calls fail (H100), and its end would make
/// its neighbours stand still; of anything else its next call might say that all was well.
void Parking::end_late_culprit(const InDomain& who, const fault::CoreDumpException& exception) {
  const bool had_others = is_to_fall(who.second) && (holds(who.second) || places_[who.second].had_others);
  if (fails_by_itself(exception) || (!had_others && !has_others(who))) return;
  spdlog::warn("{} is ended: it is known as the culprit only since its core dump is complete",
               name_of(who.first));
  end_now(who.first);
}

void Parking::judge(const InDomain& who, Dumper& dumper) {
  const auto& [pid, domain] = who;
  const auto exception = park::own_exception_in(dumper.pipe->bytes());
  dumper.was_readable = exception.has_value();
  if (!exception) {
    spdlog::warn("the core dump of process {} says nothing: {}{}", pid, to_string(exception.error()),
                 dumper.pipe->is_cut() ? " (it is longer than is read)" : "");
    if (dumper.pipe->is_cut() && !dumper.is_to_end && holds(domain) && !has_culprit(domain)) end_now(pid);
  } else if (*exception) {
    incidents_.keep_dump(domain, pid, name_of(pid), dumper.pipe->take_bytes(), dumper.pipe->is_cut());
    if (!std::exchange(dumper.is_named, true)) {
      end_late_culprit(who, **exception);
      note_exception(who, **exception);
      on_named(pid, domain);
    }
  }
  dumper.pipe->clear();
  look_whether_all_dumped(domain);
}

/// Told, and written down.
void Parking::note_exception(const InDomain& who, const fault::CoreDumpException& exception) {
  callbacks_.on_exception(who.first, exception);
  incidents_.name(who.second, who.first, name_of(who.first), exception);
}

// --- what follows
// ---------------------------------------------------------------------------------------------------

void Parking::began(const std::string& domain) {
  places_[domain].had_others |= clients_of(domain) > 1;
  const auto type =
      in_the_way(domain).empty() ? park::ParkingEventType::DumpBegan : park::ParkingEventType::BeganPartly;
  happened(domain, {type});
}

bool Parking::on_named(pid_t pid, const std::string& domain) {
  if (!is_on() || !places_.contains(domain)) return false;
  Place& place = places_[domain];
  if (!in_the_way(domain).empty()) return false;
  if (!place.state.is_culprit(pid)) {
    happened(domain, {park::ParkingEventType::Named, pid});
    if (place.state.is_culprit(pid))
      tell(domain, pid,
           fmt::format("domain {} is parked: {} has raised an exception, the others go on", domain,
                       name_of(pid)));
  }
  return holds(domain);
}

bool Parking::holds(const std::string& domain) const {
  const auto place = places_.find(domain);
  return place != places_.end() && park::is_parked(place->second.state.phase);
}

bool Parking::is_to_fall(const std::string& domain) const {
  const auto place = places_.find(domain);
  if (place == places_.end()) return false;
  const park::ParkingPhase phase = place->second.state.phase;
  return park::is_parked(phase) || phase == park::ParkingPhase::Released;
}

void Parking::on_fell(const std::string& domain) {
  const auto place = places_.find(domain);
  if (place == places_.end()) return;
  end_culprits(place->second);
  happened(domain, {park::ParkingEventType::Fell});
}

/// A bad pointer of a kernel is an exception first. It comes up again as a fault of whoever is next to give
/// its context back, and everybody who is left stood still from then on (H100: in 32 of 32 plays).
void Parking::note_fault(const fault::Fault& fault) {
  if (fault.source == fault::FaultSource::Xid && fault.fault_class == fault::FaultClass::MmuReplayable)
    happened(fault.domain, {park::ParkingEventType::MemoryFault});
}

/// Nobody is named by a dump of a client whose kernels did nothing wrong.
void Parking::look_whether_all_dumped(const std::string& domain) {
  const auto place = places_.find(domain);
  if (place == places_.end()) return;
  bool all = true;
  bool somebody = false;
  // Of who writes an empty one nobody can tell what happened. The parking client writes none by itself.
  bool says_something = place->second.client != nullptr && place->second.client->has_begun();
  for (const auto& [who, dumper] : dumpers_) {
    if (who.second != domain || !is_there(who, dumper)) continue;
    somebody = true;
    all &= dumper.is_judged();
    says_something |= dumper.was_readable || (dumper.is_judged() && dumper.dump != Dump::Complete);
  }
  if (!all || (somebody && !says_something)) return;
  judge_the_rest(domain);
  happened(domain, {park::ParkingEventType::AllDumped});
}

/// The others go on where somebody else is named. Where nobody is it may be each of them, and it gets no
/// result.
void Parking::judge_the_rest(const std::string& domain) {
  const bool is_known = has_culprit(domain);
  for (auto& [who, dumper] : dumpers_) {
    if (who.second != domain || dumper.dump != Dump::HeldUnjudged) continue;
    dumper.dump = Dump::LetOut;
    if (!is_known)
      tell(domain, who.first,
           fmt::format("{} may be the culprit: nobody is named, and its core dump is longer than we can keep",
                       name_of(who.first)));
    is_known ? let_out(who, dumper) : await_turn(who, dumper, Turn::End);
  }
}

void Parking::look_whether_all_left(const std::string& domain) {
  at_.spares.refresh();
  const Place& place = places_[domain];
  std::vector<pid_t> stuck;
  for (const pid_t pid : who_works_in(domain)) {
    if (place.state.is_culprit(pid)) continue;
    if (!never_begins({pid, domain})) return;
    stuck.push_back(pid);
  }
  if (awaits_names(domain)) return;
  for (const pid_t pid : stuck)
    tell(domain, pid,
         fmt::format("{} has not begun its core dump, and never will: it gets the error", name_of(pid)));
  happened(domain, {park::ParkingEventType::EverybodyLeft});
}

/// Nothing that it waits for comes.
bool Parking::never_begins(const InDomain& who) const {
  const auto found = dumpers_.find(who);
  return places_.at(who.second).is_too_late_to_begin && found != dumpers_.end() &&
         !found->second.has_begun() && is_there(who, found->second);
}

/// Waits for those who begin: from now on nobody begins to dump any more.
void Parking::await_beginners(const std::string& domain) {
  const bool has_trapped = std::ranges::any_of(dumpers_, [&](const auto& each) {
    return each.first.second == domain && each.second.has_begun() && each.second.has_trapped;
  });
  places_[domain].giving_up.start(limits(), has_trapped ? never_begins_after : never_begins_after_others,
                                  of_beginners(domain),
                                  [this, domain] { places_[domain].is_too_late_to_begin = true; });
}

void Parking::happened(const std::string& domain, const park::ParkingEvent& event) {
  Place& place = places_[domain];
  park::ParkingStep step = park::advance(place.state, event);
  if (step.state.phase != place.state.phase)
    spdlog::info("parking of domain {}: {}: {} -> {}", domain, to_string(event.type),
                 to_string(place.state.phase), to_string(step.state.phase));
  const park::ParkingPhase before = place.state.phase;
  place.state = std::move(step.state);
  write_down(domain, event, before, place.state.phase);
  for (const park::ParkingAction action : step.actions) act(domain, place, action);
  if (before == place.state.phase) return;
  tell_phase(domain);
  at_.spares.refresh();  // this comes before anybody gives back what it has there
}

void Parking::tell_phase(const std::string& domain) {
  mark(domain);
  callbacks_.on_phase(domain, is_to_fall(domain));
}

/// An incident begins with the first word of an exception, and ends with its domain.
void Parking::write_down(const std::string& domain, const park::ParkingEvent& event,
                         park::ParkingPhase before, park::ParkingPhase after) {
  if (before == after) return;
  if (before == park::ParkingPhase::Ready && after != park::ParkingPhase::Off) {
    ParkedIncidents::Clients clients;
    for (const auto& [who, dumper] : dumpers_) {
      if (who.second == domain && is_client(who, dumper)) clients[who.first] = name_of(who.first);
    }
    incidents_.begin(domain, clients);
  }
  incidents_.note(domain, fmt::format("{}: the domain is {}", to_string(event.type), to_string(after)));
  if (event.type != park::ParkingEventType::Fell) return;
  incidents_.end(domain);
  at_.domains.note_fall(domain);
}

void Parking::act(const std::string& domain, Place& place, park::ParkingAction action) {
  bool was_read = false;
  switch (action) {
    case park::ParkingAction::Condemn:
      return at_.domains.note_fault(domain);
    case park::ParkingAction::StartNameLimit:
      return start_limit(domain, place, name_limit);
    case park::ParkingAction::StartDrainLimit:
      place.run_limit.cancel();
      place.limit = at_.loop.after_or_now(at_.options.park, [this, domain] { on_deadline(domain); });
      return;
    case park::ParkingAction::StartFallLimit:
      place.leaving.cancel();
      return start_limit(domain, place, fall_limit);
    case park::ParkingAction::Leave:
      begin_to_thaw(domain);
      await_beginners(domain);
      return let_leave(domain, place);
    case park::ParkingAction::Release:
      spdlog::info("parking of domain {} is over: it is to fall", domain);
      return read_rest_of_client(domain);
    case park::ParkingAction::EndClient:
      end_client(place);
      for (const pid_t pid : place.state.culprits) end_now(pid);
      return;
    case park::ParkingAction::Forget:
      place.limit.cancel();
      place.run_limit.cancel();
      place.leaving.cancel();
      place.reading.cancel();
      place.thawing.cancel();
      place.giving_up.cancel();
      place.is_too_late_to_begin = false;
      place.beginners_are_late = false;
      place.turns = 0;
      was_read = std::exchange(place.is_read, false);
      let_culprits_end(domain);
      place.had_others = false;
      for (auto& [who, dumper] : dumpers_) {
        if (who.second == domain && dumper.pipe) outlive(who, dumper, was_read);
      }
      return;
  }
}

/// Whoever has a standby is handed over to it, with no step lost, and whoever has a spare driver instance
/// goes on in that. The others have until the limit.
void Parking::let_leave(const std::string& domain, const Place& place) {
  Place& its = places_[domain];
  for (const auto& [name, tenant] : at_.tenants.all()) {
    const Member& active = tenant->active;
    if (active.pid == 0 || active.domain != domain || !may_be_in(active.pid, domain)) continue;
    if (place.state.is_culprit(active.pid)) continue;
    const bool has_standby = tenant->pair.standby == pair::Standby::Ready;
    if (has_standby && callbacks_.hand_over(name)) continue;
    at_.spares.follow(active.pid);  // the active may not have opened the GPU
    if (at_.spares.ask_to_leave(active.pid)) continue;
    tell(domain, active.pid,
         fmt::format(
             "tenant {} cannot leave domain {}, since it has no standby that is ready: it has {} s until "
             "the domain falls",
             name, domain, std::chrono::duration_cast<std::chrono::seconds>(at_.options.park).count()));
  }
  its.leaving_since = at_.clock.now();
  its.is_asked_who_works = false;
  auto leaving = at_.loop.every(between_leaving_looks, [this, domain] { look_whether_all_left(domain); });
  if (leaving) its.leaving = std::move(*leaving);
}

void Parking::start_limit(const std::string& domain, Place& place, Milliseconds limit) {
  place.limit.cancel();
  place.run_limit.start(limits(), limit, of_all(domain), [this, domain] { on_deadline(domain); });
}

void Parking::on_deadline(const std::string& domain) { happened(domain, {park::ParkingEventType::Deadline}); }

void Parking::tell(const std::string& domain, pid_t pid, const std::string& text) {
  abi::Event event;
  event.what = abi::EventKind::Parking;
  event.tenant = at_.processes.tenant_of(pid);
  event.domain = domain;
  event.pid = pid;
  event.text = text;
  spdlog::warn("{}", text);
  at_.teller.tell(std::move(event));
}

std::string Parking::name_of(pid_t pid) const {
  const std::string tenant = at_.processes.tenant_of(pid);
  return tenant.empty() ? std::to_string(pid) : fmt::format("{}-{}", tenant, pid);
}

std::int64_t Parking::ms_since(Monotonic then) const {
  return std::chrono::duration_cast<Milliseconds>(at_.clock.now() - then).count();
}

ParkingReport Parking::report(const std::string& domain) const {
  const auto place = places_.find(domain);
  if (place == places_.end()) return {};
  return {place->second.state.phase, place->second.state.culprits, in_the_way(domain), not_in_mode(domain),
          place->second.news};
}

}  // namespace firebreak::agent
