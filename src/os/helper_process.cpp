// SPDX-License-Identifier: Apache-2.0
#include "os/helper_process.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <iterator>
#include <utility>

#include "os/event_loop.h"
#include "os/leave_process.h"
#include "os/real_kernel.h"

namespace firebreak::os {
namespace {

constexpr std::string_view ready = "ready";
constexpr char done = '.';
constexpr char refused = '!';
constexpr Milliseconds for_ever{-1};
constexpr Milliseconds at_once{0};
constexpr Milliseconds end_limit{1'000};
constexpr std::size_t longest_answer = most_bytes_in_a_message - 16;
constexpr int signals_of_others[] = {SIGHUP, SIGINT, SIGTERM};

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

std::string_view text_of(const Message& message) {
  return {reinterpret_cast<const char*>(message.bytes.data()), message.bytes.size()};
}

Error error_in(std::string_view text) {
  int code = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), code);
  text.remove_prefix(std::min(static_cast<std::size_t>(read.ptr - text.data()) + 1, text.size()));
  return Error{static_cast<ErrorCode>(std::clamp(code, 0, static_cast<int>(ErrorCode::Internal))),
               std::string(text),
               {}};
}

void kill_process(const Fd& process) { (void)RealKernel().send_signal(process, SIGKILL); }

}  // namespace

Result<std::unique_ptr<HelperProcess>> HelperProcess::start(std::vector<std::string> command,
                                                            Milliseconds limit,
                                                            const std::vector<int>& kept) {
  auto ends = socket_pair();
  if (!ends) return propagate(ends);
  SpawnRequest request;
  request.command = std::move(command);
  request.inherited = {{ends->second.fd().get(), socket_descriptor}};
  for (const int each : kept)
    request.inherited.emplace_back(each, socket_descriptor + static_cast<int>(request.inherited.size()));
  request.new_session = true;
  const auto pid = spawn_process(request);
  if (!pid) return propagate(pid);
  (void)ends->second.release();
  auto process = RealKernel().pidfd_open(*pid);
  if (!process) return propagate(process);
  std::unique_ptr<HelperProcess> helper(new HelperProcess(std::move(ends->first), *pid, std::move(*process)));
  const auto said = helper->socket_.receive(limit);
  if (said && text_of(*said) == ready) return helper;
  kill_process(helper->process_);  // and it is reaped with that object
  return fail(ErrorCode::Timeout, "the process does not start");
}

HelperProcess::~HelperProcess() {
  socket_.hang_up();
  const int number = process_.get();
  (void)poll_readable(std::span(&number, 1), end_limit);
  (void)RealKernel().try_wait(pid_);
}

Result<HelperAnswer> HelperProcess::ask(const std::string& question, std::span<const int> attached,
                                        Milliseconds limit) {
  auto ends = socket_pair();
  if (!ends) return propagate(ends);
  std::vector<int> descriptors{ends->second.fd().get()};
  descriptors.insert(descriptors.end(), attached.begin(), attached.end());
  {
    const std::lock_guard lock(mutex_);
    if (auto sent = socket_.send(bytes_of(question), descriptors, limit); !sent) return propagate(sent);
  }
  (void)ends->second.release();
  auto said = ends->first.receive(limit);
  if (!said) return propagate(said);
  std::string_view text = text_of(*said);
  const char first = text.front();
  text.remove_prefix(1);
  if (first == refused) return tl::unexpected<Error>(error_in(text));
  if (first != done) return fail(ErrorCode::Protocol, "that is no answer");
  return HelperAnswer{std::string(text), std::move(said->descriptors)};
}

// --- that process

Result<Fd> parent_process() {
  const pid_t parent = ::getppid();
  auto process = RealKernel().pidfd_open(parent);
  if (process && ::getppid() != parent)
    return fail(ErrorCode::NotFound, "who has started this process is gone");
  return process;
}

