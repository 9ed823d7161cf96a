// SPDX-License-Identifier: Apache-2.0
/// The kernels of PTX files under the oracle, with made-up arguments.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace firebreak::idempotency {

struct CorpusLaunchOptions {
  std::vector<std::string> files;
  std::uint64_t every = 1;     ///< of so many kernels one
  std::uint64_t launches = 4;  ///< of each
  std::uint64_t seed = 0;
};

struct CorpusLaunchCounts {
  std::uint64_t kernels = 0;
  std::map<std::string, std::uint64_t> left_out;  ///< kernels by what the software GPU does not have
  std::uint64_t launches = 0;
  std::uint64_t completed = 0;  ///< the others: made-up arguments led them astray
  std::uint64_t truly_idempotent = 0;
  std::uint64_t called_idempotent = 0;
  std::uint64_t redone = 0;
  std::vector<std::string> problems;  ///< one for each kernel at most
};

CorpusLaunchCounts check_corpus(const CorpusLaunchOptions& options);

std::string to_text(const CorpusLaunchCounts& counts);

}  // namespace firebreak::idempotency
