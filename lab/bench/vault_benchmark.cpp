// SPDX-License-Identifier: Apache-2.0
/// What a process pays to get at memory that the vault keeps: `vault_benchmark [GIB] [REPEAT]` makes GIB
/// pieces of 1 GiB (as many as fit in half of what is free, 40 at most), and has another process import and
/// map 1, 8 and all of them, REPEAT times each. Then whether memory that a process has written and left is
/// wiped before another one gets it. Prints JSON; needs no agent.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "gpu/either_gpu.h"
#include "ground/base/clock.h"
#include "ground/base/units.h"
#include "ground/os/memory.h"
#include "ground/os/real_kernel.h"
#include "ground/os/self.h"
#include "ground/platform/machine.h"
#include "ground/platform/platform.h"
#include "program/client/gpu_memory.h"
#include "program/cuda/address_reservation.h"
#include "program/cuda/copy.h"
#include "program/cuda/first_gpu.h"
#include "program/cuda/physical_allocation.h"

namespace firebreak::bench {
namespace {

constexpr std::uint64_t base = 0x500000000000;
constexpr std::uint64_t piece_bytes = gib;
constexpr std::uint32_t left_behind = 0x5eede57;
constexpr int times_descriptor = 3;
constexpr int first_piece = 4;
constexpr std::size_t times_max = 4096;

double ms_since(Monotonic begin) { return to_ms(SystemClock().now() - begin); }

struct Setting {
  platform::Platform platform;
  cuda::FirstGpu gpu;
  cuda::Device device;
};

Result<Setting> open_gpu() {
  auto platform = gpu::choose_either();
  if (!platform) return propagate(platform);
  auto gpu = cuda::FirstGpu::open(platform->cuda_library);
  if (!gpu) return propagate(gpu);
  auto device = gpu->context().device();
  if (!device) return propagate(device);
  return Setting{std::move(*platform), std::move(*gpu), *device};
}

/// --attach PIECES REPEAT: the other process; leaves its times in the memory file that it was given.
Status attach(int pieces, int repeat) {
  auto setting = open_gpu();
  if (!setting) return propagate(setting);
  auto times = os::Mapping::of_file(times_descriptor, times_max * sizeof(double), os::Protection::ReadWrite);
  if (!times) return propagate(times);
  const auto arena = cuda::AddressReservation::reserve_at(setting->gpu.driver(), base, pieces * piece_bytes);
  if (!arena) return propagate(arena);
  for (int run = 0; run < repeat; ++run) {
    std::vector<client::GpuMemory> attached;
    const Monotonic begin = SystemClock().now();
    for (int piece = 0; piece < pieces; ++piece) {
      auto memory = client::GpuMemory::import_at(setting->device, base + piece * piece_bytes, piece_bytes,
                                                 cuda::Access::ReadWrite, first_piece + piece);
      if (!memory) return propagate(memory);
      attached.push_back(std::move(*memory));
    }
    times->as<double>()[run] = ms_since(begin);
  }
  return {};
}

/// --write PIECES: fills memory of its own and ends.
Status write_and_leave(int pieces) {
  auto setting = open_gpu();
  if (!setting) return propagate(setting);
  const auto arena = cuda::AddressReservation::reserve_at(setting->gpu.driver(), base, pieces * piece_bytes);
  if (!arena) return propagate(arena);
  std::vector<client::GpuMemory::Created> all;
  for (int piece = 0; piece < pieces; ++piece) {
    auto made = client::GpuMemory::create(setting->device, base + piece * piece_bytes, piece_bytes);
    if (!made) return propagate(made);
    all.push_back(std::move(*made));
    if (auto filled =
            cuda::fill_words(setting->gpu.driver(), base + piece * piece_bytes, left_behind, piece_bytes / 4);
        !filled)
      return filled;
  }
  return setting->gpu.context().synchronize();
}

Result<int> run_self(std::vector<std::string> arguments, std::vector<std::pair<int, int>> inherited) {
  os::RealKernel kernel;
  os::SpawnRequest request;
  request.command = {os::executable_path().value()};
  request.command.insert(request.command.end(), arguments.begin(), arguments.end());
  request.inherited = std::move(inherited);
  const auto pid = kernel.spawn(request);
  if (!pid) return propagate(pid);
  for (;;) {
    const auto exit = kernel.try_wait(*pid);
    if (!exit) return propagate(exit);
    if (*exit) return (*exit)->exit_code;
    (void)kernel.poll({}, Milliseconds(1));
  }
}

nlohmann::json summary(std::vector<double> times) {
  std::ranges::sort(times);
  return {{"p50", times[times.size() / 2]},
          {"p99", times[times.size() * 99 / 100]},
          {"min", times.front()},
          {"max", times.back()}};
}

Result<nlohmann::json> time_attaching(const std::vector<int>& descriptors, int pieces, int repeat) {
  auto file = os::create_memory_file("times", times_max * sizeof(double));
  if (!file) return propagate(file);
  auto times = os::Mapping::of_file(file->get(), times_max * sizeof(double), os::Protection::ReadWrite);
  if (!times) return propagate(times);
  std::vector<std::pair<int, int>> inherited = {{file->get(), times_descriptor}};
  for (int piece = 0; piece < pieces; ++piece)
    inherited.emplace_back(descriptors[piece], first_piece + piece);
  const auto status = run_self({"--attach", std::to_string(pieces), std::to_string(repeat)}, inherited);
  if (!status) return propagate(status);
  if (*status != 0) return fail(ErrorCode::Internal, "attaching failed");
  const double* all = times->as<double>();
  return nlohmann::json{{"pieces", pieces}, {"attach_ms", summary({all, all + repeat})}};
}

/// Words that the process before left, in memory that this one gets anew.
Result<nlohmann::json> look_for_leftovers(const Setting& setting, int pieces) {
  const auto status = run_self({"--write", std::to_string(pieces)}, {});
  if (!status) return propagate(status);
  if (*status != 0) return fail(ErrorCode::Internal, "writing failed");
  std::uint64_t found = 0;
  std::vector<std::uint32_t> words((64 * mib) / 4);
  const auto arena = cuda::AddressReservation::reserve_at(setting.gpu.driver(), base, pieces * piece_bytes);
  if (!arena) return propagate(arena);
  for (int piece = 0; piece < pieces; ++piece) {
    const std::uint64_t address = base + piece * piece_bytes;
    auto physical = cuda::PhysicalAllocation::create(setting.device, piece_bytes);
    if (!physical) return propagate(physical);
    auto mapping = cuda::Mapping::map(setting.device, address, *physical, cuda::Access::ReadWrite);
    if (!mapping) return propagate(mapping);
    for (std::uint64_t at = 0; at < piece_bytes; at += words.size() * 4) {
      const auto copied = setting.gpu.driver().check(
          setting.gpu.driver()->cuMemcpyDtoH(words.data(), address + at, words.size() * 4), "cuMemcpyDtoH");
      if (!copied) return propagate(copied);
      found += static_cast<std::uint64_t>(
          std::ranges::count_if(words, [](std::uint32_t word) { return word != 0; }));
    }
  }
  return nlohmann::json{{"pieces", pieces}, {"words_not_zero", found}};
}

Result<int> pieces_that_fit(const Setting& setting, int wanted) {
  std::size_t free_bytes = 0, total_bytes = 0;
  const auto asked = setting.gpu.driver().check(setting.gpu.driver()->cuMemGetInfo(&free_bytes, &total_bytes),
                                                "cuMemGetInfo");
  if (!asked) return propagate(asked);
  return std::min(wanted, static_cast<int>(free_bytes / 2 / piece_bytes));
}

Status measure(int wanted, int repeat) {
  auto setting = open_gpu();
  if (!setting) return propagate(setting);
  const auto fit = pieces_that_fit(*setting, wanted);
  if (!fit) return propagate(fit);
  const platform::Machine machine = platform::describe_machine(setting->platform);
  nlohmann::json document = {{"what", "vault_benchmark"},
                             {"machine",
                              {{"gpu", machine.gpu},
                               {"driver", machine.driver},
                               {"linux", machine.linux_release},
                               {"commit", machine.commit},
                               {"date", machine.date}}},
                             {"repeat", repeat},
                             {"piece_mib", piece_bytes / mib}};
  if (auto leftovers = look_for_leftovers(*setting, *fit)) document["left_by_another_process"] = *leftovers;
  std::vector<cuda::PhysicalAllocation> memory;
  std::vector<int> descriptors;
  for (int piece = 0; piece < *fit; ++piece) {
    auto made = cuda::PhysicalAllocation::create(setting->device, piece_bytes);
    if (!made) return propagate(made);
    const auto descriptor = made->export_descriptor();
    if (!descriptor) return propagate(descriptor);
    memory.push_back(std::move(*made));
    descriptors.push_back(*descriptor);
  }
  for (const int pieces : {1, std::min(8, *fit), *fit}) {
    auto timed = time_attaching(descriptors, pieces, repeat);
    if (!timed) return propagate(timed);
    document["attach"].push_back(std::move(*timed));
  }
  std::printf("%s\n", document.dump(1).c_str());
  return {};
}

Status run(int count, char** arguments) {
  const auto number = [&](int at, int otherwise) {
    return count > at ? std::atoi(arguments[at]) : otherwise;
  };
  const std::string mode = count > 1 ? arguments[1] : "";
  if (mode == "--attach") return attach(number(2, 1), number(3, 1));
  if (mode == "--write") return write_and_leave(number(2, 1));
  return measure(std::clamp(number(1, 40), 1, 512),
                 std::clamp(number(2, 50), 1, static_cast<int>(times_max)));
}

}  // namespace
}  // namespace firebreak::bench

int main(int count, char** arguments) {
  const auto done = firebreak::bench::run(count, arguments);
  if (done) return 0;
  std::fprintf(stderr, "vault_benchmark: %s\n", to_string(done.error()).c_str());
  return 1;
}
