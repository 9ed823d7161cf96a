// SPDX-License-Identifier: Apache-2.0
#include "kernels/access/exact_bytes.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace firebreak::access {
namespace {

using ptx::SpecialRegister;

struct Variable {
  std::uint32_t name = 0;
  Wide last = 0;
  Wide stride = 0;  ///< stride in the address
};

// A sum of variables with a bound on both sides.
struct Sum {
  std::vector<std::size_t> variables;  ///< the one that moves it least first
  std::vector<Wide> factors;           ///< factors of these
  Wide low = 0;
  Wide high = 0;
  Wide address_factor = 0;  ///< the address has so many of it
};

// The part that one sum adds to the address: an offset, and axes.
struct Part {
  Wide offset = 0;
  std::vector<AffineAxis> axes;
};

Wide magnitude(Wide value) { return value < 0 ? -value : value; }

Wide factor_of(const Affine& value, std::uint32_t variable) {
  for (std::size_t i = 0; i < value.axis_count; ++i)
    if (value.axes[i].variable == variable) return value.axes[i].stride;
  return 0;
}

// A positive stride; the set is the same.
void add_axis(StridedBox& box, AffineAxis axis, bool& fits) {
  if (axis.stride == 0 || axis.last == 0) return;
  if (axis.stride < 0) {
    box.starts.base += axis.stride * axis.last;
    axis.stride = -axis.stride;
  }
  fits = fits && box.starts.axis_count < Affine::most_axes;
  if (fits) box.starts.axes[box.starts.axis_count++] = axis;
}

void sort_axes(StridedBox& box) {
  std::sort(box.starts.axes.begin(), box.starts.axes.begin() + box.starts.axis_count,
            [](const AffineAxis& a, const AffineAxis& b) { return a.stride < b.stride; });
}

// Rows that touch become one longer row, and axes that go on where another ends one axis. Axes are sorted.
void join_rows(StridedBox& box) {
  std::uint8_t kept = 0;
  for (std::uint8_t i = 0; i < box.starts.axis_count; ++i) {
    const AffineAxis axis = box.starts.axes[i];
    AffineAxis* const before = kept == 0 ? nullptr : &box.starts.axes[kept - 1U];
    if (before == nullptr && axis.stride <= box.width_bytes)
      box.width_bytes += axis.stride * axis.last;
    else if (before != nullptr && axis.stride == before->stride * (before->last + 1))
      before->last += axis.last * (before->last + 1);
    else
      box.starts.axes[kept++] = axis;
  }
  box.starts.axis_count = kept;
}

class Solver {
 public:
  Solver(const ExactPlace& place, std::uint32_t width_bytes, const LaunchArguments& launch)
      : place_(place), width_bytes_(width_bytes) {
    for (std::size_t i = 0; i < 3; ++i) {
      add_launch_variable(SpecialRegister::TidX, i, launch.block[i]);
      add_launch_variable(SpecialRegister::CtaidX, i, launch.grid[i]);
    }
    add_loops(place.address);
    for (std::size_t i = 0; i < place.constraint_count; ++i) add_loops(place.at_least_zero[i]);
  }

  ExactBytes run() {
    take_constraints();
    std::vector<std::vector<Part>> all;
    is_one_to_one_ = true;
    while (!constraints_.empty()) {
      std::optional<Sum> sum = take_sum();
      if (!sum) return {};
      std::vector<Part> parts;
      if (!add_parts(*sum, parts)) return {};
      all.push_back(std::move(parts));
    }
    std::vector<AffineAxis> free;
    for (const Variable& variable : variables_) {
      if (variable.stride == 0) is_one_to_one_ = is_one_to_one_ && variable.last == 0;
      free.push_back({variable.name, variable.stride, variable.last});
    }
    return put_together(all, free);
  }

 private:
  void add_launch_variable(SpecialRegister first, std::size_t axis, std::uint32_t count) {
    const auto name = static_cast<std::uint32_t>(first) + static_cast<std::uint32_t>(axis);
    if (count > 1) variables_.push_back({name, Wide{count} - 1, factor_of(place_.address, name)});
  }

  void add_loops(const Affine& value) {
    for (std::size_t i = 0; i < value.axis_count; ++i) {
      const AffineAxis& axis = value.axes[i];
      const bool is_there = std::any_of(variables_.begin(), variables_.end(),
                                        [&](const Variable& each) { return each.name == axis.variable; });
      if (!is_there)
        variables_.push_back({axis.variable, axis.last, factor_of(place_.address, axis.variable)});
    }
  }

