// SPDX-License-Identifier: Apache-2.0
#include "program/client/injection_hook.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "ground/os/file.h"
#include "program/client/injection_library.h"

namespace firebreak::client {
namespace {

using testing::HasSubstr;

/// A hook whose agent is the test.
struct InjectionHookTest : testing::Test {
  os::TemporaryDirectory directory = std::move(os::TemporaryDirectory::create().value());
  os::Listener listener =
      std::move(os::Listener::listen(directory.path() + "/agent", os::SocketAccess::Owner).value());
  std::unique_ptr<link::AgentLink> link = std::move(link::AgentLink::connect(listener.path()).value());
  os::Socket agent = std::move(listener.accept(Milliseconds(5000)).value());
  InjectionHook hook{*link};

  void TearDown() override { unsetenv("FIREBREAK_ALLOW_INJECTION"); }
  /// A fault that is refused was raised at no time.
  std::string refusal() {
    const auto got = agent.receive(Milliseconds(5000)).value();
    const std::string_view text(reinterpret_cast<const char*>(got.bytes.data()), got.bytes.size());
    const auto injected = std::get<abi::Injected>(abi::decode(text).value());
    EXPECT_EQ(injected.raised_at_ns, 0);
    return injected.refusal;
  }
  bool silent() { return !agent.receive(Milliseconds(0)).has_value(); }
};

TEST_F(InjectionHookTest, ATenantThatDoesNotAllowFaultsTakesNone) {
  hook.request({"llm", "trap", 1});
  EXPECT_THAT(refusal(), HasSubstr("FIREBREAK_ALLOW_INJECTION=1"));
  hook.at_commit();
  EXPECT_TRUE(silent());
}

TEST_F(InjectionHookTest, OnlyOneMeansYes) {
  setenv("FIREBREAK_ALLOW_INJECTION", "0", 1);
  hook.request({"llm", "trap", 1});
  EXPECT_THAT(refusal(), HasSubstr("FIREBREAK_ALLOW_INJECTION=1"));
}

/// This test's run path does not lead to the library, so the attempt to load it is what can be seen.
TEST_F(InjectionHookTest, TheLibraryIsLoadedAtTheCommitThatWasAskedFor) {
  setenv("FIREBREAK_ALLOW_INJECTION", "1", 1);
  hook.request({"llm", "trap", 3});
  hook.at_commit();
  hook.at_commit();
  EXPECT_TRUE(silent());
  hook.at_commit();
  EXPECT_THAT(refusal(), HasSubstr(injection_library));
  hook.at_commit();
  EXPECT_TRUE(silent());
}

TEST_F(InjectionHookTest, AProcessThatIsNoTenantSaysSo) {
  const std::string text = abi::encode(abi::Inject{"llm", "trap", 1});
  ASSERT_TRUE(agent.send(std::as_bytes(std::span(text)), {}, Milliseconds(1000)).has_value());
  EXPECT_EQ(refusal(), "that process is no tenant");
}

}  // namespace
}  // namespace firebreak::client
