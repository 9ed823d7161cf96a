// SPDX-License-Identifier: Apache-2.0
#include "kernels/fatbin/code.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace firebreak::fatbin {
namespace {

bool is_number(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

const char* to_string(Obstacle obstacle) {
  switch (obstacle) {
    case Obstacle::Malformed:
      return "it loads code that is damaged";
    case Obstacle::NoCode:
      return "it loads code that has nothing for this GPU";
    case Obstacle::UnknownKind:
      return "it loads code of a kind that is not known";
    case Obstacle::NotLinked:
      return "it loads code that the driver has yet to link";
    case Obstacle::UnknownSection:
      return "it loads code with memory whose meaning is not known";
    case Obstacle::UnknownSymbol:
      return "it loads code with a symbol whose meaning is not known";
    case Obstacle::UncoveredBytes:
      return "it loads code with memory that has no name";
    case Obstacle::SameName:
      return "it loads code with two variables of one name";
    case Obstacle::DeviceHeap:
      return "it loads code that allocates memory in its kernels";
    case Obstacle::LaunchesKernels:
      return "it loads code whose kernels launch kernels";
    case Obstacle::Managed:
      return "it loads code with managed variables";
    case Obstacle::TextureReferences:
      return "it loads code with texture references";
    case Obstacle::KeepsAddresses:
      return "it loads code that keeps addresses of its own";
    case Obstacle::StoresAddresses:
      return "it loads code whose kernels may store the address of a variable or function";
    case Obstacle::UnknownFunction:
      return "it loads code that calls a function which is not known";
  }
  return "it loads code that is not known";
}

std::optional<Obstacle> obstacle_of_function(const std::string& name) {
  // CUDA C++ Programming Guide: "Formatted Output", "Assertion", "Dynamic Global Memory Allocation and
  // Operations".
  constexpr std::array<std::string_view, 3> harmless{"vprintf", "__assertfail", "__assert_fail"};
  constexpr std::array<std::string_view, 4> heap{"malloc", "free", "__nv_aligned_device_malloc", "calloc"};
  constexpr std::array<std::string_view, 4> launching{"cuda", "cnp", "__cuda", "__cnp"};
  const auto is = [&](std::string_view each) { return name == each; };
  const auto begins = [&](std::string_view each) { return name.starts_with(each); };
  if (std::any_of(harmless.begin(), harmless.end(), is)) return std::nullopt;
  if (std::any_of(heap.begin(), heap.end(), is)) return Obstacle::DeviceHeap;
  if (std::any_of(launching.begin(), launching.end(), begins)) return Obstacle::LaunchesKernels;
  return Obstacle::UnknownFunction;
}

bool is_name_of_literal(const std::string& name) {
  // Seen in what nvcc 11 to 13 make: string literals, __func__ and such, and the tables of sinf() and sin().
  constexpr std::string_view string = "$str";
  constexpr std::string_view unnamed = "__unnamed_";
  if (name == string || name == "__cudart_i2opi_f" || name == "__cudart_i2opi_d" ||
      name == "__cudart_sin_cos_coeffs")
    return true;
  if (name.starts_with(string) && name[string.size()] == '$')
    return is_number(name.substr(string.size() + 1));
  return name.starts_with(unnamed) && is_number(name.substr(unnamed.size()));
}

}  // namespace firebreak::fatbin
