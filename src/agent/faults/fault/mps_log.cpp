// SPDX-License-Identifier: Apache-2.0
#include "agent/faults/fault/mps_log.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <vector>

namespace firebreak::fault {
namespace {

constexpr std::size_t longest_text = 300;

/// Words, in lower case, each as a whole: "set_default_active_thread_percentage" tells of no fault. NVIDIA
/// documents no texts, and they change between drivers, so these are the words that a line about a fault
/// cannot do without.
constexpr std::string_view fault_words[] = {"fatal", "fault", "faulted", "exception", "uncontained"};
/// One of these closely before such a word says that there is none, or none any more.
constexpr std::string_view denials[] = {"no", "not", "non", "never", "without", "zero", "0", "recovered"};
constexpr int closely_before = 4;  // words: "recovered from a fatal fault"
/// Behind such words these make the name of something that a GPU or a server has at all times.
constexpr std::string_view possessions[] = {"handler",   "handling", "isolation", "containment",
                                            "tolerance", "recovery", "detection", "buffer",
                                            "injection", "mode",     "cleared"};
/// Words of a server that cannot go on, or never could; it is seen to end, and that is no fault of the GPU.
constexpr std::string_view end_words[] = {"shutting down"};
/// The writer of faults. The daemon writes down the commands that it is given, and its answers: among them
/// the word FAULT for a state, or a command's name.
constexpr std::string_view writer_of_faults = "Server";
/// The end of the line about a client whose connection broke. What stands before it names the cause as the
/// status of a call; its spelling changed between drivers.
constexpr std::string_view left_words[] = {"assuming client", "exit"};
constexpr std::string_view arrival_words[] = {"new client", "new server", "} connected"};
/// Words in front of a client's number.
constexpr std::string_view client_words[] = {
    "client pid ", "client process ", "client ", "pid ", "pid=", "pid: "};

std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

struct Written {
  std::string_view writer;  ///< "Server", "Control"
  std::string_view text;
};

/// "[DATE TIME WRITER PID] text"; empty where it begins otherwise.
Written written_in(std::string_view line) {
  const std::size_t end = line.find("] ");
  if (!line.starts_with('[') || end == std::string_view::npos || end > 80) return {};
  std::string_view head = line.substr(1, end - 1);
  Written written;
  written.text = line.substr(end + 2);
  for (int i = 0; i < 2; ++i) {  // skips the date and the time
    const std::size_t blank = head.find(' ');
    if (blank == std::string_view::npos) return written;
    head.remove_prefix(blank + 1);
  }
  written.writer = head.substr(0, head.find(' '));
  return written;
}

bool belongs_to_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

/// The place behind `phrase`, where it is not a part of longer words; npos: it is not there.
std::size_t behind(std::string_view text, std::string_view phrase, bool ends_word = true) {
  for (std::size_t at = text.find(phrase); at != std::string_view::npos; at = text.find(phrase, at + 1)) {
    const std::size_t end = at + phrase.size();
    const bool begins = at == 0 || !belongs_to_word(phrase.front()) || !belongs_to_word(text[at - 1]);
    const bool ends = !ends_word || end == text.size() || !belongs_to_word(text[end]);
    if (begins && ends) return end;
  }
  return std::string_view::npos;
}

bool is_end_of_clause(char c) { return std::string_view(".,;:").find(c) != std::string_view::npos; }

/// The words of the clause in which `at` is, before it; the nearest is first.
std::vector<std::string_view> words_before(std::string_view text, std::size_t at) {
  std::vector<std::string_view> words;
  std::size_t end = at;
  while (end > 0 && std::ssize(words) < closely_before && !is_end_of_clause(text[end - 1])) {
    if (!belongs_to_word(text[--end])) continue;
    std::size_t begin = end;
    while (begin > 0 && belongs_to_word(text[begin - 1])) --begin;
    words.push_back(text.substr(begin, end + 1 - begin));
    end = begin;
  }
  return words;
}

/// The next word of the same clause that is no word of faults; empty: there is none.
std::string_view word_behind(std::string_view text, std::size_t at) {
  while (at < text.size() && !is_end_of_clause(text[at])) {
    std::size_t end = at;
    while (end < text.size() && belongs_to_word(text[end])) ++end;
    const std::string_view word = text.substr(at, end - at);
    if (!word.empty() && std::ranges::find(fault_words, word) == std::end(fault_words)) return word;
    at = std::max(end, at + 1);
  }
  return {};
}

/// Whether a line says that there is such a fault, and not that there is none.
bool tells_of(std::string_view text, std::string_view fault_word) {
  const auto is_one_of = [](std::string_view word, const auto& all) {
    return std::ranges::find(all, word) != std::end(all);
  };
  for (std::size_t from = 0;;) {
    const std::size_t end = behind(text.substr(from), fault_word);
    if (end == std::string_view::npos) return false;
    from += end;
    const bool is_denied = std::ranges::any_of(words_before(text, from - fault_word.size()),
                                               [&](auto word) { return is_one_of(word, denials); });
    if (!is_denied && !is_one_of(word_behind(text, from), possessions)) return true;
  }
}

std::optional<pid_t> client_of(std::string_view text) {
  for (const std::string_view word : client_words) {
    const std::size_t end = behind(text, word, false);
    if (end == std::string_view::npos) continue;
    const std::string_view number = text.substr(end);
    pid_t pid = 0;
    const auto parsed = std::from_chars(number.data(), number.data() + number.size(), pid);
    if (parsed.ec == std::errc{} && pid > 0) return pid;
  }
  return std::nullopt;
}

}  // namespace

std::optional<MpsLogLine> parse_mps_log(std::string_view line) {
  auto [writer, text] = written_in(line);
  while (text.ends_with('\n') || text.ends_with('\r')) text.remove_suffix(1);
  text = text.substr(0, longest_text);
  const std::string words = lower(text);
  const auto has = [&words](std::string_view phrase) {
    return behind(words, phrase) != std::string_view::npos;
  };
  const auto is_of_server = writer == writer_of_faults;
  if (is_of_server && std::ranges::all_of(left_words, has))
    return MpsLogLine{MpsLogEvent::ClientLeft, std::string(text), client_of(words)};
  const auto tells = [&words](std::string_view fault_word) { return tells_of(words, fault_word); };
  if (is_of_server && std::ranges::any_of(fault_words, tells) && std::ranges::none_of(end_words, has))
    return MpsLogLine{MpsLogEvent::Fault, std::string(text), client_of(words)};
  if (std::ranges::any_of(arrival_words, has))
    return MpsLogLine{MpsLogEvent::Arrival, std::string(text), client_of(words)};
  return std::nullopt;
}

}  // namespace firebreak::fault
