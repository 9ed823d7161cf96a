// SPDX-License-Identifier: Apache-2.0
/// Has looks at other processes (os::Looks) done by a process of its own, a helper, and waits for none longer
/// than a deadline. What a process does so that a look at it never ends holds that helper, and nobody else.
///
/// A helper that has not answered by the deadline is abandoned: it is killed, which ends most waits and not
/// all of them, and nobody waits for it. Another one takes its place. As long as it has not ended, and for a
/// pause after that, looks at the process that held it are not answered (Timeout). Where four are abandoned
/// for processes of one user, no other process of that user is looked at, and where eight are, none is.
/// Whoever asks then knows nothing, and has to do what does no harm. Each that is waited for leaves less time
/// for the next (ground/os/patience.h), so that all together do not last for so long that who asks counts as
/// hung; where hardly any is left, nobody is looked at.
///
/// Helpers are started by a process that keeps the right to look (ground/os/rights_keeper.h). A helper has
/// one socket (AF_UNIX, SOCK_SEQPACKET). A question is one message of lines, of which the first says what.
/// TASK is /proc/N or /proc/N/task/N, and nothing else in a path is taken:
///   file TASK/NAME                    the whole of cgroup, cmdline, environ, limits, maps or stat
///   memory TASK/mem ADDRESS SIZE      so many bytes of it
///   links TASK/fd NUMBER              what the descriptors in that folder are shown to be, from that one on:
///                                     "NEXT MISSED", then "NUMBER LINK" of each, a NUL after each of these
///   find TASK/fd/NUMBER               that file, opened with O_PATH; a memory file only of a name as below,
///                                     since it may be opened again by that, to be written
///   duplicate; NUMBER LINK of each    with a pidfd attached: those descriptors of the process behind it that
///                                     are shown to be LINK, where that is one of a list
///   same PID PID; NUMBER NUMBER of each
///                                     whether these descriptors of the two are of the same opening: "1", "0"
///                                     or
///                                     "!CODE MESSAGE", a NUL after each
///   stop PID DEVICE INODE             that process stands still until this helper ends, but for who writes
///                                     to that pipe (ground/os/standstill.h)
/// The answer is any number of messages, of which the first letter says what:
///   +BYTES   a part of what was asked for
///   dN       a descriptor, attached: the one asked for in place N, from 0 on
///   -N CODE MESSAGE   there is none for that place: why
///   .        that was all; a descriptor that was given is no more the helper's
///   !CODE MESSAGE   there is no more: why
/// It is asked one question at a time, and ends when nobody has the other end any more. Who is stopped has a
/// helper of its own.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ground/base/clock.h"
#include "ground/base/result.h"
#include "ground/os/closer.h"
#include "ground/os/kernel.h"
#include "ground/os/patience.h"
#include "ground/os/rights_keeper.h"
#include "ground/os/socket.h"

namespace firebreak::os {

struct BrokerOptions {
  std::shared_ptr<RightsKeeper> keeper;  ///< the keeper of helpers that do what serve_looks() does
  Milliseconds deadline{300};
  Milliseconds start_limit{5'000};  ///< time for the first helper to start
  Nanoseconds pause = std::chrono::seconds(5);
  Nanoseconds patience = Milliseconds(600);  ///< time for all looks together
  /// Takes one line about a look that was not answered, on the thread that asked.
  std::function<void(const std::string& line)> tell = nullptr;
};

/// Thread safe: who asks waits for who has asked before, for the deadline at most.
class Broker final : public Looks {
 public:
  static constexpr std::size_t most_abandoned_for_one_user = 4;
  static constexpr std::size_t most_abandoned = 8;
  /// Largest number of put-offs in a row: the next look is answered, however urgent something is.
  static constexpr int most_put_offs_in_a_row = 8;
  /// Largest number of descriptors that one question asks for, or about.
  static constexpr std::size_t most_in_a_question = 128;

