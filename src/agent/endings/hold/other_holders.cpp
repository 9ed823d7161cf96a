// SPDX-License-Identifier: Apache-2.0
#include "agent/endings/hold/other_holders.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

#include "ground/os/descriptors.h"
#include "ground/os/processes.h"
#include "ground/os/self.h"

namespace firebreak::hold {
namespace {

Result<std::string> stat_of(os::Kernel& kernel, pid_t pid) {
  return kernel.read_file(os::proc_folder(pid) + "/stat");
}

template <class T>
bool is_not_answered(const Result<T>& look) {
  return !look && look.error().code == ErrorCode::Timeout;
}

OtherHolder holder_from(pid_t pid, std::string_view stat, bool is_fork) {
  return {pid, std::string(os::start_time(stat)), std::string(os::program_name(stat)), is_fork};
}

/// One of which nothing else is known.
OtherHolder hidden_holder(os::Kernel& kernel, pid_t pid) {
  const std::string name = kernel.read_file(os::proc_folder(pid) + "/comm").value_or("");
  return {pid, {}, name.substr(0, name.find('\n')), false};
}

/// A child of fork() is of the same user as its parent, most often. Of others' processes nobody is kept
/// waiting by one that does not let itself be looked at.
bool may_be_of(os::Kernel& kernel, pid_t pid, const Late& late) {
  const auto status = kernel.read_file(os::proc_folder(pid) + "/status");
  return late.user && os::user_in(status.value_or("")) == late.user;
}

/// Its first thread may have ended, and then shows nothing of what the others have: all of them, since one
/// may have a table of its own.
std::vector<pid_t> descriptor_threads(os::Kernel& kernel, pid_t pid) {
  if (os::first_thread_shows_descriptors(kernel, pid)) return {pid};
  return os::other_threads(kernel, pid);
}

/// The helper is asked for each, more than once.
constexpr std::size_t most_spaces_in_a_look = 256;

enum class Seen { Nothing, Found, NotAll, NotAnswered };

/// Calls back with the number of each descriptor of an address space, and the thread that has it, until that
/// says true. NotAll: it has too many to look at all of them now; NotAnswered: it does not let itself be
/// looked at.
template <class Visit>
Seen any_space(os::Kernel& kernel, pid_t pid, bool is_hurried, const Visit& visit) {
  const std::string wanted = kernel.uvm_link_target();
  std::size_t spaces = 0;
  for (const pid_t thread : descriptor_threads(kernel, pid)) {
    bool found = false;
    const auto look = [&](int number, const std::string& target) {
      if (target != wanted) return true;
      if (is_hurried && ++spaces > most_spaces_in_a_look) return false;
      found = visit(thread, number);
      return !found;
    };
    Result<bool> all = true;
    if (is_hurried && thread == pid) {
      all = os::visit_first_descriptors(kernel, pid, look);
    } else if (const Status looked =
                   os::visit_descriptors_in(kernel, os::thread_folder(pid, thread) + "/fd", look);
               !looked) {
      all = propagate(looked);
    }
    if (found) return Seen::Found;
    if (is_not_answered(all)) return Seen::NotAnswered;
    if ((all && !*all) || (is_hurried && spaces > most_spaces_in_a_look)) return Seen::NotAll;
  }
  return Seen::Nothing;
}

/// A thread that has ended shows none.
Result<std::string> maps_of(os::Kernel& kernel, pid_t pid) {
  auto maps = kernel.read_memory_file(os::proc_folder(pid) + "/maps");
  if (maps && !maps->empty()) return maps;
  return kernel.read_memory_file(os::thread_folder(pid, os::living_thread(kernel, pid)) + "/maps");
}

/// A process of the same image.
struct Relative {
  pid_t parent = 0;
  std::string stat;        ///< empty: it does not let itself be looked at
  bool is_certain = true;  ///< else it does not let itself be looked at, and may be one
};
using Relatives = std::map<pid_t, Relative>;

Relatives relatives_of(os::Kernel& kernel, const Late& late) {
  Relatives relatives;
  for (const pid_t pid : os::all_processes(kernel)) {
    // A child of who is not root is of the same user as long as it runs the same program, and who that is
    // says a file that nobody makes us wait for.
    const bool may_have_another_user = !late.user || *late.user == 0;
    if (pid == late.pid || (!may_have_another_user && !may_be_of(kernel, pid, late))) continue;
    auto stat = stat_of(kernel, pid);
    if (is_not_answered(stat) && may_be_of(kernel, pid, late))
      relatives.emplace(pid, Relative{os::parent_of(kernel, pid), {}, false});
    if (!stat) continue;
    const auto image = os::known_image_of(kernel, pid, *stat);
    const bool is_certain = !is_not_answered(image);
    const std::string addresses = os::image(*stat);
    const bool may_be_one = !addresses.empty() && late.traces.image.starts_with(addresses + ":");
    if (is_certain ? image.value_or("") != late.traces.image : !may_be_one) continue;
    pid_t parent = 0;
    const std::string_view text = os::parent(*stat);
    std::from_chars(text.data(), text.data() + text.size(), parent);
    relatives.emplace(pid, Relative{parent, std::move(*stat), is_certain});
  }
  return relatives;
}

/// The first of its line that is alive; itself where its parent is another program.
pid_t eldest(const Relatives& relatives, pid_t pid) {
  for (auto found = relatives.find(pid); relatives.contains(found->second.parent);) {
    pid = found->second.parent;
    found = relatives.find(pid);
  }
  return pid;
}

}  // namespace

std::string describe(const Findings& findings) {
  std::vector<std::string> all;
  for (const OtherHolder& each : findings.seen)
    all.push_back(fmt::format("process {} ({})", each.pid, each.name));
  if (findings.unseen && all.empty()) all.emplace_back("somebody whom /proc does not show");
  if (all.empty() && findings.settling) all.emplace_back("the driver, which may be releasing them,");
  return fmt::format("{}", fmt::join(all, ", "));
}

/// "lock:	1: OFDLCK ADVISORY  WRITE -1 00:0e:1234 281474976710656 281474976710656"
bool shows_mark(std::string_view fdinfo, os::OpeningMark mark) {
  const std::string wanted = fmt::format(" {} {}", mark, mark);
  for (std::size_t at = 0; at < fdinfo.size();) {
    const std::size_t end = std::min(fdinfo.find('\n', at), fdinfo.size());
    const std::string_view line = fdinfo.substr(at, end - at);
    const bool is_lock = line.starts_with("lock:") && line.find(" OFDLCK ") != std::string_view::npos;
    if (is_lock && line.ends_with(wanted)) return true;
    at = end + 1;
  }
  return false;
}

bool OtherHolders::has_one_of(pid_t pid, const std::vector<const Duplicate*>& spaces) {
  const Seen seen = any_space(kernel_, pid, is_hurried_, [&](pid_t task, int number) {
    return std::ranges::any_of(spaces, [&](const Duplicate* space) {
      const auto same = kernel_.is_same_file(task, number, space->descriptor);
      // The mark tells of a process that does not let itself be looked at. Without a mark it may have it.
      return is_not_answered(same) ? !space->mark : same.value_or(false);
    });
  });
  if (seen != Seen::NotAnswered) return seen == Seen::Found;
  const bool are_all_marked =
      std::ranges::all_of(spaces, [](const Duplicate* space) { return space->mark.has_value(); });
  return !are_all_marked && may_be_of(kernel_, pid, late_);
}

std::vector<OtherHolder> OtherHolders::same_openings(const Duplicates& duplicates) {
  const auto spaces = duplicates.spaces();
  std::vector<OtherHolder> holders;
  if (spaces.empty()) return holders;
  const auto add = [&](pid_t pid) {
    if (pid == late_.pid || pid == os::own_pid() || !has_one_of(pid, spaces)) return;
    const auto stat = stat_of(kernel_, pid);
    if (is_not_answered(stat)) holders.push_back(hidden_holder(kernel_, pid));
    if (!stat) return;
    const bool is_fork = !late_.traces.image.empty() && !late_.others.contains(pid) &&
                         os::image_of(kernel_, pid, *stat) == late_.traces.image;
    holders.push_back(holder_from(pid, *stat, is_fork));
  };
  // Whoever had it most often has it still: then nobody else has to be looked at.
  for (const OtherHolder& each : last_seen_) add(each.pid);
  if (!holders.empty()) return holders;
  for (const pid_t pid : os::all_processes(kernel_)) add(pid);
  return holders;
}

/// A mapping keeps it as a descriptor does, and outlives that. Whoever does not let itself be looked at may
/// have one.
bool OtherHolders::has_space_mapped(pid_t pid) {
  const auto maps = maps_of(kernel_, pid);
  if (is_not_answered(maps)) return true;
  return maps && maps->find(kernel_.uvm_link_target()) != std::string::npos;
}

bool OtherHolders::keeps_any_space(pid_t pid) {
  const Seen seen = any_space(kernel_, pid, is_hurried_, [](pid_t, int) { return true; });
  return seen != Seen::Nothing || has_space_mapped(pid);
}

/// Forks of a living process of the same image are most likely its own children, and none of the dead's: they
/// count where it is certain that somebody has it, and are nobody's to end.
std::vector<OtherHolder> OtherHolders::forks(bool somebody_has_it) {
  std::vector<OtherHolder> holders;
  if (late_.traces.image.empty()) return holders;
  const Relatives relatives = relatives_of(kernel_, late_);
  for (const auto& [pid, relative] : relatives) {
    const pid_t first = eldest(relatives, pid);
    if (late_.others.contains(pid) || late_.others.contains(first)) continue;
    if (pid == os::own_pid() || !keeps_any_space(pid)) continue;
    const bool is_the_deads = first == pid || keeps_any_space(first);
    // A process that may be another program is waited for, and is nobody's to end.
    if (!is_the_deads && !somebody_has_it) continue;
    holders.push_back(relative.stat.empty()
                          ? hidden_holder(kernel_, pid)
                          : holder_from(pid, relative.stat, is_the_deads && relative.is_certain));
  }
  return holders;
}

/// Adds those whom an agent before has seen. A process that has descriptors would have been found by the
/// marks, where there are any.
void OtherHolders::add_known(std::vector<OtherHolder>& holders) {
  for (const OtherHolder& each : late_.traces.others) {
    const auto stat = stat_of(kernel_, each.pid);
    // The process had it when it was seen; of one that is not to be seen now the marks tell, where there are
    // any.
    if (is_not_answered(stat) && late_.traces.marks.empty()) holders.push_back(each);
    if (!stat || os::start_time(*stat) != each.start_time) continue;
    if (std::ranges::find(holders, each.pid, &OtherHolder::pid) != holders.end()) continue;
    const bool has_descriptors =
        any_space(kernel_, each.pid, is_hurried_, [](pid_t, int) { return true; }) != Seen::Nothing;
    const bool keeps = late_.traces.marks.empty() ? has_descriptors || has_space_mapped(each.pid)
                                                  : !has_descriptors && has_space_mapped(each.pid);
    if (keeps) holders.push_back(each);
  }
}

// --- what an agent before has marked
// ------------------------------------------------------------------------------------------------

OtherHolders::OtherHolders(os::Kernel& kernel, const Clock& clock, Late late)
    : kernel_(kernel), clock_(clock), late_(std::move(late)) {
  if (late_.traces.empty()) return;
  note(late_.traces.others);
  was_kept_ = !known_.empty();
  last_kept_ = clock_.now();
  if (!late_.traces.marks.empty()) find_marked();
}

/// A mark is seen from any opening of the same file: the device's own, or somebody's.
void OtherHolders::find_marked() {
  static_cast<void>(is_seen_from(kernel_.uvm_link_target()));
  for (const pid_t pid : os::all_processes(kernel_)) {
    if (are_all_found()) return;
    if (pid != late_.pid && pid != os::own_pid()) find_marked_of(pid);
  }
}

bool OtherHolders::are_all_found() const { return found_.marks().size() == late_.traces.marks.size(); }

/// Returns whether there is any; remembers from where.
bool OtherHolders::is_seen_from(const std::string& path) {
  bool is_any = false;
  for (const os::OpeningMark mark : late_.traces.marks) {
    auto opening = os::open_what_it_is_called(kernel_, path, kernel_.uvm_link_target());
    if (!opening) return false;
    if (!os::is_marked(opening->get(), mark).value_or(false)) continue;
    is_any = true;
    if (!has_witness(mark)) witnesses_.push_back({std::move(*opening), mark});
  }
  return is_any;
}

void OtherHolders::find_marked_of(pid_t pid) {
  // The mark says later that there is somebody where not all was looked at.
  (void)any_space(kernel_, pid, is_hurried_, [this, pid](pid_t task, int number) {
    if (!is_seen_from(os::proc_folder(task) + "/fd/" + std::to_string(number))) return false;
    const auto process = kernel_.pidfd_open(pid);
    if (!process) return true;
    if (auto duplicate = kernel_.pidfd_getfd(*process, number, kernel_.uvm_link_target()))
      find_out(std::move(*duplicate));
    return are_all_found();
  });
}

/// An opening does not see its own marks, and all others of the file do.
void OtherHolders::find_out(os::Fd duplicate) {
  const auto found = found_.marks();
  for (const Witness& each : witnesses_) {
    if (std::ranges::find(found, each.mark) != found.end()) continue;
    if (os::is_marked(duplicate.get(), each.mark).value_or(true)) continue;
    // The order matters: a mark that has just gone is seen by nobody, and one that is there still is this
    // opening's.
    if (!os::is_marked(each.descriptor.get(), each.mark).value_or(false)) continue;
    return found_.add({Device::AddressSpace, std::move(duplicate), each.mark});
  }
}

bool OtherHolders::has_witness(os::OpeningMark mark) const {
  return std::ranges::find(witnesses_, mark, &Witness::mark) != witnesses_.end();
}

/// Anybody may lock a byte of the device's, also one that was a mark of somebody's who has died. Where a
/// process of another user shows an opening with that lock, and none of the same user or of root does, it is
/// no opening of the dead's: a child of fork() is of its parent's user.
bool OtherHolders::is_lock_of_another_user(os::OpeningMark mark) {
  if (!late_.user) return false;
  bool is_anothers = false, is_perhaps_ours = false;
  for (const pid_t pid : os::all_processes(kernel_)) {
    if (pid == os::own_pid()) continue;
    const Seen seen = any_space(kernel_, pid, is_hurried_, [&](pid_t task, int number) {
      const std::string file = os::proc_folder(task) + "/fdinfo/" + std::to_string(number);
      return shows_mark(kernel_.read_file(file).value_or(""), mark);
    });
    if (seen != Seen::Found) continue;
    const auto user = os::user_in(kernel_.read_file(os::proc_folder(pid) + "/status").value_or(""));
    const bool is_another = user && *user != 0 && *user != *late_.user && pid != late_.pid;
    (is_another ? is_anothers : is_perhaps_ours) = true;
  }
  return is_anothers && !is_perhaps_ours;
}

bool OtherHolders::is_marked() {
  return std::ranges::any_of(witnesses_, [this](const Witness& witness) {
    return os::is_marked(witness.descriptor.get(), witness.mark).value_or(false) &&
           !is_lock_of_another_user(witness.mark);
  });
}

void OtherHolders::prepare_to_close(const Duplicates& duplicates) {
  for (const Duplicate* space : duplicates.spaces()) {
    if (!space->mark || has_witness(*space->mark)) continue;
    const std::string itself = "/proc/self/fd/" + std::to_string(space->descriptor.get());
    if (auto again = kernel_.open(itself, O_RDONLY)) witnesses_.push_back({std::move(*again), *space->mark});
  }
}

bool OtherHolders::has_ended(const OtherHolder& holder) {
  const auto process = kernel_.pidfd_open(holder.pid);
  if (!process) return process.error().code == ErrorCode::NotFound;
  const auto stat = stat_of(kernel_, holder.pid);
  if (stat && !holder.start_time.empty() && os::start_time(*stat) != holder.start_time) return true;
  const int number = process->get();
  const auto ended = kernel_.poll(std::span(&number, 1), Milliseconds(0));
  return ended && !ended->empty();
}

void OtherHolders::note(const std::vector<OtherHolder>& seen) {
  last_seen_ = seen;
  for (const OtherHolder& each : seen) {
    if (std::ranges::find(known_, each) == known_.end()) known_.push_back(each);
  }
}

/// Whoever keeps it has shown it to nobody for so long: the lock may be anybody's, and others wait.
bool OtherHolders::is_given_up(const Findings& findings) {
  if (!findings.unseen || !findings.seen.empty()) unseen_since_.reset();
  if (!findings.unseen || !findings.seen.empty()) return false;
  if (!unseen_since_) unseen_since_ = clock_.now();
  return clock_.now() - *unseen_since_ >= unseen_longest;
}

Findings OtherHolders::look(const Duplicates& duplicates) {
  Findings findings;
  const bool is_ours_too = !duplicates.spaces().empty();
  if (is_ours_too) {
    findings.seen = same_openings(duplicates);
    const bool can_be_marked = std::ranges::all_of(
        duplicates.spaces(), [](const Duplicate* space) { return space->mark.has_value(); });
    // Nothing would tell of a mapping afterwards.
    if (findings.seen.empty() && !can_be_marked) findings.seen = forks(false);
    note(findings.seen);
    return findings;
  }
  findings.unseen = is_marked();
  if (findings.unseen || witnesses_.empty()) {
    findings.seen = forks(findings.unseen);
    add_known(findings.seen);
  }
  if (is_given_up(findings)) findings.unseen = false;
  note(findings.seen);
  if (!findings.none()) {
    was_kept_ = true;
    last_kept_ = clock_.now();
    return findings;
  }
  const bool all_ended = !known_.empty() && std::ranges::all_of(known_, [this](const OtherHolder& each) {
    return has_ended(each);
  });
  findings.settling = was_kept_ && !all_ended && clock_.now() - last_kept_ < settles;
  return findings;
}

}  // namespace firebreak::hold
