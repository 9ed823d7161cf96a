// SPDX-License-Identifier: Apache-2.0
/// The page that src/program/virtual makes in its process. It is real, and the test does what the process
/// would do.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <new>
#include <string>

#include "ground/os/memory.h"
#include "ground/os/self.h"
#include "shared/abi/spare_page.h"

namespace firebreak::agent {

template <std::size_t size>
void write_text(std::array<char, size>& into, const std::string& text) {
  into.fill('\0');
  std::ranges::copy(text, into.begin());
}

/// Of a program that works in domain a, and is protected by a spare in domain b.
class PageOfSpare {
 public:
  explicit PageOfSpare(os::MemorySeal seal = os::MemorySeal::Size)
      : file_(os::create_memory_file(abi::spare_page_name, os::page_size(), seal).value()),
        mapping_(os::Mapping::of_file(file_.get(), os::page_size(), os::Protection::ReadWrite).value()),
        page_(new (mapping_.data()) abi::SparePage) {
    write_text(page_->domains[0], "/mps/a");
    write_text(page_->domains[1], "/mps/b");
    works_in("a", "b");
    page_->state = abi::SpareState::Protected;
  }
  abi::SparePage* operator->() { return page_; }
  int descriptor() const { return file_.get(); }
  /// Empty: it works nowhere, or has no spare.
  void works_in(const std::string& domain, const std::string& spare) {
    write_text(page_->active_domain, domain.empty() ? "" : "/mps/" + domain);
    write_text(page_->spare_domain, spare.empty() ? "" : "/mps/" + spare);
  }

 protected:
  abi::SparePage& page() const { return *page_; }

 private:
  os::Fd file_;
  os::Mapping mapping_;
  abi::SparePage* page_;
};

}  // namespace firebreak::agent