  // Takes constraints that do not follow from another one.
  void take_constraints() {
    for (std::size_t i = 0; i < place_.constraint_count; ++i) {
      const Affine& one = place_.at_least_zero[i];
      bool is_implied = one.low() >= 0;
      for (std::size_t k = 0; k < place_.constraint_count && !is_implied; ++k) {
        if (k == i) continue;
        const Affine more = add(one, place_.at_least_zero[k], true, 64, first_step_variable);
        const bool is_same = more.is_constant() && more.base == 0;
        is_implied = more.low() >= 0 && (!is_same || k < i);
      }
      if (!is_implied) constraints_.push_back(one);
    }
  }

  static bool shares(const Affine& a, const Affine& b) {
    for (std::size_t i = 0; i < a.axis_count; ++i)
      if (factor_of(b, a.axes[i].variable) != 0) return true;
    return false;
  }

  // The first constraint, and all others of its variables: they have to bound one sum.
  std::optional<Sum> take_sum() {
    const Affine first = constraints_.front();
    Sum sum;
    const Wide unit = first.step();
    if (unit == 0) return std::nullopt;  // a constant below 0 would have been seen
    for (std::size_t i = 0; i < variables_.size(); ++i)
      if (factor_of(first, variables_[i].name) != 0) sum.variables.push_back(i);
    std::sort(sum.variables.begin(), sum.variables.end(), [&](std::size_t a, std::size_t b) {
      return magnitude(factor_of(first, variables_[a].name)) <
             magnitude(factor_of(first, variables_[b].name));
    });
    for (const std::size_t i : sum.variables) {
      const Wide factor = factor_of(first, variables_[i].name) / unit;
      sum.factors.push_back(factor);
      (factor < 0 ? sum.low : sum.high) += factor * variables_[i].last;
    }
    const Variable& least = variables_[sum.variables.front()];
    if (least.stride % sum.factors.front() != 0) return std::nullopt;
    sum.address_factor = least.stride / sum.factors.front();
    for (std::size_t i = 0; i < sum.variables.size(); ++i)
      if (variables_[sum.variables[i]].stride != sum.address_factor * sum.factors[i]) return std::nullopt;
    std::vector<Affine> others;
    for (const Affine& each : constraints_) {
      if (!shares(each, first))
        others.push_back(each);
      else if (!bound(sum, each))
        return std::nullopt;
    }
    constraints_ = std::move(others);
    return sum;
  }

  bool bound(Sum& sum, const Affine& constraint) const {
    const Wide times = factor_of(constraint, variables_[sum.variables.front()].name) / sum.factors.front();
    if (times == 0 || constraint.axis_count != sum.variables.size()) return false;
    for (std::size_t i = 0; i < sum.variables.size(); ++i)
      if (factor_of(constraint, variables_[sum.variables[i]].name) != times * sum.factors[i]) return false;
    if (times > 0)
      sum.low = std::max(sum.low, -floor_divide(constraint.base, times));
    else
      sum.high = std::min(sum.high, floor_divide(constraint.base, -times));
    return true;
  }

  // Adds all values of the sum that are left. Where the variable that moves it most leaves gaps, value by
  // value of that: all that are whole, and a part of the next one on each side.
  bool add_parts(const Sum& sum, std::vector<Part>& parts) {
    Wide inner_low = 0;
    Wide inner_high = 0;
    std::optional<std::size_t> outer;
    for (std::size_t i = 0; i < sum.variables.size(); ++i) {
      const Wide size = magnitude(sum.factors[i]);
      if (size > inner_high - inner_low + 1) {
        if (i + 1 != sum.variables.size() || i == 0) return false;
        outer = i;
        break;
      }
      is_one_to_one_ = is_one_to_one_ && size == inner_high - inner_low + 1;
      (sum.factors[i] < 0 ? inner_low : inner_high) += sum.factors[i] * variables_[sum.variables[i]].last;
    }
    const std::uint32_t name = variables_[sum.variables.front()].name;
    if (!outer) {
      if (sum.low > sum.high) return false;
      add_part(sum, 0, sum.low, sum.high, name, parts);
    } else {
      add_rows(sum, *outer, inner_low, inner_high, parts);
    }
    const bool is_one_value = sum.low == sum.high;
    is_one_to_one_ = is_one_to_one_ && parts.size() == 1 && (sum.address_factor != 0 || is_one_value);
    std::vector<Variable> left;
    for (std::size_t i = 0; i < variables_.size(); ++i)
      if (std::find(sum.variables.begin(), sum.variables.end(), i) == sum.variables.end())
        left.push_back(variables_[i]);
    variables_ = std::move(left);
    return !parts.empty();
  }

  static void add_part(const Sum& sum, Wide offset, Wide low, Wide high, std::uint32_t name,
                       std::vector<Part>& parts) {
    if (low > high) return;
    Part part;
    part.offset = sum.address_factor * (offset + low);
    part.axes.push_back({name, sum.address_factor, high - low});
    parts.push_back(std::move(part));
  }

