// SPDX-License-Identifier: Apache-2.0
#include "kernels/fatbin/image.h"

#include <gmock/gmock.h>
#include <lz4.h>
#include <zstd.h>

#include <fstream>
#include <iterator>
#include <random>

#include "kernels/fatbin/describe.h"
#include "tests/doubles/base/test_seed.h"
#include "tests/doubles/fatbin/image_test_support.h"

namespace firebreak::fatbin {
namespace {

using test::CubinBuilder;
using test::EntryToBuild;
using test::fat_binary;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr TargetGpu hopper{9, 0};

std::string sample(const std::string& name) {
  std::ifstream file(std::string(FIREBREAK_FATBIN_TESTDATA) + "/" + name, std::ios::binary);
  EXPECT_TRUE(file) << name;
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string ptx_with(const std::string& name) {
  return ".version 7.0\n.global .u32 " + name + ";\nmov.u64 %r, " + name + ";";
}

EntryToBuild ptx(std::uint32_t arch, const std::string& variable) { return {1, arch, ptx_with(variable)}; }

EntryToBuild cubin(std::uint32_t arch, const std::string& variable, std::uint64_t flags = 0x11) {
  CubinBuilder made;
  made.with_global(4).with({variable, ".nv.global"}).with(CubinBuilder::Relocation{variable});
  return {2, arch, made.build(), flags};
}

EntryToBuild compressed(std::uint64_t flag, const std::string& content) {
  const auto size = static_cast<int>(content.size());
  std::string packed(ZSTD_compressBound(content.size()) + 1024, '\0');
  const std::size_t packed_bytes =
      flag == 0x2000 ? static_cast<std::size_t>(LZ4_compress_default(content.data(), packed.data(), size,
                                                                     static_cast<int>(packed.size())))
                     : ZSTD_compress(packed.data(), packed.size(), content.data(), content.size(), 3);
  packed.resize(packed_bytes);
  return {1, 90, packed, 0x11 | flag, content.size()};
}

std::vector<std::string> names(const Code& code) {
  std::vector<std::string> found;
  for (const Variable& variable : code.variables) found.push_back(variable.name);
  return found;
}

std::vector<std::string> taken(const std::vector<EntryToBuild>& entries, const TargetGpu& gpu) {
  return names(code_of_image(fat_binary(entries), gpu));
}

// ---- Which entries ----

TEST(FatBinary, MachineCodeOfTheSameMajorVersionIsTakenAndNoPtx) {
  const std::vector<EntryToBuild> all{cubin(80, "eight"), cubin(86, "eight_six"), cubin(90, "nine"),
                                      ptx(90, "text")};
  EXPECT_THAT(taken(all, {9, 0}), ElementsAre("nine"));
  EXPECT_THAT(taken(all, {8, 0}), ElementsAre("eight"));
  EXPECT_THAT(taken(all, {8, 9}), ElementsAre("eight", "eight_six")) << "either may be taken";
}

TEST(FatBinary, WithoutMachineCodePtxIsTaken) {
  const std::vector<EntryToBuild> all{cubin(80, "eight"), ptx(75, "old"), ptx(90, "new"), ptx(120, "newer")};
  EXPECT_THAT(taken(all, hopper), ElementsAre("new", "old"));
  EXPECT_THAT(taken(all, {8, 6, true}), ElementsAre("eight", "old")) << "PTX may be preferred";
}

TEST(FatBinary, WhatTheDriverCompilesIsKnownWhereItIsCertain) {
  const auto form_of = [](const std::vector<EntryToBuild>& entries, const TargetGpu& gpu) {
    return choose_code(fat_binary(entries), gpu).form;
  };
  const std::vector<EntryToBuild> all{cubin(80, "eight"), ptx(75, "old"), ptx(90, "new"), ptx(120, "newer")};
  const ChosenCode chosen = choose_code(fat_binary(all), hopper);
  EXPECT_EQ(chosen.form, CodeForm::Ptx);
  EXPECT_EQ(chosen.ptx, ptx_with("new")) << "without the zeroes behind it";
  EXPECT_EQ(form_of(all, {8, 0}), CodeForm::MachineCode);
  EXPECT_EQ(form_of(all, {8, 0, true}), CodeForm::Unknown) << "PTX may be preferred";
  EXPECT_EQ(form_of({ptx(90, "one"), ptx(90, "other")}, hopper), CodeForm::Unknown) << "either may be taken";
  EXPECT_EQ(form_of({ptx(120, "newer")}, hopper), CodeForm::Unknown);
  EXPECT_EQ(choose_code(ptx_with("plain") + '\0', hopper).ptx, ptx_with("plain"));
}

TEST(FatBinary, ThePtxBesideMachineCodeIsTheNewestThatTheGpuCouldTake) {
  const std::string image =
      fat_binary({cubin(90, "nine"), ptx(75, "old"), ptx(80, "new"), ptx(120, "newer")});
  EXPECT_EQ(newest_ptx(image, hopper), ptx_with("new"));
  EXPECT_EQ(newest_ptx(image, {7, 5}), ptx_with("old"));
  EXPECT_EQ(newest_ptx(fat_binary({cubin(90, "nine"), ptx(120, "newer")}), hopper), "");
  EXPECT_EQ(newest_ptx(ptx_with("plain"), hopper), "") << "no fat binary";
  EXPECT_EQ(newest_ptx(image.substr(0, image.size() / 2), hopper), "");
}

TEST(FatBinary, CodeForOneArchitectureAloneIsForNoLaterOne) {
  EXPECT_THAT(taken({cubin(100, "exact", 0x100011), ptx(90, "text")}, {10, 3}), ElementsAre("text"));
  EXPECT_THAT(taken({cubin(100, "exact", 0x100011), ptx(90, "text")}, {10, 0}), ElementsAre("exact"));
}

TEST(FatBinary, WithNothingForTheGpuItIsNotKnown) {
  EXPECT_EQ(code_of_image(fat_binary({cubin(80, "eight")}), hopper).obstacle, Obstacle::NoCode);
}

TEST(FatBinary, AnEntryOfAnUnknownKindThatMayBeTakenIsNotKnown) {
  EXPECT_EQ(code_of_image(fat_binary({{16, 90, "?"}, cubin(90, "a")}), hopper).obstacle,
            Obstacle::UnknownKind);
  EXPECT_EQ(code_of_image(fat_binary({{16, 80, "?"}, cubin(90, "a")}), hopper).obstacle, std::nullopt);
}

TEST(FatBinary, AVariableMayDoWhatItMayInAnyEntry) {
  EntryToBuild unused = cubin(90, "steps");
  CubinBuilder made;
  made.with_global(4).with({"steps", ".nv.global"});
  unused.payload = made.build();
  const Code code = code_of_image(fat_binary({unused, cubin(90, "steps")}), hopper);
  ASSERT_EQ(code.variables.size(), 1U);
  EXPECT_TRUE(code.variables[0].may_change());
}

TEST(FatBinary, PtxBesideMachineCodeSaysWhatBecomesOfAddresses) {
  EntryToBuild storing = ptx(70, "steps");
  storing.payload += ".entry k(.param .u64 out)\n{\nmov.u64 %a, steps;\nst.global.u64 [%p], %a;\nret;\n}\n";
  EXPECT_EQ(code_of_image(fat_binary({cubin(90, "steps"), storing}), hopper).obstacle,
            Obstacle::StoresAddresses);
  EXPECT_EQ(code_of_image(fat_binary({cubin(90, "steps"), ptx(70, "steps")}), hopper).obstacle, std::nullopt);
}

// What was linked into the machine code may store what it is given.
TEST(FatBinary, PtxThatIsNotWholeSaysWhatBecomesOfAddresses) {
  const std::string declared = ".extern .func store(.param .b64 a);\n.extern .global .u32 others;\n";
  const auto with = [&](const std::string& body) {
    EntryToBuild whole = ptx(70, "steps");
    whole.payload += declared + ".entry k(.param .u64 out)\n{\nmov.u64 %a, steps;\n" + body + "ret;\n}\n";
    return code_of_image(fat_binary({cubin(90, "steps"), whole}), hopper).obstacle;
  };
  EXPECT_EQ(with("ld.global.u32 %x, [%a];\n"), std::nullopt);
  EXPECT_EQ(with("st.global.u64 [%p], %a;\n"), Obstacle::StoresAddresses);
  EXPECT_EQ(with("{\n.param .b64 param0;\nst.param.b64 [param0], %a;\ncall.uni store, (param0);\n}\n"),
            Obstacle::StoresAddresses);
}

// ---- Compression ----

TEST(FatBinary, CompressedEntriesAreRead) {
  for (const std::uint64_t flag : {0x2000, 0x8000}) {
    const Code code = code_of_image(fat_binary({compressed(flag, ptx_with("steps"))}), hopper);
    EXPECT_EQ(code.obstacle, std::nullopt) << flag;
    EXPECT_THAT(names(code), ElementsAre("steps")) << flag;
  }
}

TEST(FatBinary, AnUnknownCompressionIsNotKnown) {
  for (const std::uint64_t flag : {0x1000, 0x4000, 0xA000}) {
    EntryToBuild entry = ptx(90, "steps");
    entry.flags |= flag;
    EXPECT_EQ(code_of_image(fat_binary({entry}), hopper).obstacle, Obstacle::UnknownKind) << flag;
  }
}

TEST(FatBinary, WhatSaysAWrongSizeIsRefusedBeforeMemoryIsTaken) {
  for (const std::uint64_t flag : {0x2000, 0x8000}) {
    EntryToBuild bomb = compressed(flag, ptx_with("steps"));
    for (const std::uint64_t says :
         {std::uint64_t{1} << 28, std::uint64_t{1} << 62, ~std::uint64_t{0}, std::uint64_t{1}}) {
      bomb.unpacked_bytes = says;
      EXPECT_EQ(code_of_image(fat_binary({bomb}), hopper).obstacle, Obstacle::Malformed)
          << flag << " " << says;
    }
  }
}

TEST(FatBinary, MoreThanTheLimitIsRefused) {
  const std::string image = fat_binary({compressed(0x8000, std::string(1 << 20, 'a'))});
  const auto entries = entries_of(image);
  ASSERT_TRUE(entries);
  EXPECT_TRUE(unpack(entries->front(), 1 << 20));
  EXPECT_FALSE(unpack(entries->front(), (1 << 20) - 1));
}

// ---- What the toolkit makes ----

TEST(Sample, OfTheToolkitIsReadWhateverItsCompression) {
  for (const char* const name : {"sample-zstd.fatbin", "sample-lz4.fatbin"}) {
    const std::string image = sample(name);
    for (const TargetGpu& gpu :
         {TargetGpu{8, 0}, TargetGpu{8, 9}, TargetGpu{9, 0}, TargetGpu{9, 0, true}, TargetGpu{12, 0}}) {
      const Code code = code_of_image(image, gpu);
      EXPECT_EQ(code.obstacle, std::nullopt) << name;
      EXPECT_THAT(names(code), ElementsAre("counter", "table")) << name;
      EXPECT_TRUE(code.variables[0].may_change());
      EXPECT_EQ(code.variables[1].memory, VariableSpace::Constant);
      EXPECT_EQ(code.variables[1].size_bytes, 64U);
    }
    EXPECT_EQ(code_of_image(image, {7, 5}).obstacle, Obstacle::NoCode);
  }
}

TEST(Sample, ItsPtxIsFound) {
  for (const char* const name : {"sample-zstd.fatbin", "sample-lz4.fatbin"}) {
    const auto texts = ptx_texts_in(sample(name));
    ASSERT_TRUE(texts);
    ASSERT_THAT(*texts, SizeIs(1));
    EXPECT_EQ(texts->front().arch, 90U);
    EXPECT_THAT(texts->front().text, HasSubstr(".visible .entry k("));
    EXPECT_EQ(texts->front().text.find('\0'), std::string::npos);
  }
}

TEST(Sample, IsToldInWords) {
  const auto text = describe(sample("sample-zstd.fatbin"));
  ASSERT_TRUE(text);
  EXPECT_THAT(*text,
              HasSubstr("image 1, fat binary, 3920 bytes\n  elf 80 zstd 1014 3944\n"
                        "    variable counter global 4 local reached\n    variable table constant 64 local\n"
                        "  elf 90a zstd 1118 4528\n"));
}

// ---- Files and what lies in memory ----

/// A host library: an ELF file of another machine, with the sections that nvcc makes.
std::string host_file(const std::string& section, const std::string& content) {
  CubinBuilder host;
  host.machine = EM_X86_64;
  host.sections.push_back({section, SHT_PROGBITS, SHF_ALLOC, content});
  return host.build();
}

TEST(HostFile, HasItsFatBinariesOneAfterTheOther) {
  const std::string one = fat_binary({ptx(75, "first")});
  const std::string two = fat_binary({ptx(90, "second")});
  const std::string file = host_file(".nv_fatbin", one + std::string(24, '\0') + two);
  const auto images = images_in(file);
  ASSERT_TRUE(images);
  EXPECT_THAT(*images, ElementsAre(one, two));
  const auto texts = ptx_texts_in(file);
  ASSERT_TRUE(texts);
  EXPECT_THAT(*texts, SizeIs(2));
  EXPECT_THAT(*images_in(host_file(".text", "code")), IsEmpty());
  EXPECT_FALSE(images_in(host_file(".nv_fatbin", one + "something else")));
}

TEST(ImageInMemory, IsAsLongAsItSays) {
  EXPECT_EQ(find_image(".version 7.0").bytes.size(), 13U);
  EXPECT_EQ(find_image("").bytes.size(), 0U);
  EXPECT_EQ(find_image(nullptr).bytes.size(), 0U);
  const std::string image = fat_binary({ptx(90, "steps")});
  EXPECT_EQ(find_image((image + "more").data()).bytes, image);
  const std::string elf = cubin(90, "steps").payload;
  EXPECT_EQ(find_image((elf + "more").data()).bytes, elf);
}

TEST(ImageInMemory, BehindAWrapperItIsFound) {
  const std::string image = fat_binary({ptx(90, "steps")});
  Wrapper wrapper{wrapper_magic, 1, image.data(), nullptr};
  EXPECT_EQ(find_image(&wrapper).bytes, image);
  EXPECT_TRUE(find_image(&wrapper).was_wrapped);
  EXPECT_FALSE(find_image(&wrapper).needs_linking);
  wrapper.version = 2;
  EXPECT_TRUE(find_image(&wrapper).needs_linking);
  wrapper.data = &wrapper;
  EXPECT_EQ(find_image(&wrapper).bytes.size(), 0U) << "a wrapper in itself";
}

// ---- Images that nobody made ----

/// Reads nothing outside, and takes no more memory than it may: the sanitizers look.
TEST(Damaged, ImagesAreReadOrRefused) {
  const std::uint64_t seed = test_seed();
  std::mt19937_64 random(seed);
  std::vector<std::string> whole{sample("sample-zstd.fatbin"), sample("sample-lz4.fatbin"),
                                 cubin(90, "steps").payload,
                                 host_file(".nv_fatbin", sample("sample-zstd.fatbin")), ptx_with("steps")};
  std::size_t read = 0;
  for (int round = 0; round < 4000; ++round) {
    std::string image = whole[random() % whole.size()];
    const std::size_t changes = 1 + random() % 8;
    for (std::size_t i = 0; i < changes; ++i) {
      // Headers are where it matters.
      const std::size_t reach = random() % 2 == 0 ? image.size() : std::min<std::size_t>(image.size(), 256);
      const std::size_t at = random() % reach;
      image[at] = static_cast<char>(random() % 4 == 0 ? 0xFF : random());
    }
    if (random() % 4 == 0) image.resize(random() % image.size());
    const Code code = code_of_image(image, hopper);
    read += code.obstacle ? 0 : 1;
    (void)describe(image);
    (void)ptx_texts_in(image);
  }
  EXPECT_GT(read, 0U) << "nothing is left of any of them, with seed " << seed;
  EXPECT_LT(read, 4000U) << "no damage is seen, with seed " << seed;
}

}  // namespace
}  // namespace firebreak::fatbin
