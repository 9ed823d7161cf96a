// SPDX-License-Identifier: Apache-2.0
/// A graph that was launched as the operations that it does, one by one (program/virtual/redo.h).
#pragma once

#include <cstddef>
#include <vector>

#include "program/cuda/backend.h"
#include "program/virtual/argument_addresses.h"
#include "program/virtual/graph_content.h"
#include "program/virtual/objects.h"
#include "shared/abi/redo_ring.h"

namespace firebreak::virtual_driver {

/// As a record of the ring says it.
struct GraphOperation {
  abi::RedoKind kind{};
  abi::RedoCause cause{};
  abi::RedoBody body{};
  std::vector<std::byte> payload;
};

/// In an order in which each comes after all that it waits for; what is off is not among them. What cannot be
/// said as one operation is one that cannot be done again. The program's addresses and handles. `driver` is
/// of an instance in `slot` that has the kernels.
std::vector<GraphOperation> operations_of(const GraphContent& content, const cuda::Backend& driver, Slot slot,
                                          ArgumentAddresses& arguments);

}  // namespace firebreak::virtual_driver
