// SPDX-License-Identifier: Apache-2.0
#include "ground/os/self.h"

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/random.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <system_error>
#include <utility>

#include "ground/os/fd.h"
#include "ground/os/library_behind.h"

namespace firebreak::os {

// --- self

namespace {

bool executable_file(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && ::access(path.c_str(), X_OK) == 0;
}

}  // namespace

pid_t own_pid() { return ::getpid(); }
bool is_root() { return ::geteuid() == 0; }

Result<std::string> executable_path() {
  std::string path(PATH_MAX, '\0');
  const ssize_t length = ::readlink("/proc/self/exe", path.data(), path.size());
  if (length < 0) return fail_errno("read /proc/self/exe", errno);
  path.resize(static_cast<std::size_t>(length));
  return path;
}

std::optional<std::string> environment_variable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  if (value == nullptr) return std::nullopt;
  return std::string(value);
}

bool has_environment_variable(const std::function<bool(std::string_view name)>& is_it) {
  for (char** variable = ::environ; variable != nullptr && *variable != nullptr; ++variable) {
    const std::string_view text(*variable);
    if (is_it(text.substr(0, text.find('=')))) return true;
  }
  return false;
}

std::vector<std::string> environment_but_for(const std::function<bool(std::string_view name)>& is_it) {
  std::vector<std::string> all;
  for (char** variable = ::environ; variable != nullptr && *variable != nullptr; ++variable) {
    const std::string_view text(*variable);
    if (!is_it(text.substr(0, text.find('=')))) all.emplace_back(text);
  }
  return all;
}

EnvironmentScope::EnvironmentScope(const Variables& variables) {
  for (const auto& [name, value] : variables) {
    before_.emplace_back(name, environment_variable(name));
    ::setenv(name.c_str(), value.c_str(), 1);
  }
}

EnvironmentScope::~EnvironmentScope() {
  // Backwards: a name may have been given twice.
  for (auto variable = before_.rbegin(); variable != before_.rend(); ++variable) {
    const auto& [name, value] = *variable;
    value ? ::setenv(name.c_str(), value->c_str(), 1) : ::unsetenv(name.c_str());
  }
}

std::vector<std::string> files_called(const std::string& program) {
  if (program.find('/') != std::string::npos) return {program};
  std::vector<std::string> all;
  const std::string path = environment_variable("PATH").value_or("/usr/local/bin:/usr/bin:/bin");
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find(':', begin), path.size());
    all.push_back((end == begin ? "." : path.substr(begin, end - begin)) + "/" + program);
    begin = end + 1;
  }
  return all;
}

std::optional<std::string> find_program(const std::string& program) {
  if (program.empty()) return std::nullopt;
  for (std::string& candidate : files_called(program))
    if (executable_file(candidate)) return std::move(candidate);
  return std::nullopt;
}

void forget_signal_handler(int signal) { ::signal(signal, SIG_DFL); }

bool is_terminal(int number) { return ::isatty(number) == 1; }

// --- library

Result<void*> load_symbol(const std::string& library, const char* symbol) {
  void* handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* why = ::dlerror();  // begins with the library's name
    return fail(ErrorCode::NotFound, why != nullptr ? why : "cannot load " + library);
  }
  void* address = ::dlsym(handle, symbol);
  if (address == nullptr) return fail(ErrorCode::NotFound, library + " has no " + symbol);
  return address;
}

Result<std::string> library_of(const void* function) {
  Dl_info found{};
  if (::dladdr(function, &found) == 0 || found.dli_fname == nullptr) {
    return fail(ErrorCode::NotFound, "an address that is part of no library");
  }
  return std::string(found.dli_fname);
}

bool is_constant_in_library(const void* begin, std::size_t size_bytes) {
  struct Range {
    std::uintptr_t begin;
    std::size_t size_bytes;
  } range{reinterpret_cast<std::uintptr_t>(begin), size_bytes};
  const auto look = [](dl_phdr_info* library, std::size_t, void* asked) {
    const Range& wanted = *static_cast<const Range*>(asked);
    for (int i = 0; i < library->dlpi_phnum; ++i) {
      const ElfW(Phdr)& segment = library->dlpi_phdr[i];
      if (segment.p_type != PT_LOAD || (segment.p_flags & PF_W) != 0) continue;
      const std::uintptr_t from = library->dlpi_addr + segment.p_vaddr;
      const bool begins_inside = wanted.begin >= from && wanted.begin - from <= segment.p_filesz;
      if (begins_inside && wanted.size_bytes <= segment.p_filesz - (wanted.begin - from)) return 1;
    }
    return 0;
  };
  return ::dl_iterate_phdr(look, &range) == 1;
}

