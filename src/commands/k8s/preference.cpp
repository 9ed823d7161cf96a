// SPDX-License-Identifier: Apache-2.0
#include "commands/k8s/preference.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>

namespace firebreak::k8s {
namespace {

/// Seats of one domain.
struct Stock {
  std::vector<std::string> left;
  std::size_t taken = 0;
};

/// Seats by GPU and domain; those that we do not know are of a GPU that comes last.
class Stocks {
 public:
  Stocks(const Offer& offer, const std::vector<std::string>& available) : offer_(offer) {
    for (const std::string& id : available) stock_of(id).left.push_back(id);
  }

  void take(const std::string& id) {
    Stock& stock = stock_of(id);
    std::erase(stock.left, id);
    ++stock.taken;
    gpu_ = gpu_of(id);
  }

  /// Empty: nothing is left.
  std::optional<std::string> best() const {
    const auto on = best_gpu();
    if (!on) return std::nullopt;
    const Stock* best = nullptr;
    for (const auto& [domain, stock] : stocks_.at(*on)) {
      if (stock.left.empty()) continue;
      const auto rank = [](const Stock& of) { return std::tuple(of.taken, -std::ssize(of.left)); };
      if (best == nullptr || rank(stock) < rank(*best)) best = &stock;
    }
    return best->left.front();
  }

 private:
  using Gpu = std::pair<bool, std::string>;  ///< pairs whether it is unknown with its UUID

  Gpu gpu_of(const std::string& id) const {
    const OfferedSeat* seat = offer_.find(id);
    return seat == nullptr ? Gpu{true, ""} : Gpu{false, seat->gpu};
  }
  Stock& stock_of(const std::string& id) {
    const OfferedSeat* seat = offer_.find(id);
    return stocks_[gpu_of(id)][seat == nullptr ? "" : seat->domain];
  }
  /// The one that was taken from last, as long as it has any.
  std::optional<Gpu> best_gpu() const {
    std::optional<Gpu> best;
    std::tuple<bool, std::ptrdiff_t, std::ptrdiff_t> best_rank;
    for (const auto& [gpu, domains] : stocks_) {
      std::ptrdiff_t domains_left = 0, seats_left = 0;
      for (const auto& [domain, stock] : domains) {
        domains_left += stock.left.empty() ? 0 : 1;
        seats_left += std::ssize(stock.left);
      }
      if (seats_left == 0) continue;
      if (gpu == gpu_) return gpu;
      const std::tuple rank(gpu.first, -domains_left, -seats_left);
      if (!best || rank < best_rank) std::tie(best, best_rank) = std::tuple(gpu, rank);
    }
    return best;
  }

  const Offer& offer_;
  std::map<Gpu, std::map<std::string, Stock>> stocks_;
  std::optional<Gpu> gpu_;
};

Status check(const SeatWish& wish, const std::set<std::string>& available) {
  const auto wanted = static_cast<std::int64_t>(wish.size);
  if (wanted < 0 || wanted > std::ssize(available)) {
    return fail(ErrorCode::InvalidArgument,
                fmt::format("{} seats are wanted, and {} are available", wanted, available.size()));
  }
  if (std::ssize(wish.must_include) > wanted) {
    return fail(ErrorCode::InvalidArgument,
                fmt::format("{} seats are to be among {}", wish.must_include.size(), wanted));
  }
  for (const std::string& id : wish.must_include) {
    if (!available.contains(id))
      return fail(ErrorCode::InvalidArgument,
                  fmt::format("seat '{}' is to be included, and not available", id));
  }
  return {};
}

}  // namespace

Result<std::vector<std::string>> preferred_seats(const Offer& offer, const SeatWish& wish) {
  const std::set<std::string> available(wish.available.begin(), wish.available.end());
  if (const Status fits = check(wish, available); !fits) return propagate(fits);
  Stocks stocks(offer, {available.begin(), available.end()});
  std::vector<std::string> chosen;
  for (const std::string& id : std::set(wish.must_include.begin(), wish.must_include.end())) {
    stocks.take(id);
    chosen.push_back(id);
  }
  while (std::ssize(chosen) < wish.size) {
    const auto next = stocks.best();
    if (!next) break;
    stocks.take(*next);
    chosen.push_back(*next);
  }
  return chosen;
}

}  // namespace firebreak::k8s
