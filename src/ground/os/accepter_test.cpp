// SPDX-License-Identifier: Apache-2.0
#include "ground/os/accepter.h"

#include <future>

#include "ground/os/closer.h"
#include "tests/doubles/os/stuck_accept_test_support.h"
#include "tests/doubles/os/tcp_test_support.h"

namespace firebreak::os {
namespace {

struct AccepterTest : testing::Test {
  Loopback loopback;
  std::unique_ptr<Accepter> accepter = std::make_unique<Accepter>(Fd(::dup(loopback.listener.get())));

  std::future<Result<Fd>> accept() {
    auto promise = std::make_shared<std::promise<Result<Fd>>>();
    EXPECT_TRUE(accepter->accept([promise](Result<Fd> got) { promise->set_value(std::move(got)); }));
    return promise->get_future();
  }
  /// Asks until the call waits in Linux.
  std::future<Result<Fd>> accept_until_stuck() {
    const FlagFlipper flipper(loopback.listener.get());
    for (;;) {
      auto asked = accept();
      while (asked.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
        if (accepts_that_wait() > 0) return asked;
      }
      EXPECT_EQ(asked.get().error().code, ErrorCode::Timeout);
    }
  }
};

TEST_F(AccepterTest, TellsWhoWaitsAndThatNobodyDoes) {
  EXPECT_EQ(accept().get().error().code, ErrorCode::Timeout);
  const Fd client = loopback.connect_client();
  EXPECT_TRUE(accept().get());
  EXPECT_EQ(accept().get().error().code, ErrorCode::Timeout);
}

TEST_F(AccepterTest, WhoIsAcceptedIsClosedAsTheListenerIs) {
  Fd listener(::dup(loopback.listener.get()));
  const auto closer = std::make_shared<Closer>();
  listener.close_by(closer);
  accepter = std::make_unique<Accepter>(std::move(listener));
  const Fd client = loopback.connect_client();
  EXPECT_EQ(accept().get()->closer(), closer);
}

TEST_F(AccepterTest, OneThatWaitsGoesOnWithTheNextClient) {
  auto asked = accept_until_stuck();
  const Fd client = loopback.connect_client();
  EXPECT_TRUE(asked.get());
}

TEST_F(AccepterTest, OneThatWaitsIsEndedAndNobodyWaitsForIt) {
  auto asked = accept_until_stuck();
  accepter.reset();
  EXPECT_EQ(asked.get().error().code, ErrorCode::Timeout);
  while (accepts_that_wait() > 0) std::this_thread::yield();
}

}  // namespace
}  // namespace firebreak::os
