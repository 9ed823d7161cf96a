// SPDX-License-Identifier: Apache-2.0
#include "shared/link/question.h"

#include <algorithm>
#include <utility>

#include "ground/os/socket.h"

namespace firebreak::link {

Result<Answer> as_result(Answer answer) {
  const auto* refused = std::get_if<abi::Refused>(&answer.message);
  if (refused == nullptr) return answer;
  if (refused->not_yet) return fail(ErrorCode::NotYet, refused->reason);
  if (refused->invalid) return fail(ErrorCode::InvalidArgument, refused->reason);
  return fail(refused->used_up ? ErrorCode::ResourceExhausted : ErrorCode::PermissionDenied, refused->reason);
}

Result<Answer> ask_once(const std::string& socket_path, const abi::Message& question, Milliseconds timeout) {
  constexpr std::uint64_t number = 1;
  const SystemClock clock;
  const Monotonic deadline = clock.now() + timeout;
  const auto left = [&] {
    return std::max(std::chrono::ceil<Milliseconds>(deadline - clock.now()), Milliseconds(0));
  };
  auto socket = os::connect(socket_path, timeout);
  if (!socket) return propagate(socket);
  const std::string text = abi::encode(question, number);
  if (auto sent = socket->send(std::as_bytes(std::span(text)), {}, left()); !sent) return propagate(sent);
  while (clock.now() < deadline) {
    auto received = socket->receive(left());
    if (!received) return propagate(received);
    auto letter =
        abi::decode_letter({reinterpret_cast<const char*>(received->bytes.data()), received->bytes.size()});
    if (!letter) return propagate(letter);
    // Messages that the agent sends unasked are for others.
    if (letter->number == number)
      return as_result({std::move(letter->message), std::move(received->descriptors)});
  }
  return fail(ErrorCode::Timeout, "the firebreak agent did not answer");
}

}  // namespace firebreak::link
