// SPDX-License-Identifier: Apache-2.0
#include "agent/root/privileged_question.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <vector>

namespace firebreak::agent {
namespace {

constexpr std::size_t longest_gpu = 64;
constexpr std::string_view none = "-";

struct Form {
  PrivilegedAct act;
  std::string_view word;
  std::size_t attached;
};
constexpr std::array forms{
    Form{PrivilegedAct::Prepare, "prepare", 0}, Form{PrivilegedAct::Clear, "clear", 0},
    Form{PrivilegedAct::Start, "start", 0},     Form{PrivilegedAct::Bound, "bound", 0},
    Form{PrivilegedAct::Control, "control", 0}, Form{PrivilegedAct::Parked, "parked", 0},
    Form{PrivilegedAct::Name, "name", 0},       Form{PrivilegedAct::DriverFile, "driver-file", 0},
    Form{PrivilegedAct::Give, "give", 1},       Form{PrivilegedAct::Mark, "mark", 1},
    Form{PrivilegedAct::Probe, "probe", 0},     Form{PrivilegedAct::Devices, "devices", 0},
    Form{PrivilegedAct::Known, "known", 0},
};

/// Commands of MPS's; each '#' is a number.
constexpr std::array<std::string_view, 7> commands{"get_server_list",
                                                   "get_client_list #",
                                                   "terminate_client # #",
                                                   "get_server_status #",
                                                   "start_server -uid #",
                                                   "shutdown_server #",
                                                   "quit"};
constexpr std::array<std::string_view, 2> driver_files{"fault_isolation_events", "fault_isolation_condemned"};
constexpr std::array<std::string_view, 2> probes{"guard", "spares"};

using Words = std::vector<std::string_view>;

Words words_of(std::string_view text) {
  Words words;
  for (;;) {
    const std::size_t end = text.find(' ');
    words.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return words;
    text.remove_prefix(end + 1);
  }
}

/// Digits alone, and of those no more than are needed.
template <class Number>
std::optional<Number> number_in(std::string_view word, Number most) {
  Number number = 0;
  const auto read = std::from_chars(word.data(), word.data() + word.size(), number);
  const bool is_whole = read.ec == std::errc() && read.ptr == word.data() + word.size();
  if (!is_whole || number < 0 || number > most || std::to_string(number) != word) return std::nullopt;
  return number;
}

constexpr std::int64_t highest_pid = 1 << 22;  // the largest number that Linux has
constexpr std::int64_t highest_uid = 0xffff'fffe;

bool is_of(std::string_view word, const auto& all) { return std::ranges::find(all, word) != all.end(); }

constexpr std::array<std::string_view, 3> names{"a", "b", "anchor"};

bool is_domain(std::string_view word) {
  constexpr std::size_t most_digits = 3;
  const std::size_t digits = std::min(word.find_first_not_of("0123456789"), word.size());
  return digits <= most_digits && is_of(word.substr(digits), names);
}

bool is_gpu(std::string_view word) {
  const auto is_plain = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-';
  };
  return word == none || (!word.empty() && word.size() <= longest_gpu && word.front() != '-' &&
                          std::ranges::all_of(word, is_plain));
}

bool is_command(const Words& words) {
  return std::ranges::any_of(commands, [&](std::string_view each) {
    return std::ranges::equal(words_of(each), words, [](std::string_view wanted, std::string_view word) {
      return wanted == "#" ? number_in<std::int64_t>(word, highest_uid).has_value() : wanted == word;
    });
  });
}

std::optional<bool> switch_in(std::string_view word) {
  if (word != "0" && word != "1") return std::nullopt;
  return word == "1";
}

/// Reads what follows the word of the act. False: it is not so.
bool take_words(PrivilegedQuestion& into, const Words& words) {
  const std::size_t count = words.size();
  const auto word = [&](std::size_t at) { return at < count ? words[at] : std::string_view(); };
  const auto take_domain = [&] {
    into.domain = word(0);
    return is_domain(word(0));
  };
  const auto take_switch = [&](std::size_t at) {
    const auto is_on = switch_in(word(at));
    into.is_on = is_on.value_or(false);
    return is_on && count == at + 1;
  };
  const auto take_number = [&](std::size_t at, auto& number, std::int64_t most) {
    const auto read = number_in<std::int64_t>(word(at), most);
    number = static_cast<std::remove_reference_t<decltype(number)>>(read.value_or(0));
    return read && count == at + 1;
  };
  const auto take_name = [&](const auto& all) {
    into.name = word(0);
    return count == 1 && is_of(word(0), all);
  };
  switch (into.act) {
    case PrivilegedAct::Prepare:
    case PrivilegedAct::Clear:
    case PrivilegedAct::Bound:
      return take_domain() && count == 1;
    case PrivilegedAct::Start:
      into.gpu = word(1) == none ? std::string_view() : word(1);
      return take_domain() && count == 2 && is_gpu(word(1));
    case PrivilegedAct::Control: {
      const auto timeout = number_in<std::int64_t>(word(1), longest_control.count());
      if (!take_domain() || !timeout || count < 3) return false;
      into.timeout = Milliseconds(*timeout);
      into.command = std::string(words[2].data(), words.back().data() + words.back().size());
      return is_command(Words(words.begin() + 2, words.end()));
    }
    case PrivilegedAct::Parked:
      return take_domain() && take_switch(1);
    case PrivilegedAct::Name:
      return take_domain() && take_number(1, into.pid, highest_pid) && into.pid > 0;
    case PrivilegedAct::DriverFile:
      return take_name(driver_files);
    case PrivilegedAct::Give:
      return take_number(0, into.user, highest_uid);
    case PrivilegedAct::Mark:
      return take_switch(0);
    case PrivilegedAct::Probe:
    case PrivilegedAct::Known:
      return take_name(probes);
    case PrivilegedAct::Devices:
      return count == 0;
  }
  return false;
}

}  // namespace

