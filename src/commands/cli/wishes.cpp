// SPDX-License-Identifier: Apache-2.0
#include "commands/cli/wishes.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>

namespace firebreak::cli {
namespace {

constexpr const char* gpus_variable = "CUDA_VISIBLE_DEVICES";
constexpr const char* share_variable = "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE";

template <class Number>
std::optional<Number> number_in(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::string quoted(const char* variable, const std::string& value) {
  return std::string(variable) + "='" + value + "'";
}

}  // namespace

Result<GpuWish> gpu_wish(const std::string& visible_devices, const std::vector<std::string>& uuids) {
  const std::string first = visible_devices.substr(0, visible_devices.find(','));
  const std::string said = quoted(gpus_variable, visible_devices);
  GpuWish wish;
  if (first.size() < visible_devices.size())
    wish.note = said + " names several GPUs: a tenant has one, the first of them";
  if (first.starts_with("MIG-"))
    return fail(ErrorCode::Unsupported, said + " names a MIG instance, and no domain has one",
                "unset it, or run the program without firebreak");
  if (first.starts_with("GPU-")) {
    wish.gpu = first;
    return wish;
  }
  const auto number = number_in<std::uint64_t>(first);
  if (!number) {  // CUDA shows no GPU then, whatever the word is
    wish.hides_all = true;
    wish.note = said + " hides all GPUs from the program";
    return wish;
  }
  if (uuids.empty()) return wish;  // CUDA counts among those of its domain
  if (*number >= uuids.size())
    return fail(ErrorCode::NotFound, said + " names a GPU that is not there",
                "there are " + std::to_string(uuids.size()) + ", and the first is 0");
  wish.gpu = uuids[*number];
  return wish;
}

ShareWish share_wish(const std::string& percentage) {
  const auto number = number_in<double>(percentage);
  if (number && *number > 0 && *number <= 100) {
    ShareWish wish{static_cast<std::uint32_t>(std::max(1.0, std::floor(*number))), {}};
    if (*number != wish.percent)
      wish.note = quoted(share_variable, percentage) + " is taken as " + std::to_string(wish.percent);
    return wish;
  }
  return {0, quoted(share_variable, percentage) + " is no share from 0 to 100, and is not heeded"};
}

}  // namespace firebreak::cli
