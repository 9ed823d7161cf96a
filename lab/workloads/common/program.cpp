// SPDX-License-Identifier: Apache-2.0
#include "workloads/common/program.h"

#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <thread>

#include "program/cuda/small_context.h"
#include "workloads/common/digest.h"
#include "workloads/common/forked_children.h"
#include "workloads/common/full_context.h"
#include "workloads/common/more_memory.h"
#include "workloads/common/output_file.h"
#include "workloads/common/pacer.h"
#include "workloads/common/session.h"

namespace firebreak::workloads {
namespace {

/// Pause between two looks whether somebody has told it to end.
constexpr Milliseconds between_looks{10};

/// Tells whoever reads standard output which steps are done, and what else happens.
class Progress {
 public:
  explicit Progress(bool wanted) : wanted_(wanted) {}
  void done(std::uint64_t step) const { tell(fmt::format("step {}", step)); }
  void tell(const std::string& what) const { tell(what, to_ns(SystemClock().now())); }
  void tell(const std::string& what, std::int64_t at_ns) const {
    if (!wanted_) return;
    fmt::print("{} {}\n", what, at_ns);
    std::fflush(stdout);
  }

 private:
  bool wanted_;
};

/// Waits until whoever plays with us says so; the end of the input counts as well.
void wait_for_input() {
  for (int c = std::getchar(); c != '\n' && c != EOF; c = std::getchar()) {
  }
}

/// Lets the host run a few steps ahead of the GPU, and no more.
class Throttle {
 public:
  static constexpr std::uint64_t depth = 3;

  /// Waits for the step that was queued `depth` steps ago.
  Status wait(std::uint64_t step) {
    const auto& mark = marks_[step % depth];
    return mark ? mark->event.synchronize() : Status{};
  }
  Status mark(const Gpu& gpu, std::uint64_t step) {
    auto& mark = marks_[step % depth];
    if (!mark || mark->context != gpu.context().handle()) {
      auto made = cuda::Event::create(gpu.driver());
      if (!made) return propagate(made);
      mark = Mark{gpu.context().handle(), std::move(*made)};
    }
    return mark->event.record(gpu.stream().handle());
  }

 private:
  struct Mark {
    CUcontext context;  ///< context in whose streams it can be recorded
    cuda::Event event;
  };
  std::array<std::optional<Mark>, depth> marks_;
};

/// One run of a workload. Errors carry what was being done.
class Run {
 public:
  Run(const Program& program, const Options& options, Gpu gpu, std::optional<Session> session)
      : program_(program),
        options_(options),
        gpu_(std::move(gpu)),
        own_memory_(gpu_.driver()),
        session_(std::move(session)),
        progress_(options.progress) {}

  Status prepare();
  /// False: the tenant has finished, there is nothing to do.
  Result<bool> stand_by();
  /// Goes on as an active whose predecessor was lost.
  Status go_on();
  /// False: another process does the rest, and this is its standby.
  Result<bool> run_steps();
  Status finish();
  /// Leaves in good order: the tenant is done, or this standby of it.
  Status leave() { return session_ ? session_->leave() : Status{}; }

  bool is_standby() const { return session_ && session_->is_standby(); }
  bool took_over() const { return took_over_; }

 private:
  Status take_over(const fb_resume& resume);
  /// False of both: another process does it, and this is its standby.
  Result<bool> run_step(std::uint64_t step);
  Result<bool> commit(std::uint64_t step);
  Status await_turn(std::uint64_t step);
  Status await_step(std::uint64_t step, Pacer& pacer);
  Status move_once_possible();
  const Gpu& gpu() const { return full_ ? *full_ : gpu_; }
  void warn(const Error& error) const { fmt::print(stderr, "{}: {}\n", program_.name, to_string(error)); }

