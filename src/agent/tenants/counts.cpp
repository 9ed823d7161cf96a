// SPDX-License-Identifier: Apache-2.0
#include "agent/tenants/counts.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

namespace firebreak::agent {
namespace {

using nlohmann::json;

/// The order is that of the enumerations. Words of earlier versions stay: curves go by them.
constexpr std::array<const char*, Counts::classes> class_words = {
    "mmu_replayable", "mmu_non_replayable", "sm", "termination", "device", "unknown"};
constexpr std::array<const char*, Counts::outcomes> outcome_words = {"contained", "parked", "failed_over",
                                                                     "lost"};
constexpr std::array<const char*, Counts::fences> fence_words = {"xid", "exit", "hand_over", "earlier"};

/// Nothing where it has none. Lives as long as `in`.
const json& member_of(const json& in, const char* name) {
  static const json nothing;
  const auto found = in.is_object() ? in.find(name) : in.end();
  return found == in.end() ? nothing : *found;
}

std::uint64_t number_of(const json& in, const char* name) {
  const json& found = member_of(in, name);
  return found.is_number_unsigned() ? found.get<std::uint64_t>() : 0;
}

template <std::size_t Size>
json by_words(const std::array<const char*, Size>& words, const std::array<std::uint64_t, Size>& counts) {
  json all = json::object();
  for (std::size_t i = 0; i < Size; ++i) all[words[i]] = counts[i];
  return all;
}

template <std::size_t Size>
std::array<std::uint64_t, Size> by_words(const std::array<const char*, Size>& words, const json& in) {
  std::array<std::uint64_t, Size> counts{};
  for (std::size_t i = 0; i < Size; ++i) counts[i] = number_of(in, words[i]);
  return counts;
}

DurationCounts durations_in(const json& in) {
  DurationCounts durations;
  durations.sum_us = number_of(in, "sum_us");
  const json& counts = member_of(in, "counts");
  if (!counts.is_array() || counts.size() != durations.counts.size()) return {};
  for (std::size_t i = 0; i < counts.size(); ++i)
    durations.counts[i] = counts[i].is_number_unsigned() ? counts[i].get<std::uint64_t>() : 0;
  return durations;
}

std::string word_of(const json& in, const char* name) {
  const json& found = member_of(in, name);
  return found.is_string() ? found.get<std::string>() : std::string();
}

const json& list_of(const json& in, const char* name) {
  static const json none = json::array();
  const json& found = member_of(in, name);
  return found.is_array() ? found : none;
}

/// Numbers as people read them aloud: without i, l, o and u. In the order of the numbers for 1,088 years.
std::string id_of(std::uint64_t number) {
  constexpr std::string_view digits = "0123456789abcdefghjkmnpqrstvwxyz";
  constexpr std::size_t length = 7;
  std::string id(length, digits[0]);
  for (std::size_t i = length; i-- > 0; number /= digits.size()) id[i] = digits[number % digits.size()];
  return id;
}

std::vector<std::string> words_of(const json& in, const char* name) {
  std::vector<std::string> words;
  for (const json& each : list_of(in, name)) {
    if (each.is_string()) words.push_back(each.get<std::string>());
  }
  return words;
}

/// What an agent that is older did not write stays empty.
void read_account(const json& in, PastFault& fault) {
  fault.id = word_of(in, "id");
  fault.at = word_of(in, "at");
  for (const json& each : list_of(in, "xids")) {
    if (each.is_number_integer()) fault.xids.push_back(each.get<int>());
  }
  for (const json& each : list_of(in, "touched"))
    fault.touched.push_back({word_of(each, "tenant"), word_of(each, "became")});
  fault.saw = words_of(in, "saw");
  fault.reports = words_of(in, "reports");
  fault.user = word_of(in, "user");
}

json account_of(const PastFault& fault) {
  json touched = json::array();
  for (const Touched& each : fault.touched)
    touched.push_back({{"tenant", each.tenant}, {"became", each.became}});
  return {{"id", fault.id},
          {"at", fault.at},
          {"at_ns", static_cast<std::uint64_t>(fault.at_ns)},
          {"class", fault.fault_class},
          {"outcome", fault.outcome},
          {"domain", fault.domain},
          {"culprit", fault.culprit},
          {"what", fault.what},
          {"control_group", fault.control_group},
          {"xids", fault.xids},
          {"touched", touched},
          {"saw", fault.saw},
          {"user", fault.user},
          {"reports", fault.reports}};
}

/// False: it has none.
template <class T>
bool drop_last(std::vector<T>& all) {
  if (all.empty()) return false;
  all.pop_back();
  return true;
}

/// The least telling goes first: what else was seen, then those who simply go on.
void shorten(PastFault& fault) {
  for (std::string& each : fault.saw) each.resize(std::min(each.size(), Counts::longest_word_bytes));
  const auto is_long = [&fault] {
    return account_of(fault).dump(-1, ' ', true, json::error_handler_t::replace).size() >
           Counts::longest_account_bytes;
  };
  while (is_long()) {
    const bool is_shorter = (fault.saw.size() > 1 && drop_last(fault.saw)) || drop_last(fault.touched) ||
                            drop_last(fault.reports) || drop_last(fault.saw) || drop_last(fault.xids);
    if (!is_shorter) return;
  }
}

std::vector<PastFault> past_faults_in(const json& in) {
  std::vector<PastFault> past;
  if (!in.is_array()) return past;
  for (const json& each : in) {
    if (past.size() == Counts::most_past_faults) break;
    past.push_back({static_cast<std::int64_t>(number_of(each, "at_ns")), word_of(each, "class"),
                    word_of(each, "outcome"), word_of(each, "domain"), word_of(each, "culprit"),
                    word_of(each, "what"), word_of(each, "control_group")});
    read_account(each, past.back());
  }
  return past;
}

/// The oldest one, of the user who has half of the places where there is one; `user` is to have one more.
std::vector<PastFault>::iterator least_wanted(std::vector<PastFault>& past, const std::string& user) {
  const auto has_half = [&](const std::string& its) {
    return !its.empty() && std::ranges::count(past, its, &PastFault::user) * 2 >= std::ssize(past);
  };
  if (has_half(user)) return std::ranges::find(past, user, &PastFault::user);
  const auto found = std::ranges::find_if(past, [&](const PastFault& each) { return has_half(each.user); });
  return found == past.end() ? past.begin() : found;
}

}  // namespace

void DurationCounts::add(Nanoseconds time) {
  const double seconds = std::chrono::duration<double>(time).count();
  const auto bound = std::ranges::lower_bound(bounds_s, seconds);
  ++counts.at(static_cast<std::size_t>(bound - bounds_s.begin()));
  const auto us = std::chrono::duration_cast<std::chrono::microseconds>(time).count();
  sum_us += static_cast<std::uint64_t>(std::max<std::int64_t>(us, 0));
}

std::string Counts::new_id(WallTime at) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(at.time_since_epoch()).count();
  last_id = std::max(last_id + 1, static_cast<std::uint64_t>(std::max<std::int64_t>(seconds, 0)));
  return id_of(last_id);
}

