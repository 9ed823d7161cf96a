// SPDX-License-Identifier: Apache-2.0
#include "ground/os/addresses.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "ground/os/memory.h"
#include "ground/os/self.h"

namespace firebreak::os {
namespace {

TEST(MemoryMap, EveryFieldOfALine) {
  const auto regions = parse_memory_map(
      "00400000-00452000 r-xp 00001000 08:02 173521      /usr/bin/with space\n"
      "7f2c00000000-7f2c00021000 rw-p 00000000 00:00 0 \n"
      "567000000000-567000010000 rw-s 567000000000 00:01 1042   /memfd:nvidia-uvm (deleted)\n");
  ASSERT_EQ(regions.size(), 3U);
  EXPECT_EQ(regions[0].begin, 0x400000U);
  EXPECT_EQ(regions[0].end, 0x452000U);
  EXPECT_EQ(regions[0].offset_bytes, 0x1000U);
  EXPECT_EQ(regions[0].file.number, 173521U);
  EXPECT_EQ(regions[1].file, FileIdentity{});
  EXPECT_FALSE(regions[0].writable);
  EXPECT_TRUE(regions[1].writable);
  EXPECT_EQ(regions[2].offset_bytes, regions[2].begin);
  EXPECT_NE(regions[2].file, regions[0].file);
}

TEST(MemoryMap, WhatIsNoLineIsLeftOut) {
  EXPECT_TRUE(parse_memory_map("").empty());
  EXPECT_TRUE(parse_memory_map("\n\nnonsense\n12-\n12-34 \n12-34 rw-p\n12-34 rw-p 0 0:0\n").empty());
  EXPECT_EQ(parse_memory_map("12-34 rw-p 0 0:0 0 ").size(), 1U);  // the text has no newline at its end
}

TEST(MemoryMap, OwnMappingOfAFileIsFoundByItsIdentity) {
  const auto file = create_memory_file("mine", 3 * page_size());
  ASSERT_TRUE(file);
  const auto identity = identity_of(file->get());
  ASSERT_TRUE(identity);
  const auto mapping = Mapping::of_file(file->get(), page_size(), Protection::Read, 2 * page_size());
  ASSERT_TRUE(mapping);
  const auto regions = memory_map(own_pid());
  ASSERT_TRUE(regions);
  const auto found = std::find_if(regions->begin(), regions->end(),
                                  [&](const MappedRegion& region) { return region.file == *identity; });
  ASSERT_NE(found, regions->end());
  EXPECT_EQ(found->begin, reinterpret_cast<std::uint64_t>(mapping->data()));
  EXPECT_EQ(found->end - found->begin, page_size());
  EXPECT_EQ(found->offset_bytes, 2 * page_size());
}

TEST(MemoryMap, AskedForSomeAddressesItIsThatPartOfTheWhole) {
  const auto file = create_memory_file("mine", 4 * page_size());
  ASSERT_TRUE(file);
  const auto mapping = Mapping::of_file(file->get(), 2 * page_size(), Protection::Read, page_size());
  ASSERT_TRUE(mapping);
  const auto here = reinterpret_cast<std::uint64_t>(mapping->data());
  const std::uint64_t highest = std::uint64_t{1} << 47;
  for (const auto& [begin, end] : {std::pair(here, here + 1), std::pair(here + page_size(), highest),
                                   std::pair(std::uint64_t{0}, here), std::pair(here, here)}) {
    const auto part = memory_map_within(own_pid(), begin, end);
    auto all = memory_map(own_pid());
    ASSERT_TRUE(part && all);
    std::erase_if(*all, [&](const MappedRegion& each) { return each.end <= begin || each.begin >= end; });
    ASSERT_EQ(part->size(), all->size());
    for (std::size_t i = 0; i < all->size(); ++i) {
      EXPECT_EQ((*part)[i].begin, (*all)[i].begin);
      EXPECT_EQ((*part)[i].offset_bytes, (*all)[i].offset_bytes);
      EXPECT_EQ((*part)[i].file, (*all)[i].file);
      EXPECT_EQ((*part)[i].writable, (*all)[i].writable);
    }
  }
}

TEST(MemoryMap, AProcessThatIsNotThereHasNone) {
  const auto regions = memory_map(1 << 30);
  ASSERT_FALSE(regions);
  EXPECT_EQ(regions.error().code, ErrorCode::NotFound);
}

}  // namespace
}  // namespace firebreak::os
