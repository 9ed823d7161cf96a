// SPDX-License-Identifier: Apache-2.0
#include "commands/cluster/pods.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ranges>
#include <string_view>

namespace firebreak::cluster {
namespace {

using Json = nlohmann::json;

constexpr std::string_view shape_of_uid = "hhhhhhhh-hhhh-hhhh-hhhh-hhhhhhhhhhhh";
constexpr std::size_t bytes_of_hash = 32;

bool is_hex(char byte) { return (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'f'); }

/// systemd's names of slices have no dash for the kubelet to use.
std::string uid_at(std::string_view text) {
  std::string uid;
  for (const char byte : text.substr(0, shape_of_uid.size())) {
    if (!is_hex(byte) && byte != '-' && byte != '_') break;
    uid += byte == '_' ? '-' : byte;
  }
  if (uid.size() == bytes_of_hash && std::ranges::all_of(uid, is_hex)) return uid;
  const bool is_uid = std::ranges::equal(
      uid, shape_of_uid, [](char byte, char shape) { return shape == 'h' ? is_hex(byte) : byte == '-'; });
  return is_uid ? uid : std::string();
}

/// Whoever has a session, a service or a machine of their own may name groups under it as they like.
bool may_be_named_by_anybody(std::string_view component) {
  return component == "user.slice" || component == "machine.slice" || component == ".." ||
         component.ends_with(".service");
}

/// The kubelet puts its pods under a group of this name, which a node in a container has further down.
bool is_root_of_kubelet(std::string_view component) {
  return component == "kubepods" || component == "kubepods.slice" || component.ends_with("-kubepods.slice");
}

/// Returns the uid in the name of a pod's own group; empty: it is none. The first one of a path is the
/// kubelet's: a container may be allowed to make groups below it.
std::string pod_uid_of(std::string_view component) {
  constexpr std::string_view mark = "pod";
  for (std::size_t at = component.find(mark); at != component.npos; at = component.find(mark, at + 1)) {
    if (at != 0 && component[at - 1] != '-') continue;
    if (auto uid = uid_at(component.substr(at + mark.size())); !uid.empty()) return uid;
  }
  return {};
}

std::string text_at(const Json& entry, const char* name) {
  const auto found = entry.find(name);
  return found != entry.end() && found->is_string() ? found->get<std::string>() : std::string();
}

}  // namespace

std::string pod_uid_in(const std::string& control_group) {
  bool is_kubelets = false;
  for (const auto part : std::views::split(std::string_view(control_group), '/')) {
    const std::string_view component(part.begin(), part.end());
    if (!is_kubelets) {
      if (may_be_named_by_anybody(component)) return {};
      is_kubelets = is_root_of_kubelet(component);
    } else if (auto uid = pod_uid_of(component); !uid.empty()) {
      return uid;
    }
  }
  return {};
}

std::vector<Pod> pods_in(const std::string& body) {
  const Json all = Json::parse(body, nullptr, false);
  std::vector<Pod> pods;
  const auto items = all.find("items");
  if (items == all.end() || !items->is_array()) return pods;
  for (const Json& item : *items) {
    const Json metadata = item.is_object() ? item.value("metadata", Json()) : Json();
    Pod pod{text_at(metadata, "namespace"), text_at(metadata, "name"), text_at(metadata, "uid")};
    if (pod.space.empty() || pod.name.empty() || pod.uid.empty()) continue;
    const auto annotations = metadata.find("annotations");
    if (annotations != metadata.end()) pod.config_hash = text_at(*annotations, "kubernetes.io/config.hash");
    pods.push_back(std::move(pod));
  }
  return pods;
}

const Pod* find_pod(const std::vector<Pod>& pods, const std::string& uid_in_control_group) {
  if (uid_in_control_group.empty()) return nullptr;
  const auto found = std::ranges::find_if(pods, [&](const Pod& pod) {
    return pod.uid == uid_in_control_group || pod.config_hash == uid_in_control_group;
  });
  return found == pods.end() ? nullptr : &*found;
}

}  // namespace firebreak::cluster
