// SPDX-License-Identifier: Apache-2.0
// What instrumented code tells is what the interpreter has seen of the same launch: two tracers that know
// nothing of each other.
#include "idempotency/instrument.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <set>
#include <tuple>

#include "idempotency/adversarial_kernel.h"
#include "idempotency/random_kernel.h"
#include "kernels/ptx/parse.h"

namespace firebreak::idempotency {
namespace {

using softgpu::GpuAccess;
// Address, thread, line, size, kind.
using Told = std::multiset<std::tuple<std::uint64_t, std::uint64_t, std::uint32_t, std::uint32_t, GpuAccess>>;

constexpr std::uint64_t most_records = 40'000;
constexpr std::uint64_t never = ~std::uint64_t{0};

void add(Told& all, const softgpu::ObservedAccess& each) {
  all.emplace(each.address, each.thread, each.ptx_line, each.size_bytes, each.access);
}

// Two software GPUs whose memory lies at the same addresses: one runs the kernel, one the instrumented one.
class Instrumented : public ::testing::Test {
 protected:
  // False: it cannot be loaded.
  bool load(const std::string& text) {
    auto module = ptx::parse(text);
    if (!module) return false;
    auto traced = instrument(text, *module, module->functions.at(ptx::find_function(*module, "k")), 1024);
    if (!traced) return false;
    text_ = *traced;
    auto traced_module = ptx::parse(text_);
    EXPECT_TRUE(traced_module) << to_string(traced_module.error()) << text_;
    if (!traced_module) return false;
    buffers_ = allocate_buffers(plain_);
    allocate_buffers(telling_);
    room_ = telling_.allocate(sizeof(TraceHeader) + 8 * 16 + most_records * sizeof(TraceRecord));
    return plain_.load(*std::move(module)) && telling_.load(*std::move(traced_module));
  }

  TraceHeader run_telling(const LaunchCase& launch, std::uint64_t stop_after, std::size_t range_count) {
    TraceHeader header;
    header.most = most_records;
    header.stop_after = stop_after;
    header.records = room_ + sizeof header + 8 * 16;
    header.range_count = range_count;
    auto* at = telling_.bytes(room_, sizeof header + 8 * 16).data();
    std::memcpy(at, &header, sizeof header);
    for (std::size_t i = 0; i < range_count; ++i) {
      const access::MemoryRange& range = plain_.memory()[i];
      const std::uint64_t ends[2] = {range.address, range.address + range.size_bytes};
      std::memcpy(at + sizeof header + i * 16, ends, sizeof ends);
    }
    const std::uint64_t variable = telling_.variable_addresses()[0];
    std::memcpy(telling_.bytes(variable, 8).data(), &room_, 8);
    EXPECT_TRUE(telling_.run(launch, never, plain_order));
    std::memcpy(&header, at, sizeof header);
    return header;
  }

  Told told(const TraceHeader& header) {
    Told all;
    for (std::uint64_t i = 0; i < header.next; ++i) {
      TraceRecord record;
      std::memcpy(&record, telling_.bytes(header.records + i * sizeof record, sizeof record).data(),
                  sizeof record);
      add(all, observed(record));
    }
    return all;
  }

