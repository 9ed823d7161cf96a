// SPDX-License-Identifier: Apache-2.0
#include "agent/faults/watch/isolation_detector.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>

#include <array>
#include <utility>

#include "ground/base/line_splitter.h"

namespace firebreak::watch {
namespace {

/// The module keeps 128 events, of at most some hundred bytes each.
constexpr std::size_t longest_text = 1 << 20;

}  // namespace

Status IsolationDetector::start() {
  const auto events = read_events();
  if (!events) return propagate(events);
  if (!events->empty()) last_ = events->back().sequence;
  return {};
}

bool IsolationDetector::tells_outcomes() const {
  if (!file_) return false;
  const auto state = read_isolation_state(kernel_);
  return state && state->mode == IsolationMode::On;
}

void IsolationDetector::read_new() {
  const auto events = read_events();
  if (events) {
    const std::uint64_t lost_before = counters_.lost;
    for (const IsolationEvent& event : *events) tell(event);
    if (counters_.lost != lost_before) tell_condemned();
    return;
  }
  readable_.cancel();
  file_.reset();
  on_end_(events.error());
}

/// Reads all that the module still has. A descriptor is readable again for what happens after it was read
/// from its start: so each time a new one.
Result<std::vector<IsolationEvent>> IsolationDetector::read_events() {
  Result<os::Fd> file = kernel_.open(isolation_events_path, O_RDONLY | O_NONBLOCK);
  if (!file) return propagate(file);
  const Result<std::string> text = read_all(*file);
  if (!text) return propagate(text);
  Result<os::Watch> readable = loop_.watch_readable(file->get(), [this] { read_new(); });
  if (!readable) return propagate(readable);
  readable_ = std::move(*readable);
  file_ = std::move(*file);
  std::vector<IsolationEvent> events;
  LineSplitter lines;
  lines.take(*text, [&](std::string_view line) {
    Result<IsolationEvent> event = parse_isolation_event(line);
    if (event) {
      events.push_back(std::move(*event));
    } else {
      ++counters_.malformed;
    }
  });
  return events;
}

Result<std::string> IsolationDetector::read_all(const os::Fd& file) {
  std::string text;
  std::array<std::byte, 4096> piece{};
  while (text.size() < longest_text) {
    const Result<std::size_t> size = kernel_.read(file, piece);
    if (!size) return propagate(size);
    if (*size == 0) return text;
    text.append(reinterpret_cast<const char*>(piece.data()), *size);
  }
  return fail(ErrorCode::Protocol, std::string(isolation_events_path) + " never ends");
}

/// A storm of one client's pushes others' events out of the ring, but nobody out of this list.
void IsolationDetector::tell_condemned() {
  const auto text = kernel_.read_file(isolation_condemned_path);
  if (!text) return spdlog::warn("who is condemned is not known: {}", to_string(text.error()));
  LineSplitter lines;
  lines.take(*text, [&](std::string_view line) {
    const auto event = parse_condemned(line);
    if (event) on_event_(*event);
    if (!event) ++counters_.malformed;
  });
}

void IsolationDetector::tell(const IsolationEvent& event) {
  if (event.sequence <= last_) return;
  if (event.sequence > last_ + 1) {
    counters_.lost += event.sequence - last_ - 1;
    spdlog::warn("{} events of fault isolation were overwritten before they were read",
                 event.sequence - last_ - 1);
  }
  last_ = event.sequence;
  ++counters_.events;
  on_event_(event);
}

}  // namespace firebreak::watch
