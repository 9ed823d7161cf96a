// SPDX-License-Identifier: Apache-2.0
#include "seats/seats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
  EXPECT_THAT(grant.mounts, ElementsAre(FieldsAre("/run/firebreak/tenants.sock",
                                                  "/run/firebreak/tenants.sock", false, true),
                                        FieldsAre("/usr/lib/guard.so", guard_path_in_container, true, true),
                                        FieldsAre("/dev/shm", "/dev/shm", false, false)));
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

}  // namespace
}  // namespace firebreak::seats
