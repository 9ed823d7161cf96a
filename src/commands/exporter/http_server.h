// SPDX-License-Identifier: Apache-2.0
/// Serves one text under one path. prometheus-cpp's own server adds metrics of itself, with a "Nan" among
/// them that is none in Prometheus' format (1.0.1).
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "ground/base/result.h"

namespace firebreak::exporter {

/// Answers on threads of its own, until it goes.
class HttpServer {
 public:
  using Text = std::function<std::string()>;

  /// `listen`: ADDRESS:PORT; port 0 is one that is free. `text` is called by one thread at a time.
  /// Unavailable: that place cannot be had.
  static Result<std::unique_ptr<HttpServer>> start(const std::string& listen, const std::string& path,
                                                   Text text);
  virtual ~HttpServer() = default;
  virtual int port() const = 0;
};

}  // namespace firebreak::exporter
