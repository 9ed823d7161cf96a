// SPDX-License-Identifier: Apache-2.0
#include "inject/schedule.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <utility>

#include "ground/base/text.h"
#include "inject/catalogue.h"

namespace firebreak::inject {
namespace {

using Json = nlohmann::json;

// A day, and more faults than anybody waits for: beyond is a slip of the hand.
constexpr std::int64_t latest_ms = 86'400'000;
constexpr std::int64_t most_times = 100'000;

constexpr std::array<std::pair<std::string_view, fault::FaultClass>, 5> classes{{
    {"mmu-replayable", fault::FaultClass::MmuReplayable},
    {"mmu-non-replayable", fault::FaultClass::MmuNonReplayable},
    {"sm", fault::FaultClass::Sm},
    {"termination", fault::FaultClass::Termination},
    {"device", fault::FaultClass::Device},
}};

/// Names from the file stand in it.
tl::unexpected<Error> wrong(const std::string& what) {
  return fail(ErrorCode::InvalidArgument, printable(what));
}

Result<std::vector<const Kind*>> kinds_of_class(const std::string& name) {
  const auto found = std::ranges::find(classes, name, [](const auto& row) { return row.first; });
  if (found == classes.end()) return wrong("there is no class '" + name + "'");
  std::vector<const Kind*> kinds;
  for (const Kind* kind : catalogue()) {
    if (kind->fault_class == found->second) kinds.push_back(kind);
  }
  return kinds;
}

Result<std::vector<const Kind*>> kinds_named(const std::vector<std::string>& names) {
  if (names.empty()) return wrong("\"kinds\" is empty");
  std::vector<const Kind*> kinds;
  for (const std::string& name : names) {
    kinds.push_back(find(name));
    if (kinds.back() == nullptr) return wrong("there is no kind '" + name + "'");
  }
  return kinds;
}

/// Takes entries apart key by key, so that what is left over is a mistake.
class Reader {
 public:
  explicit Reader(const Json& object) : left_(object) {}

  /// Empty where there is no such key.
  template <class Value>
  Result<std::optional<Value>> take(const char* key) {
    const auto found = left_.find(key);
    if (found == left_.end()) return std::optional<Value>();
    const Json value = *found;
    left_.erase(found);
    return read<Value>(key, value);
  }

  /// An error for a key that nobody took.
  Status finish() const {
    if (left_.empty()) return {};
    return wrong("\"" + left_.begin().key() + "\" means nothing here");
  }

 private:
  template <class Value>
  static Result<std::optional<Value>> read(const std::string& key, const Json& value) {
    if constexpr (std::is_same_v<Value, std::string>) {
      if (!value.is_string()) return wrong("\"" + key + "\" is no string");
    } else if constexpr (std::is_same_v<Value, std::int64_t>) {
      // Larger numbers would not fit, and no limit here is larger.
      if (!value.is_number_integer() || value < 0 || value > latest_ms)
        return wrong("\"" + key + "\" is no whole number from 0 to " + std::to_string(latest_ms));
    } else {
      const bool strings = value.is_array() && std::ranges::all_of(value, &Json::is_string);
      if (!strings) return wrong("\"" + key + "\" is no list of strings");
    }
    return value.get<Value>();
  }

  Json left_;
};

Result<std::vector<const Kind*>> read_kinds(Reader& reader) {
  const auto kind = reader.take<std::string>("kind");
  const auto names = reader.take<std::vector<std::string>>("kinds");
  const auto of_class = reader.take<std::string>("class");
  if (!kind) return propagate(kind);
  if (!names) return propagate(names);
  if (!of_class) return propagate(of_class);
  if (kind->has_value() + names->has_value() + of_class->has_value() != 1)
    return wrong("it needs one of \"kind\", \"kinds\" and \"class\"");
  if (*of_class) return kinds_of_class(**of_class);
  return kinds_named(*kind ? std::vector{**kind} : **names);
}

Status read_times(Reader& reader, ScheduleEntry& entry) {
  const auto at = reader.take<std::int64_t>("at_ms");
  const auto from = reader.take<std::int64_t>("from_ms");
  const auto to = reader.take<std::int64_t>("to_ms");
  const auto times = reader.take<std::int64_t>("times");
  for (const auto* number : {&at, &from, &to, &times}) {
    if (!*number) return propagate(*number);
  }
  if (at->has_value() == to->has_value()) return wrong("it needs either \"at_ms\" or \"to_ms\"");
  if (*at && *from) return wrong("\"from_ms\" goes with \"to_ms\"");
  entry.earliest = std::chrono::milliseconds(at->value_or(from->value_or(0)));
  entry.latest = *to ? std::chrono::milliseconds(**to) : entry.earliest;
  if (entry.latest < entry.earliest) return wrong("\"to_ms\" is before \"from_ms\"");
  const std::int64_t count = times->value_or(1);
  if (count < 1 || count > most_times)
    return wrong("\"times\" is not from 1 to " + std::to_string(most_times));
  entry.times = static_cast<std::uint32_t>(count);
  return {};
}

Result<ScheduleEntry> read_entry(const Json& json) {
  if (!json.is_object()) return wrong("it is no object");
  Reader reader(json);
  ScheduleEntry entry;
  auto kinds = read_kinds(reader);
  if (!kinds) return propagate(kinds);
  entry.kinds = std::move(*kinds);
  const auto times = read_times(reader, entry);
  if (!times) return propagate(times);
  const auto into = reader.take<std::string>("into");
  if (!into) return propagate(into);
  entry.into = into->value_or("");
  const auto finished = reader.finish();
  if (!finished) return propagate(finished);
  return entry;
}

/// The generator's sequence is fixed by the standard; distributions are not, so this is one of our own. The
/// bias of the remainder is far below what anybody could see.
std::uint64_t below(std::mt19937_64& random, std::uint64_t bound) { return random() % bound; }

}  // namespace

Result<std::vector<ScheduleEntry>> parse_schedule(std::string_view json) {
  const Json document = Json::parse(json, nullptr, false);
  if (document.is_discarded()) return wrong("the schedule is no JSON document");
  if (!document.is_object() || document.size() != 1 || !document.contains("faults") ||
      !document["faults"].is_array()) {
    return wrong("the schedule is not {\"faults\": [...]}");
  }
  std::vector<ScheduleEntry> schedule;
  for (const Json& item : document["faults"]) {
    auto entry = read_entry(item);
    if (!entry) return propagate(entry, "fault " + std::to_string(schedule.size() + 1));
    schedule.push_back(std::move(*entry));
  }
  return schedule;
}

std::vector<ScheduledFault> plan(const std::vector<ScheduleEntry>& schedule, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<ScheduledFault> faults;
  for (const ScheduleEntry& entry : schedule) {
    const auto span = static_cast<std::uint64_t>((entry.latest - entry.earliest).count()) + 1;
    for (std::uint32_t i = 0; i < entry.times; ++i) {
      const Kind* kind = entry.kinds[below(random, entry.kinds.size())];
      const auto at =
          entry.earliest + std::chrono::milliseconds(static_cast<std::int64_t>(below(random, span)));
      faults.push_back({at, kind, entry.into});
    }
  }
  std::ranges::stable_sort(faults, {}, &ScheduledFault::at);
  return faults;
}

}  // namespace firebreak::inject
