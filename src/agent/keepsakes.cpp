// SPDX-License-Identifier: Apache-2.0
#include "agent/keepsakes.h"

#include <fmt/format.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <nlohmann/json.hpp>

namespace firebreak::agent {
namespace {

using nlohmann::json;

constexpr int version = 1;
constexpr std::uint64_t magic = 0x315450454b424646;  // "FFBKEPT1", as bytes

struct Place {
  std::uint64_t sequence;
  std::uint64_t size_bytes;
  std::uint64_t checksum;
  char text[KeptDocument::bytes_max];
};

struct File {
  std::uint64_t magic;
  std::array<Place, 2> places;
};

std::uint64_t checksum_of(std::uint64_t sequence, std::string_view text) {
  return XXH3_64bits_withSeed(text.data(), text.size(), sequence);
}

bool is_whole(const Place& place) {
  return place.sequence > 0 && place.size_bytes <= KeptDocument::bytes_max &&
         place.checksum == checksum_of(place.sequence, {place.text, place.size_bytes});
}

json encode(const Member& member) {
  return {{"pid", member.pid},
          {"start_time", member.start_time},
          {"image", member.image},
          {"domain", member.domain},
          {"sm_percent", member.limits.sm_percent},
          {"memory_mib", member.limits.memory_mib},
          {"done", member.done}};
}

Member decode_member(const json& in) {
  Member member;
  in.at("pid").get_to(member.pid);
  in.at("start_time").get_to(member.start_time);
  member.image = in.value("image", member.image);  // agents up to 0.6 kept none
  in.at("domain").get_to(member.domain);
  in.at("sm_percent").get_to(member.limits.sm_percent);
  in.at("memory_mib").get_to(member.limits.memory_mib);
  member.done = in.value("done", member.done);  // agents before 0.7 kept none
  return member;
}

json encode(const KeptAllocation& allocation) {
  return {{"name", allocation.name},
          {"address", allocation.address},
          {"size_bytes", allocation.size_bytes},
          {"memory", abi::to_string(allocation.memory)}};
}

std::string encode(const std::vector<KeptAllocation>& allocations) {
  json all = json::array();
  for (const KeptAllocation& each : allocations) all.push_back(encode(each));
  return all.dump();
}

/// Its allocations are many and change seldom: they come encoded.
std::string encode(const KeptTenant& tenant, const std::string& allocations) {
  const json rest = {{"name", tenant.name},
                     {"token", tenant.token},
                     {"phase", pair::to_string(tenant.pair.phase)},
                     {"standby_state", pair::to_string(tenant.pair.standby)},
                     {"epoch", tenant.pair.epoch},
                     {"strays", abi::to_string(tenant.strays)},
                     {"ended_by_us", tenant.ended_by_us},
                     {"active", encode(tenant.active)},
                     {"standby", encode(tenant.standby)},
                     {"old_active", encode(tenant.old_active)},
                     {"connections", tenant.connections},
                     {"last_connection", tenant.last_connection}};
  std::string text = rest.dump();
  text.pop_back();
  return text + R"(,"allocations":)" + allocations + "}";
}

std::string encode(const std::vector<KeptServer>& servers) {
  json all = json::array();
  for (const KeptServer& each : servers) {
    all.push_back({{"domain", each.domain}, {"pid", each.pid}, {"start_time", each.start_time}});
  }
  return all.dump();
}

template <class T>
T value_of(const Result<T>& read) {
  if (!read) throw json::other_error::create(501, read.error().message, nullptr);
  return *read;
}

KeptTenant decode_tenant(const json& in) {
  KeptTenant tenant;
  in.at("name").get_to(tenant.name);
  in.at("token").get_to(tenant.token);
  tenant.pair.phase = value_of(pair::phase_from(in.at("phase").get<std::string>()));
  tenant.pair.standby = value_of(pair::standby_from(in.at("standby_state").get<std::string>()));
  in.at("epoch").get_to(tenant.pair.epoch);
  tenant.strays = value_of(abi::stray_policy_from(in.at("strays").get<std::string>()));
  in.at("ended_by_us").get_to(tenant.ended_by_us);
  tenant.active = decode_member(in.at("active"));
  tenant.standby = decode_member(in.at("standby"));
  tenant.old_active = decode_member(in.at("old_active"));
  for (const json& each : in.at("allocations")) {
    tenant.allocations.push_back({each.at("name").get<std::string>(), each.at("address").get<std::uint64_t>(),
                                  each.at("size_bytes").get<std::uint64_t>(),
                                  value_of(abi::memory_from(each.at("memory").get<std::string>()))});
  }
  // Agents before 0.4 kept none.
  tenant.connections = in.value("connections", tenant.connections);
  tenant.last_connection = in.value("last_connection", tenant.last_connection);
  return tenant;
}

}  // namespace

bool KeptText::Part::update(const KeptTenant& now) {
  if (!text.empty() && tenant == now) return false;
  if (allocations.empty() || tenant.allocations != now.allocations) allocations = encode(now.allocations);
  text = encode(now, allocations);
  tenant = now;
  return true;
}

std::optional<std::string_view> KeptText::update(const std::vector<KeptTenant>& tenants,
                                                 const std::vector<KeptServer>& servers) {
  bool changed = all_.empty() || tenants.size() != parts_.size() || servers != servers_;
  parts_.resize(tenants.size());
  servers_ = servers;
  for (std::size_t i = 0; i < tenants.size(); ++i) changed |= parts_[i].update(tenants[i]);
  if (!changed) return std::nullopt;
  all_ = fmt::format(R"({{"version":{},"servers":{},"tenants":[)", version, encode(servers));
  for (const Part& each : parts_) {
    if (&each != &parts_.front()) all_ += ',';
    all_ += each.text;
  }
  all_ += "]}";
  return all_;
}

Result<Kept> decode_kept(std::string_view text) {
  try {
    const json in = json::parse(text);
    if (const int its = in.at("version").get<int>(); its != version) {
      return fail(ErrorCode::Protocol,
                  fmt::format("the agent before kept version {}, this one knows {}", its, version));
    }
    Kept kept;
    for (const json& each : in.at("tenants")) kept.tenants.push_back(decode_tenant(each));
    // Older agents kept none.
    for (const json& each : in.value("servers", json::array())) {
      kept.servers.push_back({each.at("domain").get<std::string>(), each.at("pid").get<pid_t>(),
                              each.at("start_time").get<std::string>()});
    }
    return kept;
  } catch (const json::exception& wrong) {
    return fail(ErrorCode::Protocol, std::string("what the agent before kept: ") + wrong.what());
  }
}

Result<KeptDocument> KeptDocument::create() {
  auto file = os::create_memory_file("firebreak-kept", sizeof(File));
  if (!file) return propagate(file);
  auto mapping = os::Mapping::of_file(file->get(), sizeof(File), os::Protection::ReadWrite);
  if (!mapping) return propagate(mapping);
  mapping->as<File>()->magic = magic;
  return KeptDocument(std::move(*file), std::move(*mapping));
}

Result<KeptDocument> KeptDocument::open(os::Fd file) {
  if (!os::has_fixed_size(file.get(), sizeof(File))) {
    return fail(ErrorCode::Protocol, "that is no document that an agent kept");
  }
  auto mapping = os::Mapping::of_file(file.get(), sizeof(File), os::Protection::ReadWrite);
  if (!mapping) return propagate(mapping);
  if (mapping->as<File>()->magic != magic) {
    return fail(ErrorCode::Protocol, "that is no document that an agent kept");
  }
  return KeptDocument(std::move(file), std::move(*mapping));
}

Status KeptDocument::write(std::string_view text) {
  if (text.size() > bytes_max) {
    return fail(ErrorCode::ResourceExhausted,
                fmt::format("{} bytes to be kept, {} is the most", text.size(), bytes_max));
  }
  auto& places = mapping_.as<File>()->places;
  const std::uint64_t newest = std::max(places[0].sequence, places[1].sequence);
  Place& place = places[places[0].sequence == newest ? 1 : 0];
  place.sequence = 0;  // not whole until all of it is there
  place.size_bytes = text.size();
  std::memcpy(place.text, text.data(), text.size());
  place.checksum = checksum_of(newest + 1, text);
  place.sequence = newest + 1;
  return {};
}

std::string KeptDocument::read() const {
  const auto& places = mapping_.as<File>()->places;
  const Place* newest = nullptr;
  for (const Place& place : places) {
    if (is_whole(place) && (newest == nullptr || place.sequence > newest->sequence)) newest = &place;
  }
  return newest == nullptr ? std::string() : std::string(newest->text, newest->size_bytes);
}

std::string document_name() { return "document"; }
std::string page_name(const std::string& tenant) { return "page/" + tenant; }
std::string memory_name(const std::string& tenant, const std::string& allocation) {
  return "memory/" + tenant + "/" + allocation;
}
std::string listener_name(const std::string& tenant) { return "listener/" + tenant; }
std::string connection_name(const std::string& tenant, std::uint64_t id) {
  return fmt::format("connection/{}/{}", tenant, id);
}

os::Fd take_descriptor(std::map<std::string, os::Fd>& descriptors, const std::string& name) {
  auto node = descriptors.extract(name);
  return node.empty() ? os::Fd() : std::move(node.mapped());
}

}  // namespace firebreak::agent
