// SPDX-License-Identifier: Apache-2.0
#include "tests/doubles/cluster/api_server_stand_in.h"

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <chrono>
#include <random>
#include <sstream>

namespace firebreak::cluster {
namespace {

using Json = nlohmann::json;

constexpr std::chrono::milliseconds between_looks{5};
constexpr std::chrono::seconds patience{60};

using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;

template <class Write>
std::string pem(Write write) {
  BIO* const memory = BIO_new(BIO_s_mem());
  write(memory);
  char* bytes = nullptr;
  const long size = BIO_get_mem_data(memory, &bytes);
  std::string text(bytes, static_cast<std::size_t>(size));
  BIO_free(memory);
  return text;
}

std::string pem_of(X509* certificate) {
  return pem([&](BIO* into) { PEM_write_bio_X509(into, certificate); });
}

Key new_key() { return {EVP_EC_gen("P-256"), &EVP_PKEY_free}; }

void extend(X509* certificate, int what, const char* value) {
  X509_EXTENSION* const extension = X509V3_EXT_conf_nid(nullptr, nullptr, what, value);
  X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
}

/// Signed by `signer`, or by itself.
Certificate new_certificate(const std::string& name, EVP_PKEY* key, X509* signer, EVP_PKEY* signer_key) {
  constexpr long day_s = 86'400;
  static long serial = 0;
  Certificate made(X509_new(), &X509_free);
  X509_set_version(made.get(), 2);
  ASN1_INTEGER_set(X509_get_serialNumber(made.get()), ++serial);
  X509_gmtime_adj(X509_getm_notBefore(made.get()), -day_s);
  X509_gmtime_adj(X509_getm_notAfter(made.get()), day_s);
  X509_set_pubkey(made.get(), key);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(made.get()), "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  X509_set_issuer_name(made.get(), X509_get_subject_name(signer != nullptr ? signer : made.get()));
  if (signer == nullptr) {
    extend(made.get(), NID_basic_constraints, "critical,CA:TRUE");
  } else {
    extend(made.get(), NID_subject_alt_name, "IP:127.0.0.1");
  }
  X509_sign(made.get(), signer_key != nullptr ? signer_key : key, EVP_sha256());
  return made;
}

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(),
                         [](unsigned char byte) { return static_cast<char>(std::tolower(byte)); });
  return text;
}

std::string header_of(const std::string& head, const std::string& name) {
  std::istringstream lines(head);
  for (std::string line; std::getline(lines, line);) {
    if (!lower(line).starts_with(name + ":")) continue;
    const std::size_t value = line.find_first_not_of(' ', name.size() + 1);
    return line.substr(value, line.find_last_not_of("\r\n") - value + 1);
  }
  return {};
}

std::string name_of_client(SSL* ssl) {
  X509* const peer = SSL_get0_peer_certificate(ssl);
  if (peer == nullptr || SSL_get_verify_result(ssl) != X509_V_OK) return {};
  std::array<char, 256> name{};
  X509_NAME_get_text_by_NID(X509_get_subject_name(peer), NID_commonName, name.data(), name.size());
  return name.data();
}

Json failure(int status, const std::string& message) {
  return {{"kind", "Status"},
          {"apiVersion", "v1"},
          {"status", "Failure"},
          {"code", status},
          {"message", message}};
}

}  // namespace

struct ApiServerStandIn::Tls {
  Key authority_key = new_key();
  Certificate authority = new_certificate("stand-in " + std::to_string(std::random_device()()),
                                          authority_key.get(), nullptr, nullptr);
  std::string authorities = pem_of(authority.get());
  Key key = new_key();
  Certificate certificate = new_certificate("api", key.get(), authority.get(), authority_key.get());
  std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context{SSL_CTX_new(TLS_server_method()), &SSL_CTX_free};
  std::unique_ptr<BIO, decltype(&BIO_free_all)> listener{nullptr, &BIO_free_all};
};

