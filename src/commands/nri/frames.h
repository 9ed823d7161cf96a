// SPDX-License-Identifier: Apache-2.0
/// How ttrpc's messages lie in the one stream that a runtime and its plugin share. Pure.
///
/// NRI puts a header in front: connection id and length, 4 bytes each, big endian. What belongs to one
/// connection is a stream of ttrpc messages: length, stream id (4 bytes each), type and flags (1 byte each).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ground/base/result.h"

namespace firebreak::nri {

/// Number of the connection where the runtime calls the plugin, and of the one where the plugin calls the
/// runtime (NRI's pkg/net/multiplex).
inline constexpr std::uint32_t plugin_connection = 1;
inline constexpr std::uint32_t runtime_connection = 2;

/// ttrpc's own bound.
inline constexpr std::size_t most_data_bytes = std::size_t{4} * 1024 * 1024;

enum class MessageType : std::uint8_t { Request = 1, Response = 2, Data = 3 };

/// Flag of a request: its sender goes on with Data.
inline constexpr std::uint8_t remote_open_flag = 2;

struct TtrpcMessage {
  std::uint32_t connection = plugin_connection;
  std::uint32_t stream = 1;
  std::uint8_t type = 0;  ///< a MessageType, or what a later version has
  std::uint8_t flags = 0;
  std::string data;
  bool operator==(const TtrpcMessage&) const = default;
};

/// Encodes it as it is sent. `data` has at most most_data_bytes.
std::string encode(const TtrpcMessage& message);

/// Reads frames, for one thread. Keeps what is not whole yet, of which there is never more than twice
/// most_data_bytes.
class FrameReader {
 public:
  /// The messages that are whole now, in their order. What belongs to a connection that we do not have is
  /// skipped, as runtimes do. Protocol: too large, and so it stays.
  Result<std::vector<TtrpcMessage>> read(std::string_view bytes);
  /// Tells whether something has begun and is not whole.
  bool is_in_midst() const;

 private:
  Status take_frames();
  Status take_messages(std::uint32_t connection, std::vector<TtrpcMessage>& messages);

  std::string trunk_;
  std::map<std::uint32_t, std::string> streams_ = {{plugin_connection, {}}, {runtime_connection, {}}};
  bool has_failed_ = false;
};

}  // namespace firebreak::nri
