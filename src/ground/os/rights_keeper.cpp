// SPDX-License-Identifier: Apache-2.0
#include "ground/os/rights_keeper.h"

#include <signal.h>
#include <sys/prctl.h>

#include <array>
#include <cerrno>
#include <span>
#include <string_view>
#include <utility>

#include "ground/os/capabilities.h"
#include "ground/os/fd.h"
#include "ground/os/real_kernel.h"
#include "ground/os/self.h"

namespace firebreak::os {
namespace {

constexpr std::string_view wanted = "helper";
constexpr char here_it_is = 'p';
constexpr char there_is_none = '!';
constexpr Milliseconds at_once{0};

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

}  // namespace

Result<std::shared_ptr<RightsKeeper>> RightsKeeper::start(std::vector<std::string> command,
                                                          Milliseconds limit) {
  std::shared_ptr<RightsKeeper> keeper(new RightsKeeper);
  const Status started = keeper->process_.start(std::move(command), limit, {},
                                                "the process that looks at others does not start");
  if (!started) return propagate(started);
  return keeper;
}

Status RightsKeeper::ask_for_helper(const Fd& its_end, Milliseconds limit) {
  const int attached = its_end.get();
  return process_.send(wanted, std::span(&attached, 1), limit);
}

Result<Fd> await_helper(Socket& socket, Milliseconds limit) {
  auto said = socket.receive(limit);
  if (!said) return propagate(said);
  const std::string_view text = text_in(*said);
  if (text.front() == here_it_is && said->descriptors.size() == 1)
    return std::move(said->descriptors.front());
  return fail(ErrorCode::ResourceExhausted, "no helper: " + std::string(text.substr(1)));
}

// --- the keeper

namespace {

/// The keeper shares nothing with tenants, so it may go on where others are told to end.
void outlive_signals() {
  for (const int each : {SIGHUP, SIGINT, SIGTERM}) ::signal(each, SIG_IGN);
}

/// Helpers have what we have.
Status keep_but_what_looks_need() {
  constexpr std::array<Capability, 2> needed{Capability::SysPtrace, Capability::DacReadSearch};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return fail_errno("set no_new_privs", errno);
  // A process sees what all see that have the same rights, and with less of these it would see less.
  return has_capability(Capability::SysPtrace) ? give_up_all_capabilities_but(needed) : Status{};
}

/// Empty: that was no question.
Result<Socket> end_in(Message question) {
  const bool is_one = text_in(question) == wanted && question.descriptors.size() == 1 &&
                      is_socket_for_messages(question.descriptors.front());
  if (!is_one) return fail(ErrorCode::Protocol, "that is no question");
  return Socket(std::move(question.descriptors.front()));
}

class Keeper {
 public:
  Keeper(Socket& asker, const std::function<void(Socket&)>& help) : server_(asker), help_(help) {}

  void serve() {
    server_.serve([this](Message message) {
      auto its_end = end_in(std::move(message));
      if (its_end) start_helper(std::move(*its_end));
    });
  }

 private:
  /// Whoever asked may not read: we do not wait for that.
  static void refuse(Socket& its_end, const std::string& why) {
    (void)its_end.send(bytes_of(there_is_none + why), {}, at_once);
  }

  void start_helper(Socket its_end) {
    if (server_.children() >= RightsKeeper::most_helpers)
      return refuse(its_end, std::to_string(server_.children()) + " are there");
    const auto helper = server_.start_child([&] { help_(its_end); });
    if (!helper) return refuse(its_end, helper.error().message);
    const int attached = (*helper)->get();
    if (!its_end.send(bytes_of(std::string_view(&here_it_is, 1)), std::span(&attached, 1), at_once))
      (void)RealKernel().send_signal(**helper, SIGKILL);
  }

  SocketServer server_;
  const std::function<void(Socket&)>& help_;
};

}  // namespace

void keep_rights(Socket& asker, const std::function<void(Socket&)>& help) {
  outlive_signals();
  (void)run_as_soon_as_woken();  // the asker waits for us; helpers have no such priority
  if (keep_but_what_looks_need()) Keeper(asker, help).serve();
}

}  // namespace firebreak::os
