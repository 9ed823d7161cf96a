// SPDX-License-Identifier: Apache-2.0
#include "commands/exporter/http_server.h"

#include <CivetServer.h>
#include <fmt/format.h>

#include <utility>
#include <vector>

namespace firebreak::exporter {
namespace {

/// Type of the text format, version 0.0.4.
constexpr const char* content_type = "text/plain; version=0.0.4; charset=utf-8";

class TextHandler final : public CivetHandler {
 public:
  explicit TextHandler(HttpServer::Text text) : text_(std::move(text)) {}

  bool handleGet(CivetServer*, mg_connection* connection) override {
    const std::string text = text_();
    mg_send_http_ok(connection, content_type, static_cast<long long>(text.size()));
    mg_write(connection, text.data(), text.size());
    return true;
  }

 private:
  HttpServer::Text text_;
};

/// Anybody who reaches it may ask: one at a time, and nobody for long.
std::vector<std::string> options_for(const std::string& listen) {
  return {"listening_ports", listen, "num_threads", "1", "request_timeout_ms", "10000"};
}

class Civet final : public HttpServer {
 public:
  Civet(const std::string& listen, const std::string& path, Text text)
      : handler_(std::move(text)), server_(options_for(listen)) {
    server_.addHandler(path, handler_);
  }
  int port() const override {
    const auto ports = const_cast<CivetServer&>(server_).getListeningPorts();
    return ports.empty() ? 0 : ports.front();
  }

 private:
  TextHandler handler_;
  CivetServer server_;  ///< last: its threads use the handler
};

}  // namespace

Result<std::unique_ptr<HttpServer>> HttpServer::start(const std::string& listen, const std::string& path,
                                                      Text text) {
  try {
    return std::make_unique<Civet>(listen, path, std::move(text));
  } catch (const CivetException&) {
    return fail(ErrorCode::Unavailable, fmt::format("cannot listen at {}", listen),
                "--listen ADDRESS:PORT takes another place");
  }
}

}  // namespace firebreak::exporter