PastFault* Counts::find(const std::string& id) {
  const auto found = std::ranges::find(past_faults, id, &PastFault::id);
  return id.empty() || found == past_faults.end() ? nullptr : &*found;
}

const PastFault& Counts::note_fault(fault::FaultClass fault_class, FaultOutcome outcome, PastFault fault) {
  ++of_fault(fault_class, outcome);
  ++(fault.culprit.empty() ? unknown_culprits : known_culprits);
  fault.fault_class = class_words.at(static_cast<std::size_t>(fault_class));
  fault.outcome = outcome_words.at(static_cast<std::size_t>(outcome));
  if (fault.what.size() > longest_word_bytes) fault.what.resize(longest_word_bytes);
  if (past_faults.size() >= most_past_faults) past_faults.erase(least_wanted(past_faults, fault.user));
  shorten(fault);
  return past_faults.emplace_back(std::move(fault));
}

json to_json(const Counts& counts) {
  json faults = json::object();
  for (std::size_t i = 0; i < Counts::classes; ++i)
    faults[class_words[i]] = by_words(outcome_words, counts.faults[i]);
  json restarts = json::object();
  for (const auto& [domain, its] : counts.domain_restarts)
    restarts[domain] = {{"daemon", its.of_daemon}, {"server", its.of_server}};
  json past = json::array();
  for (const PastFault& each : counts.past_faults) past.push_back(account_of(each));
  return {{"agent_starts", counts.agent_starts},
          {"faults", faults},
          {"culprits", {{"known", counts.known_culprits}, {"unknown", counts.unknown_culprits}}},
          {"promotions", by_words(fence_words, counts.promotions)},
          {"promotion_times",
           {{"bounds_s", DurationCounts::bounds_s},
            {"counts", counts.promotion_times.counts},
            {"sum_us", counts.promotion_times.sum_us}}},
          {"domain_restarts", restarts},
          {"last_id", counts.last_id},
          {"past_faults", past}};
}

Counts counts_in(const json& in) {
  Counts counts;
  counts.agent_starts = number_of(in, "agent_starts");
  const json& faults = member_of(in, "faults");
  for (std::size_t i = 0; i < Counts::classes; ++i)
    counts.faults[i] = by_words(outcome_words, member_of(faults, class_words[i]));
  counts.known_culprits = number_of(member_of(in, "culprits"), "known");
  counts.unknown_culprits = number_of(member_of(in, "culprits"), "unknown");
  counts.promotions = by_words(fence_words, member_of(in, "promotions"));
  counts.promotion_times = durations_in(member_of(in, "promotion_times"));
  counts.last_id = number_of(in, "last_id");
  counts.past_faults = past_faults_in(member_of(in, "past_faults"));
  const json& restarts = member_of(in, "domain_restarts");
  if (!restarts.is_object()) return counts;
  for (const auto& [domain, its] : restarts.items())
    counts.domain_restarts[domain] = {number_of(its, "daemon"), number_of(its, "server")};
  return counts;
}

}  // namespace firebreak::agent
