// SPDX-License-Identifier: Apache-2.0
/// Tenants that are asked to give their GPU up. The test does what their processes would do.
#include "shared/abi/spare_page.h"
#include "tests/doubles/agent/parked_domain_test_support.h"
#include "tests/doubles/agent/spare_page_test_support.h"

namespace firebreak::agent {
namespace {

using abi::RestLevel;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// One that can rest.
class RestPage : public PageOfSpare {
 public:
  RestPage() { page().deepest_rest = RestLevel::WithoutMemory; }
  bool is_asked() const { return page().asked_to_rest.load() != page().answered_rest.load(); }
  RestLevel wanted() const { return abi::level_in(page().asked_to_rest.load()); }
  /// Goes where it was asked to.
  void do_it(std::uint64_t host_bytes = 0) {
    page().rest = wanted();
    page().rest_host_bytes = host_bytes;
    if (wanted() > RestLevel::Still) write_text(page().active_domain, "");
    if (wanted() == RestLevel::Awake) write_text(page().active_domain, "/mps/a");
    write_text(page().rest_refusal, "");
    page().answered_rest = page().asked_to_rest.load();
  }
  void refuse(const std::string& why) {
    write_text(page().rest_refusal, why);
    page().answered_rest = page().asked_to_rest.load();
  }
};

class AgentResting : public ParkedDomain {
 protected:
  Process start_with(Peer& command, const RestPage& page) {
    abi::Place place{"llm", abi::Role::Active};
    place.spare = true;
    return start(command, place, true, page.descriptor());
  }
  nlohmann::json spare() {
    const auto status = nlohmann::json::parse(agent->status_json());
    return status["tenants"][0]["spare"];
  }
  /// Sends it; the page is asked before there is an answer.
  void send(Peer& peer, RestPage& page, RestLevel level) {
    peer.send(abi::Rest{"llm", level});
    until([&] { return page.is_asked(); });
    EXPECT_FALSE(peer.receive()) << "nobody has answered yet";
  }
  /// "done", or why not.
  std::string answer(Peer& peer) {
    std::optional<Peer::Received> received;
    until([&] { return (received = peer.receive()).has_value(); });
    if (!received) return "nothing";
    const auto* refused = std::get_if<abi::Refused>(&received->message);
    return refused == nullptr ? "done" : refused->reason;
  }
  std::vector<std::string> told(Peer& watcher, abi::EventKind what) {
    std::vector<std::string> texts;
    while (auto received = watcher.receive()) {
      const auto& event = std::get<abi::Event>(received->message);
      if (event.what == what) texts.push_back(event.tenant + ": " + event.text);
    }
    return texts;
  }
};

TEST_F(AgentResting, WhoAsksIsAnsweredOnceItIsSo) {
  RestPage page;
  Peer command = peer(), operating = peer(), watcher = peer();
  start_with(command, page);
  EXPECT_EQ(spare()["rest"], "awake");
  ask(watcher, abi::Subscribe{});
  send(operating, page, RestLevel::WithoutMemory);
  EXPECT_EQ(page.wanted(), RestLevel::WithoutMemory);
  page.do_it(std::uint64_t{5} << 20U);
  EXPECT_EQ(answer(operating), "done");
  until([&] { return spare()["rest"] == "without memory"; });
  EXPECT_EQ(spare()["rest_host_bytes"], 5U << 20U);
  EXPECT_THAT(told(watcher, abi::EventKind::Rests),
              ElementsAre(HasSubstr("llm: without memory, 5 MiB in the host's memory; work 0.0 ms")));
  send(operating, page, RestLevel::Awake);
  page.do_it();
  EXPECT_EQ(answer(operating), "done");
  until([&] { return spare()["rest"] == "awake"; });
  EXPECT_THAT(told(watcher, abi::EventKind::Awake), ElementsAre(HasSubstr("llm: awake; driver")));
}

TEST_F(AgentResting, WhyItWasRefusedIsSaid) {
  RestPage page;
  Peer command = peer(), operating = peer(), watcher = peer();
  start_with(command, page);
  ask(watcher, abi::Subscribe{});
  send(operating, page, RestLevel::WithoutContexts);
  page.refuse("it captures a graph");
  EXPECT_EQ(answer(operating), "it captures a graph");
  EXPECT_THAT(told(watcher, abi::EventKind::Rests), IsEmpty());
  EXPECT_EQ(spare()["rest"], "awake");
}

TEST_F(AgentResting, WhoIsAskedIsAskedByNobodyElseUntilItHasAnswered) {
  RestPage page;
  Peer command = peer(), first = peer(), second = peer();
  start_with(command, page);
  send(first, page, RestLevel::WithoutMemory);
  const std::uint32_t question = page->asked_to_rest;
  EXPECT_EQ(refusal(second, abi::Rest{"llm", RestLevel::Awake}),
            "it was asked before, and has not answered yet");
  EXPECT_EQ(page->asked_to_rest.load(), question);
  page.do_it();
  EXPECT_EQ(answer(first), "done");
  send(second, page, RestLevel::Awake);
  page.do_it();
  EXPECT_EQ(answer(second), "done");
}

/// The page has it all: also a question that nobody waits for any more.
TEST_F(AgentResting, ANextAgentKnowsWhoRestsAndWhoWasAsked) {
  RestPage page;
  Peer command = peer(), operating = peer();
  const Process llm = start_with(command, page);
  send(operating, page, RestLevel::WithoutMemory);
  begin(Milliseconds(600'000));
  detectors.callbacks.on_gpu_opened(llm.pid);  // the detectors find it again
  Peer next = peer();
  EXPECT_EQ(refusal(next, abi::Rest{"llm", RestLevel::Awake}),
            "it was asked before, and has not answered yet");
  page.do_it(std::uint64_t{7} << 20U);
  until([&] { return spare()["rest"] == "without memory"; });
  begin(Milliseconds(600'000));
  detectors.callbacks.on_gpu_opened(llm.pid);  // the detectors find it again
  EXPECT_EQ(spare()["rest"], "without memory");
  Peer last = peer();
  send(last, page, RestLevel::Awake);
  page.do_it();
  EXPECT_EQ(answer(last), "done");
}

TEST_F(AgentResting, WhoseProcessEndsFirstIsToldSo) {
  RestPage page;
  Peer command = peer(), operating = peer();
  const Process llm = start_with(command, page);
  send(operating, page, RestLevel::WithoutMemory);
  detectors.callbacks.on_exit(llm.pid);
  EXPECT_EQ(answer(operating), "its process ended first");
}

TEST_F(AgentResting, WhoCannotRestIsNotAsked) {
  RestPage page;
  page->deepest_rest = RestLevel::Awake;
  Peer command = peer(), operating = peer();
  start_with(command, page);
  EXPECT_EQ(refusal(operating, abi::Rest{"llm", RestLevel::WithoutMemory}),
            "it was started by an older version of Firebreak");
  EXPECT_EQ(refusal(operating, abi::Rest{"nobody", RestLevel::WithoutMemory}),
            "there is no process of tenant 'nobody'");
  EXPECT_FALSE(page.is_asked());
  Peer other = peer();
  start(other, "plain");
  EXPECT_EQ(refusal(operating, abi::Rest{"plain", RestLevel::Still}),
            "it has no spare driver instance, or its program has not come to the GPU yet");
  const auto pair = this->pair("vaulted");
  EXPECT_EQ(refusal(operating, abi::Rest{"vaulted", RestLevel::Still}),
            "it uses libfirebreak, and such tenants do not rest");
}

/// What a page says is shown, whatever it is.
TEST_F(AgentResting, APageThatLiesConcernsItsProcessAlone) {
  RestPage page;
  Peer command = peer(), operating = peer();
  start_with(command, page);
  page->rest = static_cast<RestLevel>(77);
  page->deepest_rest = static_cast<RestLevel>(99);
  page->rest_refusal.fill('\x07');
  until([&] { return spare()["rest"] == "awake"; });
  EXPECT_EQ(refusal(operating, abi::Rest{"llm", RestLevel::WithoutMemory}),
            "it was started by an older version of Firebreak");
  page->deepest_rest = RestLevel::WithoutMemory;
  send(operating, page, RestLevel::WithoutMemory);
  page->answered_rest = page->asked_to_rest.load();
  EXPECT_EQ(answer(operating), std::string(255, '?')) << "it says that it did, and does not rest";
}

}  // namespace
}  // namespace firebreak::agent
