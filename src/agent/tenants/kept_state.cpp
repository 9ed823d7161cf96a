// SPDX-License-Identifier: Apache-2.0
#include "agent/tenants/kept_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <nlohmann/json.hpp>

#include "ground/base/hash.h"

namespace firebreak::agent {
namespace {

using nlohmann::json;

/// Version of the text. An agent reads all from `oldest_version` on; a field that may be missing counts for
/// nothing. It goes up only where an older agent would misread what a newer one writes.
constexpr int version = 2;
constexpr int oldest_version = 2;
/// Magic of the file: "FFBKEPT2", as bytes. Its last byte goes up where the places lie otherwise. The seven
/// before it stay for ever, so that an older agent knows that a newer one was there.
constexpr std::uint64_t magic = 0x325450454b424646;
constexpr int number_in(std::uint64_t its_magic) { return static_cast<int>(its_magic >> 56) - '0'; }

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
          {"done", member.done},
          {"attempt", member.attempt}};
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
  member.attempt = in.value("attempt", member.attempt);
  return member;
}

json encode(const KeptProcess& process) {
  json others = json::array();
  for (const hold::OtherHolder& each : process.traces.others) {
    others.push_back(
        {{"pid", each.pid}, {"start_time", each.start_time}, {"name", each.name}, {"is_fork", each.is_fork}});
  }
  return {{"pid", process.pid},
          {"image", process.traces.image},
          {"domain", process.domain},
          {"has_left", process.has_left},
          {"marks", process.traces.marks},
          {"others", others},
          {"known_in", process.where.known},
          {"expected_in", process.where.expected}};
}

KeptProcess decode_process(const json& in) {
  KeptProcess process;
  in.at("pid").get_to(process.pid);
  in.at("image").get_to(process.traces.image);
  in.at("domain").get_to(process.domain);
  in.at("has_left").get_to(process.has_left);
  in.at("marks").get_to(process.traces.marks);
  process.where.known = in.value("known_in", process.where.known);
  process.where.expected = in.value("expected_in", process.where.expected);
  for (const json& each : in.at("others")) {
    process.traces.others.push_back({each.at("pid").get<pid_t>(), each.at("start_time").get<std::string>(),
                                     each.at("name").get<std::string>(), each.at("is_fork").get<bool>()});
  }
  return process;
}

json encode(const vault::Entry& allocation) {
  return {{"name", allocation.name},
          {"address", allocation.address},
          {"size_bytes", allocation.size_bytes},
          {"memory", abi::to_string(allocation.memory)}};
}

json owner_of(const std::optional<uid_t>& owner) { return owner ? json(*owner) : json(nullptr); }

/// Agents before 0.8 kept none.
std::optional<uid_t> owner_in(const json& in) {
  const auto found = in.find("owner");
  if (found == in.end() || found->is_null()) return std::nullopt;
  return found->get<uid_t>();
}

json encode(const KeptTenant& tenant) {
  json processes = json::array();
  for (const KeptProcess& each : tenant.processes) processes.push_back(encode(each));
  return {{"version", version},
          {"name", tenant.name},
          {"token", tenant.token},
          {"phase", pair::to_string(tenant.pair.phase)},
          {"standby_state", pair::to_string(tenant.pair.standby)},
          {"epoch", tenant.pair.epoch},
          {"strays", abi::to_string(tenant.strays)},
          {"ended_by_us", tenant.ended_by_us},
          {"active", encode(tenant.active)},
          {"standby", encode(tenant.standby)},
          {"old_active", encode(tenant.old_active)},
          {"processes", processes},
          {"last_connection", tenant.last_connection},
          {"owner", owner_of(tenant.owner)}};
}

template <class T>
T value_of(const Result<T>& read) {
  if (!read) throw json::other_error::create(501, read.error().message, nullptr);
  return *read;
}

std::vector<KeptAllocation> allocations_in(const json& in) {
  std::vector<KeptAllocation> allocations;
  for (const json& each : in.at("allocations")) {
    allocations.push_back({each.at("name").get<std::string>(), each.at("address").get<std::uint64_t>(),
                           each.at("size_bytes").get<std::uint64_t>(),
                           value_of(abi::memory_from(each.at("memory").get<std::string>()))});
  }
  return allocations;
}

/// Adds those that came since `encoded`, to the text of those before.
void append(std::span<const vault::Entry> allocations, std::size_t& encoded, std::string& text) {
  for (; encoded < allocations.size(); ++encoded) {
    if (encoded > 0) text += ',';
    text += encode(allocations[encoded]).dump();
  }
}

