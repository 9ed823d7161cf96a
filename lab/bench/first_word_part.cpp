// SPDX-License-Identifier: Apache-2.0
/// One part in tests/hardware/first-word.sh, told by lines on its standard input, whose end ends it.
///   first_word_part client [contexts=N] [streams=N] [work=none|once|busy]   says "ready"; "reset": destroys
///   its
///       contexts and says "reset". Work that the GPU refuses is said ("dead ERROR"), and there is no more of
///       it.
///   first_word_part listen   says "listening", then "xid NUMBER NANOSECONDS MICROSECONDS" for each Xid: when
///   it
///       was read (CLOCK_MONOTONIC), and the kernel log's own time of it.
#include <fcntl.h>
#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/either_gpu.h"
#include "ground/base/clock.h"
#include "ground/platform/platform.h"
#include "program/cuda/context.h"
#include "program/cuda/device.h"
#include "program/cuda/module.h"
#include "program/cuda/stream.h"

namespace {

using namespace firebreak;

/// Long enough that a busy client is busy, short beside any fault's times.
constexpr std::string_view ptx = R"(.version 7.0
.target sm_70
.address_size 64

.visible .entry count_down(.param .u32 rounds)
{
  .reg .u32 %n;
  .reg .pred %on;
  ld.param.u32 %n, [rounds];
again:
  sub.u32 %n, %n, 1;
  setp.ne.u32 %on, %n, 0;
  @%on bra again;
  ret;
}
)";

constexpr unsigned int rounds_on_a_gpu = 100'000;
constexpr unsigned int rounds_in_software = 100;
constexpr std::size_t record_bytes_max = 8192;