  TracedGpu plain_;
  TracedGpu telling_;
  RandomBuffers buffers_;
  std::uint64_t room_ = 0;
  std::string text_;
};

Told seen_in(const TracedRun& run) {
  Told all;
  for (const softgpu::ObservedAccess& each : run.accesses) add(all, each);
  return all;
}

class InstrumentedKernel : public Instrumented, public ::testing::WithParamInterface<int> {};

TEST_P(InstrumentedKernel, TellsWhatTheInterpreterSees) {
  std::mt19937_64 random(static_cast<std::uint64_t>(GetParam()));
  ASSERT_TRUE(load(make_random_kernel(random)));
  std::uint64_t compared = 0;
  for (int i = 0; i < 6; ++i) {
    const LaunchCase launch = make_random_launch(buffers_, random);
    const auto run = plain_.run(launch, most_records, plain_order);
    ASSERT_TRUE(run);
    if (run->end != RunEnd::Completed) continue;
    const TraceHeader header = run_telling(launch, never, plain_.memory().size());
    ASSERT_LE(header.next, most_records);
    EXPECT_EQ(header.strays, 0U);
    EXPECT_EQ(told(header), seen_in(*run)) << text_;
    compared += header.next;
  }
  EXPECT_GT(compared, 0U);
}

INSTANTIATE_TEST_SUITE_P(Of, InstrumentedKernel, ::testing::Range(1, 41));

TEST_F(Instrumented, TellsWhatAFunctionDoes) {
  std::mt19937_64 random(1);
  ASSERT_TRUE(load(make_adversarial_kernel(AdversarialKind::NoReturn, random)));
  const LaunchCase launch = make_random_launch(buffers_, random);
  const auto run = plain_.run(launch, most_records, plain_order);
  ASSERT_TRUE(run);
  EXPECT_GT(run->accesses.size(), 2U * launch.grid.x * launch.block.x);
  EXPECT_EQ(told(run_telling(launch, never, plain_.memory().size())), seen_in(*run)) << text_;
}

TEST_F(Instrumented, StopsEachThreadAtItsNextAccess) {
  std::mt19937_64 random(7);
  ASSERT_TRUE(load(make_random_kernel(random)));
  const LaunchCase launch = make_random_launch(buffers_, random);
  const TraceHeader whole = run_telling(launch, never, plain_.memory().size());
  ASSERT_GT(whole.next, 10U);
  const TraceHeader torn = run_telling(launch, 5, plain_.memory().size());
  EXPECT_LT(torn.next, whole.next);
  EXPECT_GE(torn.next, 5U) << "those that were told to end are counted, too";
}

TEST_F(Instrumented, EndsBeforeItLeavesItsMemory) {
  std::mt19937_64 random(7);
  ASSERT_TRUE(load(make_random_kernel(random)));
  const auto before = telling_.snapshot();
  const TraceHeader header = run_telling(make_random_launch(buffers_, random), never, 0);
  EXPECT_EQ(header.next, 0U);
  EXPECT_GT(header.strays, 0U);
  for (const access::MemoryRange& range : plain_.memory()) {
    const auto now = telling_.bytes(range.address, range.size_bytes);
    EXPECT_TRUE(std::equal(now.begin(), now.end(), plain_.bytes(range.address, range.size_bytes).begin()));
  }
  EXPECT_EQ(before.size(), telling_.snapshot().size());
}

TEST(Instrument, TheOtherKernelsAreLeftOut) {
  const std::string text =
      ".version 7.0\n.target sm_70\n.address_size 64\n"
      ".visible .entry a()\n{\n  ret;\n}\n"
      ".visible .entry b()\n{\n  {\n    ret;\n  }\n}\n"
      ".visible .entry c()\n.maxntid 32, 1, 1\n{\n  ret;\n}\n";
  const auto module = ptx::parse(text);
  ASSERT_TRUE(module);
  for (std::size_t wanted = 0; wanted < 3; ++wanted) {
    const auto made = instrument(text, *module, module->functions[wanted], 1024);
    ASSERT_TRUE(made);
    const auto read = ptx::parse(*made);
    ASSERT_TRUE(read) << to_string(read.error()) << *made;
    const std::uint32_t at = ptx::find_function(*read, module->functions[wanted].name);
    ASSERT_NE(at, ptx::no_index);
    EXPECT_EQ(read->functions[at].bounds.maxntid[0], wanted == 2 ? 32U : 1024U);
    for (std::size_t other = 0; other < 3; ++other)
      EXPECT_EQ(ptx::find_function(*read, module->functions[other].name) != ptx::no_index, other == wanted);
  }
}

TEST(Instrument, WhatCannotBeTracedIsRefused) {
  const auto refused = [](const std::string& body) {
    const std::string text =
        ".version 7.0\n.target sm_70\n.address_size 64\n.func f()\n{\n  ret;\n}\n.visible .entry k(.param "
        ".u64 a)\n{\n"
        "  .reg .b64 %rd<4>;\n  ld.param.u64 %rd1, [a];\n" +
        body + "  ret;\n}\n";
    const auto module = ptx::parse(text, "text", ptx::UnknownInstructions::Kept);
    EXPECT_TRUE(module) << body;
    if (!module) return false;
    const auto made = instrument(text, *module, module->functions.back(), 32);
    return !made && made.error().code == ErrorCode::Unsupported;
  };
  EXPECT_TRUE(refused("  p: .callprototype _ ();\n  call %rd1, (), p;\n"));
  EXPECT_TRUE(refused("  unheard.of.global [%rd1];\n"));
  EXPECT_FALSE(refused("  st.global.u64 [%rd1], %rd1;\n"));
}

}  // namespace
}  // namespace firebreak::idempotency
