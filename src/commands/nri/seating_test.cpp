// SPDX-License-Identifier: Apache-2.0
#include "commands/nri/seating.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace firebreak::nri {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Pair;

/// a and b of one GPU, c alone on another.
k8s::Offer offer(bool is_a_healthy = true) {
  return {{{"a-1", "a", "GPU-1", is_a_healthy}, {"b-1", "b", "GPU-1", true}, {"c-1", "c", "GPU-2", true}},
          {"/run/firebreak/tenants.sock", "/usr/lib/guard.so", "/dev/shm"}};
}

Newcomer newcomer(Annotations annotations, std::string container = "main", std::string uid = "u1") {
  return {"ml", "llm-0", std::move(uid), std::move(container), std::move(annotations), {}, {}};
}

std::string variable(const std::optional<seats::SeatGrant>& grant, const std::string& name) {
  for (const auto& [each, value] : grant.value_or(seats::SeatGrant{}).environment) {
    if (each == name) return value;
  }
  return {};
}

std::string pipe_of(const std::optional<seats::SeatGrant>& grant) {
  return variable(grant, "CUDA_MPS_PIPE_DIRECTORY");
}

Error refusal(const k8s::Offer& from, const Newcomer& to) {
  const auto seat = seat_for(from, to);
  EXPECT_FALSE(seat);
  return seat ? Error{} : seat.error();
}

TEST(Seating, GivesNothingWhereNothingIsAskedForEvenWithoutAnAgent) {
  EXPECT_EQ(seat_for({}, newcomer({})).value(), std::nullopt);
}

TEST(Seating, GivesTheSameAsADeviceRequest) {
  const auto seat = seat_for(offer(), newcomer({{seat_annotation, "b"}})).value();
  const auto by_device = k8s::grant_for(offer(), {"b-1"}).value();
  EXPECT_THAT(seat->environment, testing::UnorderedElementsAreArray(by_device.environment));
  EXPECT_EQ(seat->mounts, by_device.mounts);
}

TEST(Seating, KeepsWhatAContainerPreloadsOfItsOwn) {
  Newcomer with_own = newcomer({{seat_annotation, "b"}});
  with_own.environment = {"PATH=/bin", "LD_PRELOAD=/lib/jemalloc.so"};
  EXPECT_EQ(variable(seat_for(offer(), with_own).value(), "LD_PRELOAD"),
            "/lib/jemalloc.so:/run/firebreak/$LIB/libfirebreak-guard.so");
}

TEST(Seating, OfAnyDomainIsInOneThatTakesClientsAndPodsAreSpread) {
  std::set<std::string> seen;
  for (int i = 0; i < 50; ++i) {
    const auto to = newcomer({{seat_annotation, "any"}}, "main", "uid-" + std::to_string(i));
    const auto seat = seat_for(offer(false), to).value();
    EXPECT_EQ(pipe_of(seat), pipe_of(seat_for(offer(false), to).value())) << "the same each time";
    seen.insert(pipe_of(seat));
  }
  EXPECT_EQ(seen, (std::set<std::string>{"/run/firebreak/b/pipe", "/run/firebreak/c/pipe"}));
}

/// By its pod's uid half of them would have gone there, and waited for ever.
TEST(Seating, OfAPairIsNotOnAGpuThatHasFailed) {
  k8s::Offer two = offer();
  two.seats.push_back({"d-1", "d", "GPU-2", true});
  for (auto& seat : two.seats) {
    seat.gpu_failed = seat.gpu == "GPU-2";
    seat.is_healthy = !seat.gpu_failed;
  }
  for (int i = 0; i < 50; ++i) {
    const auto to = newcomer({{pair_annotation, "main,spare"}}, "main", "uid-" + std::to_string(i));
    const auto seat = seat_for(two, to);
    ASSERT_TRUE(seat) << to_string(seat.error());
    EXPECT_THAT(pipe_of(*seat), testing::AnyOf("/run/firebreak/a/pipe", "/run/firebreak/b/pipe"));
  }
}

TEST(Seating, OfAPairIsInTwoDomainsOfOneGpuAndEachReachesBoth) {
  std::set<std::string> actives;
  for (int i = 0; i < 50; ++i) {
    const std::string uid = "uid-" + std::to_string(i);
    const Annotations pair = {{pair_annotation, "main,spare"}};
    const auto active = seat_for(offer(), newcomer(pair, "main", uid)).value();
    const auto standby = seat_for(offer(), newcomer(pair, "spare", uid)).value();
    const std::set<std::string> both = {pipe_of(active), pipe_of(standby)};
    EXPECT_EQ(both, (std::set<std::string>{"/run/firebreak/a/pipe", "/run/firebreak/b/pipe"}));
    for (const std::string& pipe : both) {
      EXPECT_THAT(active->mounts, Contains(seats::SeatMount{pipe, pipe}));
      EXPECT_THAT(standby->mounts, Contains(seats::SeatMount{pipe, pipe}));
    }
    EXPECT_THAT(active->environment, Contains(Pair("FIREBREAK_ROLE", "active")));
    EXPECT_THAT(standby->environment, Contains(Pair("FIREBREAK_ROLE", "standby")));
    EXPECT_THAT(active->environment, Contains(Pair("FIREBREAK_TENANT", "ml.llm-0")));
    EXPECT_THAT(standby->environment, Contains(Pair("FIREBREAK_TENANT", "ml.llm-0")));
    actives.insert(pipe_of(active));
  }
  EXPECT_EQ(actives.size(), 2u) << "not all actives are in one domain";
}