KeptTenant tenant_in(const json& in) {
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
  for (const json& each : in.value("processes", json::array())) {  // older agents kept none
    tenant.processes.push_back(decode_process(each));
  }
  tenant.allocations = allocations_in(in);
  in.at("connections").get_to(tenant.connections);
  in.at("last_connection").get_to(tenant.last_connection);
  tenant.owner = owner_in(in);
  return tenant;
}

KeptPlacement placement_in(const json& in) {
  return {in.at("tenant").get<std::string>(),
          value_of(abi::role_from(in.at("role").get<std::string>())),
          in.at("domain").get<std::string>(),
          {in.at("sm_percent").get<std::uint32_t>(), in.at("memory_mib").get<std::uint32_t>()},
          in.at("token").get<std::string>(),
          owner_in(in)};
}

json parse(std::string_view text) {
  json in = json::parse(text);
  const int its = in.at("version").get<int>();
  if (its >= oldest_version && its <= version) return in;
  throw json::other_error::create(
      501, fmt::format("version {}, this agent knows {} to {}", its, oldest_version, version), nullptr);
}

/// 0: none of ours.
int file_version_of(int descriptor) {
  const auto size_bytes = os::file_size(descriptor);
  if (!size_bytes || *size_bytes < sizeof(magic) || !os::has_fixed_size(descriptor)) return 0;
  const auto mapping = os::Mapping::of_file(descriptor, sizeof(magic), os::Protection::Read);
  if (!mapping) return 0;
  std::uint64_t its = 0;
  std::memcpy(&its, mapping->bytes().data(), sizeof(its));
  return (its ^ magic) << 8 == 0 ? number_in(its) : 0;
}

/// 0: nobody can tell.
int text_version_of(int descriptor) {
  auto duplicate = os::duplicate(descriptor);
  auto document = duplicate ? KeptDocument::open(std::move(*duplicate)) : propagate(duplicate);
  if (!document) return 0;
  const json in = json::parse(document->read(), nullptr, false);
  if (!in.is_object() || !in.contains("version") || !in["version"].is_number_integer()) return 0;
  return in["version"].get<int>();
}

tl::unexpected<Error> unreadable(const json::exception& wrong) {
  return fail(ErrorCode::Protocol, std::string("what the agent before kept: ") + wrong.what());
}

}  // namespace

std::optional<std::string_view> KeptText::update(const KeptTenant& tenant,
                                                 std::span<const vault::Entry> allocations,
                                                 const ClientConnections& clients) {
  const bool is_same = !text_.empty() && tenant == tenant_ && allocations.size() == encoded_ &&
                       clients.changes() == client_changes_;
  if (is_same) return std::nullopt;
  tenant_ = tenant;
  client_changes_ = clients.changes();
  append(allocations, encoded_, allocations_);
  json head = encode(tenant);
  json& connections = head["connections"] = json::array();
  for (const auto& [id, descriptor] : clients.open()) connections.push_back(id);
  // A process's name is its own word: it may be no UTF-8.
  text_ = head.dump(-1, ' ', false, json::error_handler_t::replace);
  text_.pop_back();
  text_ += R"(,"allocations":[)" + allocations_ + "]}";
  return text_;
}

std::optional<std::string_view> KeptWeightsText::update(const WeightsName& name,
                                                        const SharedWeights::Group& group) {
  const auto pieces = group.pieces.entries();
  const bool is_same = !text_.empty() && group.is_shared == is_shared_ && group.tenants == tenants_ &&
                       pieces.size() == encoded_;
  if (is_same) return std::nullopt;
  is_shared_ = group.is_shared;
  tenants_ = group.tenants;
  append(pieces, encoded_, pieces_);
  text_ = json{{"version", version},
               {"user", name.user},
               {"owner", name.owner},
               {"is_shared", is_shared_},
               {"tenants", tenants_}}
              .dump();
  text_.pop_back();
  text_ += R"(,"allocations":[)" + pieces_ + "]}";
  return text_;
}

