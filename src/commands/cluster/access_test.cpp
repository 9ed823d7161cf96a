// SPDX-License-Identifier: Apache-2.0
#include "commands/cluster/access.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "ground/os/file.h"

namespace firebreak::cluster {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class AccessTest : public testing::Test {
 protected:
  os::TemporaryDirectory files = std::move(os::TemporaryDirectory::create().value());

  std::string write(const std::string& name, const std::string& content) {
    std::string path = files.path() + "/" + name;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path) << content;
    return path;
  }
  /// Writes a kubeconfig in the words of kubectl's own.
  static std::string config(const std::string& cluster, const std::string& user) {
    return "apiVersion: v1\nkind: Config\nclusters:\n"
           "- {name: other, cluster: {server: 'https://other:1'}}\n"
           "- name: c\n  cluster: {" +
           cluster +
           "}\n"
           "contexts:\n- {name: other, context: {cluster: other, user: other}}\n"
           "- name: x\n  context: {cluster: c, user: u}\ncurrent-context: x\n"
           "users:\n- name: u\n  user: {" +
           user + "}\n";
  }
  Result<ApiAccess> read(const std::string& cluster, const std::string& user) {
    return access_by_kubeconfig(write("kubeconfig", config(cluster, user)));
  }
};

TEST_F(AccessTest, IsThatOfTheCurrentContext) {
  const auto access =
      read("server: 'https://10.0.0.1:6443', certificate-authority-data: UEVNCg==", "token: secret");
  ASSERT_TRUE(access) << to_string(access.error());
  EXPECT_EQ(access->url, "https://10.0.0.1:6443");
  EXPECT_EQ(access->authorities, "PEM\n");
  EXPECT_EQ(access->token, "secret");
}

TEST_F(AccessTest, ReadsTheFilesThatItNamesFromItsOwnFolderOn) {
  write("ca.pem", "CA");
  write("deep/token", "from a file\n");
  const std::string key = write("key.pem", "KEY");
  write("crt.pem", "CRT");
  const auto access = read("server: 'https://h', certificate-authority: ca.pem",
                           "tokenFile: deep/token, client-certificate: crt.pem, client-key: " + key);
  ASSERT_TRUE(access) << to_string(access.error());
  EXPECT_EQ(access->authorities, "CA");
  EXPECT_EQ(access->token, "from a file") << "without the line feed";
  EXPECT_EQ(access->certificate, "CRT");
  EXPECT_EQ(access->key, "KEY");
}

TEST_F(AccessTest, WhatCannotBeDoneIsToldInOneLine) {
  const std::string server = "server: 'https://h'";
  const std::string token = "token: secret";
  for (const auto& [cluster, user, why] : std::vector<std::array<std::string, 3>>{
           {server, "exec: {command: aws}", "exec is not done here"},
           {server, "auth-provider: {name: gcp}", "auth-provider is not done here"},
           {server, "username: a, password: b", "username is not done here"},
           {server + ", insecure-skip-tls-verify: true", token, "insecure-skip-tls-verify is not done here"},
           {server + ", tls-server-name: a", token, "tls-server-name is not done here"},
           {server + ", proxy-url: 'http://p'", token, "proxy-url is not done here"},
           {"server: 'http://h'", token, "its server is none by https"},
           {server, "tokenFile: none", "cannot read "},
           {server + ", certificate-authority-data: '!'", token, "that is no base64"},
           {server, "client-key-data: UEVNCg==", "it has no token and no certificate"}}) {
    const auto access = read(cluster, user);
    ASSERT_FALSE(access) << why;
    EXPECT_THAT(access.error().message, HasSubstr(why));
    EXPECT_THAT(access.error().message, StartsWith(files.path()));
    EXPECT_EQ(access.error().message.find('\n'), std::string::npos);
    EXPECT_EQ(access.error().message.find("secret"), std::string::npos);
  }
}

TEST_F(AccessTest, DataIsBase64AsKubectlTakesIt) {
  const auto authorities = [&](const std::string& data) {
    const auto access = read("server: 'https://h', certificate-authority-data: \"" + data + "\"", "token: t");
    return access ? access->authorities : access.error().message;
  };
  EXPECT_EQ(authorities("UEVN"), "PEM");
  EXPECT_EQ(authorities("UEU="), "PE");
  EXPECT_EQ(authorities("UA=="), "P");
  EXPECT_EQ(authorities("UE\\r\\nVN\\n"), "PEM") << "in lines";
  EXPECT_EQ(authorities("AP8+/w=="), std::string("\0\xff\x3e\xff", 4));
  for (const char* const broken : {"\\n", "UEV", "UEVNU", "UA", "UA=", "U===", "====", "UA==UEVN", "=UEV",
                                   "UE N", "UEV-", "UEV_", "UB==", "UEVN\\0", "\\xc3\\xbcEVN"})
    EXPECT_THAT(authorities(broken), HasSubstr("that is no base64")) << broken;
}

TEST_F(AccessTest, WhatIsNoKubeconfigIsToldInOneLine) {
  for (const char* text :
       {"", "7", "[", "a: [b: c", "clusters: 3\nusers: 4\ncontexts: {}\ncurrent-context: [1]",
        "current-context: x", "contexts: [{name: x, context: 3}]\ncurrent-context: x"}) {
    const auto access = access_by_kubeconfig(write("kubeconfig", text));
    ASSERT_FALSE(access) << text;
    EXPECT_EQ(access.error().code, ErrorCode::InvalidArgument) << text;
    EXPECT_EQ(access.error().message.find('\n'), std::string::npos) << text;
  }
  EXPECT_EQ(access_by_kubeconfig(files.path() + "/none").error().code, ErrorCode::NotFound);
  EXPECT_FALSE(access_by_kubeconfig(files.path())) << "a folder";
}

TEST_F(AccessTest, OfAPodIsItsServiceAccounts) {
  std::map<std::string, std::string> environment;
  const auto access = [&] {
    return access_in_pod([&](const char* name) { return environment[name]; }, files.path());
  };
  EXPECT_EQ(access().error().code, ErrorCode::NotFound);
  environment = {{"KUBERNETES_SERVICE_HOST", "10.0.0.1"}, {"KUBERNETES_SERVICE_PORT", "443"}};
  EXPECT_FALSE(access()) << "without a token";
  write("token", "secret\n");
  EXPECT_FALSE(access()) << "nobody would know whether it is that server";
  write("ca.crt", "CA");
  ASSERT_TRUE(access());
  EXPECT_EQ(access()->url, "https://10.0.0.1:443");
  EXPECT_EQ(access()->token, "secret");
  EXPECT_EQ(access()->authorities, "CA");
  write("token", "the next hour's");
  environment["KUBERNETES_SERVICE_HOST"] = "fd00::1";
  EXPECT_EQ(access()->token, "the next hour's");
  EXPECT_EQ(access()->url, "https://[fd00::1]:443");
}

}  // namespace
}  // namespace firebreak::cluster