  const Program& program_;
  const Options& options_;
  Gpu gpu_;
  std::optional<Gpu> full_;  ///< set where gpu_ was small: later steps run here, in memory of both
  PrivateMemory own_memory_;
  std::optional<Session> session_;
  std::unique_ptr<Workload> workload_;
  MoreMemory more_memory_;
  FullContext full_context_;
  Throttle throttle_;
  Progress progress_;
  std::uint64_t next_step_ = 0;
  bool took_over_ = false;
};

Status Run::prepare() {
  auto workload = program_.create(gpu_, options_);
  if (!workload) return propagate(workload);
  workload_ = std::move(*workload);
  Memory& kept = session_ ? static_cast<Memory&>(*session_) : own_memory_;
  if (const Status allocated = workload_->allocate(kept, own_memory_); !allocated) return allocated;
  if (const Status more = more_memory_.allocate(kept, options_.more_memory); !more) return more;
  return fork_children(options_.children);
}

Result<bool> Run::stand_by() {
  if (const Status warm = workload_->warm_up(gpu()); !warm) return propagate(warm, "warm-up");
  if (const Status ready = session_->ready(); !ready) return propagate(ready);
  const auto promotion = session_->wait_for_promotion();
  if (!promotion) return propagate(promotion);
  if (!*promotion) return false;
  const Status taken = take_over(**promotion);
  if (!taken) return propagate(taken, fmt::format("taking over at step {}", (*promotion)->next_step));
  return true;
}

Status Run::go_on() {
  if (!session_) return {};
  const auto resume = session_->wait_for_promotion();
  if (!resume) return propagate(resume);
  return *resume && (*resume)->epoch > 0 ? take_over(**resume) : Status{};
}

Status Run::take_over(const fb_resume& resume) {
  took_over_ = true;
  next_step_ = resume.next_step;
  const std::span state(static_cast<const std::byte*>(resume.state), resume.state_bytes);
  const Status restored = workload_->take_over(gpu(), next_step_, state);
  if (!restored) return restored;
  if (const Status first_kernel = gpu().stream().synchronize(); !first_kernel) return first_kernel;
  // None for an active that goes on where its tenant was lost.
  if (resume.promoted_at_ns != 0) {
    progress_.tell("promoted", resume.promoted_at_ns);
    progress_.tell("resumed");
  }
  if (gpu().is_small()) full_context_.begin(program_.ptx, *workload_);
  // Reports alone need this: the work goes on without an agent.
  if (const Status told = session_->resumed(); !told) warn(told.error());
  return {};
}

Result<bool> Run::run_steps() {
  if (next_step_ == 0) {
    if (const Status marked = more_memory_.mark(gpu()); !marked) return propagate(marked);
  }
  Pacer pacer(Milliseconds(options_.pace_ms));
  for (std::uint64_t step = next_step_; step <= workload_->last_step(); ++step) {
    if (const Status moved = await_step(step, pacer); !moved) return propagate(moved, "the full context");
    const auto ours = run_step(step);
    if (!ours) return propagate(ours, fmt::format("step {}", step));
    if (!*ours) return false;
  }
  return true;
}

/// Work between two steps goes on while the last one waits to be told.
Status Run::await_step(std::uint64_t step, Pacer& pacer) {
  const SystemClock clock;
  for (;;) {
    const bool is_told = !options_.slow_until.empty() && std::filesystem::exists(options_.slow_until);
    if (!is_told) std::this_thread::sleep_until(pacer.next_begin(clock.now()));
    if (const Status moved = move_once_possible(); !moved) return moved;
    if (is_told || options_.slow_until.empty() || step < workload_->last_step()) return {};
    std::this_thread::sleep_for(between_looks);
  }
}

/// The work goes on in the small context where there is no full one to be had.
Status Run::move_once_possible() {
  auto full = full_context_.take();
  if (!full) return {};
  if (!*full) {
    warn(full->error());
    return {};
  }
  if (const Status moved = cuda::go_on_in(gpu_.stream(), (*full)->context(), (*full)->stream()); !moved)
    return moved;
  if (const Status moved = workload_->move_to(**full); !moved) return moved;
  full_ = std::move(**full);
  progress_.tell("moved");
  return {};
}

/// Another tenant may be more urgent.
Status Run::await_turn(std::uint64_t step) {
  if (!session_) return {};
  const Status wanted = session_->turn_wanted(workload_->last_step() - step + 1);
  return wanted ? session_->turn() : wanted;
}

Result<bool> Run::run_step(std::uint64_t step) {
  if (const Status ours = await_turn(step); !ours) return propagate(ours);
  if (const Status waited = throttle_.wait(step); !waited) return propagate(waited);
  if (step >= next_step_ + Throttle::depth) progress_.done(step - Throttle::depth);
  if (const Status queued = workload_->queue_step(gpu(), step); !queued) return propagate(queued);
  if (session_) {
    const auto ours = commit(step);
    if (!ours || !*ours) return ours;
  }
  const Status marked = throttle_.mark(gpu(), step);
  if (!marked) return propagate(marked);
  return true;
}

/// Commits the step. Where another process goes on, this step is done again there. An active that nobody can
/// follow goes on; one that somebody has followed before it could stand down is told so a second time.
Result<bool> Run::commit(std::uint64_t step) {
  const auto try_it = [&] {
    return session_->commit(gpu().stream().handle(), step, workload_->state(), workload_->changed());
  };
  Status committed = try_it();
  if (!committed && committed.error().code == ErrorCode::PermissionDenied) {
    const auto stood_down = session_->stand_down();
    if (!stood_down) return propagate(stood_down);
    if (*stood_down) {
      progress_.tell("stood down");
      return false;
    }
    committed = try_it();
  }
  if (!committed) return propagate(committed);
  return true;
}

Status Run::finish() {
  const auto output = workload_->output(gpu());
  if (!output) return propagate(output, "output");
  if (const Status same = more_memory_.check(gpu()); !same) return same;
  progress_.done(workload_->last_step());
  if (!options_.output.empty()) {
    if (const Status written = write_whole_file(options_.output, *output); !written) return written;
  }
  fmt::print("{}: {} steps, output {}\n", program_.name, workload_->last_step(),
             hexadecimal(digest(*output)));
  std::fflush(stdout);
  return leave();
}

Result<Run> open_run(const Program& program, const Options& options) {
  std::optional<Session> session;
  if (!options.standalone && std::getenv("FIREBREAK_SOCKET") != nullptr) {
    auto joined = Session::join();
    if (!joined) return propagate(joined);
    session = std::move(*joined);
  }
  const bool waits = session && session->is_standby();
  auto gpu = waits && options.standby_sms > 0 ? Gpu::open_small(program.ptx, options.standby_sms)
                                              : Gpu::open(program.ptx);
  if (!gpu) return propagate(gpu);
  return Run(program, options, std::move(*gpu), std::move(session));
}

Status run(const Program& program, const Options& options) {
  auto run = open_run(program, options);
  if (!run) return propagate(run);
  if (const Status prepared = run->prepare(); !prepared) return prepared;
  if (!run->is_standby()) {
    if (const Status gone_on = run->go_on(); !gone_on) return gone_on;
    if (options.start_on_input && !run->took_over()) wait_for_input();
  }
  for (;;) {
    if (run->is_standby()) {
      const auto needed = run->stand_by();
      if (!needed) return propagate(needed);
      if (!*needed) return run->leave();
    }
    const auto all_done = run->run_steps();
    if (!all_done) return propagate(all_done);
    if (*all_done) return run->finish();
  }
}

Failure failure_of(ErrorCode code) {
  if (code == ErrorCode::Device) return Failure::Gpu;
  return code == ErrorCode::PermissionDenied ? Failure::Fenced : Failure::Other;
}

}  // namespace

int run_program(const Program& program, int argument_count, const char* const* arguments) {
  const auto parsed = parse_options(program.description, argument_count, arguments);
  if (const auto* over = std::get_if<ExitStatus>(&parsed)) return over->value;
  const Status status = run(program, std::get<Options>(parsed));
  if (status) return 0;
  fmt::print(stderr, "{}: {}\n", program.name, to_string(status.error()));
  return static_cast<int>(failure_of(status.error().code));
}

int run_program_or_end(const Program& program, int argument_count, const char* const* arguments) {
  const int status = run_program(program, argument_count, arguments);
  if (status != 0) std::_Exit(status);
  return status;
}

}  // namespace firebreak::workloads