  void add_rows(const Sum& sum, std::size_t outer, Wide inner_low, Wide inner_high,
                std::vector<Part>& parts) const {
    const Variable& variable = variables_[sum.variables[outer]];
    const Wide factor = sum.factors[outer];
    const std::uint32_t name = variables_[sum.variables.front()].name;
    // A negative factor counts as a positive one from the other end.
    const Wide size = magnitude(factor);
    const Wide start = factor < 0 ? factor * variable.last : Wide{0};
    const auto row_of = [&](Wide value) { return floor_divide(value, size); };
    const Wide first = std::max<Wide>(0, -row_of(-(sum.low - start - inner_low)));
    const Wide last = std::min(variable.last, row_of(sum.high - start - inner_high));
    if (first <= last) {
      Part part;
      part.offset = sum.address_factor * (start + first * size + inner_low);
      part.axes.push_back({variable.name, sum.address_factor * size, last - first});
      part.axes.push_back({name, sum.address_factor, inner_high - inner_low});
      parts.push_back(std::move(part));
    }
    for (const Wide row : {std::min(first, last + 1) - 1, std::max(last, first - 1) + 1}) {
      if (row < 0 || row > variable.last || (row >= first && row <= last)) continue;
      const Wide offset = start + row * size;
      add_part(sum, offset, std::max(inner_low, sum.low - offset), std::min(inner_high, sum.high - offset),
               name, parts);
    }
  }

  ExactBytes put_together(const std::vector<std::vector<Part>>& all,
                          const std::vector<AffineAxis>& free) const {
    ExactBytes result;
    StridedBox start;
    start.starts.base = place_.address.base;
    start.width_bytes = width_bytes_;
    bool fits = true;
    for (const AffineAxis& axis : free) add_axis(start, axis, fits);
    result.boxes.push_back(start);
    for (const std::vector<Part>& parts : all) {
      std::vector<StridedBox> more;
      for (const StridedBox& box : result.boxes) {
        for (const Part& part : parts) {
          more.push_back(box);
          more.back().starts.base += part.offset;
          for (const AffineAxis& axis : part.axes) add_axis(more.back(), axis, fits);
        }
      }
      result.boxes = std::move(more);
    }
    if (!fits) return {};
    result.is_one_to_one = is_one_to_one_;
    for (StridedBox& box : result.boxes) {
      sort_axes(box);
      Wide taken = box.width_bytes;
      for (std::size_t i = 0; i < box.starts.axis_count; ++i) {
        result.is_one_to_one = result.is_one_to_one && box.starts.axes[i].stride >= taken;
        taken += box.starts.axes[i].stride * box.starts.axes[i].last;
      }
      join_rows(box);
    }
    return result;
  }

  const ExactPlace& place_;
  std::uint32_t width_bytes_;
  std::vector<Variable> variables_;
  std::vector<Affine> constraints_;
  bool is_one_to_one_ = true;
};

bool have_same_axes(const StridedBox& a, const StridedBox& b) {
  if (a.starts.axis_count != b.starts.axis_count) return false;
  for (std::size_t i = 0; i < a.starts.axis_count; ++i)
    if (a.starts.axes[i].stride != b.starts.axes[i].stride || a.starts.axes[i].last != b.starts.axes[i].last)
      return false;
  return true;
}

bool comes_first(const StridedBox& a, const StridedBox& b) {
  if (a.starts.axis_count != b.starts.axis_count) return a.starts.axis_count < b.starts.axis_count;
  for (std::size_t i = 0; i < a.starts.axis_count; ++i) {
    const AffineAxis& x = a.starts.axes[i];
    const AffineAxis& y = b.starts.axes[i];
    if (x.stride != y.stride) return x.stride < y.stride;
    if (x.last != y.last) return x.last < y.last;
  }
  return a.starts.base < b.starts.base;
}

}  // namespace

ExactBytes find_exact_bytes(const ExactPlace& place, std::uint32_t width_bytes,
                            const LaunchArguments& launch) {
  if (!place.is_exact || !place.happens) return {};
  return Solver(place, width_bytes, launch).run();
}

void condense(std::vector<StridedBox>& boxes) {
  std::sort(boxes.begin(), boxes.end(), comes_first);
  std::vector<StridedBox> joined;
  for (const StridedBox& box : boxes) {
    StridedBox* const before = joined.empty() ? nullptr : &joined.back();
    if (before != nullptr && have_same_axes(*before, box) &&
        box.starts.base <= before->starts.base + before->width_bytes)
      before->width_bytes =
          std::max(before->width_bytes, box.starts.base + box.width_bytes - before->starts.base);
    else
      joined.push_back(box);
  }
  for (StridedBox& box : joined) join_rows(box);
  boxes = std::move(joined);
}

}  // namespace firebreak::access
