// SPDX-License-Identifier: Apache-2.0
#include "agent/parking/spares.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "ground/base/text.h"
#include "ground/os/descriptors.h"
#include "ground/os/file.h"
#include "ground/os/processes.h"
#include "shared/dump_mode/mode.h"

namespace firebreak::agent {
namespace {

constexpr Milliseconds between_looks{50};
constexpr Nanoseconds longest_between_searches = std::chrono::seconds(5);

std::string page_link() { return os::memory_file_link(abi::spare_page_name); }

}  // namespace

const char* to_string(abi::SpareState state) {
  switch (state) {
    case abi::SpareState::Starting:
      return "starting";
    case abi::SpareState::Protected:
      return "protected";
    case abi::SpareState::Unprotected:
      return "unprotected";
    case abi::SpareState::Lost:
      return "lost";
  }
  return "unprotected";  // the page says what no program of ours says
}

Environment SpareEnvironment::variables() const {
  Environment all{{abi::spare_variable, domains[0] + ":" + domains[1]}};
  if (!dumps[0].empty()) all.emplace_back(abi::spare_dumps_variable, dumps[0] + ":" + dumps[1]);
  return all;
}

std::optional<SpareEnvironment> SpareEnvironment::in(std::string_view environment) {
  const auto pair_in = [&](const char* variable) {
    return abi::spare_pair(park::variable_in(environment, variable).value_or(""));
  };
  SpareEnvironment found{pair_in(abi::spare_variable), pair_in(abi::spare_dumps_variable)};
  return found.domains[0].empty() ? std::nullopt : std::optional(std::move(found));
}

// ---- SpareView ----

Result<SpareView> SpareView::of(int descriptor) {
  if (!os::has_fixed_size(descriptor, os::page_size()))
    return fail(ErrorCode::InvalidArgument, "not the page of a spare");
  auto mapping = os::Mapping::of_file(descriptor, os::page_size(), os::Protection::ReadWrite);
  if (!mapping) return propagate(mapping);
  SpareView view(std::move(*mapping));
  if (view.page().magic != abi::SparePage::right_magic ||
      view.page().version != abi::SparePage::right_version)
    return fail(ErrorCode::InvalidArgument, "the page of a spare of another version");
  return view;
}

abi::SpareState SpareView::state() const {
  const abi::SpareState said = page().state.load(std::memory_order_acquire);
  return said <= abi::SpareState::Lost ? said : abi::SpareState::Unprotected;
}

std::string SpareView::text(const std::array<char, abi::SparePage::text_bytes>& from) {
  std::array<char, abi::SparePage::text_bytes> copy = from;  // the process may write it meanwhile
  copy.back() = '\0';
  return printable(copy.data());
}

std::string SpareView::last_move() const {
  const auto ms = [&](abi::MovePart part) {
    return static_cast<double>(page().last_move_us[static_cast<std::size_t>(part)].load()) / 1e3;
  };
  return fmt::format("calls {:.1f} ms, spare {:.1f}, work {:.1f}, variables {:.1f}, guard ranges {:.1f}",
                     ms(abi::MovePart::Calls), ms(abi::MovePart::Spare), ms(abi::MovePart::Work),
                     ms(abi::MovePart::Variables), ms(abi::MovePart::Ranges));
}

void SpareView::wake() const {
  page().wake.fetch_add(1, std::memory_order_release);
  os::futex_wake(page().wake);
}

void SpareView::ask_to_leave() const {
  page().asked_to_leave.fetch_add(1, std::memory_order_release);
  wake();
}

abi::RestLevel SpareView::level(const std::atomic<abi::RestLevel>& said) {
  const abi::RestLevel is = said.load(std::memory_order_acquire);
  return is <= abi::RestLevel::WithoutMemory ? is : abi::RestLevel::Awake;
}

std::uint32_t SpareView::ask_to_rest(abi::RestLevel wanted) const {
  const std::uint32_t question = abi::next_rest_question(page().asked_to_rest.load(), wanted);
  page().asked_to_rest.store(question, std::memory_order_release);
  wake();
  return question;
}

std::string SpareView::last_rest() const {
  const auto ms = [&](abi::RestPart part) {
    return static_cast<double>(page().rest_us[static_cast<std::size_t>(part)].load()) / 1e3;
  };
  if (rest() == abi::RestLevel::Awake)
    return fmt::format("driver {:.1f} ms, memory {:.1f}, objects {:.1f}", ms(abi::RestPart::Begin),
                       ms(abi::RestPart::Fill), ms(abi::RestPart::Objects));
  return fmt::format("work {:.1f} ms, content {:.1f}, drivers {:.1f}", ms(abi::RestPart::Work),
                     ms(abi::RestPart::Save), ms(abi::RestPart::Drivers));
}

void SpareView::set_rule(const std::string& pipe_directory, abi::DomainRule rule) const {
  for (std::size_t i = 0; i < page().domains.size(); ++i) {
    if (text(page().domains[i]) != pipe_directory) continue;
    if (page().rules[i].exchange(rule, std::memory_order_acq_rel) != rule) wake();
  }
}

bool SpareView::is_of(const std::string& pipe_directory) const {
  return std::ranges::any_of(page().domains, [&](const auto& each) { return text(each) == pipe_directory; });
}

// ---- Spares ----

void Spares::follow(pid_t pid) {
  const auto environment = at_.kernel.read_memory_file(os::proc_folder(pid) + "/environ");
  asking_again_.erase(pid);
  // A process counts as one that has none until it lets itself be looked at.
  if (!environment && environment.error().code == ErrorCode::Timeout && at_.processes.living(pid) != nullptr)
    asking_again_[pid] = at_.loop.after_or_now(longest_between_searches, [this, pid] { follow(pid); });
  if (!environment || !SpareEnvironment::in(*environment) || followed_.contains(pid)) return;
  followed_[pid];
  if (!looking_) {
    auto looking = at_.loop.every(between_looks, [this] { refresh(); });
    if (looking) looking_ = std::move(*looking);
  }
  refresh();
}

void Spares::on_exit(pid_t pid) {
  asking_again_.erase(pid);
  followed_.erase(pid);
  if (followed_.empty()) looking_.cancel();
}

/// Looks less often each time, and among the first descriptors: a process makes its page when it starts CUDA.
void Spares::find_page(pid_t pid, Followed& followed) {
  const Process* const process = at_.processes.living(pid);
  if (process == nullptr || at_.clock.now() < followed.next_search) return;
  followed.next_search = at_.clock.now() + followed.between_searches;
  followed.between_searches =
      std::clamp<Nanoseconds>(2 * followed.between_searches, 2 * between_looks, longest_between_searches);
  search_page(pid, followed);
}

void Spares::search_page(pid_t pid, Followed& followed) {
  const Process* const process = at_.processes.living(pid);
  if (process == nullptr) return;
  std::size_t closer = 0;
  (void)os::visit_first_descriptors(at_.kernel, pid, [&](int number, const std::string& target) {
    if (target != page_link()) return true;
    if (++closer > os::most_closer_looks) return false;
    const auto descriptor = at_.kernel.pidfd_getfd(*process->pidfd(), number, target);
    auto view = descriptor ? SpareView::of(descriptor->get()) : Result<SpareView>(propagate(descriptor));
    if (view) followed.view = std::move(*view);
    return !followed.view;
  });
  if (!followed.view) return;
  if (std::exchange(followed.is_to_leave, false)) followed.view->ask_to_leave();
}

std::vector<Spares::Rule> Spares::rules() const {
  std::vector<Rule> all;
  for (const mps::DomainReport& report : at_.domains.reports()) {
    const auto open = report.takes_clients() ? abi::DomainRule::Open : abi::DomainRule::Closed;
    const auto rule = callbacks_.is_held(report.name) ? abi::DomainRule::Held : open;
    all.push_back({at_.domains.pipe_directory(report.name), rule});
  }
  return all;
}

bool Spares::may_tell(Followed& followed) const {
  constexpr Nanoseconds between = std::chrono::seconds(1);
  const auto more = (at_.clock.now() - followed.words_counted_at) / between;
  if (more > 0) {
    followed.words_left = static_cast<int>(std::min<std::int64_t>(words_max, followed.words_left + more));
    followed.words_counted_at = at_.clock.now();
  }
  if (followed.words_left == 0) return false;
  --followed.words_left;
  return true;
}

void Spares::look_at(pid_t pid, Followed& followed, const std::vector<Rule>& rules) {
  if (!followed.view) find_page(pid, followed);
  if (!followed.view) return;
  const SpareView& view = *followed.view;
  for (const Rule& each : rules) view.set_rule(each.pipe_directory, each.rule);
  const SpareReport now{
      view.state(), view.reason(),         at_.domains.with_pipe_directory(view.spare_domain()),
      view.moves(), view.gpu_memory_mib(), view.redone(),
      view.rest(),  view.rest_host_bytes()};
  const std::string domain = at_.domains.with_pipe_directory(view.active_domain());
  const Process* const process = at_.processes.living(pid);
  const bool has_moved = process != nullptr && process->is_known_in(domain) && process->domain() != domain;
  if ((!has_moved && now == followed.told) || !may_tell(followed)) return;
  if (has_moved) callbacks_.on_moved(pid, domain, view.last_move());
  if (now == followed.told) return;
  followed.told = now;
  callbacks_.on_news(pid, now);
}

void Spares::refresh() {
  if (followed_.empty()) return;
  const std::vector<Rule> now = rules();
  std::vector<pid_t> pids;  // whoever is told may end one
  for (const auto& [pid, followed] : followed_) pids.push_back(pid);
  for (const pid_t pid : pids) {
    const auto found = followed_.find(pid);
    if (found != followed_.end()) look_at(pid, found->second, now);
  }
}

const SpareView* Spares::view_of(pid_t pid) const {
  const auto found = followed_.find(pid);
  return found == followed_.end() || !found->second.view ? nullptr : &*found->second.view;
}

std::optional<SpareReport> Spares::report_of(pid_t pid) const {
  const auto found = followed_.find(pid);
  if (found == followed_.end()) return std::nullopt;
  return found->second.told;
}

bool Spares::is_in(pid_t pid, const std::string& domain) const {
  const auto found = followed_.find(pid);
  if (found == followed_.end() || !found->second.view) return true;
  const std::string directory = at_.domains.pipe_directory(domain);
  return found->second.view->active_domain() == directory || found->second.view->spare_domain() == directory;
}

bool Spares::may_work_in(pid_t pid, const std::string& domain) {
  const auto found = followed_.find(pid);
  if (found == followed_.end()) return true;
  Followed& followed = found->second;
  if (!followed.view && at_.clock.now() >= followed.next_close_look) {
    followed.next_close_look = at_.clock.now() + between_looks;
    search_page(pid, followed);
  }
  return followed.view && followed.view->active_domain() == at_.domains.pipe_directory(domain);
}

bool Spares::ask_to_leave(pid_t pid) {
  const auto found = followed_.find(pid);
  if (found == followed_.end()) return false;
  Followed& followed = found->second;
  if (!followed.view) {
    followed.is_to_leave = true;
  } else if (!followed.view->is_asked()) {
    followed.view->ask_to_leave();
  }
  return true;
}

void Spares::ask_all_to_leave(const std::string& domain) {
  refresh();
  for (const auto& [pid, followed] : followed_) {
    const Process* const process = at_.processes.living(pid);
    if (process != nullptr && process->domain() == domain) ask_to_leave(pid);
  }
}

}  // namespace firebreak::agent
