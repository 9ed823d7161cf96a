// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "commands/cli/agent_socket.h"
#include "commands/cli/commands.h"
#include "commands/cli/top_frame.h"
#include "ground/os/event_loop.h"
#include "ground/os/terminal.h"
#include "shared/link/agent_link.h"

namespace firebreak::cli {
namespace {

struct Options {
  std::string socket_path;
  double interval_s = 1;
};

/// The terminal's other screen, without a cursor, for as long as it lives; then all is as it was.
class Screen {
 public:
  Screen() { put("\x1b[?1049h\x1b[?25l"); }
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;
  ~Screen() { put("\x1b[?25h\x1b[?1049l"); }

  /// Each line over what stood there.
  void draw(const std::vector<std::string>& lines) {
    std::string picture = "\x1b[H";
    for (std::size_t at = 0; at < lines.size(); ++at)
      picture += fmt::format("{}{}\x1b[K", at == 0 ? "" : "\r\n", lines[at]);
    put(picture + "\x1b[J");
  }

 private:
  static void put(const std::string& text) {
    std::fputs(text.c_str(), stdout);
    std::fflush(stdout);
  }
};

/// Draws until somebody ends it, or the agent is gone: that is its failure.
class Top {
 public:
  Top(os::EventLoop& loop, link::AgentLink& link) : loop_(loop), link_(link) {}

  void draw() {
    const auto size = os::terminal_size(STDOUT_FILENO);
    auto status = size ? link_.status() : propagate(size);
    if (!status) {
      failure_ = status.error();
      return loop_.stop();
    }
    StatusMoment now{std::move(*status), clock_.now()};
    screen_.draw(top_frame(now, before_, *size));
    before_ = std::move(now);
  }
  const std::optional<Error>& failure() const { return failure_; }

 private:
  const SystemClock clock_;
  os::EventLoop& loop_;
  link::AgentLink& link_;
  Screen screen_;
  std::optional<StatusMoment> before_;
  std::optional<Error> failure_;
};

Status watch(const Options& options) {
  if (const auto size = os::terminal_size(STDOUT_FILENO); !size) {
    return fail(ErrorCode::Unsupported, "standard output is no terminal", "firebreak status prints once");
  }
  if (auto held = os::hold_signals({SIGINT, SIGTERM, SIGHUP}); !held) return held;
  const auto loop = os::EventLoop::create();
  if (!loop) return propagate(loop);
  const auto signals =
      (*loop)->on_signals({SIGINT, SIGTERM, SIGHUP}, [raw = loop->get()](int) { raw->stop(); });
  if (!signals) return propagate(signals);
  auto link = link::AgentLink::connect(options.socket_path);
  if (!link) return propagate(link);
  Top top(**loop, **link);
  (*link)->on_lost([raw = loop->get(), &top] { raw->post([&top] { top.draw(); }); });
  const auto period =
      std::chrono::duration_cast<Nanoseconds>(std::chrono::duration<double>(options.interval_s));
  const auto pictures = (*loop)->every(period, [&top] { top.draw(); });
  if (!pictures) return propagate(pictures);
  top.draw();
  (*loop)->run();
  return top.failure() ? tl::unexpected(*top.failure()) : Status();
}

}  // namespace

void add_top(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(
      "top", "Shows domains, tenants, their steps and faults in a terminal, again and again, until Ctrl-C");
  command->add_option("--interval-s", options->interval_s, "Between two pictures")
      ->capture_default_str()
      ->check(CLI::Range(0.1, 3600.0));
  add_socket_option(*command, options->socket_path);
  command->callback([options, &action] {
    action = [options] {
      const Status done = watch(*options);
      return done ? 0 : complain(to_string(done.error()));
    };
  });
}

}  // namespace firebreak::cli
