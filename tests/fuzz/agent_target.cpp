// SPDX-License-Identifier: Apache-2.0
/// Bytes as a sequence of what happens to an agent.
#include <fmt/format.h>
#include <sys/eventfd.h>

#include <array>
#include <string>

#include "ground/os/memory.h"
#include "ground/os/socket.h"
#include "tests/fuzz/agent_stage.h"
#include "tests/fuzz/targets.h"

namespace firebreak::fuzz {
namespace {

/// Zeros after the end.
class Bytes {
 public:
  explicit Bytes(std::string_view bytes) : bytes_(bytes) {}

  bool is_over() const { return bytes_.empty(); }
  std::uint8_t take() {
    if (bytes_.empty()) return 0;
    const auto first = static_cast<std::uint8_t>(bytes_.front());
    bytes_.remove_prefix(1);
    return first;
  }
  bool coin() { return take() % 2 == 1; }
  std::string_view text() {
    const std::string_view text = bytes_.substr(0, take());
    bytes_.remove_prefix(std::min(text.size(), bytes_.size()));
    return text;
  }
  template <class T, std::size_t Count>
  const T& one_of(const std::array<T, Count>& all) {
    return all[take() % Count];
  }

 private:
  std::string_view bytes_;
};

constexpr int steps_max = 48;
const std::array<std::string, 8> tenants = {"b-pair", "b-placed", "a-1", "a-2",
                                            "a-3",    "a-4",      "b-3", "no name"};
const std::array<std::string, 3> allocations = {"weights", "state", ""};
constexpr std::array users = {user_a, user_b, uid_t{0}, user_a};
constexpr std::array entrances = {agent::Entrance::Tenants, agent::Entrance::Tenants,
                                  agent::Entrance::Operators, agent::Entrance::Observers};
constexpr std::array<std::uint64_t, 6> sizes = {
    0, 4096, 8192, std::uint64_t{1} << 20, 40'000'000'000, ~std::uint64_t{0}};
constexpr std::array times = {Milliseconds(5),     Milliseconds(100),    Milliseconds(1'000),
                              Milliseconds(6'000), Milliseconds(16'000), Milliseconds(61'000)};
const std::array<std::string, 2> domains = {"a", "b"};
constexpr std::array memories = {abi::Memory::Weights, abi::Memory::State, abi::Memory::Shared};

/// One peer's words: each is well formed, and may be anybody's.
class Grammar {
 public:
  Grammar(Bytes& bytes, const AgentStage& stage, std::size_t peer)
      : bytes_(bytes), stage_(stage), peer_(peer) {}

  abi::Message message() {
    switch (bytes_.take() % 24) {
      case 0:
      case 1:
        return abi::Join{tenant(), role(), token(), bytes_.coin() ? "a" : ""};
      case 2:
        return abi::Rejoin{tenant(), token(), bytes_.coin()};
      case 3:
        return abi::StandDown{bytes_.take() % 3u};
      case 4:
        return abi::Publish{bytes_.one_of(allocations), bytes_.one_of(sizes), bytes_.one_of(sizes),
                            bytes_.one_of(memories)};
      case 5:
        if (bytes_.coin()) return abi::GiveShared{tenant(), bytes_.one_of(allocations)};
        return abi::GiveAllocation{bytes_.one_of(allocations)};
      case 6:
        return abi::Listen{};
      case 7:
        return abi::GiveListener{};
      case 8:
        return abi::NextConnection{bytes_.one_of(sizes)};
      case 9:
        return abi::ReleaseConnection{bytes_.take() % 3u};
      case 10:
        return abi::Ready{};
      case 11:
        return abi::Resumed{bytes_.one_of(sizes)};
      case 12:
        return bytes_.coin() ? abi::Message(abi::Share{bytes_.coin()}) : abi::Finish{};
      case 13:
        return abi::GiveCoreDumpPipe{};
      case 14:
        return abi::CoreDumpMode{std::string(bytes_.text())};
      case 15:
        return abi::Place{tenant(), role(), "", bytes_.take() % 120u, 0, bytes_.coin()};
      case 16:
        return abi::Adopt{tenant(), role(), pid(), abi::StrayPolicy::Report};
      case 17:
        return abi::EndProcess{tenant(), pid()};
      case 18:
        return abi::EndTenant{tenant(), bytes_.take() * 100u};
      case 19:
        return abi::Output{pid(), "CUDA Exception: Warp Illegal Instruction\n"};
      case 20:
        return bytes_.coin() ? abi::Message(abi::StatusRequest{}) : abi::Message(abi::Subscribe{});
      case 21:
        return abi::Inject{tenant(), "trap", 1};
      case 22:
        return abi::HandOver{tenant()};
      default: {
        const std::string text(bytes_.text());
        return text.empty() ? abi::Message(abi::TurnWanted{}) : abi::Injected{1, text};
      }
    }
  }

 private:
  std::string tenant() {
    last_ = bytes_.one_of(tenants);
    return last_;
  }
  abi::Role role() { return bytes_.coin() ? abi::Role::Standby : abi::Role::Active; }
  /// The right one, where its user was told it.
  std::string token() {
    constexpr const char* guessed = "guessed";
    return bytes_.coin() ? stage_.token_for(peer_, last_) : bytes_.coin() ? guessed : "";
  }
  std::int64_t pid() {
    const std::uint8_t which = bytes_.take();
    return which == 255 ? 1 : stage_.pid_of(which);
  }

  Bytes& bytes_;
  const AgentStage& stage_;
  std::size_t peer_;
  std::string last_;
};

os::Fd descriptor(std::uint8_t kind) {
  switch (kind % 6) {
    case 0:
    case 1:
      return os::create_memory_file("memory", 4096).value_or(os::Fd());
    case 2:
      return os::Fd(::eventfd(0, EFD_CLOEXEC));
    case 3: {
      auto ends = os::socket_pair();
      return ends ? ends->first.release() : os::Fd();
    }
    default:
      return {};
  }
}

void say(AgentStage& stage, Bytes& bytes) {
  const std::size_t peer = bytes.take();
  const abi::Message message = Grammar(bytes, stage, peer).message();
  const std::uint64_t number = bytes.take() % 4;
  const os::Fd attached = descriptor(bytes.take());
  stage.send(peer, abi::encode(message, number), attached.get());
}

void happen(AgentStage& stage, Bytes& bytes) {
  const std::string& domain = bytes.one_of(domains);
  switch (bytes.take() % 7) {
    case 0:
      return stage.change_domain(domain, static_cast<mps::DomainState>(bytes.take() % 3));
    case 1:
      return stage.lose_clients(domain);
    case 2:
      return stage.name_clients(domain);
    case 3:
      return stage.answer_termination(bytes.coin());
    case 4:
      return stage.open_gpu(bytes.take());
    case 5:
      return stage.restart_agent();
    default: {
      constexpr std::array sources = {fault::FaultSource::Xid, fault::FaultSource::UvmEvent,
                                      fault::FaultSource::ProcessExit};
      const auto source = bytes.one_of(sources);
      const auto of = static_cast<fault::FaultClass>(bytes.take() % 6);
      const pid_t pid = bytes.coin() ? agent::FakeDomains::server_of_a : stage.pid_of(bytes.take());
      return stage.hear(source, of, pid);
    }
  }
}

void step(AgentStage& stage, Bytes& bytes) {
  const std::uint8_t what = bytes.take() % 16;
  if (what < 8) return say(stage, bytes);
  switch (what) {
    case 8:
    case 9: {
      const uid_t user = bytes.one_of(users);
      auto entrance = bytes.one_of(entrances);
      if (user != 0 && entrance == agent::Entrance::Operators) entrance = agent::Entrance::Tenants;
      const bool has_gpu = bytes.coin();
      const std::uint8_t parent = bytes.take();
      return stage.start(user, entrance, has_gpu, parent % 2 == 0 ? std::nullopt : std::optional(parent / 2));
    }
    case 10: {
      const std::size_t peer = bytes.take();
      return stage.connect(peer, bytes.coin() ? agent::Entrance::Observers : agent::Entrance::Tenants);
    }
    case 11:
      return stage.disconnect(bytes.take());
    case 12:
      return stage.end(bytes.take());
    case 13:
      return stage.pass(bytes.one_of(times));
    case 14: {
      const std::size_t peer = bytes.take();
      if (bytes.coin()) return stage.send(peer, std::string(bytes.text()), -1);
      const std::size_t offset = bytes.take() * 8u;
      return stage.write_page(peer, offset, bytes.text());
    }
    default:
      return happen(stage, bytes);
  }
}

}  // namespace

bool can_play_agent() { return AgentStage::is_possible(); }

void play_agent(std::string_view input) {
  Bytes bytes(input);
  AgentStage stage(bytes.coin());
  for (int i = 0; i < steps_max && !bytes.is_over(); ++i) step(stage, bytes);
  stage.end_all();
}

}  // namespace firebreak::fuzz
