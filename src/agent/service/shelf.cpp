// SPDX-License-Identifier: Apache-2.0
#include "agent/service/shelf.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "ground/os/closer.h"
#include "ground/os/descriptors.h"

namespace firebreak::agent {
namespace {

/// Descriptors for the socket, the standard streams, and what arrives before it is looked at.
constexpr std::size_t reserve = 16 + os::most_descriptors_in_a_message;

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

}  // namespace

Shelf::Answer Shelf::answer(std::string_view question, std::vector<os::Fd> descriptors) {
  const auto closer = std::make_shared<os::Closer>();
  for (os::Fd& each : descriptors) each.close_by(closer);
  const std::size_t space = question.find(' ');
  if (space == std::string_view::npos || question.size() < space + 3) return {};
  const char what = question[space + 1];
  const auto names = lines_of(question.substr(space + 3));
  Answer answer{std::string(question.substr(0, space + 1)), {}};
  if (what == 'k' && names.size() == 1) {
    answer.text += keep(names.front(), std::move(descriptors));
  } else if (what == 'd') {
    for (const std::string_view name : names) drop(name);
    answer.text += std::to_string(kept_.size());
  } else if (what == 'h' || what == 'g') {
    for (const std::string_view name : names) {
      const auto found = kept_.find(name);
      answer.text += found == kept_.end() ? '0' : '1';
      if (found != kept_.end() && what == 'g') answer.descriptors.push_back(found->second.get());
    }
  } else {
    return {};
  }
  return answer;
}

std::string Shelf::keep(std::string_view name, std::vector<os::Fd> descriptors) {
  if (descriptors.size() != 1) return "0";
  descriptors.front().close_by(closer_for(name));
  if (const auto found = kept_.find(name); found != kept_.end()) {
    found->second = std::move(descriptors.front());
    return "1";
  }
  if (kept_.size() >= descriptors_max_) return "0";
  kept_.emplace(name, std::move(descriptors.front()));
  return "1";
}

/// One for each folder, which is a tenant: what one has keeps nobody else's from being closed.
std::shared_ptr<os::Closer> Shelf::closer_for(std::string_view name) const {
  const std::string_view folder = name.substr(0, name.find('/') + 1);
  const auto first = kept_.lower_bound(folder);
  const bool has_any = !folder.empty() && first != kept_.end() && first->first.starts_with(folder);
  return has_any ? first->second.closer() : std::make_shared<os::Closer>();
}

void Shelf::drop(std::string_view name) {
  if (!name.ends_with('/')) {
    if (const auto found = kept_.find(name); found != kept_.end()) kept_.erase(found);
    return;
  }
  auto first = kept_.lower_bound(name);
  auto last = first;
  while (last != kept_.end() && last->first.starts_with(name)) ++last;
  kept_.erase(first, last);
}

void serve_shelf(os::Socket& agent) {
  const auto raised = os::raise_descriptor_limit();
  const std::uint64_t limit = raised ? raised->soft : reserve;
  Shelf shelf(limit > reserve ? limit - reserve : 0);
  for (;;) {
    auto received = agent.receive(Milliseconds(-1));
    // A message that lost its descriptor is not answered: nothing was kept.
    if (!received && received.error().code != ErrorCode::Unavailable) continue;
    if (!received) return;
    const std::string_view question(reinterpret_cast<const char*>(received->bytes.data()),
                                    received->bytes.size());
    const Shelf::Answer answer = shelf.answer(question, std::move(received->descriptors));
    if (answer.text.empty()) continue;
    const auto bytes = std::as_bytes(std::span(answer.text));
    const Status sent = agent.send(bytes, answer.descriptors, Milliseconds(-1));
    if (!sent && sent.error().code == ErrorCode::Unavailable) return;
  }
}

}  // namespace firebreak::agent
