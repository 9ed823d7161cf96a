// SPDX-License-Identifier: Apache-2.0
#include "os/rights_keeper.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <span>
#include <string_view>
#include <utility>

#include "os/capabilities.h"
#include "os/event_loop.h"
#include "os/fd.h"
#include "os/helper_process.h"
#include "os/leave_process.h"
#include "os/real_kernel.h"
#include "os/self.h"

namespace firebreak::os {
namespace {

constexpr std::string_view ready = "ready";
constexpr std::string_view wanted = "helper";
constexpr char here_it_is = 'p';
constexpr char there_is_none = '!';
constexpr Milliseconds for_ever{-1};
constexpr Milliseconds at_once{0};
constexpr Milliseconds end_limit{1'000};

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

std::string_view text_of(const Message& message) {
  return {reinterpret_cast<const char*>(message.bytes.data()), message.bytes.size()};
}

void kill_process(const Fd& process) { (void)RealKernel().send_signal(process, SIGKILL); }

}  // namespace

Result<std::shared_ptr<RightsKeeper>> RightsKeeper::start(std::vector<std::string> command,
                                                          Milliseconds limit) {
  auto ends = socket_pair();
  if (!ends) return propagate(ends);
  SpawnRequest request;
  request.command = std::move(command);
  request.inherited = {{ends->second.fd().get(), socket_descriptor}};
  request.new_session = true;
  const auto pid = spawn_process(request);
  if (!pid) return propagate(pid);
  (void)ends->second.release();
  auto process = RealKernel().pidfd_open(*pid);
  if (!process) return propagate(process);
  std::shared_ptr<RightsKeeper> keeper(new RightsKeeper(std::move(ends->first), *pid, std::move(*process)));
  const auto said = keeper->socket_.receive(limit);
  if (said && text_of(*said) == ready) return keeper;
  kill_process(keeper->process_);
  return fail(ErrorCode::Timeout, "the process that looks at others does not start");
}

RightsKeeper::~RightsKeeper() {
  socket_.hang_up();
  const int number = process_.get();
  (void)poll_readable(std::span(&number, 1), end_limit);
  (void)RealKernel().try_wait(pid_);
}

Status RightsKeeper::ask_for_helper(const Fd& its_end, Milliseconds limit) {
  const std::lock_guard lock(mutex_);
  const int attached = its_end.get();
  return socket_.send(bytes_of(wanted), std::span(&attached, 1), limit);
}

Result<Fd> await_helper(Socket& socket, Milliseconds limit) {
  auto said = socket.receive(limit);
  if (!said) return propagate(said);
  const std::string_view text = text_of(*said);
  if (text.front() == here_it_is && said->descriptors.size() == 1)
    return std::move(said->descriptors.front());
  return fail(ErrorCode::ResourceExhausted, "no helper: " + std::string(text.substr(1)));
}

// --- the keeper

namespace {

struct Helper {
  pid_t pid = 0;
  Fd process;
};

/// It shares nothing with tenants, so it may go on where others are told to end.
void outlive_signals() {
  for (const int each : {SIGHUP, SIGINT, SIGTERM}) ::signal(each, SIG_IGN);
}

/// Helpers have what we have.
Status keep_but_what_looks_need() {
  constexpr std::array<Capability, 2> needed{Capability::SysPtrace, Capability::DacReadSearch};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return fail_errno("set no_new_privs", errno);
  // Without it we see what whoever has the same rights sees, and with less of these we would see less.
  return has_capability(Capability::SysPtrace) ? give_up_all_capabilities_but(needed) : Status{};
}

/// Empty: that was no question.
Result<Socket> end_in(Message question) {
  int type = 0;
  socklen_t size = sizeof(type);
  const bool is_one =
      text_of(question) == wanted && question.descriptors.size() == 1 &&
      ::getsockopt(question.descriptors.front().get(), SOL_SOCKET, SO_TYPE, &type, &size) == 0;
  if (!is_one || type != SOCK_SEQPACKET) return fail(ErrorCode::Protocol, "that is no question");
  return Socket(std::move(question.descriptors.front()));
}

/// Nothing has come, or what nobody understands.
bool is_one_to_drop(const Error& error) {
  return error.code == ErrorCode::Timeout || error.code == ErrorCode::Protocol;
}

class Keeper {
 public:
  Keeper(Socket& asker, const std::function<void(Socket&)>& help) : asker_(asker), help_(help) {}

  void serve() {
    if (!starter_ || !asker_.send(bytes_of(ready), {}, for_ever)) return;
    while (wait_and_reap()) {
      auto question = asker_.receive(at_once);
      if (!question && !is_one_to_drop(question.error())) return;
      auto its_end = question ? end_in(std::move(*question)) : propagate(question);
      if (its_end) start_helper(std::move(*its_end));
    }
  }

 private:
  /// False: who has started us is gone. Others may have its end of the socket still.
  bool wait_and_reap() {
    std::vector<int> numbers{starter_->get(), asker_.fd().get()};
    for (const Helper& each : helpers_) numbers.push_back(each.process.get());
    const auto readable = poll_readable(numbers, for_ever);
    if (readable && std::ranges::count(*readable, 0U) > 0) return false;
    std::erase_if(helpers_, [](const Helper& each) {
      const auto ended = RealKernel().try_wait(each.pid);
      return !ended || ended->has_value();
    });
    return true;
  }

  /// Whoever asked may not read: we do not wait for that.
  static void refuse(Socket& its_end, const std::string& why) {
    (void)its_end.send(bytes_of(there_is_none + why), {}, at_once);
  }

  void start_helper(Socket its_end) {
    if (helpers_.size() >= RightsKeeper::most_helpers)
      return refuse(its_end, std::to_string(helpers_.size()) + " are there");
    const pid_t keeper = ::getpid();
    const pid_t pid = ::fork();
    if (pid < 0) return refuse(its_end, "fork: " + std::to_string(errno));
    if (pid == 0) be_helper(keeper, its_end);
    // Nobody else reaps it, so the number is its own.
    auto process = RealKernel().pidfd_open(pid);
    if (!process) {
      refuse(its_end, process.error().message);
      ::kill(pid, SIGKILL);
      ::waitpid(pid, nullptr, 0);
      return;
    }
    const int attached = process->get();
    if (!its_end.send(bytes_of(std::string_view(&here_it_is, 1)), std::span(&attached, 1), at_once))
      kill_process(*process);
    helpers_.push_back({pid, std::move(*process)});
  }

  /// It has nothing of ours but its end.
  [[noreturn]] void be_helper(pid_t keeper, Socket& its_end) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != keeper) leave_process_at_once(0);
    helpers_.clear();
    asker_.release().reset();
    help_(its_end);
    leave_process_at_once(0);
  }

  Socket& asker_;
  const std::function<void(Socket&)>& help_;
  const Result<Fd> starter_ = parent_process();
  std::vector<Helper> helpers_;
};

}  // namespace

void keep_rights(Socket& asker, const std::function<void(Socket&)>& help) {
  outlive_signals();
  (void)run_as_soon_as_woken();  // who asks waits for us; helpers have no such priority
  if (keep_but_what_looks_need()) Keeper(asker, help).serve();
}

}  // namespace firebreak::os
