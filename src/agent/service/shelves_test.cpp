// SPDX-License-Identifier: Apache-2.0
#include "agent/service/shelves.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <unistd.h>

#include "agent/service/shelf.h"
#include "agent/service/shelf_queue.h"
#include "ground/os/memory.h"
#include "ground/os/processes.h"
#include "tests/doubles/agent/agent_test_support.h"
#include "tests/doubles/os/tcp_test_support.h"

namespace firebreak::agent {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

os::Fd file_with(const std::string& text) { return std::move(os::memory_file_with(text).value()); }

std::vector<os::Fd> one(os::Fd descriptor) {
  std::vector<os::Fd> all;
  all.push_back(std::move(descriptor));
  return all;
}

TEST(Shelf, GivesWhatItWasGivenUnderThatName) {
  Shelf shelf(10);
  EXPECT_EQ(shelf.answer("1 k llm/memory/a\n", one(file_with("first"))).text, "1 1");
  EXPECT_EQ(shelf.answer("2 k llm/memory/a\n", one(file_with("second"))).text, "2 1");
  EXPECT_EQ(shelf.answer("3 h llm/memory/b\nllm/memory/a\n", {}).text, "3 01");
  const Shelf::Answer answer = shelf.answer("4 g llm/memory/b\nllm/memory/a\n", {});
  EXPECT_EQ(answer.text, "4 01");
  ASSERT_THAT(answer.descriptors, SizeIs(1));
  EXPECT_EQ(os::content_of(answer.descriptors.front()).value(), "second");
}

TEST(Shelf, DropsOneOrAFolder) {
  Shelf shelf(10);
  for (const char* name : {"llm/a", "llm/b", "llm2/a"})
    EXPECT_EQ(shelf.answer(fmt::format("1 k {}\n", name), one(file_with(name))).text, "1 1");
  EXPECT_EQ(shelf.answer("2 d llm/b\n", {}).text, "2 2");
  EXPECT_EQ(shelf.answer("3 d llm/\n", {}).text, "3 1");
  EXPECT_EQ(shelf.answer("4 h llm/a\nllm/b\nllm2/a\n", {}).text, "4 001");
  EXPECT_EQ(shelf.answer("5 d nobody\n", {}).text, "5 1");
}

TEST(Shelf, TakesNoMoreThanItMay) {
  Shelf shelf(2);
  for (const char* name : {"a", "b"}) shelf.answer(fmt::format("1 k {}\n", name), one(file_with(name)));
  EXPECT_EQ(shelf.answer("2 k c\n", one(file_with("c"))).text, "2 0");
  EXPECT_EQ(shelf.answer("3 k b\n", one(file_with("other"))).text, "3 1") << "in the place of another";
  EXPECT_EQ(shelf.answer("4 k c\n", {}).text, "4 0") << "without a descriptor";
}

TEST(Shelf, NonsenseIsNotAnswered) {
  Shelf shelf(2);
  for (const char* text : {"", " ", "1", "1 ", "1 k", "1 k ", "1 z a\n", "1 k a\nb\n"})
    EXPECT_EQ(shelf.answer(text, {}).text, "") << text;
}

class ShelvesTest : public testing::Test {
 protected:
  /// Shelves with room for three each.
  Shelves shelves() { return Shelves(kernel_, manager_, {"/bin/sh", "-c", script_, FIREBREAK_TEST_SHELF}); }
  static std::string content(const os::Fd& file) {
    return file ? os::content_of(file.get()).value_or("?") : "none";
  }
  static std::vector<std::string> contents(Shelves& shelves, const std::vector<std::string>& names) {
    std::vector<std::string> all;
    const std::vector<os::Fd> got = std::move(shelves.get(names).value());
    for (const os::Fd& each : got) all.push_back(content(each));
    return all;
  }
  static void put(Shelves& shelves, const std::string& name) {
    EXPECT_TRUE(shelves.put(name, file_with(name).get())) << name;
  }

  /// Signals every shelf that there is.
  void signal_shelves(int number) {
    for (const pid_t pid : os::children_of(kernel_, ::getpid()))
      ASSERT_TRUE(kernel_.send_signal(kernel_.pidfd_open(pid).value(), number));
  }

