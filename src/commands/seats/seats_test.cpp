// SPDX-License-Identifier: Apache-2.0
#include "commands/seats/seats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "ground/os/file.h"

namespace firebreak::seats {
namespace {

using testing::ElementsAre;
using testing::FieldsAre;
using testing::IsEmpty;
using testing::Pair;

TEST(Seats, EachContainerHasTheTenantsSocketTheGuardAndTheHostsSharedMemory) {
  const SeatGrant grant = grant_of_all({"/run/firebreak/tenants.sock", "/usr/lib/guard.so", "/dev/shm"});
  EXPECT_THAT(grant.environment, ElementsAre(Pair("FIREBREAK_SOCKET", "/run/firebreak/tenants.sock"),
                                             Pair("LD_PRELOAD", guard_path_in_container)));
  EXPECT_THAT(
      grant.mounts,
      ElementsAre(FieldsAre("/run/firebreak/tenants.sock", "/run/firebreak/tenants.sock", false, true),
                  FieldsAre("/usr/lib/guard.so", mounted_guard("lib"), true, true),
                  FieldsAre("/usr/lib/guard.so", mounted_guard("lib64"), true, true),
                  FieldsAre("/usr/lib/guard.so", mounted_guard("lib/x86_64-linux-gnu"), true, true),
                  FieldsAre("/dev/shm", "/dev/shm", false, false)));
}

// musl's dynamic linker passes over a library that is not there, and ends a program with one that it cannot
// load.
TEST(Seats, TheGuardIsWhereADynamicLinkerOfGlibcAloneFindsIt) {
  const SeatGrant grant = grant_of_all({"/s", "/usr/lib/guard.so", ""});
  for (const auto& mount : grant.mounts) EXPECT_NE(mount.container_path, guard_path_in_container);
  EXPECT_THAT(guard_path_in_container, testing::HasSubstr("/$LIB/"));
}

TEST(Seats, WithoutGuardAndSharedMemoryThereIsTheSocketAlone) {
  const SeatGrant grant = grant_of_all({"/s", "", ""});
  EXPECT_THAT(grant.environment, ElementsAre(Pair("FIREBREAK_SOCKET", "/s")));
  EXPECT_THAT(grant.mounts, ElementsAre(FieldsAre("/s", "/s", false, true)));
}

TEST(Seats, ADomainIsItsPipeDirectoryBesideTheTenantsSocket) {
  link::StatusView status;
  status.tenants_socket = "/run/firebreak/tenants.sock";
  status.domains = {{"a", "GPU-1", "serving"}, {"b", "GPU-1", "draining"}};
  const auto domains = domains_in(status);
  ASSERT_THAT(domains,
              ElementsAre(FieldsAre("a", "/run/firebreak/a/pipe"), FieldsAre("b", "/run/firebreak/b/pipe")));
  const SeatGrant grant = grant_of(domains[1]);
  EXPECT_THAT(grant.environment, ElementsAre(Pair("CUDA_MPS_PIPE_DIRECTORY", "/run/firebreak/b/pipe")));
  EXPECT_THAT(grant.mounts,
              ElementsAre(FieldsAre("/run/firebreak/b/pipe", "/run/firebreak/b/pipe", false, true)));
  EXPECT_THAT(domains_in(link::StatusView()), IsEmpty());
}

TEST(Seats, OnlyADomainWhoseNameIsADevicesHasSeats) {
  EXPECT_EQ(seat_name("a", 1), "a-1");
  for (const char* fit : {"a", "1a", "a-b_c.d"}) EXPECT_TRUE(check_domain_name(fit)) << fit;
  for (const char* unfit : {"", "-a", "a=b", "a b", "a/b"}) EXPECT_FALSE(check_domain_name(unfit)) << unfit;
}

TEST(Seats, TheTenantsSocketLiesBesideTheAgentsOrIsNotMounted) {
  const std::string agent = "/run/firebreak/agent.sock";
  EXPECT_TRUE(check_tenants_socket("/run/firebreak/tenants.sock", agent));
  EXPECT_TRUE(check_tenants_socket("/run/firebreak/tenants.sock", "/run/x/../firebreak/agent.sock"));
  EXPECT_TRUE(check_tenants_socket((std::filesystem::current_path() / "t").string(), "agent.sock"));
  for (const char* elsewhere :
       {"/etc/shadow", "/run/firebreak/../../etc/shadow", "/run/firebreak/a/socket", "/run",
        "/run/firebreak/", "/run/firebreak/.", "/run/firebreak/..", "tenants.sock", ""}) {
    const Status checked = check_tenants_socket(elsewhere, agent);
    ASSERT_FALSE(checked) << elsewhere;
    EXPECT_EQ(checked.error().code, ErrorCode::PermissionDenied);
  }
}

TEST(Seats, ADomainsFoldersAreRootsOrOursAndNoLinks) {
  const auto directory = std::move(os::TemporaryDirectory::create().value());
  const std::string folder = directory.path() + "/a", pipes = folder + "/pipe";
  const SeatDomain domain{"a", pipes};
  EXPECT_FALSE(check_directory(domain)) << "nothing is there";
  ASSERT_TRUE(os::make_directories(pipes));
  EXPECT_TRUE(check_directory(domain));
  ASSERT_EQ(::symlink(folder.c_str(), (directory.path() + "/b").c_str()), 0);
  EXPECT_FALSE(check_directory({"b", directory.path() + "/b/pipe"})) << "its folder is a link";
  ASSERT_EQ(::rmdir(pipes.c_str()), 0);
  ASSERT_EQ(::symlink("/etc", pipes.c_str()), 0);
  EXPECT_FALSE(check_directory(domain)) << "its pipe directory is a link";
  if (::geteuid() != 0) return;
  ASSERT_EQ(::unlink(pipes.c_str()), 0);
  ASSERT_TRUE(os::make_directories(pipes));
  ASSERT_EQ(::chown(folder.c_str(), 54'321, 54'321), 0);
  EXPECT_FALSE(check_directory(domain)) << "its folder is another user's";
}

}  // namespace
}  // namespace firebreak::seats