ApiServerStandIn::ApiServerStandIn(int port) : tls_(std::make_unique<Tls>()) {
  ::signal(SIGPIPE, SIG_IGN);  // a client may be gone
  SSL_CTX* const context = tls_->context.get();
  SSL_CTX_use_certificate(context, tls_->certificate.get());
  SSL_CTX_use_PrivateKey(context, tls_->key.get());
  const unsigned char sessions = 1;  // This server gives it to a client that comes again.
  SSL_CTX_set_session_id_context(context, &sessions, sizeof sessions);
  SSL_CTX_set_mode(context, SSL_MODE_AUTO_RETRY);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, [](int, X509_STORE_CTX*) { return 1; });
  X509_STORE_add_cert(SSL_CTX_get_cert_store(context), tls_->authority.get());
  tls_->listener.reset(BIO_new_accept(("127.0.0.1:" + std::to_string(port)).c_str()));
  BIO_set_bind_mode(tls_->listener.get(), BIO_SOCK_REUSEADDR);
  BIO_set_nbio_accept(tls_->listener.get(), 1);
  BIO_do_accept(tls_->listener.get());  // the first one binds
  port_ = std::stoi(BIO_get_accept_port(tls_->listener.get()));
  node_ = {{"kind", "Node"},
           {"apiVersion", "v1"},
           {"metadata", {{"name", "n1"}}},
           {"status", {{"conditions", Json::array({{{"type", "Ready"}, {"status", "True"}}})}}}};
  accepter_ = std::thread([this] { accept_all(); });
}

ApiServerStandIn::~ApiServerStandIn() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  accepter_.join();
  for (std::thread& server : servers_) server.join();
}

const std::string& ApiServerStandIn::authorities() const { return tls_->authorities; }

ApiServerStandIn::Identity ApiServerStandIn::identity_of(const std::string& name) const {
  const Key key = new_key();
  const Certificate certificate =
      new_certificate(name, key.get(), tls_->authority.get(), tls_->authority_key.get());
  return {pem_of(certificate.get()), pem([&](BIO* into) {
            PEM_write_bio_PrivateKey(into, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
          })};
}

std::string ApiServerStandIn::kubeconfig(const std::string& token) const {
  const auto& pem_bytes = authorities();
  std::string base64(4 * ((pem_bytes.size() + 2) / 3) + 1, '\0');
  const int size = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(base64.data()),
                                   reinterpret_cast<const unsigned char*>(pem_bytes.data()),
                                   static_cast<int>(pem_bytes.size()));
  base64.resize(static_cast<std::size_t>(size));
  return "apiVersion: v1\nkind: Config\ncurrent-context: x\n"
         "contexts: [{name: x, context: {cluster: c, user: u}}]\n"
         "users: [{name: u, user: {token: " +
         token +
         "}}]\n"
         "clusters:\n- name: c\n  cluster:\n    server: " +
         url() + "\n    certificate-authority-data: " + base64 + "\n";
}

void ApiServerStandIn::add_pod(const std::string& space, const std::string& name, const std::string& uid,
                               const std::string& config_hash) {
  const std::lock_guard lock(mutex_);
  Json& pod = pods_[uid] = {{"metadata", {{"namespace", space}, {"name", name}, {"uid", uid}}}};
  if (!config_hash.empty()) pod["metadata"]["annotations"]["kubernetes.io/config.hash"] = config_hash;
}

void ApiServerStandIn::remove_pod(const std::string& uid) {
  const std::lock_guard lock(mutex_);
  pods_.erase(uid);
}

void ApiServerStandIn::do_instead(const Mischief& mischief) {
  const std::lock_guard lock(mutex_);
  mischief_.push_back(mischief);
}

void ApiServerStandIn::forget_mischief() {
  const std::lock_guard lock(mutex_);
  mischief_.clear();
}

void ApiServerStandIn::release() {
  {
    const std::lock_guard lock(mutex_);
    ++releases_;
  }
  changed_.notify_all();
}

std::vector<HeardCall> ApiServerStandIn::heard() const {
  const std::lock_guard lock(mutex_);
  return heard_;
}

std::size_t ApiServerStandIn::count(const std::string& method, const std::string& path_has) const {
  const auto all = heard();
  return static_cast<std::size_t>(std::ranges::count_if(all, [&](const HeardCall& call) {
    return call.method == method && call.path.find(path_has) != std::string::npos;
  }));
}

Json ApiServerStandIn::condition(const std::string& type) const {
  const std::lock_guard lock(mutex_);
  for (const Json& each : node_["status"]["conditions"]) {
    if (each["type"] == type) return each;
  }
  return nullptr;
}

std::vector<Json> ApiServerStandIn::events() const {
  const std::lock_guard lock(mutex_);
  std::vector<Json> all;
  for (const auto& [name, event] : events_) all.push_back(event);
  return all;
}

