// SPDX-License-Identifier: Apache-2.0
#include "kernels/regions/region_builder.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <string>

#include "kernels/ptx/parse.h"
#include "kernels/regions/area.h"

namespace firebreak::regions {
namespace {

using access::OperationEffects;

constexpr std::uint64_t a = 0x7000'0000'0000;
constexpr std::uint64_t b = 0x7000'0100'0000;
constexpr std::uint64_t c = 0x7000'0200'0000;
const std::vector<access::MemoryRange> memory{{a, 1 << 16, a}, {b, 1 << 16, b}, {c, 1 << 16, c}};

access::DecisionWorkspace::PlacedBox range(std::uint64_t begin, std::uint64_t size_bytes) {
  access::DecisionWorkspace::PlacedBox placed;
  placed.box.starts = access::Affine::constant(static_cast<access::Wide>(begin));
  placed.box.width_bytes = static_cast<access::Wide>(size_bytes);
  return placed;
}

OperationEffects fill(std::uint64_t to, std::uint64_t size_bytes) {
  return fill_effects({to, size_bytes}, memory);
}
OperationEffects copy(std::uint64_t to, std::uint64_t from, std::uint64_t size_bytes) {
  return copy_effects({to, size_bytes}, {from, size_bytes}, memory);
}
// May write, and that is all.
OperationEffects may_write(std::uint64_t to, std::uint64_t size_bytes) {
  OperationEffects effects;
  effects.decision.verdict = access::Verdict::Idempotent;
  effects.writes.push_back(range(to, size_bytes));
  return effects;
}

class RegionTest : public ::testing::Test {
 protected:
  RegionPlace add(const OperationEffects& effects) {
    answer = builder.add(effects, memory);
    return answer.placement;
  }
  void expect_saved(const std::vector<ByteRange>& ranges) { EXPECT_EQ(answer.save_before, ranges); }

