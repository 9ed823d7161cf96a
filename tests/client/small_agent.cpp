// SPDX-License-Identifier: Apache-2.0
#include "tests/client/small_agent.h"

#include "ground/os/memory.h"

namespace firebreak::testing_agent {
namespace {

/// Addresses that nobody uses on machines seen so far.
constexpr std::uint64_t arena_base = 0x510000000000;
constexpr Milliseconds patience{5000};

}  // namespace

Result<std::unique_ptr<SmallAgent>> SmallAgent::start(const Memory& wanted) {
  auto directory = os::TemporaryDirectory::create();
  if (!directory) return propagate(directory);
  auto listener = os::Listener::listen(directory->path() + "/agent.sock", os::SocketAccess::Owner);
  if (!listener) return propagate(listener);
  const auto seal = wanted.is_of_fixed_size ? os::MemorySeal::Size : os::MemorySeal::None;
  auto memory = os::create_memory_file("small-agent", wanted.size_bytes, seal);
  if (!memory) return propagate(memory);
  auto mapping = os::Mapping::of_file(memory->get(), wanted.size_bytes, os::Protection::ReadWrite);
  if (!mapping) return propagate(mapping);
  if (auto* page = mapping->as<abi::SharedPage>()) {
    page->magic = abi::shared_page_magic;
    page->version = wanted.version;
  }
  return std::unique_ptr<SmallAgent>(new SmallAgent(std::move(*directory), std::move(*listener),
                                                    std::move(*memory), std::move(*mapping), wanted.is_sent));
}

SmallAgent::SmallAgent(os::TemporaryDirectory directory, os::Listener listener, os::Fd memory,
                       os::Mapping mapping, bool sends_memory)
    : directory_(std::move(directory)),
      listener_(std::move(listener)),
      memory_(std::move(memory)),
      mapping_(std::move(mapping)),
      sends_memory_(sends_memory),
      acceptor_([this] { accept_all(); }) {}

SmallAgent::~SmallAgent() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    for (const auto& peer : peers_) peer->hang_up();
  }
  // A last connection is what the acceptor waits for.
  const auto last = os::connect(listener_.path(), patience);
  acceptor_.join();
  for (std::thread& server : servers_) server.join();
}

void SmallAgent::accept_all() {
  for (;;) {
    auto peer = listener_.accept(Milliseconds(-1));
    const std::lock_guard lock(mutex_);
    if (ended_ || !peer) return;
    peers_.push_back(std::make_unique<os::Socket>(std::move(*peer)));
    servers_.emplace_back([this, raw = peers_.back().get()] { serve(*raw); });
  }
}

void SmallAgent::serve(os::Socket& peer) {
  for (;;) {
    const auto received = peer.receive(Milliseconds(-1));
    if (!received) return;
    const std::string_view text(reinterpret_cast<const char*>(received->bytes.data()),
                                received->bytes.size());
    const auto asked = abi::decode_letter(text);
    if (!asked) return;
    if (std::holds_alternative<abi::TurnWanted>(asked->message)) {
      ++wishes_;
      continue;
    }
    const auto* joins = std::get_if<abi::Join>(&asked->message);
    const abi::Message answer = joins != nullptr ? abi::Message(join(*joins)) : abi::Message(abi::Done{});
    const std::string encoded = abi::encode(answer, asked->number);
    const int descriptor = memory_.get();
    const std::span<const int> descriptors(&descriptor, joins != nullptr && sends_memory_ ? 1 : 0);
    if (!peer.send(std::as_bytes(std::span(encoded)), descriptors, patience)) return;
  }
}

abi::Joined SmallAgent::join(const abi::Join& asked) {
  const std::lock_guard lock(mutex_);
  ++members_;
  if (asked.role == abi::Role::Standby) standby_ = members_;
  return {abi::PromotionWord::from(page().promotion.load()).epoch, arena_base, 0, 0, members_};
}

void SmallAgent::promote() {
  {
    const std::lock_guard lock(mutex_);
    const auto before = abi::PromotionWord::from(page().promotion.load());
    page().promoted.store(abi::Promoted{before.epoch + 1, standby_}.raw());
  }
  begin_epoch();
}

void SmallAgent::begin_epoch() {
  auto& word = page().promotion;
  const auto before = abi::PromotionWord::from(word.load());
  word.store(abi::PromotionWord{before.epoch + 1, false}.raw(), std::memory_order_release);
  os::futex_wake(word);
}

void SmallAgent::finish() {
  auto& word = page().promotion;
  const auto before = abi::PromotionWord::from(word.load());
  word.store(abi::PromotionWord{before.epoch, true}.raw(), std::memory_order_release);
  os::futex_wake(word);
}

}  // namespace firebreak::testing_agent