std::string ApiServerStandIn::annotation(const std::string& uid, const std::string& key) const {
  const std::lock_guard lock(mutex_);
  const auto found = pods_.find(uid);
  if (found == pods_.end()) return {};
  const Json annotations = found->second["metadata"].value("annotations", Json::object());
  return annotations.value(key, "");
}

bool ApiServerStandIn::wait(const std::function<bool()>& holds) {
  const auto limit = std::chrono::steady_clock::now() + patience;
  while (!holds()) {
    std::unique_lock lock(mutex_);
    if (std::chrono::steady_clock::now() > limit) return false;
    changed_.wait_for(lock, between_looks);
  }
  return true;
}

void ApiServerStandIn::accept_all() {
  while (true) {
    {
      std::unique_lock lock(mutex_);
      if (changed_.wait_for(lock, between_looks, [this] { return ends_; })) return;
    }
    if (BIO_do_accept(tls_->listener.get()) <= 0) continue;
    BIO* const connection = BIO_pop(tls_->listener.get());
    BIO_socket_nbio(static_cast<int>(BIO_get_fd(connection, nullptr)), 1);
    BIO* const ssl = BIO_new_ssl(tls_->context.get(), 0);
    BIO_push(ssl, connection);
    servers_.emplace_back([this, ssl] {
      serve(ssl);
      BIO_free_all(ssl);
    });
  }
}

void ApiServerStandIn::serve(void* stream) {
  while (serve_one(stream)) {
  }
}

namespace {

/// This reads as much as there is. False means that it has ended.
bool read_some(BIO* stream, std::string& into) {
  std::array<char, 4096> bytes{};
  const int count = BIO_read(stream, bytes.data(), static_cast<int>(bytes.size()));
  if (count > 0) into.append(bytes.data(), static_cast<std::size_t>(count));
  return count > 0 || BIO_should_retry(stream);
}

void write_all(BIO* stream, const std::string& text) {
  std::size_t done = 0;
  while (done < text.size()) {
    const int count = BIO_write(stream, text.data() + done, static_cast<int>(text.size() - done));
    if (count > 0) done += static_cast<std::size_t>(count);
    if (count <= 0 && !BIO_should_retry(stream)) return;
  }
  (void)BIO_flush(stream);
}

}  // namespace

bool ApiServerStandIn::serve_one(void* stream) {
  BIO* const bio = static_cast<BIO*>(stream);
  std::string text;
  std::size_t end_of_head = std::string::npos, size = 0;
  while (end_of_head == std::string::npos || text.size() < end_of_head + 4 + size) {
    const std::size_t before = text.size();
    if (!read_some(bio, text)) return false;
    if (end_of_head == std::string::npos && (end_of_head = text.find("\r\n\r\n")) != std::string::npos) {
      const std::string length = header_of(text.substr(0, end_of_head), "content-length");
      size = length.empty() ? 0 : std::stoul(length);
    }
    std::unique_lock lock(mutex_);
    if (ends_) return false;
    if (text.size() == before) changed_.wait_for(lock, between_looks);
  }
  const std::string head = text.substr(0, end_of_head);
  SSL* ssl = nullptr;
  BIO_get_ssl(bio, &ssl);
  HeardCall call;
  std::istringstream(head) >> call.method >> call.path;
  call.authorization = header_of(head, "authorization");
  call.content_type = header_of(head, "content-type");
  call.accept = header_of(head, "accept");
  call.client = name_of_client(ssl);
  call.body = Json::parse(text.substr(end_of_head + 4), nullptr, false);

  std::unique_lock lock(mutex_);
  const Mischief mischief = mischief_for(call);
  const bool is_done = mischief.status == 200;
  heard_.push_back(call);
  const Reply reply = is_done ? as_accepted(obey(call), call)
                              : Reply{mischief.status, failure(mischief.status, "mischief"), mischief.header};
  const std::size_t releases = releases_;
  changed_.notify_all();
  if (mischief.kind == Mischief::Kind::DoAndBeLate)
    changed_.wait(lock, [&] { return ends_ || releases_ != releases; });
  lock.unlock();
  if (mischief.kind == Mischief::Kind::DoAndLose) return false;
  const std::string body = reply.body.dump();
  std::string answer = "HTTP/1.1 " + std::to_string(reply.status) +
                       " x\r\nContent-Type: application/json\r\n" +
                       (reply.header.empty() ? "" : reply.header + "\r\n") +
                       "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  if (mischief.kind == Mischief::Kind::Cut) answer.resize(answer.size() - body.size() / 2);
  write_all(bio, answer);
  return mischief.kind != Mischief::Kind::Cut;
}