namespace {

bool is_socket_for_messages(const Fd& fd) {
  int type = 0;
  socklen_t size = sizeof(type);
  return ::getsockopt(fd.get(), SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_SEQPACKET;
}

/// Nothing has come, or what nobody understands.
bool is_one_to_drop(const Error& error) {
  return error.code == ErrorCode::Timeout || error.code == ErrorCode::Protocol;
}

class Server {
 public:
  Server(Socket& asker, const HelperDuties& duties) : asker_(asker), duties_(duties) {}

  void serve() {
    if (!starter_ || !asker_.send(bytes_of(ready), {}, for_ever)) return;
    while (wait_and_reap()) {
      auto question = asker_.receive(at_once);
      if (!question && !is_one_to_drop(question.error())) return;
      if (question) take(std::move(*question));
    }
  }

 private:
  struct Child {
    pid_t pid = 0;
    Fd process;
  };

  /// False: who has started us is gone. Others may have its end of the socket still.
  bool wait_and_reap() {
    std::vector<int> numbers{starter_->get(), asker_.fd().get()};
    for (const Child& each : children_) numbers.push_back(each.process.get());
    const auto readable = poll_readable(numbers, for_ever);
    if (readable && std::ranges::count(*readable, 0U) > 0) return false;
    std::erase_if(children_, [](const Child& each) {
      const auto ended = RealKernel().try_wait(each.pid);
      return !ended || ended->has_value();
    });
    return true;
  }

  void take(Message message) {
    if (message.descriptors.empty() || !is_socket_for_messages(message.descriptors.front())) return;
    Socket its_end(std::move(message.descriptors.front()));
    message.descriptors.erase(message.descriptors.begin());
    const std::string_view text = text_of(message);
    const auto quick = duties_.is_quick(text, message.descriptors);
    if (!quick) return answer(its_end, propagate(quick));
    if (*quick) return answer(its_end, duties_.answer(text, message.descriptors));
    begin(its_end, text, message.descriptors);
  }

  /// Whoever asked may not read: nobody waits for that.
  static void answer(Socket& its_end, const Result<HelperAnswer>& what) {
    const std::string text =
        what ? done + what->text
             : refused + std::to_string(static_cast<int>(what.error().code)) + " " + to_string(what.error());
    std::vector<int> numbers;
    if (what) std::ranges::transform(what->descriptors, std::back_inserter(numbers), &Fd::get);
    (void)its_end.send(bytes_of(std::string_view(text).substr(0, longest_answer)), numbers, at_once);
  }

  void begin(Socket& its_end, std::string_view question, const std::vector<Fd>& attached) {
    if (children_.size() >= HelperProcess::most_at_once)
      return answer(its_end, fail(ErrorCode::ResourceExhausted, "too much is asked for at once"));
    const pid_t parent = ::getpid();
    const pid_t pid = ::fork();
    if (pid < 0) return answer(its_end, fail_errno("start a child", errno));
    if (pid == 0) be_child(parent, its_end, question, attached);
    auto process = RealKernel().pidfd_open(pid);
    if (process) return children_.push_back({pid, std::move(*process)});
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }

  [[noreturn]] void be_child(pid_t parent, Socket& its_end, std::string_view question,
                             const std::vector<Fd>& attached) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) leave_process_at_once(0);
    for (const int each : signals_of_others) ::signal(each, SIG_DFL);
    children_.clear();
    if (duties_.in_child) duties_.in_child();
    asker_.release().reset();
    const auto what = duties_.answer(question, attached);
    answer(its_end, what);
    its_end.release().reset();
    if (what && what->afterwards) what->afterwards();
    leave_process_at_once(0);
  }

  Socket& asker_;
  const HelperDuties& duties_;
  const Result<Fd> starter_ = parent_process();
  std::vector<Child> children_;
};

}  // namespace

void serve_as_helper(Socket& asker, const HelperDuties& duties) {
  for (const int each : signals_of_others) ::signal(each, SIG_IGN);
  Server(asker, duties).serve();
}

}  // namespace firebreak::os
