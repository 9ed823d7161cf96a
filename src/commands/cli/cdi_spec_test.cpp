// SPDX-License-Identifier: Apache-2.0
#include "commands/cli/cdi_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <set>

namespace firebreak::cli {
namespace {

using json = nlohmann::ordered_json;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

CdiOptions options() {
  CdiOptions made;
  made.domains = {{"a", "/run/firebreak/a/pipe"}, {"b", "/run/firebreak/b/pipe"}};
  made.common.tenants_socket = "/run/firebreak/tenants.sock";
  made.common.guard_library = "/usr/lib/libfirebreak-guard.so";
  made.common.shared_memory = "/dev/shm";
  made.group = 998;
  return made;
}

bool fits(const json& text, const char* form) {
  return std::regex_match(text.get<std::string>(), std::regex(form));
}

/// A runtime refuses a file with a field that it does not know (SPEC.md).
void expect_only(const json& object, const std::set<std::string>& known) {
  ASSERT_TRUE(object.is_object()) << object;
  for (const auto& [name, value] : object.items()) EXPECT_THAT(known, Contains(name));
}

void expect_edits(const json& edits, bool has_groups) {
  std::set<std::string> known = {"env", "mounts"};
  if (has_groups) known.insert("additionalGids");
  expect_only(edits, known);
  for (const json& variable : edits["env"]) EXPECT_TRUE(fits(variable, "[A-Z_]+=.+")) << variable;
  for (const json& mount : edits["mounts"]) {
    expect_only(mount, {"hostPath", "containerPath", "options"});
    EXPECT_THAT(mount["hostPath"].get<std::string>(), StartsWith("/"));
    EXPECT_THAT(mount["containerPath"].get<std::string>(), StartsWith("/"));
    EXPECT_THAT(mount["options"], Contains("bind"));
  }
}

/// The rules of SPEC.md, as far as the file has what they are about.
void expect_form(const json& spec) {
  expect_only(spec, {"cdiVersion", "kind", "devices", "containerEdits"});
  const std::string version = spec["cdiVersion"];
  const bool has_groups = version == "0.7.0";
  EXPECT_TRUE(has_groups || version == "0.5.0") << version;
  EXPECT_TRUE(fits(spec["kind"], "[a-zA-Z][a-zA-Z0-9_.-]*[a-zA-Z0-9]/[a-zA-Z][a-zA-Z0-9_-]*[a-zA-Z0-9]"));
  ASSERT_FALSE(spec["devices"].empty()) << "it is no CDI file then";
  std::set<std::string> names;
  for (const json& device : spec["devices"]) {
    expect_only(device, {"name", "containerEdits"});
    EXPECT_TRUE(fits(device["name"], "[a-zA-Z0-9][a-zA-Z0-9_.:-]*[a-zA-Z0-9]")) << device;
    EXPECT_TRUE(names.insert(device["name"]).second) << device;
    expect_edits(device["containerEdits"], has_groups);
  }
  expect_edits(spec["containerEdits"], has_groups);
}

TEST(CdiSpec, HasADeviceForEachSeatOfEachDomain) {
  CdiOptions two = options();
  two.seats = 2;
  const json spec = cdi_spec(two).value();
  expect_form(spec);
  std::vector<std::string> names;
  for (const json& device : spec["devices"]) names.push_back(device["name"]);
  EXPECT_THAT(names, ElementsAre("a-1", "a-2", "b-1", "b-2"));
  const json& edits = spec["devices"][2]["containerEdits"];
  EXPECT_THAT(edits["env"], ElementsAre("CUDA_MPS_PIPE_DIRECTORY=/run/firebreak/b/pipe"));
  EXPECT_EQ(edits["mounts"][0]["hostPath"], "/run/firebreak/b/pipe");
  EXPECT_EQ(edits["mounts"][0]["containerPath"], "/run/firebreak/b/pipe");
}

TEST(CdiSpec, GivesEverybodyTheTenantsSocketTheGuardAndTheGroup) {
  const json edits = cdi_spec(options()).value()["containerEdits"];
  EXPECT_THAT(edits["env"], ElementsAre("FIREBREAK_SOCKET=/run/firebreak/tenants.sock",
                                        "LD_PRELOAD=/run/firebreak/$LIB/libfirebreak-guard.so"));
  EXPECT_THAT(edits["additionalGids"], ElementsAre(998));
  ASSERT_EQ(edits["mounts"].size(), 5u);
  EXPECT_EQ(edits["mounts"][0]["hostPath"], "/run/firebreak/tenants.sock");
  EXPECT_EQ(edits["mounts"][1]["hostPath"], "/usr/lib/libfirebreak-guard.so");
  EXPECT_EQ(edits["mounts"][1]["containerPath"], seats::mounted_guard("lib"));
  EXPECT_THAT(edits["mounts"][1]["options"], Contains("ro"));
  EXPECT_EQ(edits["mounts"][4]["containerPath"], "/dev/shm");
}

// Podman 4.3 of Debian 12 reads no later version.
TEST(CdiSpec, WithoutAGroupIsOfTheVersionThatOlderRuntimesRead) {
  CdiOptions plain = options();
  plain.group.reset();
  plain.common.guard_library.clear();
  plain.common.shared_memory.clear();
  const json spec = cdi_spec(plain).value();
  expect_form(spec);
  EXPECT_EQ(spec["cdiVersion"], "0.5.0");
  EXPECT_EQ(spec["containerEdits"]["mounts"].size(), 1u);
  EXPECT_THAT(spec.dump(), Not(HasSubstr("LD_PRELOAD")));
}

TEST(CdiSpec, IsNotMadeOfADomainWhoseNameIsNoDevicesNorOfNone) {
  CdiOptions bad = options();
  bad.domains[1].name = "b=c";
  EXPECT_FALSE(cdi_spec(bad));
  bad.domains.clear();
  EXPECT_FALSE(cdi_spec(bad));
}

}  // namespace
}  // namespace firebreak::cli
