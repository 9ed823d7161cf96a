// SPDX-License-Identifier: Apache-2.0
#include "shared/abi/wire.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

namespace firebreak::abi {

using nlohmann::json;

void to_json(json& out, Role role) { out = to_string(role); }

void from_json(const json& in, Role& role) {
  const auto known = role_from(in.get<std::string>());
  if (!known) throw json::other_error::create(501, known.error().message, &in);
  role = *known;
}

void to_json(json& out, Memory memory) { out = to_string(memory); }

void from_json(const json& in, Memory& memory) {
  const auto known = memory_from(in.get<std::string>());
  if (!known) throw json::other_error::create(501, known.error().message, &in);
  memory = *known;
}

void to_json(json& out, StrayPolicy policy) { out = to_string(policy); }

void from_json(const json& in, StrayPolicy& policy) {
  const auto known = stray_policy_from(in.get<std::string>());
  if (!known) throw json::other_error::create(501, known.error().message, &in);
  policy = *known;
}

void to_json(json& out, RestLevel level) { out = to_string(level); }

void from_json(const json& in, RestLevel& level) {
  const auto known = rest_level_from(in.get<std::string>());
  if (!known) throw json::other_error::create(501, known.error().message, &in);
  level = *known;
}

namespace {

/// A number that does not fit makes the message invalid: cut off it would be another number.
template <class T>
void read_number(const json& in, const char* name, T& value) {
  const json& its = in.at(name);
  const bool fits = its.is_number_unsigned()
                        ? std::in_range<T>(its.get<std::uint64_t>())
                        : its.is_number_integer() && std::in_range<T>(its.get<std::int64_t>());
  if (!fits) throw json::other_error::create(501, std::string(name) + " is no number that it can be", &in);
  value = its.get<T>();
}

/// Programs and agents that are older send none of these.
template <class T>
void read_number_if(const json& in, const char* name, T& value) {
  if (in.contains(name)) read_number(in, name, value);
}

/// 0 is nobody's.
void read_pid(const json& in, std::int64_t& pid) {
  std::int32_t its = 0;
  read_number(in, "pid", its);
  if (its < 0) throw json::other_error::create(501, "pid is no number that it can be", &in);
  pid = its;
}

/// One entry a message: its name on the wire, and how its fields go in and out.
template <class T>
struct Form;

template <class T>
struct EmptyForm {
  static void write(json&, const T&) {}
  static void read(const json&, T&) {}
};

template <class T>
struct TenantRoleForm {
  static void write(json& out, const T& m) { out.update({{"tenant", m.tenant}, {"role", m.role}}); }
  static void read(const json& in, T& m) {
    in.at("tenant").get_to(m.tenant);
    in.at("role").get_to(m.role);
  }
};

template <class T>
struct AllocationForm {
  static void write(json& out, const T& m) {
    out.update(
        {{"name", m.name}, {"address", m.address}, {"size_bytes", m.size_bytes}, {"memory", m.memory}});
  }
  static void read(const json& in, T& m) {
    in.at("name").get_to(m.name);
    read_number(in, "address", m.address);
    read_number(in, "size_bytes", m.size_bytes);
    in.at("memory").get_to(m.memory);
  }
};

template <class T>
struct IdForm {
  static void write(json& out, const T& m) { out["id"] = m.id; }
  static void read(const json& in, T& m) { read_number(in, "id", m.id); }
};

template <>
struct Form<Join> : TenantRoleForm<Join> {
  static constexpr const char* name = "join";
  static void write(json& out, const Join& m) {
    TenantRoleForm<Join>::write(out, m);
    out["token"] = m.token;
    out["attempt"] = m.attempt;
    out["pipe_directory"] = m.pipe_directory;
  }
  static void read(const json& in, Join& m) {
    TenantRoleForm<Join>::read(in, m);
    in.at("token").get_to(m.token);
    m.attempt = in.value("attempt", m.attempt);  // programs up to 0.6 have none of both
    m.pipe_directory = in.value("pipe_directory", m.pipe_directory);
  }
};
template <>
struct Form<Place> : TenantRoleForm<Place> {
  static constexpr const char* name = "place";
  static void write(json& out, const Place& m) {
    TenantRoleForm<Place>::write(out, m);
    out.update({{"gpu", m.gpu},
                {"sm_percent", m.sm_percent},
                {"memory_mib", m.memory_mib},
                {"spare", m.spare},
                {"spare_if_there_is_one", m.spare_if_there_is_one}});
  }
  static void read(const json& in, Place& m) {
    TenantRoleForm<Place>::read(in, m);
    in.at("gpu").get_to(m.gpu);
    read_number(in, "sm_percent", m.sm_percent);
    read_number(in, "memory_mib", m.memory_mib);
    m.spare = in.value("spare", m.spare);  // programs up to 0.6 have none of these
    m.spare_if_there_is_one = in.value("spare_if_there_is_one", m.spare_if_there_is_one);
  }
};
template <>
struct Form<Publish> : AllocationForm<Publish> {
  static constexpr const char* name = "publish";
};
template <>
struct Form<Allocation> : AllocationForm<Allocation> {
  static constexpr const char* name = "allocation";
  static void write(json& out, const Allocation& m) {
    AllocationForm<Allocation>::write(out, m);
    if (m.is_shared) out["is_shared"] = true;
  }
  static void read(const json& in, Allocation& m) {
    AllocationForm<Allocation>::read(in, m);
    m.is_shared = in.value("is_shared", false);  // agents before 0.8 share nothing
  }
};
template <>
struct Form<Share> {
  static constexpr const char* name = "share";
  static void write(json& out, const Share& m) { out["again"] = m.again; }
  static void read(const json& in, Share& m) { in.at("again").get_to(m.again); }
};
template <>
struct Form<GiveShared> {
  static constexpr const char* name = "give_shared";
  static void write(json& out, const GiveShared& m) { out.update({{"owner", m.owner}, {"name", m.name}}); }
  static void read(const json& in, GiveShared& m) {
    in.at("owner").get_to(m.owner);
    in.at("name").get_to(m.name);
  }
};
template <>
struct Form<Shared> {
  static constexpr const char* name = "shared";
  static void write(json& out, const Shared& m) { out["owner"] = m.owner; }
  static void read(const json& in, Shared& m) { in.at("owner").get_to(m.owner); }
};
template <>
struct Form<GiveAllocation> {
  static constexpr const char* name = "give_allocation";
  static void write(json& out, const GiveAllocation& m) { out["name"] = m.name; }
  static void read(const json& in, GiveAllocation& m) { in.at("name").get_to(m.name); }
};
template <>
struct Form<Rejoin> {
  static constexpr const char* name = "rejoin";
  static void write(json& out, const Rejoin& m) {
    out.update({{"tenant", m.tenant}, {"token", m.token}, {"ready", m.ready}});
  }
  static void read(const json& in, Rejoin& m) {
    m.ready = in.value("ready", m.ready);  // programs before 0.7 say nothing of it
    in.at("tenant").get_to(m.tenant);
    in.at("token").get_to(m.token);
  }
};
template <>
struct Form<StandDown> {
  static constexpr const char* name = "stand_down";
  static void write(json& out, const StandDown& m) { out["word"] = m.word; }
  // Programs before 0.7 give none.
  static void read(const json& in, StandDown& m) { read_number_if(in, "word", m.word); }
};
template <>
struct Form<Listen> : EmptyForm<Listen> {
  static constexpr const char* name = "listen";
};
template <>
struct Form<GiveListener> : EmptyForm<GiveListener> {
  static constexpr const char* name = "give_listener";
};
template <>
struct Form<NextConnection> {
  static constexpr const char* name = "next_connection";
  static void write(json& out, const NextConnection& m) { out["after"] = m.after; }
  static void read(const json& in, NextConnection& m) { read_number(in, "after", m.after); }
};
template <>
struct Form<ReleaseConnection> : IdForm<ReleaseConnection> {
  static constexpr const char* name = "release";
};
template <>
struct Form<ClientConnection> : IdForm<ClientConnection> {
  static constexpr const char* name = "client_connection";
};
template <>
struct Form<Ready> : EmptyForm<Ready> {
  static constexpr const char* name = "ready";
};
template <>
struct Form<GiveCoreDumpPipe> : EmptyForm<GiveCoreDumpPipe> {
  static constexpr const char* name = "give_core_dump_pipe";
};
template <>
struct Form<CoreDumpMode> {
  static constexpr const char* name = "core_dump_mode";
  static void write(json& out, const CoreDumpMode& m) { out["why_not"] = m.why_not; }
  static void read(const json& in, CoreDumpMode& m) { in.at("why_not").get_to(m.why_not); }
};
template <>
struct Form<CoreDumpPipe> {
  static constexpr const char* name = "core_dump_pipe";
  static void write(json& out, const CoreDumpPipe& m) { out["path"] = m.path; }
  static void read(const json& in, CoreDumpPipe& m) { in.at("path").get_to(m.path); }
};
template <>
struct Form<Resumed> {
  static constexpr const char* name = "resumed";
  static void write(json& out, const Resumed& m) { out["next_step"] = m.next_step; }
  static void read(const json& in, Resumed& m) { read_number(in, "next_step", m.next_step); }
};
template <>
struct Form<Finish> : EmptyForm<Finish> {
  static constexpr const char* name = "finish";
};
template <>
struct Form<TurnWanted> : EmptyForm<TurnWanted> {
  static constexpr const char* name = "turn_wanted";
};
template <>
struct Form<StatusRequest> : EmptyForm<StatusRequest> {
  static constexpr const char* name = "status";
};
template <>
struct Form<Subscribe> : EmptyForm<Subscribe> {
  static constexpr const char* name = "subscribe";
};
template <>
struct Form<HandOver> {
  static constexpr const char* name = "hand_over";
  static void write(json& out, const HandOver& m) { out["tenant"] = m.tenant; }
  static void read(const json& in, HandOver& m) { in.at("tenant").get_to(m.tenant); }
};
template <>
struct Form<Rest> {
  static constexpr const char* name = "rest";
  static void write(json& out, const Rest& m) { out.update({{"tenant", m.tenant}, {"level", m.level}}); }
  static void read(const json& in, Rest& m) {
    in.at("tenant").get_to(m.tenant);
    in.at("level").get_to(m.level);
  }
};
template <>
struct Form<GpuRecovered> {
  static constexpr const char* name = "gpu_recovered";
  static void write(json& out, const GpuRecovered& m) { out["gpu"] = m.gpu; }
  static void read(const json& in, GpuRecovered& m) { in.at("gpu").get_to(m.gpu); }
};
template <>
struct Form<Shutdown> {
  static constexpr const char* name = "shutdown";
  static void write(json& out, const Shutdown& m) {
    out.update({{"force", m.force}, {"grace_ms", m.grace_ms}});
  }
  static void read(const json& in, Shutdown& m) {
    in.at("force").get_to(m.force);
    read_number(in, "grace_ms", m.grace_ms);
  }
};
template <>
struct Form<Done> {
  static constexpr const char* name = "done";
  static void write(json& out, const Done& m) {
    if (m.pid != 0) out["pid"] = m.pid;
  }
  static void read(const json& in, Done& m) {
    if (in.contains("pid")) read_pid(in, m.pid);  // agents before 0.7 say none
  }
};

template <>
struct Form<Adopt> : TenantRoleForm<Adopt> {
  static constexpr const char* name = "adopt";
  static void write(json& out, const Adopt& m) {
    TenantRoleForm<Adopt>::write(out, m);
    out.update({{"pid", m.pid}, {"strays", m.strays}});
  }
  static void read(const json& in, Adopt& m) {
    TenantRoleForm<Adopt>::read(in, m);
    read_pid(in, m.pid);
    in.at("strays").get_to(m.strays);
  }
};

template <>
struct Form<EndProcess> {
  static constexpr const char* name = "end_process";
  static void write(json& out, const EndProcess& m) { out.update({{"tenant", m.tenant}, {"pid", m.pid}}); }
  static void read(const json& in, EndProcess& m) {
    in.at("tenant").get_to(m.tenant);
    read_pid(in, m.pid);
  }
};

template <>
struct Form<EndTenant> {
  static constexpr const char* name = "end_tenant";
  static void write(json& out, const EndTenant& m) {
    out.update({{"tenant", m.tenant}, {"grace_ms", m.grace_ms}, {"force", m.force}});
  }
  static void read(const json& in, EndTenant& m) {
    in.at("tenant").get_to(m.tenant);
    m.force = in.value("force", false);  // programs before 0.8 know of no shared memory
    read_number(in, "grace_ms", m.grace_ms);
  }
};

template <>
struct Form<Ended> {
  static constexpr const char* name = "ended";
  static void write(json& out, const Ended& m) { out["text"] = m.text; }
  static void read(const json& in, Ended& m) { in.at("text").get_to(m.text); }
};

template <>
struct Form<Output> {
  static constexpr const char* name = "output";
  static void write(json& out, const Output& m) { out.update({{"pid", m.pid}, {"text", m.text}}); }
  static void read(const json& in, Output& m) {
    read_pid(in, m.pid);
    in.at("text").get_to(m.text);
  }
};

template <>
struct Form<Joined> {
  static constexpr const char* name = "joined";
  static void write(json& out, const Joined& m) {
    out.update({{"epoch", m.epoch},
                {"arena_base", m.arena_base},
                {"allocations", m.allocations},
                {"agent_returns_ms", m.agent_returns_ms},
                {"member", m.member},
                {"shared_base", m.shared_base},
                {"shared_bytes", m.shared_bytes}});
  }
  static void read(const json& in, Joined& m) {
    read_number(in, "allocations", m.allocations);
    read_number(in, "agent_returns_ms", m.agent_returns_ms);
    read_number(in, "member", m.member);
    read_number_if(in, "shared_base", m.shared_base);
    read_number_if(in, "shared_bytes", m.shared_bytes);
    read_number(in, "epoch", m.epoch);
    read_number(in, "arena_base", m.arena_base);
  }
};

template <>
struct Form<Placed> {
  static constexpr const char* name = "placed";
  static void write(json& out, const Placed& m) {
    out.update({{"environment", m.environment}, {"agent_returns_ms", m.agent_returns_ms}});
  }
  static void read(const json& in, Placed& m) {
    in.at("environment").get_to(m.environment);
    read_number_if(in, "agent_returns_ms", m.agent_returns_ms);  // agents before 0.7 say nothing
  }
};

template <>
struct Form<Inject> {
  static constexpr const char* name = "inject";
  static void write(json& out, const Inject& m) {
    out.update({{"tenant", m.tenant}, {"kind", m.kind}, {"commits", m.commits}});
  }
  static void read(const json& in, Inject& m) {
    in.at("tenant").get_to(m.tenant);
    in.at("kind").get_to(m.kind);
    read_number(in, "commits", m.commits);
  }
};

template <>
struct Form<Injected> {
  static constexpr const char* name = "injected";
  static void write(json& out, const Injected& m) {
    out.update({{"raised_at_ns", m.raised_at_ns}, {"refusal", m.refusal}});
  }
  static void read(const json& in, Injected& m) {
    read_number(in, "raised_at_ns", m.raised_at_ns);
    in.at("refusal").get_to(m.refusal);
  }
};

template <>
struct Form<Refused> {
  static constexpr const char* name = "refused";
  static void write(json& out, const Refused& m) {
    out.update(
        {{"reason", m.reason}, {"used_up", m.used_up}, {"not_yet", m.not_yet}, {"invalid", m.invalid}});
  }
  static void read(const json& in, Refused& m) {
    in.at("reason").get_to(m.reason);
    in.at("used_up").get_to(m.used_up);
    m.not_yet = in.value("not_yet", false);  // an agent before it said so of nothing
    m.invalid = in.value("invalid", false);
  }
};

template <>
struct Form<StatusDocument> {
  static constexpr const char* name = "report";
  static void write(json& out, const StatusDocument& m) { out["json"] = m.json; }
  static void read(const json& in, StatusDocument& m) { in.at("json").get_to(m.json); }
};

template <>
struct Form<Event> {
  static constexpr const char* name = "event";
  static void write(json& out, const Event& m) {
    out.update({{"at_ns", m.at_ns},
                {"what", to_string(m.what)},
                {"tenant", m.tenant},
                {"domain", m.domain},
                {"pid", m.pid},
                {"source", m.source},
                {"epoch", m.epoch},
                {"step", m.step},
                {"text", m.text}});
    if (!m.fault.empty()) out["fault"] = m.fault;
  }
  static void read(const json& in, Event& m) {
    read_number(in, "at_ns", m.at_ns);
    m.what = event_kind(in.at("what").get_ref<const std::string&>());
    in.at("tenant").get_to(m.tenant);
    in.at("domain").get_to(m.domain);
    read_pid(in, m.pid);
    in.at("source").get_to(m.source);
    read_number(in, "epoch", m.epoch);
    read_number(in, "step", m.step);
    in.at("text").get_to(m.text);
    if (in.contains("fault")) in.at("fault").get_to(m.fault);  // agents that are older send none
  }
};

template <class T>
bool read_as(const json& in, const std::string& type, Message& message) {
  if (type != Form<T>::name) return false;
  T value;
  Form<T>::read(in, value);
  message = std::move(value);
  return true;
}

template <class... T>
bool read_any(const json& in, const std::string& type, Message& message, std::variant<T...>*) {
  return (read_as<T>(in, type, message) || ...);
}

}  // namespace

std::string encode(const Message& message, std::uint64_t number) {
  json out = json::object();
  if (number != 0) out["number"] = number;
  std::visit(
      [&out]<class T>(const T& value) {
        out["type"] = Form<T>::name;
        Form<T>::write(out, value);
      },
      message);
  return out.dump(-1, ' ', false, json::error_handler_t::replace);
}

Result<Letter> decode_letter(std::string_view text) {
  if (text.size() > wire_bytes_max) return fail(ErrorCode::Protocol, "a message of more than 64 KiB");
  const json in = json::parse(text, nullptr, false);
  if (!in.is_object()) return fail(ErrorCode::Protocol, "a message that is not a JSON object");
  try {
    const std::string type = in.at("type").get<std::string>();
    Letter letter;
    read_number_if(in, "number", letter.number);
    if (!read_any(in, type, letter.message, static_cast<Message*>(nullptr))) {
      return fail(ErrorCode::Protocol, "a message of unknown type '" + type.substr(0, name_bytes_max) + "'");
    }
    return letter;
  } catch (const json::exception& wrong) {
    return fail(ErrorCode::Protocol, std::string("a malformed message: ") + wrong.what());
  }
}

Result<Message> decode(std::string_view text) {
  auto letter = decode_letter(text);
  if (!letter) return propagate(letter);
  return std::move(letter->message);
}

std::uint64_t number_in(std::string_view text) {
  const json in = text.size() > wire_bytes_max ? json() : json::parse(text, nullptr, false);
  const auto found = in.is_object() ? in.find("number") : in.end();
  return in.is_object() && found != in.end() && found->is_number_unsigned() ? found->get<std::uint64_t>() : 0;
}

namespace {

constexpr auto event_words = std::to_array<std::string_view>({
    "other",
#define FIREBREAK_EVENT(name, word) word,
#include "shared/abi/events.def"
#undef FIREBREAK_EVENT
});

}  // namespace

std::string_view to_string(EventKind kind) { return event_words.at(static_cast<std::size_t>(kind)); }

EventKind event_kind(std::string_view word) {
  const auto found = std::ranges::find(event_words, word);
  return found == event_words.end() ? EventKind::Other : static_cast<EventKind>(found - event_words.begin());
}

const char* to_string(Role role) { return role == Role::Active ? "active" : "standby"; }

Result<Role> role_from(std::string_view text) {
  if (text == "active") return Role::Active;
  if (text == "standby") return Role::Standby;
  return fail(ErrorCode::InvalidArgument, "a role is 'active' or 'standby', not '" + std::string(text) + "'");
}

const char* to_string(Memory memory) {
  switch (memory) {
    case Memory::Weights:
      return "weights";
    case Memory::Shared:
      return "shared";
    case Memory::State:
      break;
  }
  return "state";
}

Result<Memory> memory_from(std::string_view text) {
  for (const auto memory : {Memory::State, Memory::Weights, Memory::Shared}) {
    if (text == to_string(memory)) return memory;
  }
  return fail(ErrorCode::InvalidArgument,
              "memory is for 'state', 'weights' or 'shared', not '" + std::string(text) + "'");
}

const char* to_string(StrayPolicy policy) {
  switch (policy) {
    case StrayPolicy::End:
      return "end";
    case StrayPolicy::Report:
      return "report";
    case StrayPolicy::Default:
      break;
  }
  return "default";
}

Result<StrayPolicy> stray_policy_from(std::string_view text) {
  for (const auto policy : {StrayPolicy::Default, StrayPolicy::End, StrayPolicy::Report}) {
    if (text == to_string(policy)) return policy;
  }
  return fail(ErrorCode::InvalidArgument,
              "strays are answered by 'default', 'end' or 'report', not '" + std::string(text) + "'");
}

const char* to_string(RestLevel level) {
  switch (level) {
    case RestLevel::Still:
      return "still";
    case RestLevel::WithoutContexts:
      return "without contexts";
    case RestLevel::WithoutMemory:
      return "without memory";
    case RestLevel::Awake:
      break;
  }
  return "awake";
}

Result<RestLevel> rest_level_from(std::string_view text) {
  for (const auto level :
       {RestLevel::Awake, RestLevel::Still, RestLevel::WithoutContexts, RestLevel::WithoutMemory}) {
    if (text == to_string(level)) return level;
  }
  return fail(ErrorCode::InvalidArgument,
              "a tenant is 'awake', 'still', 'without contexts' or 'without memory', not '" +
                  std::string(text) + "'");
}

Status check_name(std::string_view name) {
  if (name.empty() || name.size() > name_bytes_max) {
    return fail(ErrorCode::InvalidArgument,
                "a name has 1 to 63 characters, this one has " + std::to_string(name.size()));
  }
  for (char c : name) {
    const bool good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                      c == '.' || c == '_' || c == '-';
    if (!good) return fail(ErrorCode::InvalidArgument, "a name is made of letters, digits, '.', '_' and '-'");
  }
  return {};
}

}  // namespace firebreak::abi