namespace {

constexpr mode_t owner_alone = 0700;

std::string copies_path() { return "/dev/shm/firebreak-" + std::to_string(::geteuid()); }

/// True of a folder of this user's that nobody else can write to.
bool is_ours_alone(const std::string& folder) {
  struct stat status {};
  if (::lstat(folder.c_str(), &status) != 0) return false;
  return S_ISDIR(status.st_mode) && status.st_uid == ::geteuid() && (status.st_mode & 077) == 0;
}

/// Calls `look` with the name of each entry of a folder; of a folder that cannot be read there is none.
template <class Look>
void for_each_name(const std::string& folder, Look look) {
  DIR* const listed = ::opendir(folder.c_str());
  if (listed == nullptr) return;
  while (const dirent* const entry = ::readdir(listed)) look(std::string_view(entry->d_name));
  ::closedir(listed);
}

/// Where somebody else has our folder's name there is one whose name nobody knew beforehand: the one that a
/// process of ours made earlier, or a new one.
Result<std::string> other_copies_folder() {
  std::string made = copies_path() + "-XXXXXX";
  const std::string parent = made.substr(0, made.rfind('/'));
  const std::string begin = copies_path().substr(parent.size() + 1) + "-";
  std::string found;
  for_each_name(parent, [&](std::string_view name) {
    std::string path = parent + "/" + std::string(name);
    if (name.starts_with(begin) && is_ours_alone(path)) found = std::move(path);
  });
  if (!found.empty()) return found;
  if (::mkdtemp(made.data()) == nullptr) return fail_errno("make " + made, errno);
  return made;
}

/// The folder of the copies.
Result<std::string> copies_folder() {
  const std::string folder = copies_path();
  if (::mkdir(folder.c_str(), owner_alone) != 0 && errno != EEXIST)
    return fail_errno("make " + folder, errno);
  return is_ours_alone(folder) ? folder : other_copies_folder();
}

Status copy_content(int from, int to, std::size_t size_bytes) {
  for (std::size_t copied = 0; copied < size_bytes;) {
    const ssize_t count = ::sendfile(to, from, nullptr, size_bytes - copied);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return fail_errno("copy a library", errno);
    if (count == 0) return fail(ErrorCode::Unavailable, "a library became smaller while it was copied");
    copied += static_cast<std::size_t>(count);
  }
  return {};
}

/// Nobody sees it before it is whole.
Status make_copy(int library, std::size_t size_bytes, const std::string& folder, const std::string& path) {
  std::string temporary = folder + "/new-XXXXXX";
  const Fd file(::mkostemp(temporary.data(), O_CLOEXEC));
  if (!file) return fail_errno("make a file in " + folder, errno);
  Status done = copy_content(library, file.get(), size_bytes);
  if (done && ::rename(temporary.c_str(), path.c_str()) != 0) done = fail_errno("name " + path, errno);
  if (!done) ::unlink(temporary.c_str());
  return done;
}

/// Removes copies of what a library of that name was before: they would stay until the machine is started
/// anew. A process that has one loaded keeps it. Another version may be in use beside this one, so those of
/// the last hour stay.
void remove_outdated(const std::string& folder, const std::string& current, const std::string& name) {
  constexpr std::time_t kept_s = 3600;
  const std::time_t now_s = ::time(nullptr);
  for_each_name(folder, [&](std::string_view file) {
    const bool is_one =
        file.starts_with("library-") && file.ends_with("-" + name) && !file.starts_with(current);
    const std::string path = folder + "/" + std::string(file);
    struct stat status {};
    if (is_one && ::lstat(path.c_str(), &status) == 0 && now_s - status.st_mtim.tv_sec > kept_s)
      ::unlink(path.c_str());
  });
}

}  // namespace

/// The path says it: FOLDER/library-...-NUMBER-NAME.
std::optional<PrivateLibrary::Origin> PrivateLibrary::origin_of(const void* address) {
  constexpr std::string_view label = "/library-";
  const auto path = library_of(address);
  const std::string begin = copies_path();
  if (!path || !path->starts_with(begin)) return std::nullopt;
  const std::string_view rest = std::string_view(*path).substr(begin.size());
  const std::size_t folder_end = rest.find('/');
  const bool is_in_ours = folder_end == 0 || rest.starts_with('-');
  if (!is_in_ours || !rest.substr(std::min(folder_end, rest.size())).starts_with(label)) return std::nullopt;
  const std::size_t name = path->find("-lib", begin.size() + folder_end + label.size());
  if (name == std::string::npos) return std::nullopt;
  const std::size_t number = path->rfind('-', name - 1);
  Origin origin{*path, path->substr(name + 1), 0};
  std::from_chars(path->data() + number + 1, path->data() + name, origin.copy_number);
  return origin;
}

