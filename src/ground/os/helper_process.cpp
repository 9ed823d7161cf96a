// SPDX-License-Identifier: Apache-2.0
#include "ground/os/helper_process.h"

#include <signal.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <utility>

namespace firebreak::os {
namespace {

constexpr char done = '.';
constexpr char refused = '!';
constexpr Milliseconds at_once{0};
constexpr std::size_t longest_answer = most_bytes_in_a_message - 16;
constexpr int signals_of_others[] = {SIGHUP, SIGINT, SIGTERM};

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

Error error_in(std::string_view text) {
  int code = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), code);
  text.remove_prefix(std::min(static_cast<std::size_t>(read.ptr - text.data()) + 1, text.size()));
  return Error{static_cast<ErrorCode>(std::clamp(code, 0, static_cast<int>(ErrorCode::Internal))),
               std::string(text),
               {}};
}

}  // namespace

Result<std::unique_ptr<HelperProcess>> HelperProcess::start(std::vector<std::string> command,
                                                            Milliseconds limit,
                                                            const std::vector<int>& kept) {
  std::unique_ptr<HelperProcess> helper(new HelperProcess);
  const Status started =
      helper->process_.start(std::move(command), limit, kept, "the process does not start");
  if (!started) return propagate(started);
  return helper;
}

Result<HelperAnswer> HelperProcess::ask(const std::string& question, std::span<const int> attached,
                                        Milliseconds limit) {
  auto ends = socket_pair();
  if (!ends) return propagate(ends);
  std::vector<int> descriptors{ends->second.fd().get()};
  descriptors.insert(descriptors.end(), attached.begin(), attached.end());
  if (auto sent = process_.send(question, descriptors, limit); !sent) return propagate(sent);
  (void)ends->second.release();
  auto said = ends->first.receive(limit);
  if (!said) return propagate(said);
  std::string_view text = text_in(*said);
  const char first = text.front();
  text.remove_prefix(1);
  if (first == refused) return tl::unexpected<Error>(error_in(text));
  if (first != done) return fail(ErrorCode::Protocol, "that is no answer");
  return HelperAnswer{std::string(text), std::move(said->descriptors)};
}

// --- that process

namespace {

class Server {
 public:
  Server(Socket& asker, const HelperDuties& duties) : server_(asker), duties_(duties) {}

  void serve() {
    server_.serve([this](Message message) { take(std::move(message)); });
  }

 private:
  void take(Message message) {
    if (message.descriptors.empty() || !is_socket_for_messages(message.descriptors.front())) return;
    Socket its_end(std::move(message.descriptors.front()));
    message.descriptors.erase(message.descriptors.begin());
    const std::string_view text = text_in(message);
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
    if (server_.children() >= HelperProcess::most_at_once)
      return answer(its_end, fail(ErrorCode::ResourceExhausted, "too much is asked for at once"));
    const auto child = server_.start_child([&] { answer_as_child(its_end, question, attached); });
    if (!child) answer(its_end, propagate(child));
  }

  void answer_as_child(Socket& its_end, std::string_view question, const std::vector<Fd>& attached) {
    for (const int each : signals_of_others) ::signal(each, SIG_DFL);
    if (duties_.in_child) duties_.in_child();
    const auto what = duties_.answer(question, attached);
    answer(its_end, what);
    its_end.release().reset();
    if (what && what->afterwards) what->afterwards();
  }

  SocketServer server_;
  const HelperDuties& duties_;
};

}  // namespace

void serve_as_helper(Socket& asker, const HelperDuties& duties) {
  for (const int each : signals_of_others) ::signal(each, SIG_IGN);
  Server(asker, duties).serve();
}

}  // namespace firebreak::os