  explicit Broker(BrokerOptions options) : options_(std::move(options)), patience_(options_.patience) {}
  Broker(const Broker&) = delete;
  Broker& operator=(const Broker&) = delete;
  /// The helper ends; those that are abandoned are not waited for.
  ~Broker() override;

  /// Lets a look wait only until `urgent` is readable, from now on, where that is a descriptor and not -1:
  /// the asking thread asks for it. A look that is cut off so answers nothing (Timeout), and nobody is to
  /// blame; the helper's late words are taken off before the next question. Called before others ask.
  void put_off_for(std::function<int()> urgent) { urgent_ = std::move(urgent); }
  /// Waits until the helper is there. Without this the first look starts it.
  Status start();
  /// The processes that keep a helper, or have just done so.
  std::vector<pid_t> not_answered();

  Result<std::string> read_file(const std::string& path) override;
  Result<std::string> read_memory(const std::string& path, std::uint64_t address,
                                  std::size_t size_bytes) override;
  Result<DescriptorLinks> read_links(const std::string& directory, int from) override;
  Result<Fd> find(const std::string& path) override;
  Result<Fd> duplicate(const Fd& pidfd, int number, const std::string& link) override;
  Result<bool> is_same_file(pid_t pid, int number, pid_t other, int other_number) override;
  std::vector<Result<Fd>> duplicate_all(const Fd& pidfd, std::span<const DescriptorLink> wanted) override;
  std::vector<Result<bool>> are_same_files(pid_t pid, pid_t other,
                                           std::span<const NumberPair> numbers) override;
  /// Waits for nobody who has asked before.
  Result<std::unique_ptr<Standstill>> stop_all_but_writers(pid_t pid, const Fd& pipe) override;

 private:
  /// The process that a look is at.
  struct Whom {
    pid_t pid = 0;
    std::optional<uid_t> user;  ///< the user of that process
  };
  struct Helper {
    Socket socket;
    Fd process;                     ///< none: it has not been said yet that it is there
    std::optional<Whom> owed = {};  ///< its answer on that one is not taken off yet
  };
  struct Abandoned {
    Fd helper;
    bool has_ended = false;
    Whom whom;
    Monotonic since{};
  };
  struct Answer {
    std::string bytes;
    std::vector<std::pair<std::size_t, Result<Fd>>> descriptors;  ///< descriptors by place; not all may have
                                                                  ///< arrived
  };
  enum class Ended { Answered, Late, Gone, PutOff };

  Result<Answer> ask(pid_t pid, const std::string& question, std::span<const int> descriptors = {});
  static std::vector<Result<Fd>> those_in(Result<Answer> answer, std::size_t count, const char* what);
  Status may_look_at(const Whom& whom);
  Milliseconds deadline_now();
  Ended waited_for(Ended ended, Monotonic since);
  Result<Socket> ask_for_helper() const;
  Status begin();
  static bool lock_unless_urgent(std::unique_lock<std::timed_mutex>& lock, int urgent);
  Ended await_word(Monotonic until);
  Ended await_ready(Milliseconds limit);
  Ended ask_helper(const std::string& question, std::span<const int> descriptors, Result<Answer>& answer);
  Ended take_answer(Monotonic until, Result<Answer>& answer);
  Ended take_owed();
  void abandon(const Whom& whom);
  void forget_helper();
  void reap();

  BrokerOptions options_;
  std::function<int()> urgent_;
  std::atomic<int> put_offs_in_a_row_{0};
  /// The thread that closes: a descriptor that is given up may be the last of what a tenant has closed.
  std::shared_ptr<Closer> closer_ = std::make_shared<Closer>();
  std::timed_mutex mutex_;  ///< guards the next four
  int urgent_now_ = -1;     ///< urgency of the question that is being asked
  Patience patience_;
  std::optional<Helper> helper_;
  std::vector<Abandoned> abandoned_;
};

/// Answers looks as a helper, until nobody has the other end any more. `links`: what /proc shows those to be
/// that are duplicated.
void serve_looks(Socket& asker, std::span<const std::string> links);

}  // namespace firebreak::os