/// It is no mischief with status 200, or one after the call was taken.
Mischief ApiServerStandIn::mischief_for(const HeardCall& call) {
  for (auto at = mischief_.begin(); at != mischief_.end(); ++at) {
    const bool fits = (at->method.empty() || at->method == call.method) &&
                      call.path.find(at->path_has) != std::string::npos;
    if (!fits) continue;
    Mischief found = *at;
    if (found.kind != Mischief::Kind::Answer) found.status = 200;
    if (--at->times == 0) mischief_.erase(at);
    return found;
  }
  Mischief none;
  none.status = 200;
  return none;
}

ApiServerStandIn::Reply ApiServerStandIn::obey(const HeardCall& call) {
  if (call.authorization != "Bearer secret" && call.client.empty())
    return {401, failure(401, "Unauthorized"), {}};
  if (call.method == "GET" && call.path == "/api/v1/nodes/n1") return {200, node_, {}};
  if (call.method == "PATCH" && call.path == "/api/v1/nodes/n1/status") return patch_node(call);
  if (call.method == "GET" && call.path == "/api/v1/pods?fieldSelector=spec.nodeName%3Dn1") {
    Json items = Json::array();
    for (const auto& [uid, pod] : pods_) items.push_back(pod);
    return {200, {{"kind", "PodList"}, {"items", items}}, {}};
  }
  if (call.method == "POST" && call.path.ends_with("/events")) return add_event(call);
  if (call.method == "PATCH" && call.path.ends_with("/status")) return patch_pod(call);
  return {404, failure(404, "the server could not find the requested resource"), {}};
}

/// The server does what it was asked, also where the answer has no such form.
ApiServerStandIn::Reply ApiServerStandIn::as_accepted(Reply reply, const HeardCall& call) {
  if (reply.status >= 300 || call.accept.find("as=PartialObjectMetadataList") == std::string::npos)
    return reply;
  if (!reply.body.contains("items"))
    return {406, failure(406, "you requested PartialObjectMetadataList, but the object is not a list"), {}};
  reply.body["kind"] = "PartialObjectMetadataList";
  return reply;
}

/// Conditions are merged by their types.
ApiServerStandIn::Reply ApiServerStandIn::patch_node(const HeardCall& call) {
  if (call.content_type != "application/strategic-merge-patch+json")
    return {415, failure(415, "media type"), {}};
  for (const Json& wanted : call.body["status"]["conditions"]) {
    Json& all = node_["status"]["conditions"];
    const auto found =
        std::ranges::find_if(all, [&](const Json& each) { return each["type"] == wanted["type"]; });
    if (found == all.end()) {
      all.push_back(wanted);
    } else {
      found->update(wanted);
    }
  }
  return {200, node_, {}};
}

/// Its uid is a precondition.
ApiServerStandIn::Reply ApiServerStandIn::patch_pod(const HeardCall& call) {
  const Json& metadata = call.body["metadata"];
  for (auto& [uid, pod] : pods_) {
    const Json& its = pod["metadata"];
    const std::string path = "/api/v1/namespaces/" + its["namespace"].get<std::string>() + "/pods/" +
                             its["name"].get<std::string>() + "/status";
    if (call.path != path) continue;
    if (metadata["uid"] != uid) return {409, failure(409, "Precondition failed: UID in precondition"), {}};
    pod["metadata"]["annotations"].update(metadata["annotations"]);
    return {200, pod, {}};
  }
  return {404, failure(404, "pods not found"), {}};
}

ApiServerStandIn::Reply ApiServerStandIn::add_event(const HeardCall& call) {
  const Json& event = call.body;
  const std::string space = event["metadata"]["namespace"], name = event["metadata"]["name"];
  const Json& involved = event["involvedObject"];
  const std::string wanted = involved["kind"] == "Node" ? "default" : involved.value("namespace", "");
  if (space != wanted || call.path != "/api/v1/namespaces/" + space + "/events")
    return {422, failure(422, "involvedObject.namespace: does not match event.namespace"), {}};
  if (events_.contains(space + "/" + name)) return {409, failure(409, "events already exists"), {}};
  events_[space + "/" + name] = event;
  return {201, event, {}};
}

}  // namespace firebreak::cluster
