// SPDX-License-Identifier: Apache-2.0
/// An API server as this program meets it, for tests: TLS, HTTP/1.1, one node, its pods, events and their
/// rules. It does what its owner wants instead: refuse, be late, lose its answer.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <nlohmann/json.hpp>

namespace firebreak::cluster {

struct HeardCall {
  std::string method;
  std::string path;
  std::string authorization;
  std::string content_type;
  std::string accept;
  std::string client;  ///< This is of its certificate; it is empty where it has none.
  nlohmann::json body;
};

/// This is done in place of the answer that would be right.
struct Mischief {
  enum class Kind { Answer, DoAndLose, DoAndBeLate, Cut };
  Kind kind = Kind::Answer;  ///< DoAnd: it takes what it was asked, and nobody hears of it in time
  int status = 500;
  std::string header = {};
  std::string method = {};  ///< This is for those alone; empty means any.
  std::string path_has = {};
  int times = 1;
};

/// Thread safe. On the loopback address.
class ApiServerStandIn {
 public:
  /// This is of a node "n1". `port` is that of one that was there before; 0 means any.
  explicit ApiServerStandIn(int port = 0);
  ~ApiServerStandIn();

  int port() const { return port_; }
  std::string url() const { return "https://127.0.0.1:" + std::to_string(port_); }
  /// PEM: who signed its certificate.
  const std::string& authorities() const;
  struct Identity {
    std::string certificate;
    std::string key;
  };
  /// Signed by the same.
  Identity identity_of(const std::string& name) const;
  /// This is of a kubeconfig with that token.
  std::string kubeconfig(const std::string& token) const;

  void add_pod(const std::string& space, const std::string& name, const std::string& uid,
               const std::string& config_hash = {});
  void remove_pod(const std::string& uid);
  void do_instead(const Mischief& mischief);
  void forget_mischief();
  /// The server answers those that wait.
  void release();

  std::vector<HeardCall> heard() const;
  std::size_t count(const std::string& method, const std::string& path_has) const;
  /// The node's condition of that type; null: it has none.
  nlohmann::json condition(const std::string& type) const;
  std::vector<nlohmann::json> events() const;
  /// A pod's annotation; empty: none.
  std::string annotation(const std::string& uid, const std::string& key) const;
  /// This tells whether `holds` within a minute; it is asked whenever something was heard, and now and then.
  bool wait(const std::function<bool()>& holds);

 private:
  struct Tls;
  struct Reply {
    int status = 200;
    nlohmann::json body = nlohmann::json::object();
    std::string header = {};
  };
  void accept_all();
  void serve(void* stream);
  bool serve_one(void* stream);
  Reply obey(const HeardCall& call);
  static Reply as_accepted(Reply reply, const HeardCall& call);
  Reply patch_node(const HeardCall& call);
  Reply patch_pod(const HeardCall& call);
  Reply add_event(const HeardCall& call);
  Mischief mischief_for(const HeardCall& call);

  std::unique_ptr<Tls> tls_;
  int port_ = 0;
  mutable std::mutex mutex_;  ///< guards all below but the threads
  std::condition_variable changed_;
  bool ends_ = false;
  std::size_t releases_ = 0;
  std::vector<HeardCall> heard_;
  std::deque<Mischief> mischief_;
  nlohmann::json node_;
  std::map<std::string, nlohmann::json> events_;  ///< by namespace and name
  std::map<std::string, nlohmann::json> pods_;    ///< by uid
  std::thread accepter_;
  std::vector<std::thread> servers_;
};

}  // namespace firebreak::cluster
