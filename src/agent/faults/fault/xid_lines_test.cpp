// SPDX-License-Identifier: Apache-2.0
// Reads every line of testdata/xid_lines.txt, and compares with what stands beside it.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "agent/faults/fault/attribution.h"
#include "agent/faults/fault/xid.h"

namespace firebreak::fault {
namespace {

using Fields = std::map<std::string, std::string>;

struct Case {
  std::string from;
  std::string line;
  std::string says;
  int number = 0;  ///< number of its line in the file
};

std::vector<Case> cases() {
  std::ifstream file(FIREBREAK_FAULT_TESTDATA "/xid_lines.txt");
  std::vector<Case> all;
  std::string text;
  for (int number = 1; std::getline(file, text); ++number) {
    if (text.starts_with("from: ")) all.push_back({text.substr(6), {}, {}, number + 1});
    if (text.starts_with("line: ")) all.back().line = text.substr(6);
    if (text.starts_with("says: ")) all.back().says = text.substr(6);
  }
  return all;
}

Fields fields_in(const std::string& says) {
  Fields fields;
  std::istringstream rest(says);
  std::string key;
  std::string value;
  while (std::getline(rest >> std::ws, key, '=') && rest.get() == '"' && std::getline(rest, value, '"'))
    fields[key] = value;
  return fields;
}

std::string hexadecimal(std::uint64_t value) {
  std::ostringstream text;
  text << std::hex << value;
  return text.str();
}

std::string class_of(const Fault& fault) {
  if (fault.is_notice) return "notice";
  switch (fault.fault_class) {
    case FaultClass::MmuReplayable:
      return "mmu_replayable";
    case FaultClass::MmuNonReplayable:
      return "mmu_non_replayable";
    case FaultClass::Sm:
      return "sm";
    case FaultClass::Termination:
      return "termination";
    case FaultClass::Device:
      return "device";
    case FaultClass::Unknown:
      break;
  }
  return "unknown";
}

std::string ends(const Fault& fault) {
  if (ends_group(fault)) return "group";
  return names_its_client(fault) ? "own" : "nobody";
}

/// Nothing is listed that is empty.
Fields read(const XidLine& line) {
  const Fault fault = from_xid(line, Monotonic{});
  Fields fields = {{"gpu", line.pci}, {"xid", std::to_string(line.code)}, {"class", class_of(fault)}};
  const auto add = [&fields](const char* key, const auto& value, auto text) {
    if (value) fields[key] = text(*value);
  };
  const auto decimal = [](auto value) { return std::to_string(value); };
  const auto same = [](const std::string& value) { return value; };
  add("gpu_instance", line.gpu_instance, decimal);
  add("compute_instance", line.compute_instance, decimal);
  add("pid", line.pid, decimal);
  add("name", line.process, same);
  add("channel", line.channel, hexadecimal);
  add("address", line.address, hexadecimal);
  add("engine", line.engine, same);
  add("client", line.client, same);
  add("follows", fault.follows_xid, decimal);
  return fields;
}

TEST(XidLines, EachSaysWhatStandsBesideIt) {
  const std::vector<Case> all = cases();
  ASSERT_GE(all.size(), 80u);
  for (const Case& each : all) {
    SCOPED_TRACE("xid_lines.txt:" + std::to_string(each.number) + ": " + each.line);
    const auto line = parse_xid(each.line);
    ASSERT_EQ(line.has_value(), each.says != "no xid");
    if (!line) continue;
    Fields expected = fields_in(each.says);
    const Fault fault = from_xid(*line, Monotonic{});
    const auto its_ends = expected.extract("ends");
    EXPECT_EQ(ends(fault), its_ends ? its_ends.mapped() : ends(fault));
    const auto its_needs = expected.extract("needs");
    EXPECT_EQ(to_string(fault.needs), its_needs ? its_needs.mapped() : to_string(fault.needs));
    EXPECT_EQ(read(*line), expected);
  }
}

/// Lines in the file have the form of one record. xid_parser_test.cpp tests that no other text passes for
/// one.
TEST(XidLines, SayTheSameWithALineEndBehindThem) {
  for (const Case& each : cases()) {
    const auto line = parse_xid(each.line + "\n SUBSYSTEM=pci\n");
    ASSERT_EQ(line.has_value(), each.says != "no xid") << each.line;
    if (!line) continue;
    EXPECT_EQ(read(*line), read(*parse_xid(each.line)));
  }
}

}  // namespace
}  // namespace firebreak::fault
