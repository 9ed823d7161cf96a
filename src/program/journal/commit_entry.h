// SPDX-License-Identifier: Apache-2.0
/// The content of one commit, and how it lies in a journal's payload. Pure.
#pragma once

#include <firebreak/firebreak.h>

#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "ground/base/result.h"
#include "shared/abi/commit_journal.h"

namespace firebreak::journal {

/// The tenant's own bytes; only looked at during the call.
struct NewState {
  abi::EntryKind kind = abi::EntryKind::Whole;
  std::span<const std::byte> whole;
  std::span<const fb_change> changes;

  static NewState of(std::span<const std::byte> state) { return {abi::EntryKind::Whole, state, {}}; }
  static NewState of(std::span<const fb_change> changes) { return {abi::EntryKind::Changes, {}, changes}; }
};

/// InvalidArgument: what is wrong with it.
Status check(const NewState& state);

/// Returns the size for a state that check() accepts.
std::size_t payload_bytes_of(const NewState& state);
void write_payload(const NewState& state, std::span<std::byte> payload);
/// The size of the state after it; `before` is that without it.
std::size_t state_bytes_after(const NewState& state, std::size_t before);

/// A change: some bytes of the state, in a payload.
struct Change {
  std::size_t offset = 0;
  std::span<const std::byte> bytes;
};

/// Goes through the changes of a payload, which may be anything: what does not lie in a state of
/// `state_bytes` is not there.
class ChangeReader {
 public:
  ChangeReader(std::span<const std::byte> payload, std::size_t state_bytes)
      : left_(payload), state_bytes_(state_bytes) {}
  std::optional<Change> next();
  /// True, once next() gave nothing, when all of the payload was changes.
  bool at_end() const { return left_.empty(); }

 private:
  std::span<const std::byte> left_;
  std::size_t state_bytes_;
};

/// False: the payload is no sequence of changes; `state` is then of no use. Otherwise `state` has
/// `state_bytes` afterwards.
bool apply_payload(abi::EntryKind kind, std::span<const std::byte> payload, std::size_t state_bytes,
                   std::vector<std::byte>& state);

}  // namespace firebreak::journal
