// SPDX-License-Identifier: Apache-2.0
#include "ground/os/processes.h"

#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>

namespace firebreak::os {

// --- processes

namespace {

std::optional<pid_t> pid_in(std::string_view name) {
  pid_t pid = 0;
  const auto parsed = std::from_chars(name.data(), name.data() + name.size(), pid);
  const bool is_number = parsed.ec == std::errc{} && parsed.ptr == name.data() + name.size();
  return is_number && pid > 0 ? std::optional(pid) : std::nullopt;
}

/// Returns the text behind such a label in a status. A process's name cannot hold a line's end there.
std::string_view line_of(std::string_view status, std::string_view label) {
  const std::size_t found = status.find(label);
  if (found == std::string_view::npos) return {};
  status.remove_prefix(found + label.size());
  return status.substr(0, status.find('\n'));
}

}  // namespace

std::vector<pid_t> all_processes(Kernel& kernel) {
  std::vector<pid_t> pids;
  for (const std::string& name : kernel.list_directory("/proc").value_or(std::vector<std::string>())) {
    if (const auto pid = pid_in(name)) pids.push_back(*pid);
  }
  return pids;
}

pid_t parent_of(Kernel& kernel, pid_t pid) {
  const auto status = kernel.read_file(proc_folder(pid) + "/status");
  const std::string_view text = line_of(status ? *status : std::string_view(), "\nPPid:\t");
  pid_t parent = 0;
  std::from_chars(text.data(), text.data() + text.size(), parent);
  return parent;
}

char state_in(Kernel& kernel, const std::string& folder) {
  const auto status = kernel.read_file(folder + "/status");
  const std::string_view text = line_of(status ? *status : std::string_view(), "\nState:\t");
  return text.empty() ? '\0' : text.front();
}

std::vector<pid_t> children_of(Kernel& kernel, pid_t pid) {
  std::vector<pid_t> children;
  for (const pid_t each : all_processes(kernel)) {
    if (parent_of(kernel, each) == pid) children.push_back(each);
  }
  return children;
}

bool is_in_inner_namespace(Kernel& kernel, pid_t pid) {
  return numbers_in(kernel.read_file(proc_folder(pid) + "/status").value_or("")).size() > 1;
}

std::optional<pid_t> find_numbered(Kernel& kernel, pid_t pid, pid_t number) {
  const auto numbers_of = [&](pid_t of) {
    return numbers_in(kernel.read_file(proc_folder(of) + "/status").value_or(""));
  };
  const std::size_t depth = numbers_of(pid).size();
  if (depth == 0) return std::nullopt;
  std::vector<pid_t> all = children_of(kernel, pid);
  all.push_back(pid);
  for (const pid_t each : all) {
    const std::vector<pid_t> numbers = numbers_of(each);
    if (numbers.size() >= depth && numbers[depth - 1] == number) return each;
  }
  return std::nullopt;
}

std::string proc_folder(pid_t pid) { return "/proc/" + std::to_string(pid); }

std::vector<pid_t> other_threads(Kernel& kernel, pid_t pid) {
  std::vector<pid_t> threads;
  const auto names = kernel.list_directory(proc_folder(pid) + "/task");
  for (const std::string& name : names.value_or(std::vector<std::string>())) {
    const auto thread = pid_in(name);
    if (thread && *thread != pid) threads.push_back(*thread);
  }
  return threads;
}

std::string thread_folder(pid_t pid, pid_t thread) {
  return proc_folder(pid) + (thread == pid ? "" : "/task/" + std::to_string(thread));
}

pid_t living_thread(Kernel& kernel, pid_t pid) {
  const auto lives = [&](pid_t thread) {
    const char state = state_in(kernel, thread_folder(pid, thread));
    return state != 0 && state != 'Z' && state != 'X';
  };
  if (lives(pid)) return pid;
  for (const pid_t thread : other_threads(kernel, pid)) {
    if (lives(thread)) return thread;
  }
  return pid;
}

std::string environment_of(Kernel& kernel, pid_t pid) {
  return kernel.read_memory_file(proc_folder(pid) + "/environ").value_or("");
}

void for_each_text(std::string_view texts, const std::function<void(std::string_view)>& callback) {
  while (!texts.empty()) {
    const std::size_t end = std::min(texts.find('\0'), texts.size());
    callback(texts.substr(0, end));
    texts.remove_prefix(std::min(end + 1, texts.size()));
  }
}

std::optional<std::string> variable_in(std::string_view environment, std::string_view name) {
  std::optional<std::string> value;
  for_each_text(environment, [&](std::string_view text) {
    if (text.starts_with(name) && text.substr(name.size()).starts_with('=')) {
      value = std::string(text.substr(name.size() + 1));
    }
  });
  return value;
}

// --- process stat

std::string_view stat_field(std::string_view stat, int number) {
  std::size_t at = stat.rfind(')');
  for (int i = 2; i < number && at != std::string_view::npos; ++i) at = stat.find(' ', at + 1);
  if (at == std::string_view::npos) return {};
  return stat.substr(at + 1, stat.find(' ', at + 1) - at - 1);
}

std::string_view program_name(std::string_view stat) {
  const std::size_t begin = stat.find('(');
  const std::size_t end = stat.rfind(')');
  if (begin == std::string_view::npos || end == std::string_view::npos || end < begin) return {};
  return stat.substr(begin + 1, end - begin - 1);
}

std::string_view start_time(std::string_view stat) { return stat_field(stat, 22); }

bool is_alive(std::string_view stat) {
  const std::string_view state = stat_field(stat, 3);
  return !state.empty() && state != "Z" && state != "X";
}

std::string_view parent(std::string_view stat) { return stat_field(stat, 4); }

namespace {

/// Reads a line of numbers, which each begin with a tab. A name cannot hold a line's end there.
template <class Number>
std::vector<Number> numbers_after(std::string_view label, std::string_view status) {
  std::vector<Number> numbers;
  const std::size_t found = status.find(label);
  if (found == std::string_view::npos) return numbers;
  const char* at = status.data() + found + label.size();
  const char* const end = status.data() + std::min(status.find('\n', found + 1), status.size());
  while (at != end && *at == '\t') {
    Number number = 0;
    const auto read = std::from_chars(at + 1, end, number);
    if (read.ec != std::errc()) break;
    numbers.push_back(number);
    at = read.ptr;
  }
  return numbers;
}

/// Real, effective, saved, and for files; fewer: that is no status.
std::vector<uid_t> users_in(std::string_view status) { return numbers_after<uid_t>("\nUid:", status); }

}  // namespace

std::optional<uid_t> user_in(std::string_view status) {
  const std::vector<uid_t> users = users_in(status);
  return users.empty() ? std::nullopt : std::optional(users.front());
}

std::vector<pid_t> numbers_in(std::string_view status) { return numbers_after<pid_t>("\nNSpid:", status); }

bool is_of_user_alone(std::string_view status, uid_t user) {
  const std::vector<uid_t> users = users_in(status);
  return users.size() == 4 && std::ranges::count(users, user) == 4;
}

std::string image(std::string_view stat) {
  const std::string_view code = stat_field(stat, 26);
  const std::string_view stack = stat_field(stat, 28);
  // Hidden addresses read as 1 and 0.
  if (code.size() < 2 || stack.size() < 2) return {};
  return std::string(code) + ":" + std::string(stack);
}

namespace {

/// Returns where in its memory a program finds its AT_RANDOM.
std::optional<std::uint64_t> random_bytes_address(std::string_view auxiliary_vector) {
  Elf64_auxv_t entry{};
  for (; auxiliary_vector.size() >= sizeof(entry); auxiliary_vector.remove_prefix(sizeof(entry))) {
    std::memcpy(&entry, auxiliary_vector.data(), sizeof(entry));
    if (entry.a_type == AT_RANDOM) return entry.a_un.a_val;
  }
  return std::nullopt;
}

/// Returns them in hexadecimal; empty where they are not to be had. Timeout: the process does not let itself
/// be looked at.
Result<std::string> random_bytes_of(Kernel& kernel, const std::string& folder) {
  const auto vector = kernel.read_memory_file(folder + "/auxv");
  if (!vector && vector.error().code == ErrorCode::Timeout) return propagate(vector);
  const auto address = random_bytes_address(vector.value_or(""));
  if (!address) return std::string();
  std::array<std::uint64_t, 2> bytes{};
  const auto got = kernel.read_memory(folder + "/mem", *address, sizeof(bytes));
  if (!got && got.error().code == ErrorCode::Timeout) return propagate(got);
  if (!got || got->size() != sizeof(bytes)) return std::string();
  std::memcpy(bytes.data(), got->data(), sizeof(bytes));
  return fmt::format("{:016x}{:016x}", bytes[0], bytes[1]);
}

Result<std::string> image_in(Kernel& kernel, const std::string& folder, std::string_view stat) {
  std::string addresses = image(stat);
  // Memory is read only here, since a look into it may have to wait for the process's own changes of its
  // mappings.
  if (addresses.empty() || (stat_flags(stat) & flag_random_addresses) != 0) return addresses;
  const auto bytes = random_bytes_of(kernel, folder);
  if (!bytes) return propagate(bytes);
  return bytes->empty() ? std::string() : addresses + ":" + *bytes;
}

}  // namespace

Result<std::string> known_image_of(Kernel& kernel, pid_t pid, std::string_view stat) {
  if (is_alive(stat)) return image_in(kernel, proc_folder(pid), stat);
  const std::string folder = thread_folder(pid, living_thread(kernel, pid));
  const auto other = kernel.read_file(folder + "/stat");
  if (!other && other.error().code == ErrorCode::Timeout) return propagate(other);
  return other ? image_in(kernel, folder, *other) : Result<std::string>(std::string());
}

std::string image_of(Kernel& kernel, pid_t pid, std::string_view stat) {
  return known_image_of(kernel, pid, stat).value_or("");
}

std::string image_of(Kernel& kernel, pid_t pid) {
  const auto stat = kernel.read_file(proc_folder(pid) + "/stat");
  return stat ? image_of(kernel, pid, *stat) : std::string();
}

std::uint64_t stat_flags(std::string_view stat) {
  const std::string_view text = stat_field(stat, 9);
  std::uint64_t flags = 0;
  std::from_chars(text.data(), text.data() + text.size(), flags);
  return flags;
}

}  // namespace firebreak::os