  RegionBuilder builder{0};
  RegionAnswer answer;
};

TEST_F(RegionTest, WhatReadsOnlyWhatNobodyWritesContinues) {
  EXPECT_EQ(add(copy(b, a, 100)), RegionPlace::Begins);
  EXPECT_EQ(answer.reason, BreakReason::First);
  EXPECT_EQ(add(copy(c, a, 100)), RegionPlace::Continues);
  EXPECT_EQ(add(fill(b, 50)), RegionPlace::Continues);
}

TEST_F(RegionTest, WhatWasCertainlyWrittenBeforeMayBeReadAndWritten) {
  EXPECT_EQ(add(fill(a, 100)), RegionPlace::Begins);
  EXPECT_EQ(add(copy(b, a, 100)), RegionPlace::Continues);
  EXPECT_EQ(add(fill(a, 100)), RegionPlace::Continues);
}

TEST_F(RegionTest, OverwritingWhatWasReadBreaksBefore) {
  add(copy(b, a, 100));
  EXPECT_EQ(add(fill(a + 40, 100)), RegionPlace::Begins);
  EXPECT_EQ(answer.reason, BreakReason::Overwrites);
  EXPECT_EQ(answer.bytes, (ByteRange{a + 40, a + 100}));
  EXPECT_EQ(answer.other, 0U);
  EXPECT_EQ(describe(answer.reason, answer),
            "it may write what operation 0 has read: 0x700000000028-0x700000000064");
  EXPECT_EQ(add(copy(c, b, 100)), RegionPlace::Continues);  // the copy before is in another region
}

TEST_F(RegionTest, OneByteThatIsNotCertainBreaks) {
  add(fill(a, 99));
  add(copy(b, a, 100));
  EXPECT_EQ(add(fill(a, 99)), RegionPlace::Continues);
  EXPECT_EQ(add(fill(a + 99, 1)), RegionPlace::Begins);
  EXPECT_EQ(answer.bytes, (ByteRange{a + 99, a + 100}));
}

// Doing it again writes the same bytes.
TEST_F(RegionTest, WhatWasOnlyMaybeWrittenMayBeReadButNotOverwritten) {
  add(may_write(a, 100));
  EXPECT_EQ(add(copy(b, a + 50, 100)), RegionPlace::Continues);
  EXPECT_EQ(add(may_write(a + 40, 10)), RegionPlace::Continues);
  EXPECT_EQ(add(may_write(a + 40, 11)), RegionPlace::Begins);
  EXPECT_EQ(answer.reason, BreakReason::Overwrites);
  EXPECT_EQ(answer.other, 1U);
}

TEST_F(RegionTest, AnInPlaceCopyIsAloneUnlessItsBytesAreSaved) {
  EXPECT_EQ(add(copy(a + 8, a, 100)), RegionPlace::Alone);
  EXPECT_EQ(answer.alone_reason, BreakReason::Overwrites);
  EXPECT_EQ(add(fill(b, 8)), RegionPlace::Begins);
  builder = RegionBuilder(92);
  EXPECT_EQ(add(copy(a + 8, a, 100)), RegionPlace::Begins);
  expect_saved({{a + 8, a + 100}});
  builder = RegionBuilder(91);
  EXPECT_EQ(add(copy(a + 8, a, 100)), RegionPlace::Alone);
}

TEST_F(RegionTest, SavingCountsForTheWholeRegion) {
  builder = RegionBuilder(100);
  add(copy(b, a, 150));
  EXPECT_EQ(add(fill(a, 60)), RegionPlace::Continues);
  expect_saved({{a, a + 60}});
  EXPECT_EQ(add(fill(a, 60)), RegionPlace::Continues);  // the bytes are saved
  expect_saved({});
  EXPECT_EQ(add(copy(c, a, 60)), RegionPlace::Continues);
  EXPECT_EQ(add(fill(a + 60, 40)), RegionPlace::Continues);
  EXPECT_EQ(builder.saved_bytes(), 100U);
  EXPECT_EQ(add(fill(a + 100, 1)), RegionPlace::Begins);
  EXPECT_EQ(answer.reason, BreakReason::Overwrites);
  EXPECT_EQ(builder.saved_bytes(), 0U);
}

TEST_F(RegionTest, WhatWasMaybeWrittenMayBeSaved) {
  builder = RegionBuilder(1'000);
  add(may_write(a, 8));
  add(copy(b, a, 100));
  EXPECT_EQ(add(fill(a, 100)), RegionPlace::Continues);
  expect_saved({{a, a + 100}});
}

TEST_F(RegionTest, TheUnknownBreaksBeforeAndAfter) {
  builder = RegionBuilder(1'000);
  add(fill(a, 100));
  EXPECT_EQ(add(unknown_effects()), RegionPlace::Alone);
  EXPECT_EQ(answer.reason, BreakReason::Unknown);
  EXPECT_EQ(add(fill(a, 100)), RegionPlace::Begins);
  EXPECT_EQ(answer.reason, BreakReason::First);
  EXPECT_EQ(add(fill(0x1234, 8)), RegionPlace::Alone);
  EXPECT_EQ(add(copy(a, b + (1 << 16) - 8, 16)), RegionPlace::Alone);
}

TEST_F(RegionTest, WhatWritesNothingMayReadAnything) {
  add(fill(a, 100));
  OperationEffects reader;
  reader.decision.verdict = access::Verdict::Idempotent;
  reader.reads.push_back(range(a, 1 << 16));
  EXPECT_EQ(add(reader), RegionPlace::Continues);
  EXPECT_EQ(add(may_write(b, 100)), RegionPlace::Continues);
  reader.reads.push_back(range(b, 100));
  EXPECT_EQ(add(reader), RegionPlace::Continues);
  EXPECT_EQ(add(fill(a + 100, 100)), RegionPlace::Continues);
}

TEST_F(RegionTest, RowsWithGapsAreKnownRowByRow) {
  add(fill_effects({a, 16, 64, 100}, memory));
  EXPECT_EQ(add(copy_effects({b, 16, 16, 100}, {a, 16, 64, 100}, memory)), RegionPlace::Continues);
  EXPECT_EQ(add(fill_effects({a + 16, 48, 64, 100}, memory)),
            RegionPlace::Continues);  // the gaps between them
  EXPECT_EQ(add(copy_effects({c, 17, 17, 100}, {a, 17, 64, 100}, memory)), RegionPlace::Continues);
  EXPECT_EQ(add(copy_effects({c, 17, 17, 101}, {a, 17, 64, 101}, memory)), RegionPlace::Continues);
  EXPECT_EQ(add(fill(a + 6'400 + 17, 47)), RegionPlace::Continues);
  EXPECT_EQ(add(fill(a + 6'400 + 16, 1)), RegionPlace::Begins);
}

TEST_F(RegionTest, WhereTheOrderOfThreadsChoosesWhatIsWrittenItHasToBeWrittenAnyway) {
  OperationEffects racing = may_write(a, 100);
  racing.may_race = racing.values_may_race = true;
  EXPECT_EQ(add(racing), RegionPlace::Alone);
  EXPECT_EQ(answer.alone_reason, BreakReason::ByOrder);
  add(fill(a, 100));
  EXPECT_FALSE(builder.depends_on_order());
  EXPECT_EQ(add(racing), RegionPlace::Continues);
  EXPECT_TRUE(builder.depends_on_order());
  EXPECT_EQ(add(fill(a, 100)), RegionPlace::Continues);
  EXPECT_FALSE(builder.depends_on_order());
  EXPECT_EQ(add(racing), RegionPlace::Continues);
  // An operation that reads that goes by its order, too.
  OperationEffects follower = may_write(b, 100);
  follower.reads.push_back(range(a + 90, 4));
  EXPECT_EQ(add(follower), RegionPlace::Begins);
  EXPECT_EQ(answer.reason, BreakReason::ByOrder);
  racing.writes.front() = range(c, 100);
  racing.writes.front().is_fixed = true;
  EXPECT_EQ(add(racing), RegionPlace::Continues) << "it writes the same in each order";
}

TEST_F(RegionTest, RowsThatGoByOrderNeedOnlyTheseRowsWritten) {
  OperationEffects racing = may_write(a, 16);
  racing.writes = fill_effects({a, 16, 64, 100}, memory).writes;
  racing.writes.front().is_fixed = false;
  racing.may_race = racing.values_may_race = true;
  add(fill_effects({a, 16, 64, 100}, memory));
  EXPECT_EQ(add(racing), RegionPlace::Continues);
  builder.complete();
  add(fill_effects({a, 16, 64, 99}, memory));
  EXPECT_EQ(add(racing), RegionPlace::Alone);
  builder = RegionBuilder(1 << 16);
  EXPECT_EQ(add(racing), RegionPlace::Begins);
  expect_saved({{a, a + 64 * 99 + 16}});
}

TEST_F(RegionTest, OneMemoryAtTwoAddressesIsOne) {
  std::vector<access::MemoryRange> twice = memory;
  twice[1].canonical_address = a;
  builder.add(copy_effects({c, 100}, {a, 100}, twice), twice);
  EXPECT_EQ(builder.add(fill_effects({b + 99, 1}, twice), twice).reason, BreakReason::Overwrites);
}

TEST_F(RegionTest, NothingOutsideOfMemoryIsSaved) {
  builder = RegionBuilder(1 << 16);
  OperationEffects wide = may_write(a + 65'000, 4'096);
  wide.reads = wide.writes;
  EXPECT_EQ(add(wide), RegionPlace::Begins);
  expect_saved({{a + 65'000, a + 65'536}});
}

TEST_F(RegionTest, WhatIsSavedMayBeReadAfterItWasMaybeWritten) {
  builder = RegionBuilder(100);
  add(copy(b, a, 100));
  EXPECT_EQ(add(may_write(a, 100)), RegionPlace::Continues);
  EXPECT_EQ(add(copy(c, a, 100)), RegionPlace::Continues);
}

TEST_F(RegionTest, ACopyOntoItselfGoesByAnOrderThatNobodyPromises) {
  builder = RegionBuilder(1'000);
  add(copy(b, a, 100));
  EXPECT_FALSE(builder.depends_on_order());
  add(copy(a + 8, a, 100));
  EXPECT_TRUE(builder.depends_on_order());
}

TEST_F(RegionTest, AHugeRegionBreaks) {
  int regions = 0;
  for (std::uint64_t i = 0; i < 10'000; ++i)
    regions += add(copy(b + i, a + i, 1)) == RegionPlace::Begins ? 1 : 0;
  EXPECT_EQ(regions, 3);
  builder.complete();
  regions = 0;
  for (std::uint64_t i = 0; i < 10'000; ++i)
    regions += add(fill(a + 2 * i, 1)) == RegionPlace::Begins ? 1 : 0;
  EXPECT_EQ(regions, 3);
}

// Rows that never meet, though the whole of the ones lies among the others.
TEST_F(RegionTest, ARegionThatCostsTooManyComparisonsBreaks) {
  const auto rows = [](std::uint64_t start, std::uint64_t i) {
    auto placed = range(start + 8 * i, 4);
    placed.box.starts.axes[0] = {1, 8'192, 7};
    placed.box.starts.axis_count = 1;
    return placed;
  };
  OperationEffects effects;
  effects.decision.verdict = access::Verdict::Idempotent;
  for (std::uint64_t i = 0; i < 1'000; ++i) {
    effects.reads.push_back(rows(a, i));
    effects.writes.push_back(rows(a + 4, i));
  }
  EXPECT_EQ(add(effects), RegionPlace::Begins);
  EXPECT_EQ(add(effects), RegionPlace::Continues);
  EXPECT_EQ(add(effects), RegionPlace::Begins);
  EXPECT_EQ(answer.reason, BreakReason::TooLarge);
}

TEST_F(RegionTest, WhatLiesFarApartCostsComparisonsToo) {
  OperationEffects reads = may_write(c, 1);
  for (std::uint64_t i = 0; i < 4'000; ++i) reads.reads.push_back(range(a + i, 1));
  OperationEffects writes;
  writes.decision.verdict = access::Verdict::Idempotent;
  for (std::uint64_t i = 0; i < 1'000; ++i) writes.writes.push_back(range(b + i, 1));
  add(reads);
  std::size_t added = 0;
  while (add(writes) == RegionPlace::Continues && added < 100) ++added;
  EXPECT_GT(added, 10U);
  EXPECT_LT(added, 100U);
  EXPECT_EQ(answer.reason, BreakReason::TooLarge);
}

// Of what a launch writes in very many rows only the first ones are kept.
TEST_F(RegionTest, RowsThatAreTooManyAreNotCertain) {
  constexpr std::uint64_t boxes = 20;
  constexpr access::Wide rows = 512;
  OperationEffects effects;
  effects.decision.verdict = access::Verdict::Idempotent;
  for (std::uint64_t i = 0; i < boxes; ++i) {
    auto placed = range(a + 2 * i, 1);
    placed.box.starts.axes[0] = {1, 2 * boxes, rows - 1};
    placed.box.starts.axis_count = 1;
    effects.writes.push_back(placed);
    effects.certain_writes.push_back(placed.box);
  }
  EXPECT_EQ(add(effects), RegionPlace::Begins);
  EXPECT_EQ(add(copy(c, a, 1)), RegionPlace::Continues);
  EXPECT_EQ(add(fill(a, 1)), RegionPlace::Continues);
  EXPECT_EQ(add(copy(c, a + 2 * (boxes - 1), 1)), RegionPlace::Continues);
  EXPECT_EQ(add(fill(a + 2 * (boxes - 1), 1)), RegionPlace::Begins);
  EXPECT_EQ(answer.reason, BreakReason::Overwrites);
}

// The kernels are out += in, as in a residual layer; and the layer that has written out.
constexpr std::string_view kernels = R"(
.version 8.0
.target sm_80
.address_size 64
.visible .entry layer(.param .u64 in, .param .u64 out, .param .u32 n)
{
  .reg .pred %p<9>; .reg .b32 %r<40>; .reg .b64 %rd<40>;
  ld.param.u64 %rd1, [in]; ld.param.u64 %rd2, [out]; ld.param.u32 %r1, [n];
  mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;
  mad.lo.s32 %r5, %r2, %r3, %r4;
  setp.ge.s32 %p1, %r5, %r1;
  @%p1 bra DONE;
  mul.wide.s32 %rd3, %r5, 4; add.s64 %rd4, %rd1, %rd3; add.s64 %rd5, %rd2, %rd3;
  ld.global.u32 %r6, [%rd4];
  st.global.u32 [%rd5], %r6;
DONE: ret;
}
.visible .entry residual(.param .u64 in, .param .u64 out, .param .u32 n)
{
  .reg .pred %p<9>; .reg .b32 %r<40>; .reg .b64 %rd<40>;
  ld.param.u64 %rd1, [in]; ld.param.u64 %rd2, [out]; ld.param.u32 %r1, [n];
  mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;
  mad.lo.s32 %r5, %r2, %r3, %r4;
  setp.ge.s32 %p1, %r5, %r1;
  @%p1 bra DONE;
  mul.wide.s32 %rd3, %r5, 4; add.s64 %rd4, %rd1, %rd3; add.s64 %rd5, %rd2, %rd3;
  ld.global.u32 %r6, [%rd4];
  ld.global.u32 %r7, [%rd5];
  add.s32 %r7, %r7, %r6;
  st.global.u32 [%rd5], %r7;
DONE: ret;
}
.visible .entry histogram(.param .u64 in, .param .u64 out, .param .u32 n)
{
  .reg .pred %p<9>; .reg .b32 %r<40>; .reg .b64 %rd<40>;
  ld.param.u64 %rd1, [in]; ld.param.u64 %rd2, [out];
  mov.u32 %r4, %tid.x;
  mul.wide.s32 %rd3, %r4, 4; add.s64 %rd4, %rd1, %rd3;
  ld.global.u32 %r6, [%rd4];
  and.b32 %r6, %r6, 63;
  mul.wide.u32 %rd3, %r6, 4; add.s64 %rd5, %rd2, %rd3;
  red.global.add.u32 [%rd5], 1;
  ret;
}
)";

class RegionOfKernelsTest : public RegionTest {
 protected:
  void SetUp() override {
    auto parsed = ptx::parse(std::string(kernels));
    ASSERT_TRUE(parsed) << parsed.error().message;
    module = *std::move(parsed);
  }

  OperationEffects launch(const std::string& kernel, std::uint64_t in, std::uint64_t out, std::uint32_t n) {
    const access::KernelSummary summary =
        access::summarise(module, module.functions.at(ptx::find_function(module, kernel)));
    std::vector<std::byte> parameters(20);
    std::memcpy(parameters.data(), &in, 8);
    std::memcpy(parameters.data() + 8, &out, 8);
    std::memcpy(parameters.data() + 16, &n, 4);
    access::LaunchArguments arguments;
    arguments.grid = {4, 1, 1};
    arguments.block = {32, 1, 1};
    arguments.parameters = parameters;
    arguments.memory = memory;
    access::DecisionWorkspace workspace;
    return access::find_effects(summary, arguments, workspace);
  }

  ptx::Module module;
};

TEST_F(RegionOfKernelsTest, AnInPlaceAdditionPassesWhereTheRegionWroteItsInput) {
  EXPECT_EQ(add(launch("residual", a, b, 100)), RegionPlace::Alone);
  EXPECT_EQ(answer.alone_reason, BreakReason::Overwrites);
  EXPECT_EQ(add(launch("layer", c, b, 100)), RegionPlace::Begins);
  EXPECT_EQ(add(launch("residual", a, b, 100)), RegionPlace::Continues);
  EXPECT_EQ(add(launch("residual", a, b, 100)), RegionPlace::Continues);
  EXPECT_FALSE(builder.depends_on_order());
  EXPECT_EQ(add(launch("residual", a, b, 101)), RegionPlace::Alone) << "one element more than was written";
  EXPECT_EQ(answer.reason, BreakReason::Overwrites);
  EXPECT_EQ(answer.bytes, (ByteRange{b + 400, b + 404}));
}

TEST_F(RegionOfKernelsTest, OrItsBytesAreSaved) {
  builder = RegionBuilder(400);
  EXPECT_EQ(add(launch("residual", a, b, 100)), RegionPlace::Begins);
  expect_saved({{b, b + 400}});
  EXPECT_EQ(add(launch("residual", a, b, 100)), RegionPlace::Continues);
  expect_saved({});
}

TEST_F(RegionOfKernelsTest, AtomicsPassWhereTheRegionClearedTheirMemory) {
  EXPECT_EQ(add(launch("histogram", a, b, 0)), RegionPlace::Alone);
  EXPECT_EQ(add(fill(b, 64 * 4)), RegionPlace::Begins);
  EXPECT_EQ(add(launch("histogram", a, b, 0)), RegionPlace::Continues);
  EXPECT_TRUE(builder.depends_on_order());
  builder.complete();
  EXPECT_EQ(add(fill(b, 64 * 4 - 1)), RegionPlace::Begins);
  EXPECT_EQ(add(launch("histogram", a, b, 0)), RegionPlace::Alone);
}

}  // namespace
}  // namespace firebreak::regions
