// SPDX-License-Identifier: Apache-2.0
#include "commands/cluster/api_server.h"

#include <curl/curl.h>

#include <algorithm>
#include <array>
#include <utility>

namespace firebreak::cluster {
namespace {

struct FreeList {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};

class Headers {
 public:
  void add(const std::string& line) {
    curl_slist* const longer = curl_slist_append(list_.get(), line.c_str());
    if (longer == nullptr) return;
    (void)list_.release();
    list_.reset(longer);
  }
  curl_slist* get() const { return list_.get(); }

 private:
  std::unique_ptr<curl_slist, FreeList> list_;
};

std::size_t take_bytes(char* bytes, std::size_t size, std::size_t count, void* into) {
  auto& body = *static_cast<std::string*>(into);
  if (body.size() + size * count > ApiServer::longest_answer_bytes) return 0;
  body.append(bytes, size * count);
  return size * count;
}

int is_given_up(void* flag, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return static_cast<const std::atomic<bool>*>(flag)->load() ? 1 : 0;
}

void set_blob(CURL* curl, CURLoption option, const std::string& content) {
  curl_blob blob{const_cast<char*>(content.data()), content.size(), CURL_BLOB_COPY};
  curl_easy_setopt(curl, option, content.empty() ? nullptr : &blob);
}

void set_access(CURL* curl, const ApiAccess& access) {
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "https");
  curl_easy_setopt(curl, CURLOPT_PROXY, "");
  set_blob(curl, CURLOPT_CAINFO_BLOB, access.authorities);
  set_blob(curl, CURLOPT_SSLCERT_BLOB, access.certificate);
  set_blob(curl, CURLOPT_SSLKEY_BLOB, access.key);
}

Headers headers_of(const ApiCall& call, const ApiAccess& access) {
  Headers headers;
  headers.add("Accept: " + call.accept);
  if (!call.content_type.empty()) headers.add("Content-Type: " + call.content_type);
  if (!access.token.empty()) headers.add("Authorization: Bearer " + access.token);
  return headers;
}

}  // namespace

struct ApiServer::Connection {
  CURL* curl = curl_easy_init();
  Connection() = default;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() { curl_easy_cleanup(curl); }
};

ApiServer::ApiServer(std::function<Result<ApiAccess>()> access, std::string user_agent, Patience patience)
    : access_(std::move(access)),
      user_agent_(std::move(user_agent)),
      patience_(patience),
      connection_(std::make_unique<Connection>()) {}

ApiServer::~ApiServer() = default;

ApiAnswer ApiServer::send(const ApiCall& call) {
  const auto access = access_();
  if (!access) return {0, to_string(access.error())};
  CURL* const curl = connection_->curl;
  if (curl == nullptr) return {0, "libcurl does not begin"};
  curl_easy_reset(curl);  // its connections stay
  set_access(curl, *access);
  const Headers headers = headers_of(call, *access);
  ApiAnswer answer;
  std::array<char, CURL_ERROR_SIZE> why{};
  curl_easy_setopt(curl, CURLOPT_URL, (access->url + call.path).c_str());
  curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, call.method.c_str());
  if (!call.body.empty()) {
    curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(call.body.size()));
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, call.body.data());
  }
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers.get());
  curl_easy_setopt(curl, CURLOPT_USERAGENT, user_agent_.c_str());
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(patience_.to_connect.count()));
  curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, static_cast<long>(patience_.to_answer.count()));
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, why.data());
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_bytes);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &answer.body);
  curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, is_given_up);
  curl_easy_setopt(curl, CURLOPT_XFERINFODATA, &given_up_);
  const CURLcode done = curl_easy_perform(curl);
  if (done != CURLE_OK) {
    const std::string said(why.data());
    return {0, access->url + ": " + (said.empty() ? std::string(curl_easy_strerror(done)) : said)};
  }
  long status = 0;
  curl_off_t wait_s = 0;
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
  curl_easy_getinfo(curl, CURLINFO_RETRY_AFTER, &wait_s);
  answer.status = static_cast<int>(status);
  constexpr curl_off_t longest_wait_s = 24 * 3600;  // longer waits do not fit
  answer.wait = std::chrono::seconds(std::clamp<curl_off_t>(wait_s, 0, longest_wait_s));
  return answer;
}

}  // namespace firebreak::cluster
