// SPDX-License-Identifier: Apache-2.0
#include "commands/cluster/access.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "ground/base/text.h"

namespace firebreak::cluster {
namespace {

Result<std::string> read(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return fail(ErrorCode::NotFound, path + " is a folder");
  std::ifstream file(path, std::ios::binary);
  std::string content{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!file.good() && !file.eof()) return fail(ErrorCode::NotFound, "cannot read " + path);
  return content;
}

/// yaml-cpp ends the process where a byte is not ASCII, and makes nothing or something else of other broken
/// text.
Result<std::string> decoded(std::string base64) {
  std::erase_if(base64, [](char byte) { return byte == '\n' || byte == '\r'; });
  const bool is_base64 = std::ranges::all_of(base64, [](unsigned char byte) {
    return std::isalnum(byte) != 0 || byte == '+' || byte == '/' || byte == '=';
  });
  const auto bytes = is_base64 ? YAML::DecodeBase64(base64) : std::vector<unsigned char>();
  if (bytes.empty() || YAML::EncodeBase64(bytes.data(), bytes.size()) != base64)
    return fail(ErrorCode::InvalidArgument, "that is no base64");
  return std::string(bytes.begin(), bytes.end());
}

class Kubeconfig {
 public:
  Kubeconfig(std::string path, YAML::Node all) : path_(std::move(path)), all_(std::move(all)) {}

  Result<ApiAccess> access() const {
    const std::string context = text(all_, "current-context");
    const YAML::Node chosen = named("contexts", context, "context");
    const YAML::Node cluster = named("clusters", text(chosen, "cluster"), "cluster");
    const YAML::Node user = named("users", text(chosen, "user"), "user");
    if (!cluster.IsMap() || !user.IsMap()) return wrong("its current-context names no cluster and user");
    if (const std::string key = first_not_done(cluster, user); !key.empty())
      return wrong(fmt::format("{} is not done here", key));
    auto authorities = content(cluster, "certificate-authority");
    auto token = token_of(user);
    auto certificate = content(user, "client-certificate");
    auto key = content(user, "client-key");
    for (const auto* each : {&authorities, &token, &certificate, &key}) {
      if (!*each) return propagate(*each, path_);
    }
    ApiAccess access{text(cluster, "server"), *authorities, *token, *certificate, *key};
    if (!access.url.starts_with("https://")) return wrong("its server is none by https");
    if (access.token.empty() && access.certificate.empty())
      return wrong("it has no token and no certificate");
    return access;
  }

 private:
  static std::string text(const YAML::Node& of, const char* key) {
    const YAML::Node found = of.IsMap() ? of[key] : YAML::Node(YAML::NodeType::Undefined);
    return found && found.IsScalar() ? found.Scalar() : std::string();
  }

  YAML::Node named(const char* list, const std::string& name, const char* what) const {
    const YAML::Node all = all_[list];
    if (!all || !all.IsSequence()) return YAML::Node();
    for (const YAML::Node& each : all) {
      if (each.IsMap() && text(each, "name") == name && each[what]) return each[what];
    }
    return YAML::Node();
  }

  static std::string first_not_done(const YAML::Node& cluster, const YAML::Node& user) {
    for (const char* key : {"tls-server-name", "proxy-url"}) {
      if (cluster[key]) return key;
    }
    if (text(cluster, "insecure-skip-tls-verify") == "true") return "insecure-skip-tls-verify";
    for (const char* key : {"exec", "auth-provider", "username", "as"}) {
      if (user[key]) return key;
    }
    return {};
  }

  /// Reads the content of the file itself, or of one that it names from its own folder on.
  Result<std::string> content(const YAML::Node& of, const std::string& key) const {
    if (const std::string data = text(of, (key + "-data").c_str()); !data.empty()) return decoded(data);
    const std::string named = text(of, key.c_str());
    return named.empty() ? Result<std::string>(std::string()) : read(beside(named));
  }

  Result<std::string> token_of(const YAML::Node& user) const {
    const std::string file = text(user, "tokenFile");
    // A token's file ends in a line feed, and a header may have none.
    if (file.empty()) return trimmed(text(user, "token"));
    const auto token = read(beside(file));
    return token ? Result<std::string>(trimmed(*token)) : token;
  }

  std::string beside(const std::string& named) const {
    return (std::filesystem::path(path_).parent_path() / named).string();
  }

  tl::unexpected<Error> wrong(const std::string& why) const {
    return fail(ErrorCode::InvalidArgument, fmt::format("{}: {}", path_, why));
  }

  std::string path_;
  YAML::Node all_;
};

}  // namespace

Result<ApiAccess> access_by_kubeconfig(const std::string& path) {
  const auto text = read(path);
  if (!text) return propagate(text);
  try {
    const YAML::Node all = YAML::Load(*text);
    if (!all.IsMap()) return fail(ErrorCode::InvalidArgument, path + ": that is no kubeconfig");
    return Kubeconfig(path, all).access();
  } catch (const YAML::Exception& error) {
    return fail(ErrorCode::InvalidArgument, fmt::format("{}: {}", path, error.what()));
  }
}

Result<ApiAccess> access_in_pod(const std::function<std::string(const char*)>& variable,
                                const std::string& folder) {
  std::string host = variable("KUBERNETES_SERVICE_HOST");
  const std::string port = variable("KUBERNETES_SERVICE_PORT");
  if (host.empty() || port.empty()) return fail(ErrorCode::NotFound, "this is no pod");
  if (host.find(':') != std::string::npos) host = "[" + host + "]";
  const auto token = read(folder + "/token");
  const auto authorities = read(folder + "/ca.crt");
  if (!token) return propagate(token);
  if (!authorities) return propagate(authorities);
  return ApiAccess{fmt::format("https://{}:{}", host, port), *authorities, trimmed(*token)};
}

}  // namespace firebreak::cluster
