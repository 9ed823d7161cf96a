// SPDX-License-Identifier: Apache-2.0
#include "agent/parking/parking_client.h"

#include <signal.h>
#include <spdlog/spdlog.h>

#include <array>
#include <string_view>
#include <utility>

#include "agent/domains/mps/client_limits.h"
#include "ground/os/file.h"
#include "ground/os/processes.h"
#include "ground/os/socket.h"
#include "shared/dump_mode/mode.h"

namespace firebreak::agent {
namespace {

/// The multiprocessors of one that does nothing.
constexpr std::uint32_t sm_percent = 2;
/// Its first, which it waits for (program/parking_client/main.cpp).
constexpr char begin = '\n';
constexpr char turn = 't';

}  // namespace

Result<std::unique_ptr<ParkingClient>> ParkingClient::start(Knows knows, Callbacks callbacks, Place place,
                                                            std::shared_ptr<park::DumpBudget> budget,
                                                            const Environment& environment) {
  std::unique_ptr<ParkingClient> made(new ParkingClient(knows, std::move(callbacks), std::move(place)));
  if (const Status started = made->start(std::move(budget), environment); !started) return propagate(started);
  return made;
}

Status ParkingClient::start(std::shared_ptr<park::DumpBudget> budget, const Environment& environment) {
  auto pipe = park::DumpPipe::open(at_.kernel, place_.pipe_path, std::move(budget));
  if (!pipe) return propagate(pipe);
  auto input = os::make_input_channel();
  if (!input) return propagate(input);
  auto output = os::make_pipe();
  if (!output) return propagate(output);
  os::SpawnRequest request;
  request.command = {at_.options.parking_client};
  request.environment = at_.options.tenant_environment;
  const auto add = [&request](const Environment& variables) {
    request.environment.insert(request.environment.end(), variables.begin(), variables.end());
  };
  add(environment);
  add(mps::environment_of({sm_percent, 0}));
  add(park::mode_environment(place_.pipe_path));
  request.standard_input = input->theirs.get();
  request.standard_output = output->writing.get();
  request.standard_error = output->writing.get();
  request.new_session = true;
  input_ = std::move(input->ours);
  output_ = std::move(output->reading);
  pipe_ = std::move(*pipe);
  if (!at_.starter.is_possible()) return spawn(request);
  start_apart(std::move(request), std::move(input->theirs), std::move(output->writing));
  return {};
}

/// One that comes when we are gone finds its input at its end, and ends.
void ParkingClient::start_apart(os::SpawnRequest as_child, os::Fd input, os::Fd output) {
  ApartService service;
  service.name = place_.unit;
  service.description = "Firebreak: what parks MPS domain " + place_.domain;
  service.command = as_child.command;
  service.environment = as_child.environment;
  service.input = input.get();
  service.output = output.get();
  const auto theirs = std::make_shared<std::pair<os::Fd, os::Fd>>(std::move(input), std::move(output));
  at_.starter.start(std::move(service), [this, is_there = std::weak_ptr(is_there_), theirs,
                                         as_child = std::move(as_child)](const Result<pid_t>& process) {
    if (!is_there.expired()) take(process, as_child);
  });
}

/// The client may have been told to end meanwhile.
void ParkingClient::take(const Result<pid_t>& process, const os::SpawnRequest& as_child) {
  const bool is_over = !input_;
  if (!process)
    spdlog::warn("domain {}: its parking client is a child of the agent's: {}", place_.domain,
                 to_string(process.error()));
  const Status taken = process ? follow(*process) : is_over ? Status(propagate(process)) : spawn(as_child);
  if (taken) return;
  if (!is_over) callbacks_.on_refused(to_string(taken.error()));
  const auto told = callbacks_.on_exit;  // this may end us
  told();
}

Status ParkingClient::spawn(const os::SpawnRequest& request) {
  const auto pid = at_.kernel.spawn(request);
  return pid ? follow(*pid) : Status(propagate(pid));
}

Status ParkingClient::follow(pid_t pid) {
  pid_ = pid;
  auto pidfd = at_.kernel.pidfd_open(pid);
  if (!pidfd) return propagate(pidfd);
  pidfd_ = std::move(*pidfd);
  if (auto watched = watch(); !watched) return watched;
  input_ ? (void)os::write_byte(input_, begin) : end();
  return {};
}

Status ParkingClient::watch() {
  auto exit = at_.loop.watch_readable(pidfd_.get(), [this] { on_exit(); });
  if (!exit) return propagate(exit);
  exit_watch_ = std::move(*exit);
  auto output = at_.loop.watch_readable(output_.get(), [this] { on_output(); });
  if (!output) return propagate(output);
  output_watch_ = std::move(*output);
  auto dump = at_.loop.watch_readable(pipe_->fd(), [this] {
    dump_watch_.cancel();
    has_begun_ = true;
    callbacks_.on_dump();
  });
  if (!dump) return propagate(dump);
  dump_watch_ = std::move(*dump);
  return {};
}

ParkingClient::~ParkingClient() {
  end();
  (void)os::remove_file(place_.pipe_path);
}

/// "ready", or why not.
void ParkingClient::on_output() {
  std::array<std::byte, 512> bytes;
  const auto got = at_.kernel.read(output_, bytes);
  if (!got || *got == 0) return output_watch_.cancel();
  if (is_ready_) return;  // the words are the driver's on its dump
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), *got);
  is_ready_ = text.starts_with("ready");
  is_ready_ ? callbacks_.on_ready() : callbacks_.on_refused(std::string(text.substr(0, text.find('\n'))));
}

void ParkingClient::on_exit() {
  exit_watch_.cancel();
  (void)at_.kernel.try_wait(pid_);
  const auto told = callbacks_.on_exit;  // this may end us
  told();
}

void ParkingClient::take_a_turn() { (void)os::write_byte(input_, turn); }

void ParkingClient::read_rest_of_dump() {
  dump_watch_.cancel();  // one descriptor has one watch
  pipe_->let_end();
  auto dump = at_.loop.watch_readable(pipe_->fd(), [this] {
    if (pipe_->read() != park::DumpPipe::State::Done) return;
    dump_watch_.cancel();
    callbacks_.on_dump_complete();
  });
  if (dump) dump_watch_ = std::move(*dump);
}

void ParkingClient::end() {
  input_.reset();
  if (pidfd_) (void)at_.kernel.send_signal(pidfd_, SIGKILL);
}

}  // namespace firebreak::agent
