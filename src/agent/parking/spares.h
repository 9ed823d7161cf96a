// SPDX-License-Identifier: Apache-2.0
/// Processes with a spare driver instance: what they say of it, and what the agent asks of them
/// (shared/abi/spare_page.h, docs/how/spare.md).
#pragma once

#include <sys/types.h>

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/loop/surroundings.h"
#include "agent/tenants/process.h"
#include "ground/base/clock.h"
#include "ground/os/event_loop.h"
#include "ground/os/kernel.h"
#include "ground/os/memory.h"
#include "shared/abi/spare_page.h"

namespace firebreak::agent {

/// The variables that `firebreak run` gives a process that is to have one.
struct SpareEnvironment {
  std::array<std::string, 2> domains;  ///< pipe directories: of the first working instance, of its spare
  std::array<std::string, 2> dumps;    ///< places where their core dumps go; empty where domains are not
                                       ///< parked

  Environment variables() const;
  /// `environment`: as /proc/PID/environ has it. Empty: the process has no spare.
  static std::optional<SpareEnvironment> in(std::string_view environment);
};

/// The page of one process, which wrote what it says: shown to people, and nothing is decided by it but what
/// concerns this process.
class SpareView {
 public:
  /// InvalidArgument: no such page, or one of another version.
  static Result<SpareView> of(int descriptor);

  abi::SpareState state() const;
  std::string reason() const { return text(page().reason); }
  std::string active_domain() const { return text(page().active_domain); }  ///< pipe directories
  std::string spare_domain() const { return text(page().spare_domain); }
  /// Says in words what the last move took.
  std::string last_move() const;
  std::uint32_t moves() const { return page().flips.load(std::memory_order_acquire); }
  /// Returns what the second and the third context take of the GPU's memory, as the process says.
  std::uint64_t gpu_memory_mib() const {
    return std::uint64_t{page().own_driver_mib.load()} + page().spare_mib.load();
  }
  /// Operations that were under way when a domain died, and were done again, in all its moves.
  std::uint32_t redone() const { return page().redone.load(std::memory_order_acquire); }
  /// True when it has been asked to leave, and has not dealt with that yet.
  bool is_asked() const { return page().asked_to_leave.load() != page().answered.load(); }
  void ask_to_leave() const;
  /// The deepest level to which its program can go; Awake: to none.
  abi::RestLevel deepest_rest() const { return level(page().deepest_rest); }
  /// How far the program has given its GPU up.
  abi::RestLevel rest() const { return level(page().rest); }
  /// Memory of the host's that it takes, as it says.
  std::uint64_t rest_host_bytes() const { return page().rest_host_bytes.load(); }
  /// Why it has refused to; empty: it has not.
  std::string rest_refusal() const { return text(page().rest_refusal); }
  /// Returns the number of the question.
  std::uint32_t ask_to_rest(abi::RestLevel wanted) const;
  /// True when that question was dealt with.
  bool is_rest_answered(std::uint32_t question) const {
    return page().answered_rest.load(std::memory_order_acquire) == question;
  }
  /// True when it has been asked, by whomever, and has not dealt with that yet.
  bool is_asked_to_rest() const { return !is_rest_answered(page().asked_to_rest.load()); }
  /// Says in words what it took, to rest and back.
  std::string last_rest() const;
  /// Sets the rule for the domain of that pipe directory; wakes the process where it is news.
  void set_rule(const std::string& pipe_directory, abi::DomainRule rule) const;
  /// True when that is one of its two domains.
  bool is_of(const std::string& pipe_directory) const;

 private:
  explicit SpareView(os::Mapping mapping) : mapping_(std::move(mapping)) {}
  abi::SparePage& page() const { return *mapping_.as<abi::SparePage>(); }
  static abi::RestLevel level(const std::atomic<abi::RestLevel>& said);
  static std::string text(const std::array<char, abi::SparePage::text_bytes>& from);
  void wake() const;

  os::Mapping mapping_;
};

const char* to_string(abi::SpareState state);

/// How one stands, as last looked at.
struct SpareReport {
  abi::SpareState state = abi::SpareState::Starting;
  std::string reason;
  std::string spare_domain;  ///< its name; empty: it has none now
  std::uint32_t moves = 0;
  std::uint64_t gpu_memory_mib = 0;  ///< memory that it costs (abi::SparePage)
  std::uint32_t redone = 0;          ///< operations, after a domain died under them
  abi::RestLevel rest = abi::RestLevel::Awake;
  std::uint64_t rest_host_bytes = 0;  ///< memory of the host's, while it rests
  bool operator==(const SpareReport&) const = default;
};

/// Belongs to the loop's thread.
class Spares {
 public:
  struct Knows {
    os::EventLoop& loop;
    os::Kernel& kernel;
    Domains& domains;
    Processes& processes;
    const Clock& clock;
  };
  struct Callbacks {
    /// Its domain is parked: nothing there may be given back.
    std::function<bool(const std::string& domain)> is_held;
    /// The process works in that domain from now on; `took`: what it says of its way there.
    std::function<void(pid_t pid, const std::string& domain, const std::string& took)> on_moved;
    std::function<void(pid_t pid, const SpareReport& now)> on_news;
  };
  Spares(Knows knows, Callbacks callbacks) : at_(knows), callbacks_(std::move(callbacks)) {}

  /// A process, from now on, whose program has begun. Without a spare nothing follows.
  void follow(pid_t pid);
  void on_exit(pid_t pid);

  /// Looks at all pages, and says what the domains' rules are.
  void refresh();
  /// True when it has a page.
  bool has(pid_t pid) const { return followed_.contains(pid) && followed_.at(pid).view; }
  /// Null: it has no page. Until its process ends, or the next look.
  const SpareView* view_of(pid_t pid) const;
  /// Empty: it has none.
  std::optional<SpareReport> report_of(pid_t pid) const;
  /// True when an instance of it is in that domain, or may be.
  bool is_in(pid_t pid, const std::string& domain) const;
  /// True when its program may have work in that domain. One that has a spare and has not come to CUDA yet
  /// has none, and has no page or one that names no domain; it is looked for then.
  bool may_work_in(pid_t pid, const std::string& domain);
  /// False: it has no spare, and will have none.
  bool ask_to_leave(pid_t pid);
  /// Everybody who works in that domain.
  void ask_all_to_leave(const std::string& domain);

 private:
  /// The rule that holds in the domain of that pipe directory now.
  struct Rule {
    std::string pipe_directory;
    abi::DomainRule rule;
  };
  struct Followed {
    std::optional<SpareView> view;
    SpareReport told;
    bool is_to_leave = false;  ///< asked before it had a page
    /// A process may have very many descriptors and no page.
    Nanoseconds between_searches{};
    Monotonic next_search{};
    Monotonic next_close_look{};
    /// How many more of its news are told at once. A process may write into its page as fast as it likes.
    int words_left = words_max;
    Monotonic words_counted_at{};
  };
  static constexpr int words_max = 8;  ///< largest number of words; one more comes each second

  bool may_tell(Followed& followed) const;

  void find_page(pid_t pid, Followed& followed);
  void search_page(pid_t pid, Followed& followed);
  std::vector<Rule> rules() const;
  void look_at(pid_t pid, Followed& followed, const std::vector<Rule>& rules);

  Knows at_;
  Callbacks callbacks_;
  std::map<pid_t, Followed> followed_;
  std::map<pid_t, os::Watch> asking_again_;  ///< processes that did not let themselves be looked at
  os::Watch looking_;
};

}  // namespace firebreak::agent