// Its other container may have been made before the domain fell, or after it.
TEST(Seating, OfAPairIsNeverInTheOthersDomainWhileOneTakesNobody) {
  for (int i = 0; i < 20; ++i) {
    const std::string uid = "uid-" + std::to_string(i);
    const Annotations pair = {{pair_annotation, "main,spare"}};
    for (const std::string container : {"main", "spare"}) {
      const auto then = seat_for(offer(false), newcomer(pair, container, uid));
      const auto before = seat_for(offer(), newcomer(pair, container, uid)).value();
      EXPECT_EQ(then ? pipe_of(*then) : "/run/firebreak/a/pipe", pipe_of(before));
    }
  }
}

TEST(Seating, CallsATenantByItsPodsUidWhereTheNameIsTooLong) {
  Newcomer long_named = newcomer({{pair_annotation, "main,spare"}});
  long_named.pod = std::string(61, 'x');
  EXPECT_EQ(variable(seat_for(offer(), long_named).value(), "FIREBREAK_TENANT"), "u1");
}

// Its container is started anew after the other one took over: one that wants to be active is refused then.
TEST(Seating, OfAPairsActiveThatComesAgainIsTheStandbyOfTheOneThatTookOver) {
  const Annotations pair = {{pair_annotation, "main,spare"}};
  const auto main_then = seat_for(offer(), newcomer(pair, "main")).value();
  const auto spare_then = seat_for(offer(), newcomer(pair, "spare")).value();
  const auto domain_of = [](const std::optional<seats::SeatGrant>& grant) {
    return pipe_of(grant) == "/run/firebreak/a/pipe" ? "a" : "b";
  };
  const auto again = [&](const char* container, const std::string& active_in) {
    return seat_for(offer(), newcomer(pair, container), {{"ml.llm-0", active_in}, {"ml.other", "a"}}).value();
  };
  const auto main_again = again("main", domain_of(spare_then));
  EXPECT_EQ(variable(main_again, "FIREBREAK_ROLE"), "standby");
  EXPECT_EQ(pipe_of(main_again), pipe_of(main_then)) << "not where the active is";
  EXPECT_EQ(variable(again("main", domain_of(main_then)), "FIREBREAK_ROLE"), "active")
      << "that is itself, and nobody has noticed yet";
  EXPECT_EQ(variable(again("spare", domain_of(main_then)), "FIREBREAK_ROLE"), "standby");
}

TEST(Seating, IsMissedWhereAContainerWasMadeWithoutOne) {
  Newcomer made = newcomer({{seat_annotation, "main=a"}});
  EXPECT_TRUE(lacks_its_seat(made));
  made.environment = {"PATH=/bin", "FIREBREAK_SOCKET=/run/firebreak/tenants.sock"};
  EXPECT_FALSE(lacks_its_seat(made));
  EXPECT_FALSE(lacks_its_seat(newcomer({{seat_annotation, "side=a"}}))) << "it asked for none";
  EXPECT_FALSE(lacks_its_seat(newcomer({})));
  EXPECT_TRUE(lacks_its_seat(newcomer({{seat_annotation, "a,b"}}))) << "with us it had not been made";
}

TEST(Seating, IsRefusedInOneLineThatSaysWhy) {
  const Newcomer to_a = newcomer({{seat_annotation, "a"}});
  EXPECT_EQ(refusal({}, to_a).message, "no agent has answered yet");
  EXPECT_EQ(refusal(offer(false), to_a).message, "domain a takes no clients now");
  EXPECT_EQ(refusal(offer(false), to_a).code, ErrorCode::Unavailable);
  const Error unknown = refusal(offer(), newcomer({{seat_annotation, "z"}}));
  EXPECT_EQ(to_string(unknown), "there is no domain 'z' (there are: a, b, c)");
  EXPECT_EQ(unknown.code, ErrorCode::NotFound);
  const Error endless = refusal(offer(), newcomer({{seat_annotation, std::string(99'999, 'z')}}));
  EXPECT_LT(to_string(endless).size(), 500u);
  k8s::Offer small = offer();
  small.seats = {small.seats[0], small.seats[2]};
  EXPECT_EQ(refusal(small, newcomer({{pair_annotation, "main,spare"}})).message,
            "a pair needs two domains of one GPU that is well");
  for (auto& seat : small.seats) seat.is_healthy = false;
  EXPECT_EQ(refusal(small, newcomer({{seat_annotation, "any"}})).message, "no domain takes clients now");
  Newcomer with_device = to_a;
  with_device.mounted_at = {"/proc", "/run/firebreak/tenants.sock"};
  EXPECT_EQ(refusal(offer(), with_device).message, "it has a seat by a device request and by an annotation");
}

}  // namespace
}  // namespace firebreak::nri
