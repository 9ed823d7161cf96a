// SPDX-License-Identifier: Apache-2.0
#include "agent/service/second_supervisor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ground/os/memory.h"

namespace firebreak::agent {
namespace {

class WaitsToBeNeeded : public testing::Test {
 protected:
  void say(const std::string& text, int descriptor = -1) {
    const std::span<const int> attached(&descriptor, descriptor >= 0 ? 1 : 0);
    ASSERT_TRUE(first_->send(std::as_bytes(std::span(text)), attached, Milliseconds(1000)));
  }
  void keep(const std::string& name) { say("k" + name, os::memory_file_with(name).value().get()); }
  /// The supervisor is killed.
  std::optional<KeptDescriptors> what_is_kept() {
    first_.reset();
    return wait_to_be_needed(second_);
  }

  std::pair<os::Socket, os::Socket> ends_ = std::move(os::socket_pair().value());
  std::optional<os::Socket> first_{std::move(ends_.first)};
  os::Socket second_{std::move(ends_.second)};
};

TEST_F(WaitsToBeNeeded, WhatWasKeptAndNotDroppedIsThere) {
  for (const char* name : {"one", "two", "three", "two"}) keep(name);
  say("done");  // drops one
  const auto kept = what_is_kept();
  ASSERT_TRUE(kept);
  ASSERT_EQ(kept->size(), 2u);
  for (const auto& [name, descriptor] : *kept) EXPECT_EQ(os::content_of(descriptor.get()).value(), name);
  EXPECT_TRUE(kept->contains("two") && kept->contains("three"));
}

TEST_F(WaitsToBeNeeded, NobodyIsNeededAfterTheEndInGoodOrder) {
  keep("one");
  say("e");
  EXPECT_FALSE(what_is_kept());
}

TEST_F(WaitsToBeNeeded, WhatHasNoDescriptorOrMakesNoSenseIsNotKept) {
  say("kone");
  say("?");
  keep("two");
  const auto kept = what_is_kept();
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->size(), 1u);
}

}  // namespace
}  // namespace firebreak::agent
