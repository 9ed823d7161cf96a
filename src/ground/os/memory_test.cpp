// SPDX-License-Identifier: Apache-2.0
#include "ground/os/memory.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>

namespace firebreak::os {
namespace {

TEST(MemoryFile, TwoMappingsShareTheirBytes) {
  const Fd fd = create_memory_file("shared", 8192).value();
  const Mapping writer = Mapping::of_file(fd.get(), 8192, Protection::ReadWrite).value();
  const Mapping reader = Mapping::of_file(fd.get(), 4096, Protection::Read, 4096).value();
  writer.bytes()[4096] = std::byte{42};
  EXPECT_EQ(reader.bytes()[0], std::byte{42});
  EXPECT_EQ(reader.size_bytes(), 4096u);
}

TEST(MemoryFile, ASealedOneKeepsItsSize) {
  const Fd sealed = create_memory_file("sealed", 4096).value();
  EXPECT_TRUE(has_fixed_size(sealed.get()));
  EXPECT_TRUE(has_fixed_size(sealed.get(), 4096));
  EXPECT_FALSE(has_fixed_size(sealed.get(), 4095));
  EXPECT_FALSE(has_fixed_size(-1, 0));
  EXPECT_NE(::ftruncate(sealed.get(), 0), 0);
  EXPECT_EQ(file_size(sealed.get()).value(), 4096u);
  const Fd open = create_memory_file("open", 4096, MemorySeal::None).value();
  EXPECT_FALSE(has_fixed_size(open.get()));
  EXPECT_FALSE(has_fixed_size(open.get(), 4096));
  EXPECT_EQ(::ftruncate(open.get(), 0), 0);
}

TEST(MemoryFile, ADescriptorThatOnlyWritesCannotBeMapped) {
  const Fd fd = create_memory_file("shared", 4096).value();
  const Fd again = reopen_for_writing_only(fd.get()).value();
  EXPECT_EQ(::pwrite(again.get(), "x", 1, 0), 1);
  EXPECT_EQ(content_of(fd.get()).value()[0], 'x');
  const auto mapping = Mapping::of_file(again.get(), 4096, Protection::ReadWrite);
  ASSERT_FALSE(mapping);
  EXPECT_EQ(mapping.error().code, ErrorCode::PermissionDenied);
}

TEST(MemoryFile, HoldsTextToBeReadFromTheBeginning) {
  const Fd fd = memory_file_with("one\ntwo\n").value();
  char first[4] = {};
  ASSERT_EQ(::read(fd.get(), first, 4), 4);
  EXPECT_EQ(std::string(first, 4), "one\n");
  EXPECT_EQ(content_of(fd.get()).value(), "one\ntwo\n");
}

TEST(MemoryFile, IsRefusedWhereFilesMayNotBeThatLarge) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit low{4096, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &low), 0);
  const auto fitting = create_memory_file("fitting", 4096);
  const auto larger = create_memory_file("larger", 4097);
  const auto content = memory_file_with(std::string(4097, 'x'));
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_TRUE(fitting);
  EXPECT_EQ(larger.error().code, ErrorCode::ResourceExhausted);
  EXPECT_EQ(content.error().code, ErrorCode::ResourceExhausted);
}

TEST(MappingTest, APlaceholderKeepsItsAddressesUntilItGoes) {
  const std::uint64_t address = 0x567800000000;  // sanitizers have a program's own data there
  auto placeholder = Mapping::placeholder(address, 1 << 20);
  ASSERT_TRUE(placeholder);
  EXPECT_EQ(reinterpret_cast<std::uint64_t>(placeholder->data()), address);
  EXPECT_FALSE(Mapping::placeholder(address + page_size(), page_size()));
  placeholder->reset();
  EXPECT_TRUE(Mapping::placeholder(address + page_size(), page_size()));
}

TEST(MappingTest, AnonymousMemoryIsZeroAndPageAligned) {
  const Mapping mapping = Mapping::anonymous(page_size()).value();
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(mapping.data()) % page_size(), 0u);
  EXPECT_EQ(mapping.bytes()[page_size() - 1], std::byte{0});
  EXPECT_NE(mapping.as<std::uint64_t>(), nullptr);
}

TEST(MappingTest, MovesItsMemory) {
  Mapping first = Mapping::anonymous(4096).value();
  void* address = first.data();
  Mapping second = std::move(first);
  EXPECT_EQ(second.data(), address);
  EXPECT_FALSE(first);
  first = std::move(second);
  EXPECT_EQ(first.data(), address);
  first.reset();
  EXPECT_FALSE(first);
}

TEST(MappingTest, RefusesWhatDoesNotFit) {
  const Mapping mapping = Mapping::anonymous(4096).value();
  struct Large {
    std::byte bytes[8192];
  };
  EXPECT_EQ(mapping.as<Large>(), nullptr);
  EXPECT_FALSE(Mapping::of_file(-1, 4096, Protection::Read));
  EXPECT_FALSE(Mapping::anonymous(0));
}

TEST(Mapping, AForbiddenTailCannotBeRead) {
  Mapping mapping = Mapping::anonymous(2 * page_size()).value();
  ASSERT_TRUE(mapping.forbid_tail(page_size()));
  const Fd sink = create_memory_file("sink", page_size(), MemorySeal::None).value();
  const auto* bytes = static_cast<const std::byte*>(mapping.data());
  EXPECT_EQ(::write(sink.get(), bytes + page_size() - 1, 1), 1);
  EXPECT_EQ(::write(sink.get(), bytes + page_size(), 1), -1);
  EXPECT_FALSE(mapping.forbid_tail(3 * page_size()));
}

}  // namespace
}  // namespace firebreak::os
