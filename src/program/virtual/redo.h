// SPDX-License-Identifier: Apache-2.0
/// What was under way when a domain died, once more in the next instance: where it is proved that it comes
/// out as if it had run once, and that it cannot have been what ended the domain.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "kernels/access/decision.h"
#include "kernels/access/launch.h"
#include "kernels/access/summary.h"
#include "program/virtual/argument_addresses.h"
#include "program/virtual/code_summaries.h"
#include "program/virtual/given_work.h"
#include "program/virtual/graph_operations.h"
#include "program/virtual/graphs.h"
#include "program/virtual/instance.h"
#include "program/virtual/mappings.h"
#include "program/virtual/memory.h"
#include "program/virtual/objects.h"

namespace firebreak::virtual_driver {

/// For one thread at a time, while nobody gives the driver anything.
class Redo {
 public:
  Redo(Objects& objects, const WindowMemory& memory, Mappings& mappings, Graphs& graphs,
       ArgumentAddresses& arguments, const CodeSummaries& code)
      : objects_(objects),
        memory_(memory),
        mappings_(mappings),
        graphs_(graphs),
        arguments_(arguments),
        code_(code) {}

  /// Empty: all of it may be done again. Else why not, in one line. `to` has everything that the program has,
  /// and lives.
  std::string find_obstacle(const GivenWork::UnderWay& work, const Instance& to);
  /// Gives all of it to that instance, in its order, by one stream. The first thing that failed. Changes what
  /// is current on the calling thread there.
  CUresult give_again(const GivenWork::UnderWay& work, const Instance& to);

 private:
  struct Checked;
  /// As a record says it, or one of those of a graph's that was launched.
  struct Operation {
    abi::RedoKind kind{};
    abi::RedoCause cause{};
    abi::RedoBody body{};
    std::span<const std::byte> payload;
  };

  CodeSummaries::Summary summary_of(std::uint64_t kernel, const Instance& to, std::string& name,
                                    const char*& why);
  /// They last until the next call.
  std::span<const Operation> operations_of(const redo::RedoLog& log, const redo::RedoEntry& entry,
                                           const Instance& to);
  static bool is_to_host(const Operation& operation);
  static bool is_from_host(const Operation& operation);
  std::string check(const Operation& operation, bool has_ended, Checked& checked);
  static std::string check_written(const GivenArea& to, Checked& checked);
  std::string check_launch(const Operation& operation, bool has_ended, Checked& checked);
  CUresult give(const Operation& operation, const Instance& to);

  Objects& objects_;
  const WindowMemory& memory_;
  Mappings& mappings_;
  Graphs& graphs_;
  ArgumentAddresses& arguments_;
  const CodeSummaries& code_;
  std::vector<Operation> operations_;
  std::vector<GraphOperation> of_graph_;
  access::DecisionWorkspace workspace_;
};

}  // namespace firebreak::virtual_driver