  os::RealKernel kernel_;
  FakeServiceManager manager_;
  std::string script_ = "ulimit -n 83 && exec \"$0\"";
};

TEST_F(ShelvesTest, AreAsManyAsTheLimitOnDescriptorsAsksFor) {
  Shelves shelves = this->shelves();
  EXPECT_EQ(shelves.size(), 0u);
  for (const char* name : {"t/a", "t/b", "t/c", "t/d", "u/a", "u/b", "u/c"}) put(shelves, name);
  EXPECT_EQ(shelves.size(), 3u);
  EXPECT_THAT(manager_.kept, SizeIs(3));
  EXPECT_THAT(contents(shelves, {"u/c", "t/a", "t/z", "u/a"}), ElementsAre("u/c", "t/a", "none", "u/a"));
  EXPECT_THAT(shelves.have(std::vector<std::string>{"t/d", "t/z"}).value(), ElementsAre(true, false));
}

TEST_F(ShelvesTest, AnEmptyOneEnds) {
  Shelves shelves = this->shelves();
  for (const char* name : {"t/a", "t/b", "t/c", "u/a"}) put(shelves, name);
  EXPECT_EQ(shelves.size(), 2u);
  shelves.drop("t/");
  EXPECT_EQ(shelves.size(), 1u);
  EXPECT_THAT(manager_.kept, ElementsAre(testing::Key(shelf_name(1))));
  EXPECT_THAT(contents(shelves, {"u/a"}), ElementsAre("u/a"));
  put(shelves, "v/a");
  shelves.drop("u/a");
  shelves.drop("v/");
  EXPECT_THAT(manager_.kept, IsEmpty());
}

TEST_F(ShelvesTest, OutliveWhoFilledThem) {
  {
    Shelves first = shelves();
    for (const char* name : {"t/a", "t/b", "t/c", "t/d"}) put(first, name);
  }
  Shelves next = shelves();
  auto descriptors = manager_.take_descriptors();
  next.take_up(descriptors);
  EXPECT_THAT(descriptors, IsEmpty());
  EXPECT_THAT(contents(next, {"t/a", "t/d"}), ElementsAre("t/a", "t/d"));
  put(next, "t/e");
  EXPECT_EQ(next.size(), 2u);
}

/// Killed between its question and the answer, an agent leaves that answer to the next one.
TEST_F(ShelvesTest, AnAnswerToAnAgentBeforeIsNobodysAnswer) {
  {
    Shelves first = shelves();
    put(first, "t/a");
    put(first, "t/b");
  }
  const std::string question = "17 d t/b\n";
  os::Socket socket(os::Fd(::dup(manager_.kept.at(shelf_name(0)).get())));
  ASSERT_TRUE(socket.send(std::as_bytes(std::span(question)), {}, Milliseconds(1000)));
  Shelves next = shelves();
  auto descriptors = manager_.take_descriptors();
  next.take_up(descriptors);
  EXPECT_THAT(contents(next, {"t/a", "t/b"}), ElementsAre("t/a", "none"));
}

TEST_F(ShelvesTest, OneThatIsGoneIsFollowedByAnother) {
  script_ = "exec \"$0\"";
  Shelves shelves = this->shelves();
  put(shelves, "t/a");
  os::Socket(os::Fd(::dup(manager_.kept.at(shelf_name(0)).get()))).hang_up();
  EXPECT_THAT(contents(shelves, {"t/a"}), ElementsAre("none"));
  put(shelves, "t/b");
  EXPECT_THAT(contents(shelves, {"t/a", "t/b"}), ElementsAre("none", "t/b"));
}

TEST_F(ShelvesTest, ASilentOneIsNotOneThatHasNothing) {
  script_ = "exec \"$0\"";
  Shelves shelves = this->shelves();
  put(shelves, "t/a");
  put(shelves, "t/b");
  signal_shelves(SIGSTOP);
  const std::vector<std::string> names = {"t/a"};
  EXPECT_EQ(shelves.get(names).error().code, ErrorCode::Timeout);
  EXPECT_EQ(shelves.have(names).error().code, ErrorCode::Timeout);
  EXPECT_THAT(shelves.silent(), ElementsAre(shelf_name(0)));
  put(shelves, "t/c");
  EXPECT_THAT(contents(shelves, {"t/c"}), ElementsAre("t/c")) << "on another one";
  shelves.drop("t/b");
  signal_shelves(SIGCONT);
  while (!shelves.get(names)) {
  }
  EXPECT_THAT(shelves.silent(), IsEmpty());
  EXPECT_THAT(contents(shelves, {"t/a", "t/b", "t/c"}), ElementsAre("t/a", "none", "t/c"));
}

TEST_F(ShelvesTest, ASilentOneStopsNobodysLoop) {
  const auto loop = std::move(os::EventLoop::create().value());
  std::vector<std::string> said;
  ShelfQueue queue(*loop, kernel_, manager_, {FIREBREAK_TEST_SHELF},
                   [&](const std::string& shelf, bool is_silent) {
                     said.push_back(shelf + (is_silent ? " is silent" : " answers"));
                   });
  queue.be_kept();
  queue.put("t/a", file_with("a").get(), [&](const Status& put) { said.push_back(put ? "put" : "not put"); });
  while (!queue.is_idle()) loop->run_once(Milliseconds(10));
  signal_shelves(SIGSTOP);
  queue.get({"t/a"}, [&](const std::vector<os::Fd>& got) { said.push_back(content(got.front())); });
  loop->post([&] { said.push_back("the loop goes on"); });
  while (said.size() < 3) loop->run_once(Milliseconds(10));
  EXPECT_FALSE(queue.is_idle());
  signal_shelves(SIGCONT);
  while (!queue.is_idle()) loop->run_once(Milliseconds(10));
  EXPECT_THAT(said, ElementsAre("put", "the loop goes on", "shelf/0 is silent", "shelf/0 answers", "a"));
}

TEST_F(ShelvesTest, ASilentOneIsToldAgainWhatToDropAndNothingThatCameSince) {
  const auto loop = std::move(os::EventLoop::create().value());
  ShelfQueue queue(*loop, kernel_, manager_, {FIREBREAK_TEST_SHELF}, [](const std::string&, bool) {});
  queue.be_kept();
  const auto put_one = [&](const std::string& name) {
    bool is_put = false;
    queue.put(name, file_with(name).get(), [&](const Status& put) { is_put = put.has_value(); });
    while (!is_put) loop->run_once(Milliseconds(10));
  };
  const auto until_idle = [&] {
    while (!queue.is_idle()) loop->run_once(Milliseconds(10));
  };
  put_one("t/a");
  signal_shelves(SIGSTOP);
  bool is_dropped = false;
  queue.drop("t/", [&] { is_dropped = true; });
  put_one("t/b");  // put on another shelf: that one did not answer in time
  EXPECT_FALSE(is_dropped);
  signal_shelves(SIGCONT);
  until_idle();
  EXPECT_TRUE(is_dropped);
  EXPECT_THAT(manager_.kept, ElementsAre(testing::Key(shelf_name(1)))) << "the empty one has ended";
  std::string there;
  queue.get({"t/b"}, [&](const std::vector<os::Fd>& got) { there = content(got.front()); });
  until_idle();
  EXPECT_EQ(there, "t/b");
}

TEST_F(ShelvesTest, WhatDoesNotCloseKeepsAShelfFromNobody) {
  const os::Loopback loopback;
  auto dropped = loopback.lingering(), replaced = loopback.lingering();
  script_ = "exec \"$0\"";
  Shelves shelves = this->shelves();
  ASSERT_TRUE(shelves.put("t/dropped", dropped.connection.get()));
  ASSERT_TRUE(shelves.put("t/replaced", replaced.connection.get()));
  dropped.connection.reset();
  replaced.connection.reset();
  put(shelves, "t/replaced");
  shelves.drop("t/dropped");
  put(shelves, "u/a");
  EXPECT_THAT(contents(shelves, {"t/dropped", "t/replaced", "u/a"}),
              ElementsAre("none", "t/replaced", "u/a"));
  EXPECT_THAT(shelves.silent(), IsEmpty());
  for (const auto* each : {&dropped, &replaced})
    EXPECT_EQ(os::Loopback::read_to_end(each->client), each->sent);
}

TEST_F(ShelvesTest, WithoutAProgramNothingIsPutAway) {
  Shelves shelves(kernel_, manager_, {"/nowhere/firebreakd"});
  EXPECT_FALSE(shelves.put("t/a", file_with("a").get()));
  EXPECT_THAT(manager_.kept, IsEmpty());
}

}  // namespace
}  // namespace firebreak::agent