void say(const std::string& line) {
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

int complain(const Error& error) {
  fmt::print(stderr, "first_word_part: {}\n", to_string(error));
  return 1;
}

struct Wish {
  unsigned int contexts = 1;
  unsigned int streams = 1;
  std::string work = "once";
};

unsigned int number_of(std::string_view text) {
  unsigned int number = 0;
  (void)std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

Wish wish_of(std::span<char*> arguments) {
  Wish wish;
  for (const std::string_view argument : arguments) {
    const std::size_t equals = argument.find('=');
    const std::string_view name = argument.substr(0, equals);
    const std::string_view value = equals == argument.npos ? "" : argument.substr(equals + 1);
    if (name == "contexts") wish.contexts = number_of(value);
    if (name == "streams") wish.streams = number_of(value);
    if (name == "work") wish.work = value;
  }
  return wish;
}

/// Reads what comes on standard input within that time; "end" when nothing more will.
std::string heard(os::Kernel& kernel, Milliseconds wait) {
  static constexpr int input = 0;
  const auto ready = kernel.poll(std::span(&input, 1), wait);
  if (!ready || ready->empty()) return {};
  std::array<char, 64> buffer{};
  os::Fd standard_input(input);
  const auto count = kernel.read(standard_input, std::as_writable_bytes(std::span(buffer)));
  standard_input.release();
  return count && *count > 0 ? std::string(buffer.data(), *count) : "end";
}

/// A context and what is in it.
struct Place {
  cuda::Context context;
  std::vector<cuda::Stream> streams;
  cuda::Module module;
  cuda::Function function;
};

Result<Place> make_place(const cuda::Device& device, const cuda::Driver& driver, const Wish& wish) {
  auto context = cuda::Context::create(device);
  if (!context) return propagate(context);
  auto module = cuda::Module::load_ptx(driver, ptx);
  if (!module) return propagate(module);
  auto function = module->function("count_down");
  if (!function) return propagate(function);
  std::vector<cuda::Stream> streams;
  for (unsigned int i = 0; i < wish.streams; ++i) {
    auto stream = cuda::Stream::create(driver);
    if (!stream) return propagate(stream);
    streams.push_back(std::move(*stream));
  }
  return Place{std::move(*context), std::move(streams), std::move(*module), *function};
}

/// A kernel in each stream of each context.
Status work_once(const std::vector<Place>& places, unsigned int rounds) {
  for (const Place& place : places) {
    if (auto current = place.context->make_current(); !current) return current;
    std::array<void*, 1> arguments{&rounds};
    for (const cuda::Stream& stream : place.streams) {
      const CUresult launched = place.function.launch_packed(stream.handle(), cuda::LaunchShape{}, arguments);
      if (auto good = place.context->driver().check(launched, "launch"); !good) return good;
    }
    if (auto done = place.context->synchronize(); !done) return done;
  }
  return {};
}

int be_a_client(const platform::Platform& platform, const Wish& wish) {
  const auto driver = cuda::Driver::open(platform.cuda_library);
  if (!driver) return complain(driver.error());
  const auto device = cuda::Device::get(**driver, 0);
  if (!device) return complain(device.error());
  std::vector<Place> places;
  for (unsigned int i = 0; i < wish.contexts; ++i) {
    auto place = make_place(*device, **driver, wish);
    if (!place) return complain(place.error());
    places.push_back(std::move(*place));
  }
  const unsigned int rounds = platform.gpu == platform::Gpu::Real ? rounds_on_a_gpu : rounds_in_software;
  bool works = wish.work == "busy";
  if (wish.work != "none") {
    if (auto done = work_once(places, rounds); !done) return complain(done.error());
  }
  say("ready");
  for (;;) {
    const std::string words = heard(*platform.kernel, Milliseconds(works ? 0 : -1));
    if (words == "end") return 0;
    if (words.starts_with("reset")) {
      works = false;
      places.clear();
      say("reset");
    }
    if (!works) continue;
    if (auto done = work_once(places, rounds); !done) {
      works = false;
      say("dead " + done.error().message);
    }
  }
}

/// "6,1234,5678901,-;NVRM: Xid (PCI:0000:01:00): 13, pid=…"
void tell_xid(std::string_view record, Nanoseconds read_at) {
  const std::size_t found = record.find("Xid (");
  const std::size_t colon = found == record.npos ? found : record.find("): ", found);
  if (colon == record.npos) return;
  const std::size_t second_comma = record.find(',', record.find(',') + 1);
  unsigned long long microseconds = 0;
  const std::string_view time = record.substr(second_comma + 1);
  (void)std::from_chars(time.data(), time.data() + time.size(), microseconds);
  say(fmt::format("xid {} {} {}", number_of(record.substr(colon + 3)), read_at.count(), microseconds));
}

/// Looks all the time on a real GPU: its log does not wake who waits for it at once.
int listen(const platform::Platform& platform) {
  const auto log = platform.kernel->open("/dev/kmsg", O_RDONLY | O_NONBLOCK);
  if (!log) return complain(log.error());
  std::vector<std::byte> buffer(record_bytes_max);
  const Milliseconds pause(platform.gpu == platform::Gpu::Real ? 0 : 1);
  bool is_new = false;
  for (;;) {
    const auto size = platform.kernel->read(*log, buffer);
    const bool has_record = size && *size > 0;
    if (has_record && is_new) {
      tell_xid({reinterpret_cast<const char*>(buffer.data()), *size}, SystemClock().now().time_since_epoch());
    }
    if (has_record) continue;
    if (!is_new) say("listening");
    is_new = true;
    if (heard(*platform.kernel, pause) == "end") return 0;
  }
}

}  // namespace

int main(int argument_count, char** arguments) {
  const std::string_view part = argument_count > 1 ? arguments[1] : "";
  const auto platform = gpu::choose_either();
  if (!platform) return complain(platform.error());
  if (part == "listen") return listen(*platform);
  if (part == "client")
    return be_a_client(*platform, wish_of(std::span(arguments, argument_count).subspan(2)));
  fmt::print(stderr, "usage: first_word_part client [NAME=VALUE...] | listen\n");
  return 2;
}
