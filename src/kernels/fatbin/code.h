// SPDX-License-Identifier: Apache-2.0
/// The state that code for a GPU keeps between two launches.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace firebreak::fatbin {

enum class VariableSpace { Global, Constant };

struct Variable {
  std::string name;
  std::uint64_t size_bytes = 0;  ///< 0: only the driver knows it
  VariableSpace memory = VariableSpace::Global;
  bool is_local = false;  ///< its symbol is, as all are in code that was compiled whole
  /// Made by the compiler, and never written: strings, tables of the math functions.
  bool is_literal = false;
  bool is_reached = true;  ///< something in the code names it
  bool is_certain = true;  ///< the variable is in whatever the driver takes of the image
  /// Its kernels may have changed it.
  bool may_change() const { return memory == VariableSpace::Global && !is_literal && is_reached; }
};

/// Why it is not known what the code keeps, or why that cannot be copied.
enum class Obstacle {
  Malformed,        ///< cut off, or against its format
  NoCode,           ///< the image has nothing that this GPU takes
  UnknownKind,      ///< the image is of a kind, version or compression that is not known
  NotLinked,        ///< the driver has to link it first
  UnknownSection,   ///< memory whose meaning is not known
  UnknownSymbol,    ///< a symbol whose meaning is not known
  UncoveredBytes,   ///< memory that no symbol covers
  SameName,         ///< two variables have one name
  DeviceHeap,       ///< malloc() in kernels
  LaunchesKernels,  ///< dynamic parallelism
  Managed,          ///< __managed__ variables
  TextureReferences,
  KeepsAddresses,   ///< memory may hold addresses of its variables or functions: these differ
  StoresAddresses,  ///< its kernels may store such addresses
  UnknownFunction,  ///< the code calls a function of the driver's that is not known
};

/// Names it for a person: "it loads code that ...". A literal.
const char* to_string(Obstacle obstacle);

struct Code {
  std::vector<Variable> variables;
  std::optional<Obstacle> obstacle;  ///< an obstacle means that the variables are not all
  bool stores_addresses = false;     ///< Obstacle::StoresAddresses is among them, as PTX shows
};

/// Returns what a function that is defined elsewhere means: nothing for those that keep nothing (printf,
/// assert).
std::optional<Obstacle> obstacle_of_function(const std::string& name);

/// True when only the compiler gives that name, to what nobody writes.
bool is_name_of_literal(const std::string& name);

}  // namespace firebreak::fatbin
