// SPDX-License-Identifier: Apache-2.0
#include "idempotency/mutation.h"

#include <fmt/format.h>

#include <optional>
#include <sstream>

namespace firebreak::idempotency {
namespace {

using MaybeLine = std::optional<std::string>;

MaybeLine replaced(const std::string& line, const std::string& from, const std::string& to) {
  const std::size_t at = line.find(from);
  if (at == std::string::npos) return std::nullopt;
  return line.substr(0, at) + to + line.substr(at + from.size());
}

// [%rd7+64] is [%rd7+64+4] with the sum written out.
MaybeLine move_store(const std::string& line, int by) {
  const std::size_t store = line.find("st.global");
  const std::size_t close = store == std::string::npos ? store : line.find(']', store);
  if (close == std::string::npos) return std::nullopt;
  const std::size_t open = line.find('[', store);
  const std::size_t plus = line.find('+', open);
  const bool has_offset = plus != std::string::npos && plus < close;
  const int offset = has_offset ? std::stoi(line.substr(plus + 1, close - plus - 1)) : 0;
  return line.substr(0, has_offset ? plus : close) + fmt::format("+{}", offset + by) + line.substr(close);
}

MaybeLine drop_guard(const std::string& line) {
  const std::size_t at = line.find('@');
  if (at == std::string::npos || line.find("bra LOOP") != std::string::npos) return std::nullopt;
  if (line.find("bra") != std::string::npos) return std::string();
  return line.substr(0, at) + line.substr(line.find(' ', at) + 1);
}

MaybeLine swap_base(const std::string& line) {
  if (line.find("add.s64") == std::string::npos) return std::nullopt;
  for (const auto& [from, to] :
       {std::pair{"%rd0,", "%rd1,"}, std::pair{"%rd1,", "%rd2,"}, std::pair{"%rd2,", "%rd0,"}})
    if (MaybeLine changed = replaced(line, from, to)) return changed;
  return std::nullopt;
}

}  // namespace

std::vector<PtxMutant> make_mutants(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  std::vector<PtxMutant> mutants;
  const auto add = [&](std::size_t at, const char* what, const MaybeLine& changed) {
    if (!changed) return;
    std::string whole;
    for (std::size_t i = 0; i < lines.size(); ++i) whole += (i == at ? *changed : lines[i]) + "\n";
    mutants.push_back({fmt::format("line {}: {}", at + 1, what), std::move(whole)});
  };
  for (std::size_t i = 0; i < lines.size(); ++i) {
    add(i, "a store one element further", move_store(lines[i], 4));
    add(i, "a store one element before", move_store(lines[i], -4));
    add(i, "a guard less", drop_guard(lines[i]));
    add(i, "another buffer", swap_base(lines[i]));
    if (lines[i].find("mul.wide") != std::string::npos) {
      add(i, "twice the stride", replaced(lines[i], ", 4;", ", 8;"));
      add(i, "half the stride", replaced(lines[i], ", 8;", ", 4;"));
    }
    if (lines[i].find("add.s32") != std::string::npos)
      add(i, "twice the step", replaced(lines[i], ", 1;", ", 2;"));
  }
  return mutants;
}

}  // namespace firebreak::idempotency