std::string text_of(const PrivilegedQuestion& question) {
  const std::string word(std::ranges::find(forms, question.act, &Form::act)->word);
  const std::string its = word + " " + question.domain;
  switch (question.act) {
    case PrivilegedAct::Prepare:
    case PrivilegedAct::Clear:
    case PrivilegedAct::Bound:
      return its;
    case PrivilegedAct::Start:
      return its + " " + (question.gpu.empty() ? std::string(none) : question.gpu);
    case PrivilegedAct::Control:
      return fmt::format("{} {} {}", its, question.timeout.count(), question.command);
    case PrivilegedAct::Parked:
      return its + (question.is_on ? " 1" : " 0");
    case PrivilegedAct::Name:
      return fmt::format("{} {}", its, question.pid);
    case PrivilegedAct::DriverFile:
    case PrivilegedAct::Probe:
    case PrivilegedAct::Known:
      return word + " " + question.name;
    case PrivilegedAct::Give:
      return fmt::format("{} {}", word, question.user);
    case PrivilegedAct::Mark:
      return word + (question.is_on ? " 1" : " 0");
    case PrivilegedAct::Devices:
      break;
  }
  return word;
}

Result<PrivilegedQuestion> privileged_question_from(std::string_view text, std::size_t attached) {
  const Error wrong{ErrorCode::InvalidArgument, "that is no question", {}};
  Words words = words_of(text);
  const auto form = std::ranges::find(forms, words.front(), &Form::word);
  if (form == forms.end() || form->attached != attached) return tl::unexpected<Error>(wrong);
  PrivilegedQuestion question{form->act};
  words.erase(words.begin());
  if (!take_words(question, words)) return tl::unexpected<Error>(wrong);
  return question;
}

std::optional<std::size_t> gpu_of_domain(std::string_view domain, std::size_t gpus) {
  if (gpus <= 1) return is_of(domain, names) ? std::optional<std::size_t>(0) : std::nullopt;
  for (std::size_t number = 0; number < gpus; ++number) {
    const std::string prefix = std::to_string(number);
    if (domain.starts_with(prefix) && is_of(domain.substr(prefix.size()), names)) return number;
  }
  return std::nullopt;
}

bool is_done_at_once(PrivilegedAct act) {
  return act == PrivilegedAct::Parked || act == PrivilegedAct::Give || act == PrivilegedAct::Mark ||
         act == PrivilegedAct::DriverFile;
}

}  // namespace firebreak::agent
