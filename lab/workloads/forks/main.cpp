// SPDX-License-Identifier: Apache-2.0
/// The fence's other adversary: an active with one kernel that stores one word for ever, and with a child of
/// fork(), which has all that its parent has on the GPU and does nothing. The parent is to be killed: its
/// standby then clears the word again and again, and counts how often somebody stored it beside it. SIGUSR2:
/// the parent becomes another program.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>

#include "program/cuda/copy.h"
#include "program/cuda/pinned_buffer.h"
#include "workloads/common/gpu.h"
#include "workloads/common/session.h"

namespace {

using namespace firebreak;
using workloads::Gpu;
using workloads::Session;

constexpr const char* ptx = R"(.version 7.0
.target sm_70
.address_size 64

.visible .entry store(.param .u64 word)
{
  .reg .u64 %word;
  ld.param.u64 %word, [word];
again:
  st.volatile.global.u32 [%word], 1;
  bra again;
}
)";

struct Options {
  bool child = true;
  bool stranger = false;
  unsigned int child_s = 30;
  int watch_ms = 500;
};

void say(const std::string& line) {
  std::puts(line.c_str());
  std::fflush(stdout);
}

/// What a child of a program with threads may do is little: system calls.
/// `begun` is closed once it is what it will be.
[[noreturn]] void live_as_child(const Options& options, int begun) {
  ::alarm(options.child_s);  // it ends by itself, whatever becomes of its parent
  if (options.stranger) {
    const std::string seconds = std::to_string(options.child_s);
    for (int number = 3; number < 1024; ++number) ::fcntl(number, F_SETFD, number == begun ? FD_CLOEXEC : 0);
    ::execlp("sleep", "sleep", seconds.c_str(), nullptr);
  }
  ::close(begun);
  for (;;) ::pause();
}

/// Returns once the child is what it will be.
Result<pid_t> have_child(const Options& options) {
  std::array<int, 2> begun{};
  if (::pipe2(begun.data(), O_CLOEXEC) != 0) return fail(ErrorCode::ResourceExhausted, "no pipe");
  const pid_t child = ::fork();
  if (child < 0) return fail(ErrorCode::ResourceExhausted, "no child by fork()");
  if (child == 0) live_as_child(options, begun[1]);
  ::close(begun[1]);
  std::byte nothing{};
  while (::read(begun[0], &nothing, 1) < 0 && errno == EINTR) {
  }
  ::close(begun[0]);
  return child;
}

/// The active itself, when it is told to: its child has everything still, the agent's connection too.
void become_another_program(int) {
  static std::array<char*, 3> command{const_cast<char*>("sleep"), const_cast<char*>("30"), nullptr};
  ::execv("/bin/sleep", command.data());
}

Result<std::uint32_t> read_word(const Gpu& gpu, const cuda::Stream& stream, CUdeviceptr word,
                                const cuda::PinnedBuffer& seen) {
  if (Status queued = cuda::copy_to_host(gpu.driver(), seen.bytes(), word, stream.handle()); !queued)
    return propagate(queued);
  if (Status done = stream.synchronize(); !done) return propagate(done);
  return *reinterpret_cast<const volatile std::uint32_t*>(seen.data());
}

/// Returns only where something fails.
Status store_for_ever(const Options& options, const Gpu& gpu, const cuda::PinnedBuffer& seen,
                      CUdeviceptr word) {
  const auto other = cuda::Stream::create(gpu.driver());
  if (!other) return propagate(other);
  const auto store = gpu.module().function("store");
  if (!store) return propagate(store);
  if (Status cleared = cuda::fill_words(gpu.driver(), word, 0, 1, other->handle()); !cleared) return cleared;
  if (Status done = other->synchronize(); !done) return done;
  if (Status launched = store->launch(gpu.stream().handle(), {}, word); !launched) return launched;
  for (std::uint32_t stored = 0; stored == 0;) {
    const auto now = read_word(gpu, *other, word, seen);
    if (!now) return propagate(now);
    stored = *now;
  }
  ::signal(SIGUSR2, become_another_program);
  const auto child = options.child ? have_child(options) : Result<pid_t>(1);
  if (!child) return propagate(child);
  say("storing, child " + std::to_string(*child));
  for (;;) ::pause();
}

Status count_stores(const Options& options, const Gpu& gpu, const cuda::PinnedBuffer& seen, Session& session,
                    CUdeviceptr word) {
  if (Status ready = session.ready(); !ready) return ready;
  say("ready");
  const auto promotion = session.wait_for_promotion();
  if (!promotion) return propagate(promotion);
  if (!*promotion) return {};
  say("promoted");
  int looks = 0;
  int stores = 0;
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(options.watch_ms);
  while (std::chrono::steady_clock::now() < until) {
    if (Status cleared = cuda::fill_words(gpu.driver(), word, 0, 1, gpu.stream().handle()); !cleared)
      return cleared;
    if (Status done = gpu.stream().synchronize(); !done) return done;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const auto now = read_word(gpu, gpu.stream(), word, seen);
    if (!now) return propagate(now);
    stores += *now != 0 ? 1 : 0;
    if (++looks == 1) {
      if (Status resumed = session.resumed(); !resumed) return resumed;
    }
  }
  say("stores " + std::to_string(stores) + " in " + std::to_string(looks) + " looks");
  return session.leave();
}

Status play(const Options& options) {
  auto session = Session::join();
  if (!session) return propagate(session);
  const auto gpu = Gpu::open(ptx);
  if (!gpu) return propagate(gpu);
  const auto word = session->allocate("word", sizeof(std::uint32_t));
  if (!word) return propagate(word);
  const auto seen = cuda::PinnedBuffer::allocate(gpu->driver(), sizeof(std::uint32_t));
  if (!seen) return propagate(seen);
  return session->is_standby() ? count_stores(options, *gpu, *seen, *session, *word)
                               : store_for_ever(options, *gpu, *seen, *word);
}

}  // namespace

int main(int argument_count, char** arguments) {
  Options options;
  bool no_child = false;
  CLI::App app("A tenant whose active stores one word for ever and has a child; its standby counts stores.");
  app.add_flag("--no-child", no_child, "the active has no child");
  app.add_flag("--stranger", options.stranger,
               "the child becomes another program, and keeps the descriptors");
  app.add_option("--child-s", options.child_s, "how long the child lives");
  app.add_option("--watch-ms", options.watch_ms, "how long the standby counts");
  CLI11_PARSE(app, argument_count, arguments);
  options.child = !no_child;
  const Status played = play(options);
  if (played) return 0;
  std::fprintf(stderr, "firebreak-forks: %s\n", to_string(played.error()).c_str());
  return 1;
}
