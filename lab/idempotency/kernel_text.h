// SPDX-License-Identifier: Apache-2.0
/// PTX text of a kernel as it is made up, and what makes values that are hard to follow.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <random>
#include <string>

namespace firebreak::idempotency {

/// A kernel `k` (.u64 a, .u64 b, .u64 c, .u32 n, .u32 s, .u32 m). The parameters are in %rd0 to %rd2 and %r0
/// to %r2; %r3 to %r5 are %tid.x, %ctaid.x and %ntid.x, %r6 is the thread's number. It has 4 KiB of shared
/// memory `tile` and 64 bytes of local memory `frame`. For whoever writes: %v (32 bits), %x (64), %h (16) and
/// %p.
class KernelText {
 public:
  explicit KernelText(std::mt19937_64& random) : random_(random) {}

  std::uint64_t below(std::uint64_t bound) { return random_() % bound; }
  std::uint64_t between(std::uint64_t least, std::uint64_t most) { return least + below(most - least + 1); }
  bool coin() { return below(2) == 0; }

  template <class... Arguments>
  void line(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    body_ += "  " + fmt::format(format, std::forward<Arguments>(arguments)...) + ";\n";
  }
  void label(const std::string& name) { body_ += name + ":\n"; }
  void raw(const std::string& text) { body_ += text; }
  /// Before the kernel.
  void add_module(const std::string& text) { before_ += text; }

  std::string new_label(const char* name) { return fmt::format("{}_{}", name, labels_++); }
  std::string new_value() { return fmt::format("%v{}", 100 + values_++ % 800); }
  std::string new_wide() { return fmt::format("%x{}", 100 + wides_++ % 800); }
  std::string new_half() { return fmt::format("%h{}", 100 + halves_++ % 800); }
  std::string new_predicate() { return fmt::format("%p{}", 100 + predicates_++ % 800); }

  /// A register of 32 bits that is not the same in each round of the loop LOOP around. `data`: an address
  /// that moves. May change %v1, %v2 and %v6 to %v8.
  std::string changing_value(const std::string& data);
  /// Goes back to LOOP or to END, by comparing the two in 16, 32 or 64 bits. Behind it: END.
  void leave_or_stay(const std::string& counter, const std::string& bound);

  /// All of it.
  std::string kernel() const;

 private:
  std::mt19937_64& random_;
  std::string before_;
  std::string body_;
  std::uint64_t labels_ = 0;
  std::uint64_t values_ = 0;
  std::uint64_t wides_ = 0;
  std::uint64_t halves_ = 0;
  std::uint64_t predicates_ = 0;
};

}  // namespace firebreak::idempotency
