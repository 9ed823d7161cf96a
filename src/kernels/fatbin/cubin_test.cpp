// SPDX-License-Identifier: Apache-2.0
#include "kernels/fatbin/cubin.h"

#include <gmock/gmock.h>

#include "tests/doubles/fatbin/image_test_support.h"

namespace firebreak::fatbin {
namespace {

using test::CubinBuilder;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Optional;

std::vector<std::string> changing(const Code& code) {
  std::vector<std::string> names;
  for (const Variable& variable : code.variables) {
    if (variable.may_change()) names.push_back(variable.name);
  }
  return names;
}

CubinBuilder one_variable() {
  CubinBuilder cubin;
  cubin.with_global(4).with({"steps", ".nv.global"}).with(CubinBuilder::Relocation{"steps"});
  return cubin;
}

TEST(Cubin, SaysItsVariables) {
  CubinBuilder cubin = one_variable();
  cubin.with_initialised("12345678").with({"table", ".nv.global.init", 0, 8, STT_OBJECT, STB_GLOBAL});
  cubin.sections.push_back({".nv.constant3", SHT_PROGBITS, SHF_ALLOC, std::string(16, '\0')});
  cubin.with({"factors", ".nv.constant3", 0, 16});
  const Code code = code_of_cubin(cubin.build());
  EXPECT_EQ(code.obstacle, std::nullopt);
  ASSERT_EQ(code.variables.size(), 3U);
  EXPECT_EQ(code.variables[0].name, "steps");
  EXPECT_EQ(code.variables[0].size_bytes, 4U);
  EXPECT_EQ(code.variables[0].memory, VariableSpace::Global);
  EXPECT_TRUE(code.variables[0].is_local);
  EXPECT_FALSE(code.variables[1].is_local);
  EXPECT_EQ(code.variables[2].memory, VariableSpace::Constant);
  EXPECT_FALSE(code.variables[2].may_change()) << "the host alone writes constant memory";
}

TEST(Cubin, AVariableThatNothingNamesDoesNotChange) {
  CubinBuilder cubin;
  cubin.with_global(8).with({"used", ".nv.global", 0}).with({"unused", ".nv.global", 4});
  cubin.with(CubinBuilder::Relocation{"used"});
  EXPECT_THAT(changing(code_of_cubin(cubin.build())), ElementsAre("used"));
}

TEST(Cubin, WhatIsNamedBeyondItsVariableMayBeAnyOfTheSection) {
  CubinBuilder cubin;
  cubin.with_global(8).with({"first", ".nv.global", 0}).with({"second", ".nv.global", 4});
  cubin.with(CubinBuilder::Relocation{"first", 4});
  EXPECT_THAT(changing(code_of_cubin(cubin.build())), ElementsAre("first", "second"));
}

TEST(Cubin, WhatIsNamedByItsSectionMayBeAnyOfIt) {
  CubinBuilder cubin;
  cubin.with_global(4).with({"steps", ".nv.global"});
  cubin.with({"the section", ".nv.global", 0, 0, STT_SECTION}).with(CubinBuilder::Relocation{"the section"});
  EXPECT_THAT(changing(code_of_cubin(cubin.build())), ElementsAre("steps"));
}

TEST(Cubin, LiteralsOfTheCompilerDoNotChange) {
  CubinBuilder cubin;
  cubin.with_initialised("abcd1234wxyz5678");
  cubin.with({"$str", ".nv.global.init", 0}).with({"$str$12", ".nv.global.init", 4});
  cubin.with({"$string", ".nv.global.init", 8});
  cubin.with({"$str$ing", ".nv.global.init", 12});
  for (const char* const name : {"$str", "$str$12", "$string", "$str$ing"})
    cubin.with(CubinBuilder::Relocation{name});
  EXPECT_THAT(changing(code_of_cubin(cubin.build())), ElementsAre("$string", "$str$ing"));
}

TEST(Cubin, TheNameOfALiteralInMemoryThatIsZeroFirstIsNone) {
  CubinBuilder cubin;
  cubin.with_global(4).with({"$str", ".nv.global"}).with(CubinBuilder::Relocation{"$str"});
  EXPECT_THAT(changing(code_of_cubin(cubin.build())), ElementsAre("$str"));
}

TEST(Cubin, BytesWithoutANameAreUnknown) {
  CubinBuilder cubin = one_variable();
  cubin.sections[0].size_bytes = 12;
  EXPECT_EQ(code_of_cubin(cubin.build()).obstacle, Obstacle::UncoveredBytes);
  cubin.sections[0].size_bytes = 8;
  EXPECT_EQ(code_of_cubin(cubin.build()).obstacle, std::nullopt) << "the alignment is 8";
  CubinBuilder not_zero;
  not_zero.with_initialised("abcdefgh").with({"four", ".nv.global.init"});
  EXPECT_EQ(code_of_cubin(not_zero.build()).obstacle, Obstacle::UncoveredBytes);
}

TEST(Cubin, WhatTheDriverProvidesIsAskedByItsName) {
  const auto calling = [](const char* name) {
    CubinBuilder cubin;
    cubin.with({name, "", 0, 0, STT_FUNC, STB_GLOBAL});
    return code_of_cubin(cubin.build()).obstacle;
  };
  EXPECT_EQ(calling("vprintf"), std::nullopt);
  EXPECT_EQ(calling("__assertfail"), std::nullopt);
  EXPECT_EQ(calling("malloc"), Obstacle::DeviceHeap);
  EXPECT_EQ(calling("free"), Obstacle::DeviceHeap);
  EXPECT_EQ(calling("cudaLaunchDeviceV2"), Obstacle::LaunchesKernels);
  EXPECT_EQ(calling("__cuda_syscall_cnpv2LaunchDeviceV2"), Obstacle::LaunchesKernels);
  EXPECT_EQ(calling("something_new"), Obstacle::UnknownFunction);
}

TEST(Cubin, ManagedVariablesAreToldByTheirMark) {
  CubinBuilder cubin = one_variable();
  cubin.symbols[0].other = 4;
  EXPECT_EQ(code_of_cubin(cubin.build()).obstacle, Obstacle::Managed);
}

TEST(Cubin, VariablesThatHoldAddressesAreNotCopied) {
  CubinBuilder cubin = one_variable();
  cubin.with(CubinBuilder::Relocation{"steps", 0, ".nv.global"});
  EXPECT_EQ(code_of_cubin(cubin.build()).obstacle, Obstacle::KeepsAddresses);
  CubinBuilder table;
  table.with_initialised("12345678").with({"_ZTV1V", ".nv.global.init", 0, 8});
  EXPECT_EQ(code_of_cubin(table.build()).obstacle, std::nullopt) << "nobody takes its address";
  table.with(CubinBuilder::Relocation{"_ZTV1V"});
  EXPECT_EQ(code_of_cubin(table.build()).obstacle, Obstacle::KeepsAddresses);
}

TEST(Cubin, AFunctionOfItsOwnWhoseAddressIsTakenMayBeStored) {
  CubinBuilder cubin;
  cubin.sections.push_back({".text.kernel", SHT_PROGBITS, SHF_ALLOC, "code"});
  cubin.with({"function", ".text.kernel", 0, 4, STT_FUNC, STB_GLOBAL}).with({"vprintf", "", 0, 0, STT_FUNC});
  cubin.with(CubinBuilder::Relocation{"vprintf"});
  EXPECT_EQ(code_of_cubin(cubin.build()).obstacle, std::nullopt) << "the driver's own is called";
  cubin.with(CubinBuilder::Relocation{"function"});
  EXPECT_EQ(code_of_cubin(cubin.build()).obstacle, Obstacle::KeepsAddresses);
}

TEST(Cubin, TwoVariablesOfOneNameCannotBeToldApart) {
  CubinBuilder cubin;
  cubin.with_global(8).with({"steps", ".nv.global", 0}).with({"steps", ".nv.global", 4});
  EXPECT_EQ(code_of_cubin(cubin.build()).obstacle, Obstacle::SameName);
}

TEST(Cubin, MemoryOfAnUnknownSectionIsUnknown) {
  CubinBuilder cubin = one_variable();
  cubin.sections.push_back({".nv.new", SHT_NOBITS, SHF_ALLOC | SHF_WRITE, "", 4});
  EXPECT_EQ(code_of_cubin(cubin.build()).obstacle, Obstacle::UnknownSymbol);
  cubin.sections.back() = {".nv.shared.kernel", SHT_NOBITS, SHF_ALLOC | SHF_WRITE, "", 4};
  EXPECT_EQ(code_of_cubin(cubin.build()).obstacle, std::nullopt) << "it ends with the launch";
}

TEST(Cubin, TheSecondFormOfASectionIsTheSameMemory) {
  CubinBuilder cubin;
  cubin.with_initialised("abcd").with({"steps", ".nv.global.init"});
  cubin.sections.push_back({".nv.merc.nv.global.init", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, "abcd"});
  EXPECT_EQ(code_of_cubin(cubin.build()).obstacle, std::nullopt);
  cubin.sections.back().content = "more";
  cubin.sections.back().content += "bytes";
  EXPECT_EQ(code_of_cubin(cubin.build()).obstacle, Obstacle::UnknownSymbol);
}

TEST(Cubin, SymbolsOfAnUnknownTypeAreUnknown) {
  CubinBuilder cubin = one_variable();
  cubin.symbols[0].type = STT_LOOS;
  EXPECT_EQ(code_of_cubin(cubin.build()).obstacle, Obstacle::TextureReferences);
  cubin.symbols[0].type = STT_NOTYPE;
  EXPECT_EQ(code_of_cubin(cubin.build()).obstacle, Obstacle::UnknownSymbol);
}

TEST(Cubin, OnlyWhatIsLinkedAndOfAKnownFormIsRead) {
  CubinBuilder cubin = one_variable();
  cubin.os_abi = 0x33;
  cubin.abi_version = 7;
  EXPECT_EQ(code_of_cubin(cubin.build()).obstacle, std::nullopt) << "toolkits up to 12";
  cubin.abi_version = 9;
  EXPECT_EQ(code_of_cubin(cubin.build()).obstacle, Obstacle::UnknownKind);
  cubin = one_variable();
  cubin.machine = EM_X86_64;
  EXPECT_EQ(code_of_cubin(cubin.build()).obstacle, Obstacle::UnknownKind);
  cubin = one_variable();
  cubin.type = ET_REL;
  EXPECT_EQ(code_of_cubin(cubin.build()).obstacle, Obstacle::NotLinked);
  cubin = one_variable();
  cubin.with({"elsewhere", "", 0, 4, STT_OBJECT, STB_GLOBAL});
  EXPECT_EQ(code_of_cubin(cubin.build()).obstacle, Obstacle::NotLinked);
}

TEST(Cubin, AVariableEndsWithinItsSection) {
  CubinBuilder cubin = one_variable();
  cubin.symbols[0].size_bytes = 5;
  EXPECT_EQ(code_of_cubin(cubin.build()).obstacle, Obstacle::Malformed);
}

TEST(Cubin, EveryCutIsAnErrorAndNoCrash) {
  const std::string whole = one_variable().build();
  for (std::size_t length = 0; length < whole.size(); ++length)
    EXPECT_NE(code_of_cubin(whole.substr(0, length)).obstacle, std::nullopt) << length;
}

}  // namespace
}  // namespace firebreak::fatbin