std::string encode_common(const KeptCommon& common) {
  json servers = json::array();
  for (const KeptServer& each : common.servers) {
    servers.push_back({{"domain", each.domain}, {"pid", each.pid}, {"start_time", each.start_time}});
  }
  json placements = json::array();
  for (const KeptPlacement& each : common.placements) {
    placements.push_back({{"tenant", each.tenant},
                          {"role", abi::to_string(each.role)},
                          {"domain", each.domain},
                          {"sm_percent", each.limits.sm_percent},
                          {"memory_mib", each.limits.memory_mib},
                          {"token", each.token},
                          {"owner", owner_of(each.owner)}});
  }
  json gpus = json::array();
  for (const KeptGpu& each : common.gpus)
    gpus.push_back({{"pci", each.pci}, {"needs", each.needs}, {"reason", each.reason}});
  return json{{"version", version},        {"gpus", gpus},
              {"servers", servers},        {"placements", placements},
              {"leaving", common.leaving}, {"counts", to_json(common.counts)}}
      .dump(-1, ' ', false, json::error_handler_t::replace);
}

Result<KeptTenant> decode_tenant(std::string_view text) {
  try {
    return tenant_in(parse(text));
  } catch (const json::exception& wrong) {
    return unreadable(wrong);
  }
}

Result<KeptWeights> decode_weights(std::string_view text) {
  try {
    const json in = parse(text);
    return KeptWeights{{in.at("user").get<uid_t>(), in.at("owner").get<std::string>()},
                       in.at("is_shared").get<bool>(),
                       in.at("tenants").get<std::set<std::string>>(),
                       allocations_in(in)};
  } catch (const json::exception& wrong) {
    return unreadable(wrong);
  }
}

Result<KeptCommon> decode_common(std::string_view text) {
  try {
    KeptCommon common;
    const json in = parse(text);
    for (const json& each : in.at("servers")) {
      common.servers.push_back({each.at("domain").get<std::string>(), each.at("pid").get<pid_t>(),
                                each.at("start_time").get<std::string>()});
    }
    for (const json& each : in.value("placements", json::array())) {  // agents before 0.7 kept none
      common.placements.push_back(placement_in(each));
    }
    common.leaving = in.value("leaving", std::vector<std::string>());  // agents before 0.8 kept none
    common.counts = counts_in(in.value("counts", json::object()));     // older agents kept none
    for (const json& each : in.value("gpus", json::array())) {         // nor of these
      common.gpus.push_back({each.at("pci").get<std::string>(), each.at("needs").get<std::string>(),
                             each.at("reason").get<std::string>()});
    }
    return common;
  } catch (const json::exception& wrong) {
    return unreadable(wrong);
  }
}

Status check_versions(const std::map<std::string, os::Fd>& descriptors) {
  constexpr int file_version = number_in(magic);
  for (const auto& [name, descriptor] : descriptors) {
    if (name != document_name() && tenant_of_document(name).empty() && !is_weights_document(name)) continue;
    const int file = file_version_of(descriptor.get());
    const int text = file == file_version ? text_version_of(descriptor.get()) : 0;
    if (file <= file_version && text <= version) continue;
    return fail(ErrorCode::Unsupported,
                fmt::format("what is kept of the tenants was written by a newer agent (version {}, this one "
                            "knows {} to {}): it is not touched, and nobody is served",
                            text != 0 ? text : file, oldest_version, version),
                "install that agent again and restart firebreakd; or stop firebreakd and start it, to begin "
                "without what is kept");
  }
  return {};
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
  place.sequence = 0;  // the place is not whole until all of it is there
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
std::string tenant_document_name(const std::string& tenant) { return "tenant/" + tenant; }
std::string tenant_of_document(const std::string& name) {
  constexpr std::string_view folder = "tenant/";
  return name.starts_with(folder) ? name.substr(folder.size()) : std::string();
}
std::string weights_document_name(const WeightsName& name) {
  return fmt::format("weights/{}/{}", name.user, name.owner);
}
bool is_weights_document(const std::string& name) { return name.starts_with("weights/"); }
std::string page_name(const std::string& tenant) { return "page/" + tenant; }
std::string shelf_folder(const std::string& tenant) { return tenant + "/"; }
std::string memory_name(const std::string& tenant, const std::string& allocation) {
  return shelf_folder(tenant) + "memory/" + allocation;
}
std::string weights_owner(const WeightsName& name) { return fmt::format("+{}.{}", name.user, name.owner); }
bool is_weights_owner(const std::string& owner) { return owner.starts_with('+'); }
std::string listener_name(const std::string& tenant) { return shelf_folder(tenant) + "listener"; }
std::string connection_name(const std::string& tenant, std::uint64_t id) {
  return fmt::format("{}connection/{}", shelf_folder(tenant), id);
}

os::Fd take_descriptor(std::map<std::string, os::Fd>& descriptors, const std::string& name) {
  auto node = descriptors.extract(name);
  return node.empty() ? os::Fd() : std::move(node.mapped());
}

}  // namespace firebreak::agent
