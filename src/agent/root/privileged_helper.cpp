// SPDX-License-Identifier: Apache-2.0
#include "agent/root/privileged_helper.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

namespace firebreak::agent {
namespace {

/// Limit of acts that are done at once, which wait for nobody but a busy machine; the loop's thread asks for
/// it.
constexpr Milliseconds short_limit{1'000};
/// systemd, a disk, a daemon's start.
constexpr Milliseconds long_limit{15'000};
/// Time between the end of a command and our hearing of it.
constexpr Milliseconds grace{2'000};
/// A probe has half of it (program/guard/probe.h).
constexpr Milliseconds probe_limit{60'000};

int number_in(std::string_view& text) {
  int number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  text.remove_prefix(static_cast<std::size_t>(read.ptr - text.data()));
  if (!text.empty()) text.remove_prefix(1);
  return number;
}

Status only_status(const Result<os::HelperAnswer>& answer) { return answer ? Status{} : propagate(answer); }

}  // namespace

Result<os::HelperAnswer> PrivilegedHelper::ask(const PrivilegedQuestion& question, Milliseconds limit,
                                               std::span<const int> attached) {
  return process_->ask(text_of(question), attached, limit);
}

Status PrivilegedHelper::give_file(const os::Fd& file, uid_t user) {
  PrivilegedQuestion question{PrivilegedAct::Give};
  question.user = user;
  const int attached = file.get();
  return only_status(ask(question, short_limit, std::span(&attached, 1)));
}

Status PrivilegedHelper::mark_fifo(const os::Fd& fifo, bool is_marked) {
  PrivilegedQuestion question{PrivilegedAct::Mark};
  question.is_on = is_marked;
  const int attached = fifo.get();
  return only_status(ask(question, short_limit, std::span(&attached, 1)));
}

Result<os::Fd> PrivilegedHelper::open_driver_file(const std::string& name) {
  PrivilegedQuestion question{PrivilegedAct::DriverFile};
  question.name = name;
  auto answer = ask(question, short_limit);
  if (!answer) return propagate(answer);
  if (answer->descriptors.size() == 1) return std::move(answer->descriptors.front());
  return fail(ErrorCode::ResourceExhausted, "the driver's file " + name + " did not arrive");
}

Status PrivilegedHelper::name_server(const std::string& domain, pid_t server) {
  PrivilegedQuestion question{PrivilegedAct::Name};
  question.domain = domain;
  question.pid = server;
  return only_status(ask(question, long_limit));
}

Status PrivilegedHelper::mark_parked(const std::string& domain, bool is_parked) {
  PrivilegedQuestion question{PrivilegedAct::Parked};
  question.domain = domain;
  question.is_on = is_parked;
  return only_status(ask(question, short_limit));
}

guard::ProbeResult PrivilegedHelper::probe_by(PrivilegedAct act, guard::Probed what) {
  PrivilegedQuestion question{act};
  question.name = what == guard::Probed::GuardRanges ? "guard" : "spares";
  const auto answer = ask(question, probe_limit);
  if (!answer) return {guard::ProbeResult::Answer::Untested, to_string(answer.error())};
  std::string_view text = answer->text;
  const int number = number_in(text);
  constexpr int last = static_cast<int>(guard::ProbeResult::Answer::Fails);
  return {static_cast<guard::ProbeResult::Answer>(std::clamp(number, 0, last)), std::string(text)};
}

Status PrivilegedHelper::make_devices() { return only_status(ask({PrivilegedAct::Devices}, long_limit)); }

// --- a domain's daemon

namespace {

class PrivilegedDaemonHost final : public mps::DaemonHost {
 public:
  PrivilegedDaemonHost(std::shared_ptr<PrivilegedHelper> helper, std::string domain, std::string gpu)
      : helper_(std::move(helper)), domain_(std::move(domain)), gpu_(std::move(gpu)) {}

  Status make_directories() override { return only_status(ask(PrivilegedAct::Prepare, long_limit)); }
  Status clear_pipe_directory() override { return only_status(ask(PrivilegedAct::Clear, long_limit)); }
  Status bound_logs() override { return only_status(ask(PrivilegedAct::Bound, long_limit)); }

  Result<Daemon> start_daemon() override {
    auto answer = ask(PrivilegedAct::Start, long_limit);
    if (!answer) return propagate(answer);
    std::string_view text = answer->text;
    const pid_t pid = number_in(text);
    if (pid <= 0 || answer->descriptors.size() != 1)
      return fail(ErrorCode::Protocol, "the process of an MPS daemon did not arrive");
    return Daemon{pid, std::move(answer->descriptors.front()), false};
  }

  Result<os::ProgramResult> control(const std::string& command, Milliseconds timeout) override {
    PrivilegedQuestion question = of(PrivilegedAct::Control);
    question.timeout = std::clamp(timeout, Milliseconds(0), longest_control);
    question.command = command;
    const auto answer = helper_->ask(question, question.timeout + grace);
    if (!answer) return propagate(answer);
    std::string_view text = answer->text;
    os::ProgramResult result;
    result.status.exit_code = number_in(text);
    result.status.signal = number_in(text);
    result.output = text;
    return result;
  }

 private:
  PrivilegedQuestion of(PrivilegedAct act) const {
    PrivilegedQuestion question{act};
    question.domain = domain_;
    question.gpu = gpu_;
    return question;
  }
  Result<os::HelperAnswer> ask(PrivilegedAct act, Milliseconds limit) { return helper_->ask(of(act), limit); }

  std::shared_ptr<PrivilegedHelper> helper_;
  std::string domain_;
  std::string gpu_;
};

}  // namespace

std::unique_ptr<mps::DaemonHost> privileged_daemon_host(std::shared_ptr<PrivilegedHelper> helper,
                                                        std::string domain, std::string gpu) {
  return std::make_unique<PrivilegedDaemonHost>(std::move(helper), std::move(domain), std::move(gpu));
}

// --- the process that stays root's

void serve_privileged(os::Socket& asker, const PrivilegedActs& acts, os::Fd lock) {
  os::HelperDuties duties;
  duties.is_quick = [](std::string_view text, const std::vector<os::Fd>& attached) -> Result<bool> {
    const auto question = privileged_question_from(text, attached.size());
    return question ? Result<bool>(is_done_at_once(question->act)) : propagate(question);
  };
  duties.answer = [&acts](std::string_view text,
                          const std::vector<os::Fd>& attached) -> Result<os::HelperAnswer> {
    const auto question = privileged_question_from(text, attached.size());
    return question ? acts(*question, attached) : propagate(question);
  };
  duties.in_child = [&lock] { lock.reset(); };
  os::serve_as_helper(asker, duties);
}

}  // namespace firebreak::agent
