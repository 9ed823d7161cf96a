// SPDX-License-Identifier: Apache-2.0
#include "softgpu/interpreter/address_space.h"

#include <gtest/gtest.h>

#include <array>
#include <thread>

namespace firebreak::softgpu {
namespace {

Translation range(std::uint64_t begin, std::uint64_t end, PageAccess access = PageAccess::ReadWrite) {
  Translation translation;
  translation.begin = begin;
  translation.end = end;
  translation.access = access;
  return translation;
}

TEST(AddressSpace, FindsTheMappingThatHoldsAnAddress) {
  AddressSpace memory;
  ASSERT_TRUE(memory.map(range(0x1000, 0x2000)));
  ASSERT_TRUE(memory.map(range(0x2000, 0x3000, PageAccess::ReadOnly)));
  EXPECT_FALSE(memory.find(0xfff));
  EXPECT_EQ(memory.find(0x1000)->begin, 0x1000U);
  EXPECT_EQ(memory.find(0x1fff)->begin, 0x1000U);
  EXPECT_EQ(memory.find(0x2000)->access, PageAccess::ReadOnly);
  EXPECT_FALSE(memory.find(0x3000));
}

TEST(AddressSpace, RefusesOverlapAndEmptyRanges) {
  AddressSpace memory;
  ASSERT_TRUE(memory.map(range(0x1000, 0x3000)));
  EXPECT_FALSE(memory.map(range(0x2000, 0x4000)));
  EXPECT_FALSE(memory.map(range(0x0, 0x1001)));
  EXPECT_FALSE(memory.map(range(0x1800, 0x1900)));
  EXPECT_FALSE(memory.map(range(0x0, 0x8000)));
  EXPECT_FALSE(memory.map(range(0x5000, 0x5000)));
}

TEST(AddressSpace, UnmapTakesWholeMappingsOnly) {
  AddressSpace memory;
  ASSERT_TRUE(memory.map(range(0x1000, 0x2000)));
  ASSERT_TRUE(memory.map(range(0x3000, 0x4000)));
  EXPECT_FALSE(memory.unmap(0x1800, 0x800));
  EXPECT_FALSE(memory.unmap(0x0, 0x1800));
  EXPECT_TRUE(memory.find(0x1000));
  EXPECT_TRUE(memory.unmap(0x0, 0x10000));
  EXPECT_FALSE(memory.find(0x1000));
  EXPECT_FALSE(memory.find(0x3000));
}

TEST(AddressSpace, ProtectNeedsTheWholeRangeMapped) {
  AddressSpace memory;
  ASSERT_TRUE(memory.map(range(0x1000, 0x2000)));
  ASSERT_TRUE(memory.map(range(0x2000, 0x3000)));
  EXPECT_FALSE(memory.protect(0x1000, 0x3000, PageAccess::ReadOnly));
  EXPECT_FALSE(memory.protect(0x1000, 0x1800, PageAccess::ReadOnly));
  EXPECT_EQ(memory.find(0x1000)->access, PageAccess::ReadWrite);
  EXPECT_TRUE(memory.protect(0x1000, 0x2000, PageAccess::ReadOnly));
  EXPECT_EQ(memory.find(0x2800)->access, PageAccess::ReadOnly);
  EXPECT_TRUE(memory.protect(0x1000, 0x1000, PageAccess::None));
  EXPECT_FALSE(memory.find(0x1000));
}

TEST(AddressSpace, EveryChangeIsANewGeneration) {
  AddressSpace memory;
  std::uint64_t before = memory.generation();
  const auto changed = [&] { return std::exchange(before, memory.generation()) != memory.generation(); };
  memory.map(range(0x1000, 0x2000));
  EXPECT_TRUE(changed());
  memory.protect(0x1000, 0x1000, PageAccess::ReadOnly);
  EXPECT_TRUE(changed());
  memory.unmap(0x1000, 0x1000);
  EXPECT_TRUE(changed());
}

TEST(AddressSpace, ATranslationKeepsItsMemoryAlive) {
  AddressSpace memory;
  auto owner = std::make_shared<std::array<std::byte, 64>>();
  Translation mapped = range(0x1000, 0x1040);
  mapped.host = owner->data();
  mapped.keep_alive = owner;
  ASSERT_TRUE(memory.map(std::move(mapped)));
  std::optional<Translation> held = memory.find(0x1000);
  ASSERT_TRUE(memory.unmap(0x1000, 0x40));
  EXPECT_EQ(owner.use_count(), 2);
  held.reset();
  EXPECT_EQ(owner.use_count(), 1);
}

TEST(AddressSpace, ReadersAndWritersMayRunAtOnce) {
  AddressSpace memory;
  ASSERT_TRUE(memory.map(range(0x1000, 0x2000)));
  std::thread writer([&] {
    for (std::uint64_t i = 0; i < 500; ++i) {
      memory.map(range(0x10000, 0x11000));
      memory.unmap(0x10000, 0x1000);
    }
  });
  std::uint64_t found = 0;
  for (int i = 0; i < 500; ++i) found += memory.find(0x1800) ? 1 : 0;
  writer.join();
  EXPECT_EQ(found, 500U);
}

}  // namespace
}  // namespace firebreak::softgpu
