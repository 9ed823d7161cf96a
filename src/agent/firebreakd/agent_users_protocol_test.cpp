// SPDX-License-Identifier: Apache-2.0
/// One user tries each message of the protocol against another's tenant, with each of its fields as it is to
/// be and as it is not. What there is to try follows from abi::Message, so that a new message is tried as
/// well.
#include <sys/stat.h>

#include <set>
#include <utility>

#include "tests/doubles/agent/users_test_support.h"

namespace firebreak::agent {
namespace {

using Json = nlohmann::json;
using testing::IsEmpty;
using testing::Not;

template <std::size_t... index>
std::vector<Json> each_message(std::index_sequence<index...>) {
  return {Json::parse(abi::encode(std::variant_alternative_t<index, abi::Message>{}))...};
}

/// Returns the message, made about the tenant of that name and that process, where it names any.
Json about(Json message, const std::string& tenant, pid_t pid) {
  if (message.contains("tenant")) message["tenant"] = tenant;
  if (message.contains("pid")) message["pid"] = pid;
  return message;
}

Json nested(int depth) {
  Json inner = Json::array();
  for (int i = 0; i < depth; ++i) inner = Json::array({std::move(inner)});
  return inner;
}

/// Returns values that a field may be made, whatever it is to be.
std::vector<Json> wrong_values(const std::string& tenant, pid_t pid) {
  constexpr std::int64_t beyond_32_bits = std::int64_t{1} << 32;
  return {nullptr,
          true,
          0,
          1,
          -1,
          0.5,
          1e308,
          pid,
          -pid,
          beyond_32_bits + pid,
          std::numeric_limits<std::int64_t>::min(),
          std::numeric_limits<std::uint64_t>::max(),
          "",
          tenant,
          tenant + "/../" + tenant,
          "active",
          "\n\x1b[2J",
          std::string("a\0b", 3),
          "../../../../etc/shadow",
          "%n%s{}",
          std::string(10'000, 'x'),
          Json::array({tenant, pid}),
          Json::object({{"tenant", tenant}, {"pid", pid}}),
          nested(200)};
}

/// One message of the protocol as an attacker sends it.
std::vector<std::string> variants_of(const Json& message, const std::vector<Json>& values) {
  std::vector<std::string> all = {message.dump()};
  for (const auto& [name, value] : message.items()) {
    for (const Json& wrong : values) {
      Json changed = message;
      changed[name] = wrong;
      all.push_back(changed.dump());
    }
    Json without = message;
    without.erase(name);
    all.push_back(without.dump());
    Json twice = message;
    twice.erase(name);
    const std::string rest = twice.dump();
    all.push_back("{\"" + name + "\":" + value.dump() + ",\"" + name + "\":" + values.front().dump() +
                  (rest.size() > 2 ? "," + rest.substr(1) : "}"));
  }
  Json more = message;
  more["number"] = std::numeric_limits<std::uint64_t>::max();
  more["unknown"] = values;
  all.push_back(more.dump());
  all.push_back(message.dump() + message.dump());
  all.push_back(message.dump().substr(0, message.dump().size() / 2));
  all.push_back(message.dump() + std::string(1, '\0'));
  return all;
}

std::vector<std::string> all_attacks(const std::string& tenant, pid_t pid) {
  std::vector<std::string> all;
  for (const Json& message : each_message(std::make_index_sequence<std::variant_size_v<abi::Message>>())) {
    const std::vector<std::string> each = variants_of(about(message, tenant, pid), wrong_values(tenant, pid));
    all.insert(all.end(), each.begin(), each.end());
  }
  return all;
}

class UsersProtocol : public Users {
 protected:
  using File = std::pair<dev_t, ino_t>;
  static File file_behind(int descriptor) {
    struct stat info {};
    EXPECT_EQ(::fstat(descriptor, &info), 0);
    return {info.st_dev, info.st_ino};
  }
  /// The pages and the memory of the victim, as they are kept.
  std::set<File> files_of_the_victim() const {
    std::set<File> files;
    for (const auto& [name, descriptor] : manager.kept) {
      if (name.find("llm") != std::string::npos || name.find("placed") != std::string::npos)
        files.insert(file_behind(descriptor.get()));
    }
    return files;
  }
  /// Attacks; the answer has nothing of the victim's.
  void attack(Peer& attacker, const std::string& text) {
    if (!attacker.try_to_send_text(text)) attacker.reconnect();
    settle();
    while (const auto received = attacker.receive()) {
      const std::string answer = abi::encode(received->message);
      EXPECT_EQ(answer.find(token_), std::string::npos) << text;
      for (const os::Fd& descriptor : received->descriptors)
        EXPECT_FALSE(theirs_.contains(file_behind(descriptor.get()))) << text;
    }
    ASSERT_EQ(victims(), before_) << text;
    ASSERT_THAT(detectors.expected, IsEmpty()) << "nobody was to end: " << text;
  }
  std::string token_of_the_placed() {
    const auto placed = std::get<abi::Placed>(ask(*owner, abi::Place{"placed", abi::Role::Active}));
    for (const auto& [name, value] : placed.environment) {
      if (name == "FIREBREAK_TOKEN") return value;
    }
    return "";
  }

  std::string before_;
  std::string token_;
  std::set<File> theirs_;
};

TEST_F(UsersProtocol, NothingThatCanBeSaidTouchesAnothersTenant) {
  before_ = victims();
  token_ = token_of_the_placed();
  ASSERT_FALSE(token_.empty());
  theirs_ = files_of_the_victim();
  ASSERT_THAT(theirs_, Not(IsEmpty()));
  std::size_t tried = 0;
  for (const std::string tenant : {"llm", "placed"}) {
    Peer attacker = user_peer(mallory);
    for (const std::string& text : all_attacks(tenant, victim->active.pid())) {
      attack(attacker, text);
      if (HasFatalFailure()) return;
      if (attacker.is_cut_off()) attacker.reconnect();
      ++tried;
    }
  }
  // The same as a member of a tenant of its own.
  Peer member = user_peer(mallory);
  join(member, "mine", abi::Role::Active);
  for (const std::string& text : all_attacks("llm", victim->active.pid())) {
    attack(member, text);
    if (HasFatalFailure()) return;
    if (member.is_cut_off()) {
      member.reconnect();
      member.send(abi::Rejoin{"mine", "", true});
    }
    ++tried;
  }
  RecordProperty("messages", std::to_string(tried));
  EXPECT_GT(tried, 100 * std::variant_size_v<abi::Message>);
}

}  // namespace
}  // namespace firebreak::agent