Result<std::string> copy_of_library(const std::string& library, unsigned int copy) {
  const Fd file(::open(library.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0) return fail_errno("open " + library, errno);
  const auto folder = copies_folder();
  if (!folder) return propagate(folder);
  const std::array<std::int64_t, 5> identity{
      static_cast<std::int64_t>(status.st_dev), static_cast<std::int64_t>(status.st_ino),
      status.st_mtim.tv_sec, status.st_mtim.tv_nsec, static_cast<std::int64_t>(status.st_size)};
  std::string its = "library";
  for (const std::int64_t part : identity) its += "-" + std::to_string(part);
  const std::string name = library.substr(library.rfind('/') + 1);
  const std::string path = *folder + "/" + its + "-" + std::to_string(copy) + "-" + name;
  if (::access(path.c_str(), F_OK) != 0) {
    remove_outdated(*folder, its + "-", name);
    const Status copied = make_copy(file.get(), static_cast<std::size_t>(status.st_size), *folder, path);
    if (!copied) return propagate(copied);
  }
  return path;
}

Result<PrivateLibrary> PrivateLibrary::load(const std::string& library, unsigned int copy) {
  const auto path = copy_of_library(library, copy);
  if (!path) return propagate(path);
  void* const handle = ::dlopen(path->c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* const why = ::dlerror();  // begins with the library's name
    return fail(ErrorCode::NotFound, why != nullptr ? why : "cannot load " + *path);
  }
  return PrivateLibrary(handle);
}

void* PrivateLibrary::symbol(const char* name) const { return ::dlsym(handle_, name); }

std::string beside_this_library(const std::string& name) {
  const auto path = library_of(reinterpret_cast<const void*>(&beside_this_library));
  const std::size_t slash = path ? path->rfind('/') : std::string::npos;
  return slash == std::string::npos ? name : path->substr(0, slash + 1) + name;
}

// --- background thread

namespace {

/// A thread that is started meanwhile gets none, but for what it does itself: such a signal would end the
/// process without a word where it is blocked, whatever handler the program has for it.
class SignalsHeld {
 public:
  SignalsHeld() {
    sigset_t all;
    ::sigfillset(&all);
    for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS}) ::sigdelset(&all, own);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  SignalsHeld(const SignalsHeld&) = delete;
  SignalsHeld& operator=(const SignalsHeld&) = delete;
  ~SignalsHeld() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_{};
};

}  // namespace

Result<std::thread> start_thread(std::function<void()> run) {
  try {
    return std::thread(std::move(run));
  } catch (const std::system_error&) {
    return fail(ErrorCode::ResourceExhausted, "no thread can be started",
                "raise the limits of processes and of memory: ulimit -a, and pids.max of its control group");
  }
}

Result<std::thread> start_background_thread(const std::string& name, std::function<void()> run) {
  const SignalsHeld held;
  auto thread = start_thread(std::move(run));
  if (thread) ::pthread_setname_np(thread->native_handle(), name.substr(0, 15).c_str());
  return thread;
}

int without_signals(const std::function<int()>& start) {
  const SignalsHeld held;
  return start();
}

Status start_detached_thread(const std::string& name, std::function<void()> run) {
  auto thread = start_background_thread(name, std::move(run));
  if (!thread) return propagate(thread);
  thread->detach();
  return {};
}

void run_in_children(void (*action)()) { ::pthread_atfork(nullptr, nullptr, action); }

/// A library whose objects are never destroyed has no atexit() (program/guard/preload/never_destroyed.cpp).
void run_at_exit(void (*action)()) {
  ::on_exit([](int, void* given) { reinterpret_cast<void (*)()>(given)(); }, reinterpret_cast<void*>(action));
}

// --- scheduling

namespace {

/// Linux's struct sched_attr of its first version; the C library has no call for it.
struct SchedulingAttributes {
  std::uint32_t size = 48;
  std::uint32_t policy = SCHED_OTHER;
  std::uint64_t flags = 1;  ///< SCHED_FLAG_RESET_ON_FORK
  std::int32_t nice = 0;
  std::uint32_t priority = 0;
  std::uint64_t runtime_ns = 0;
  std::uint64_t deadline_ns = 0;
  std::uint64_t period_ns = 0;
};
static_assert(sizeof(SchedulingAttributes) == 48);

constexpr std::uint64_t shortest_turn_ns = 100'000;

bool take_real_time_priority() {
  sched_param parameter{};
  parameter.sched_priority = ::sched_get_priority_min(SCHED_FIFO);
  return ::sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &parameter) == 0;
}

/// An older kernel takes it without an error and changes nothing, so what it says now counts.
bool take_short_turns() {
  SchedulingAttributes attributes;
  attributes.runtime_ns = shortest_turn_ns;
  if (::syscall(SYS_sched_setattr, 0, &attributes, 0) != 0) return false;
  return ::syscall(SYS_sched_getattr, 0, &attributes, sizeof(attributes), 0) == 0 &&
         attributes.runtime_ns == shortest_turn_ns;
}

}  // namespace

Status run_as_soon_as_woken() {
  if (take_real_time_priority() || take_short_turns()) return {};
  return fail(ErrorCode::Unsupported, "a woken thread waits for busy ones",
              "grant CAP_SYS_NICE, or use Linux 6.12 or later");
}

Status run_in_short_turns() {
  if (take_short_turns()) return {};
  return fail(ErrorCode::Unsupported, "a woken thread waits for busy ones", "use Linux 6.12 or later");
}

// --- random

Result<std::string> random_token() {
  std::array<unsigned char, 16> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    return fail_errno("getrandom", errno);
  }
  constexpr const char* digits = "0123456789abcdef";
  std::string token;
  for (const unsigned char byte : bytes) {
    token += digits[byte >> 4];
    token += digits[byte & 15];
  }
  return token;
}

}  // namespace firebreak::os
