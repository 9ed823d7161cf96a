// SPDX-License-Identifier: Apache-2.0
#include "commands/nri/frames.h"

#include <fmt/format.h>

namespace firebreak::nri {
namespace {

constexpr std::size_t trunk_header_bytes = 8;
constexpr std::size_t message_header_bytes = 10;

void put(std::string& to, std::size_t number) {
  for (int shift = 24; shift >= 0; shift -= 8) to.push_back(static_cast<char>((number >> shift) & 0xff));
}

std::uint32_t number_at(std::string_view bytes, std::size_t at) {
  std::uint32_t number = 0;
  for (std::size_t i = at; i < at + 4; ++i) number = (number << 8) | static_cast<unsigned char>(bytes[i]);
  return number;
}

tl::unexpected<Error> too_large(std::size_t size_bytes) {
  return fail(ErrorCode::Protocol,
              fmt::format("a message of {} bytes: more than {}", size_bytes, most_data_bytes));
}

}  // namespace

std::string encode(const TtrpcMessage& message) {
  std::string bytes;
  put(bytes, message.connection);
  put(bytes, message_header_bytes + message.data.size());
  put(bytes, message.data.size());
  put(bytes, message.stream);
  bytes.push_back(static_cast<char>(message.type));
  bytes.push_back(static_cast<char>(message.flags));
  return bytes + message.data;
}

Result<std::vector<TtrpcMessage>> FrameReader::read(std::string_view bytes) {
  if (has_failed_) return fail(ErrorCode::Protocol, "what follows a message that is too large");
  trunk_.append(bytes);
  Status done = take_frames();
  std::vector<TtrpcMessage> messages;
  for (const auto& [connection, ignored] : streams_) {
    if (done) done = take_messages(connection, messages);
  }
  has_failed_ = !done;
  if (!done) return propagate(done);
  return messages;
}

bool FrameReader::is_in_midst() const {
  if (!trunk_.empty()) return true;
  for (const auto& [connection, stream] : streams_) {
    if (!stream.empty()) return true;
  }
  return false;
}

Status FrameReader::take_frames() {
  std::size_t at = 0;
  while (trunk_.size() - at >= trunk_header_bytes) {
    const std::size_t size = number_at(trunk_, at + 4);
    if (size > message_header_bytes + most_data_bytes) return too_large(size);
    if (trunk_.size() - at < trunk_header_bytes + size) break;
    const auto stream = streams_.find(number_at(trunk_, at));
    if (stream != streams_.end()) stream->second.append(trunk_, at + trunk_header_bytes, size);
    at += trunk_header_bytes + size;
  }
  trunk_.erase(0, at);
  return {};
}

Status FrameReader::take_messages(std::uint32_t connection, std::vector<TtrpcMessage>& messages) {
  std::string& stream = streams_[connection];
  std::size_t at = 0;
  while (stream.size() - at >= message_header_bytes) {
    const std::size_t size = number_at(stream, at);
    if (size > most_data_bytes) return too_large(size);
    if (stream.size() - at < message_header_bytes + size) break;
    messages.push_back({connection, number_at(stream, at + 4), static_cast<std::uint8_t>(stream[at + 8]),
                        static_cast<std::uint8_t>(stream[at + 9]),
                        stream.substr(at + message_header_bytes, size)});
    at += message_header_bytes + size;
  }
  stream.erase(0, at);
  return {};
}

}  // namespace firebreak::nri
