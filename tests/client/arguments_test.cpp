// SPDX-License-Identifier: Apache-2.0
// Every function with what it must not be given: an error, and the session is as good as before.
#include <dlfcn.h>
#include <gmock/gmock.h>

#include <set>

#include "tests/client/session_support.h"

extern "C" const char* status_name_seen_from_c(fb_status status);
extern "C" const void* const* functions_seen_from_cpp();

namespace firebreak::testing_agent {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST(Abi, CAndCppCompileAndCallTheHeaderAsItIs) {
  EXPECT_STREQ(status_name_seen_from_c(FB_ERROR_FENCED), "FB_ERROR_FENCED");
  std::set<const void*> functions;
  for (const void* const* function = functions_seen_from_cpp(); *function != nullptr; ++function)
    functions.insert(*function);
  EXPECT_EQ(functions.size(), 27u);
}

TEST(Abi, EverySymbolKeepsTheVersionThatItCameWith) {
  const struct {
    const char* version;
    std::vector<const char*> names;
  } promised[] = {{"FIREBREAK_0.1",
                   {"fb_join", "fb_session_role", "fb_alloc", "fb_ready", "fb_wait_promotion", "fb_commit",
                    "fb_committed", "fb_resumed", "fb_leave", "fb_last_error", "fb_status_name"}},
                  {"FIREBREAK_0.2", {"fb_heartbeat"}},
                  {"FIREBREAK_0.3",
                   {"fb_alloc_as", "fb_commit_changes", "fb_counter", "fb_prepare_changes", "fb_stand_down"}},
                  {"FIREBREAK_0.4",
                   {"fb_listen", "fb_listener", "fb_next_connection", "fb_release_connection", "fb_send"}},
                  {"FIREBREAK_0.5", {"fb_small_context"}},
                  {"FIREBREAK_0.7", {"fb_turn", "fb_turn_wanted"}},
                  {"FIREBREAK_0.8", {"fb_map_shared", "fb_share"}}};
  for (const auto& [version, names] : promised) {
    for (const char* name : names) EXPECT_NE(dlvsym(RTLD_DEFAULT, name, version), nullptr) << name;
  }
}

TEST(Abi, EveryStatusHasAName) {
  for (int status = 0; status <= FB_ERROR_CLIENT_GONE; ++status)
    EXPECT_THAT(fb_status_name(static_cast<fb_status>(status)),
                StartsWith(status == 0 ? "FB_OK" : "FB_ERROR_"));
  EXPECT_STREQ(fb_status_name(static_cast<fb_status>(15)), "FB_ERROR_UNKNOWN");
}

TEST(Arguments, WithoutASessionEveryFunctionSaysSo) {
  std::uint64_t number = 0;
  fb_resume resume{};
  const fb_change change{};
  const fb_status statuses[] = {fb_join(nullptr, nullptr),
                                fb_alloc(nullptr, "a", 1, 0, &number),
                                fb_alloc_as(nullptr, "a", 1, FB_MEMORY_WEIGHTS, 0, &number),
                                fb_share(nullptr),
                                fb_map_shared(nullptr, "maker", "a", 0, &number),
                                fb_stand_down(nullptr),
                                fb_ready(nullptr),
                                fb_wait_promotion(nullptr, 0, &resume),
                                fb_commit(nullptr, nullptr, 0, "x", 1),
                                fb_commit_changes(nullptr, nullptr, 0, &change, 1),
                                fb_prepare_changes(nullptr, nullptr, 0, &change, 1),
                                fb_counter(nullptr, &number),
                                fb_committed(nullptr, &number),
                                fb_heartbeat(nullptr, nullptr),
                                fb_resumed(nullptr),
                                fb_turn(nullptr, 0),
                                fb_turn_wanted(nullptr, 0, 0),
                                fb_leave(nullptr)};
  for (const fb_status status : statuses) EXPECT_EQ(status, FB_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(fb_session_role(nullptr), fb_role{});
  EXPECT_THAT(fb_last_error(nullptr), HasSubstr("null"));
}

TEST(Arguments, WhoCannotJoinGetsNoSession) {
  const auto joined = [](const fb_join_options& options) {
    int nobody = 0;
    auto* session = reinterpret_cast<fb_session*>(&nobody);
    const fb_status status = fb_join(&options, &session);
    EXPECT_EQ(session, nullptr);
    EXPECT_STRNE(fb_last_error(nullptr), "");
    return status;
  };
  const std::string long_name(300, 'n');
  EXPECT_EQ(joined({}), FB_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(joined({sizeof(fb_join_options), nullptr, nullptr, FB_ROLE_ACTIVE}), FB_ERROR_NO_AGENT);
  EXPECT_EQ(joined({sizeof(fb_join_options), "/nowhere", "t", FB_ROLE_ACTIVE}), FB_ERROR_NO_AGENT);
  EXPECT_EQ(joined({sizeof(fb_join_options), long_name.c_str(), "t", FB_ROLE_ACTIVE}), FB_ERROR_NO_AGENT);
  EXPECT_EQ(joined({sizeof(fb_join_options), "/nowhere", "", FB_ROLE_ACTIVE}), FB_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(joined({sizeof(fb_join_options), "/nowhere", "../x", FB_ROLE_ACTIVE}), FB_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(joined({sizeof(fb_join_options), "/nowhere", long_name.c_str(), FB_ROLE_ACTIVE}),
            FB_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(joined({sizeof(fb_join_options), "/nowhere", "t", static_cast<fb_role>(3)}),
            FB_ERROR_INVALID_ARGUMENT);
}

/// However long it would wait for the next agent: none comes there. The test's own time limit is shorter.
TEST(Arguments, NobodyWaitsForAnAgentByAPathThatCannotBeOne) {
  const os::EnvironmentScope patient(
      os::EnvironmentScope::Variables{{"FIREBREAK_AGENT_RETURNS_MS", "3600000"}});
  const std::string too_long = "/" + std::string(200, 'n');
  const fb_join_options options{sizeof options, too_long.c_str(), "t", FB_ROLE_ACTIVE};
  fb_session* session = nullptr;
  EXPECT_EQ(fb_join(&options, &session), FB_ERROR_NO_AGENT);
  EXPECT_THAT(fb_last_error(nullptr), HasSubstr("is the limit"));
}

TEST_F(SessionTest, AnActiveGetsErrorsForNonsenseAndGoesOn) {
  fb_session* active = join(FB_ROLE_ACTIVE);
  std::uint64_t number = 0;
  const std::string long_name(300, 'n');
  const fb_change without_bytes{0, nullptr, 4};
  const fb_change beyond{~std::uint64_t{0}, "x", 1};
  const fb_change endless{0, "x", ~std::size_t{0}};
  const fb_status refused[] = {fb_alloc(active, nullptr, 1, 0, &number),
                               fb_alloc(active, "", 1, 0, &number),
                               fb_alloc(active, long_name.c_str(), 1, 0, &number),
                               fb_alloc(active, "a", 0, 0, &number),
                               fb_alloc(active, "a", 1, 0, nullptr),
                               fb_alloc_as(active, "a", 1, fb_memory{}, 0, &number),
                               fb_ready(active),
                               fb_resumed(active),
                               fb_wait_promotion(active, 0, nullptr),
                               fb_commit(active, nullptr, 0, nullptr, 1),
                               fb_commit(active, nullptr, 0, "x", FB_STATE_BYTES_MAX + 1),
                               fb_commit(active, nullptr, 7, "x", 1),
                               fb_commit_changes(active, nullptr, 0, nullptr, 1),
                               fb_commit_changes(active, nullptr, 0, &without_bytes, 1),
                               fb_commit_changes(active, nullptr, 0, &beyond, 1),
                               fb_commit_changes(active, nullptr, 0, &endless, 1),
                               fb_prepare_changes(active, nullptr, 0, &beyond, 1),
                               fb_prepare_changes(active, nullptr, 9, nullptr, 0),
                               fb_counter(active, nullptr),
                               fb_committed(active, nullptr)};
  int which = 0;
  for (const fb_status status : refused) EXPECT_EQ(status, FB_ERROR_INVALID_ARGUMENT) << "call " << which++;
  EXPECT_EQ(fb_alloc(active, "a", ~std::uint64_t{0}, 0, &number), FB_ERROR_NO_MEMORY);
  ASSERT_EQ(commit(active, 0, "fine"), FB_OK) << fb_last_error(active);
  gpu_catches_up();
  ASSERT_EQ(fb_committed(active, &number), FB_OK);
  EXPECT_EQ(number, 1u);
  EXPECT_EQ(fb_leave(active), FB_OK);
}

/// As the small agent here: it says no addresses for shared memory, and would not know what it is asked.
TEST_F(SessionTest, AnAgentThatIsOlderSharesNothingAndTheSessionGoesOn) {
  fb_session* active = join(FB_ROLE_ACTIVE);
  std::uint64_t address = 0;
  EXPECT_EQ(fb_alloc_as(active, "a", 1, FB_MEMORY_SHARED, 0, &address), FB_ERROR_REFUSED);
  EXPECT_THAT(fb_last_error(active), HasSubstr("agent is older"));
  EXPECT_EQ(fb_share(active), FB_ERROR_REFUSED);
  EXPECT_EQ(fb_map_shared(active, "maker", "a", 0, &address), FB_ERROR_REFUSED);
  EXPECT_EQ(fb_map_shared(active, "maker", "a b", 0, &address), FB_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(fb_map_shared(active, "", "a", 0, &address), FB_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(commit(active, 0, "fine"), FB_OK);
  EXPECT_EQ(fb_leave(active), FB_OK);
}

TEST_F(SessionTest, AStandbyGetsErrorsForWhatOnlyAnActiveDoes) {
  fb_session* standby = join(FB_ROLE_STANDBY);
  std::uint64_t number = 0;
  fb_resume resume{};
  const fb_status refused[] = {commit(standby, 0, "x"),
                               change(standby, 0, 0, "x"),
                               fb_prepare_changes(standby, nullptr, 0, nullptr, 0),
                               fb_counter(standby, &number),
                               fb_share(standby),
                               fb_heartbeat(standby, nullptr),
                               fb_resumed(standby),
                               fb_wait_promotion(standby, 0, nullptr)};
  int which = 0;
  for (const fb_status status : refused) EXPECT_EQ(status, FB_ERROR_INVALID_ARGUMENT) << "call " << which++;
  EXPECT_EQ(fb_alloc(standby, "missing", 1, 0, &number), FB_ERROR_TIMEOUT);
  EXPECT_EQ(fb_wait_promotion(standby, 0, &resume), FB_ERROR_TIMEOUT);
  EXPECT_EQ(fb_ready(standby), FB_OK);
  agent->finish();
  EXPECT_EQ(fb_wait_promotion(standby, -1, &resume), FB_ERROR_REFUSED);
  EXPECT_EQ(fb_leave(standby), FB_OK);
}

TEST_F(SessionTest, WithoutItsAgentASessionStillCommitsAndWaitsForNobody) {
  fb_session* active = join(FB_ROLE_ACTIVE);
  fb_session* standby = join(FB_ROLE_STANDBY);
  agent.reset();
  fb_resume resume{};
  EXPECT_EQ(fb_wait_promotion(standby, -1, &resume), FB_ERROR_NO_AGENT);
  EXPECT_EQ(fb_ready(standby), FB_ERROR_NO_AGENT);
  EXPECT_EQ(commit(active, 0, "x"), FB_OK);
  gpu_catches_up();
  EXPECT_EQ(fb_leave(active), FB_OK);
  EXPECT_EQ(fb_leave(standby), FB_OK);
}

/// As here, outside of MPS.
TEST_F(SessionTest, WhereTheDriverMakesNoSmallContextItIsAFullOne) {
  void* context = nullptr;
  int is_small = 1;
  ASSERT_EQ(fb_small_context(0, 4, &context, &is_small), FB_OK) << fb_last_error(nullptr);
  EXPECT_EQ(is_small, 0);
  const auto current = cuda::ContextView::current(gpu.driver()).value();
  EXPECT_EQ(current.handle(), context);
  EXPECT_EQ(current.limit(CU_LIMIT_STACK_SIZE).value(), 0u);
  gpu.driver()->cuCtxDestroy(static_cast<CUcontext>(context));
  ASSERT_TRUE(gpu.context().make_current());
}

TEST_F(SessionTest, ASmallContextThatCannotBeMadeSaysWhy) {
  void* context = &context;
  EXPECT_EQ(fb_small_context(7, 4, &context, nullptr), FB_ERROR_CUDA);
  EXPECT_EQ(context, nullptr);
  EXPECT_THAT(fb_last_error(nullptr), HasSubstr("CUDA_ERROR_INVALID_DEVICE"));
  EXPECT_EQ(fb_small_context(0, 0, &context, nullptr), FB_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(fb_small_context(0, 4, nullptr, nullptr), FB_ERROR_INVALID_ARGUMENT);
  EXPECT_THAT(fb_last_error(nullptr), HasSubstr("null"));
}

}  // namespace
}  // namespace firebreak::testing_agent
