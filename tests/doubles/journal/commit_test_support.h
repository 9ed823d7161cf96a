// SPDX-License-Identifier: Apache-2.0
/// What the tests of commits share: memory that costs only what is touched, a GPU that counts when told, and
/// a plain model of what has to be recovered.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ground/os/memory.h"
#include "program/journal/commit_writer.h"

namespace firebreak::journal {

using Bytes = std::vector<std::byte>;

inline Bytes bytes_of(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}
inline std::string text_of(const Bytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Shared memory, and one active after another in it.
struct Tenancy {
  os::Mapping mapping = std::move(os::Mapping::anonymous(sizeof(abi::SharedMemory)).value());
  abi::SharedMemory& shared = *mapping.as<abi::SharedMemory>();
  std::uint64_t epoch = 0;
  std::optional<CommitWriter> writer;

  Tenancy() { writer.emplace(shared, 0, Recovered{}); }

  abi::CommitArea& area() { return writer->area(); }
  abi::CommitJournal& journal() { return shared.journals[&area() - shared.page.areas]; }
  /// All that is queued is done.
  void gpu_catches_up() { area().next_step.store(writer->next_step()); }
  void commit(const std::string& state) {
    const Bytes bytes = bytes_of(state);
    ASSERT_TRUE(writer->append(NewState::of(bytes)));
  }
  void change(std::uint64_t offset, const std::string& bytes) {
    const fb_change change{offset, bytes.data(), bytes.size()};
    ASSERT_TRUE(writer->append(NewState::of(std::span(&change, 1))));
  }
  Result<Recovered> recover_next() const { return recover(shared, epoch + 1); }
  /// The active's process is gone, and a standby takes over.
  Recovered fail_over() {
    Recovered found = recover(shared, ++epoch).value();
    writer.emplace(shared, epoch, found);
    return found;
  }
};

}  // namespace firebreak::journal
