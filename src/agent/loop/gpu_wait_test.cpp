// SPDX-License-Identifier: Apache-2.0
#include "agent/loop/gpu_wait.h"

#include "tests/doubles/agent/agent_test_support.h"

namespace firebreak::agent {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct GpuWait : testing::Test {
  os::TemporaryDirectory directory = std::move(os::TemporaryDirectory::create().value());
  std::string path = directory.path() + "/agent";
  std::unique_ptr<os::EventLoop> loop = std::move(os::EventLoop::create().value());
  FakeServiceManager manager;

  Result<bool> wait(const std::function<Status()>& is_there) {
    return wait_for_gpu(*loop, manager, {path}, is_there, Milliseconds(1));
  }
};

TEST_F(GpuWait, SaysOnceWhatIsMissingAndGoesOnWhenItIsThere) {
  int looks = 0;
  const auto waited = wait([&looks]() -> Status {
    if (++looks <= 3) return fail(ErrorCode::NotFound, "no driver");
    if (looks <= 6) return fail(ErrorCode::NotFound, "no MPS");
    return {};
  });
  EXPECT_TRUE(waited.value());
  EXPECT_THAT(manager.statuses, ElementsAre("waiting for a GPU: no driver", "waiting for a GPU: no MPS"));
}

TEST_F(GpuWait, IsNoneWhereTheGpuIsThere) {
  EXPECT_TRUE(wait([]() -> Status { return {}; }).value());
  EXPECT_THAT(manager.statuses, testing::IsEmpty());
}

TEST_F(GpuWait, WhoAsksIsToldWhatIsMissing) {
  std::optional<os::Socket> asker;
  loop->post([&] {
    asker.emplace(std::move(os::connect(path, Milliseconds(5000)).value()));
    const std::string question = abi::encode(abi::StatusRequest{}, 1);
    ASSERT_TRUE(asker->send(std::as_bytes(std::span(question)), {}, Milliseconds(5000)).has_value());
  });
  std::string answer;
  const auto waited = wait([&]() -> Status {
    const auto received = asker ? asker->receive(Milliseconds(0)) : fail(ErrorCode::NotFound, "not yet");
    if (!received) return fail(ErrorCode::NotFound, "no driver");
    answer.assign(reinterpret_cast<const char*>(received->bytes.data()), received->bytes.size());
    return {};
  });
  EXPECT_TRUE(waited.value());
  EXPECT_THAT(answer, HasSubstr("the agent is waiting for a GPU: no driver"));
}

TEST_F(GpuWait, EndsWhenItsProcessIsToEnd) {
  loop->post([this] { loop->stop(); });
  EXPECT_FALSE(wait([]() -> Status { return fail(ErrorCode::NotFound, "no driver"); }).value());
}

}  // namespace
}  // namespace firebreak::agent
