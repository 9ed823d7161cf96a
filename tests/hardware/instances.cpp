// SPDX-License-Identifier: Apache-2.0
/// Driver instances that are brought up and thrown away one after another in one process, with what the
/// project itself has for that (program/instance). tests/hardware/instances.py builds and runs it; one line
/// of JSON on standard output.
///
///     instances ROUNDS none|trap|misaligned|busy|dump [PIPE_DIRECTORY PIPE_DIRECTORY]
///
/// Each instance maps the same memory at the same address, adds to all of its words and looks at some. Then
/// it raises that exception (dump: a trap in the core dump mode), or is thrown away as it is, or in the
/// middle of a kernel that stores for ever (busy): the next instance looks whether anything is stored after
/// that.
#include <dlfcn.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "program/instance/copy.h"

namespace {

using firebreak::instance::DriverCopy;
using firebreak::instance::Thrown;

constexpr const char* ptx = R"(.version 7.0
.target sm_70
.address_size 64
.visible .entry add(.param .u64 p,.param .u32 n){ .reg .b64 %rd<4>; .reg .b32 %r<8>; .reg .pred %q;
  ld.param.u64 %rd1,[p]; ld.param.u32 %r5,[n]; mov.u32 %r1,%ctaid.x; mov.u32 %r2,%ntid.x; mov.u32 %r3,%tid.x;
  mad.lo.s32 %r4,%r1,%r2,%r3; setp.ge.u32 %q,%r4,%r5; @%q ret; mul.wide.u32 %rd2,%r4,4; add.u64 %rd3,%rd1,%rd2;
  ld.global.u32 %r7,[%rd3]; add.u32 %r7,%r7,1; st.global.u32 [%rd3],%r7; ret; }
.visible .entry misaligned(.param .u64 p,.param .u32 n){ .reg .b64 %rd<4>; .reg .b32 %r<4>; ld.param.u64 %rd1,[p];
  ld.volatile.global.u32 %r1,[%rd1+1]; st.global.u32 [%rd1+3],%r1; ret; }
.visible .entry trap(.param .u64 p,.param .u32 n){ trap; ret; }
.visible .entry busy(.param .u64 p,.param .u32 n){ .reg .b64 %rd<4>; .reg .b32 %r<4>; ld.param.u64 %rd1,[p];
  mov.u32 %r1,0; again: add.u32 %r1,%r1,1; st.volatile.global.u32 [%rd1+64],%r1; bra again; }
)";

constexpr std::uint64_t address = 0x5000'0000'0000;
constexpr std::size_t size_bytes = std::size_t{64} << 20;
constexpr unsigned words = size_bytes / 4;

struct Properties {  // CUmemAllocationProp
  int type = 1;
  int handle_types = 1;
  struct {
    int type = 1;
    int id = 0;
  } location;
  void* unused = nullptr;
  unsigned char flags[8] = {};
};
struct Access {  // CUmemAccessDesc
  struct {
    int type = 1;
    int id = 0;
  } location;
  int flags = 3;
};

double ms(std::chrono::nanoseconds time) { return std::chrono::duration<double, std::milli>(time).count(); }

std::size_t count_in(const char* folder) {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& each : std::filesystem::directory_iterator(folder)) ++count;
  return count;
}
std::size_t devices_open() {
  std::size_t count = 0;
  std::error_code ignored;
  for (const auto& each : std::filesystem::directory_iterator("/proc/self/fd"))
    count += std::filesystem::read_symlink(each, ignored).string().rfind("/dev/nvidia", 0) == 0;
  return count;
}
std::size_t lines_of_maps(const char* with) {
  std::ifstream file("/proc/self/maps");
  std::size_t count = 0;
  for (std::string line; std::getline(file, line);) count += line.find(with) != std::string::npos;
  return count;
}
long resident_kib() {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);)
    if (line.rfind("RssAnon:", 0) == 0) return std::atol(line.c_str() + 8);
  return 0;
}

/// Prints the words of a waiting thread's stack that lie in `code`: most are return addresses, the innermost
/// first. `syscall`: the line of that file in /proc, whose last but one word is the stack pointer.
void tell_stack(const std::string& syscall,
                const std::vector<std::pair<std::uintptr_t, std::uintptr_t>>& code) {
  std::vector<std::string> all;
  std::istringstream line(syscall);
  for (std::string word; line >> word;) all.push_back(word);
  if (all.size() < 3) return;
  const auto stack = std::strtoull(all[all.size() - 2].c_str(), nullptr, 16);
  std::vector<std::uintptr_t> found(2048);
  const iovec here{found.data(), found.size() * sizeof(found[0])};
  const iovec there{reinterpret_cast<void*>(stack), here.iov_len};
  const ssize_t read = ::process_vm_readv(::getpid(), &here, 1, &there, 1, 0);
  for (std::size_t i = 0; read > 0 && i < static_cast<std::size_t>(read) / sizeof(found[0]); ++i) {
    for (const auto& [begin, end] : code)
      if (found[i] >= begin && found[i] < end)
        std::fprintf(stderr, "%lx ", static_cast<unsigned long>(found[i]));
  }
}

std::vector<std::pair<std::uintptr_t, std::uintptr_t>> code_in_this_process() {
  std::vector<std::pair<std::uintptr_t, std::uintptr_t>> code;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    unsigned long begin = 0, end = 0;
    if (line.find(" r-xp ") != std::string::npos && std::sscanf(line.c_str(), "%lx-%lx", &begin, &end) == 2)
      code.emplace_back(begin, end);
  }
  return code;
}

/// Prints what threads wait for that did not end.
void tell_threads() {
  const auto code = code_in_this_process();
  for (const auto& each : std::filesystem::directory_iterator("/proc/self/task")) {
    for (const char* const part : {"comm", "wchan", "syscall"}) {
      std::string line;
      std::getline(std::ifstream(each.path() / part), line);
      std::fprintf(stderr, "%s ", line.c_str());
      if (std::string_view(part) == "syscall") tell_stack(line, code);
    }
    std::ifstream status(each.path() / "status");
    for (std::string line; std::getline(status, line);)
      if (line.rfind("Sig", 0) == 0 || line.rfind("State", 0) == 0) std::fprintf(stderr, "%s ", line.c_str());
    std::fprintf(stderr, "\n");
  }
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    if (line.find(" r-xp ") != std::string::npos) std::fprintf(stderr, "%s\n", line.c_str());
}

/// One life of an instance.
class Life {
 public:
  explicit Life(DriverCopy& copy) : copy_(copy) {}
  template <class... Arguments>
  int call(const char* name, Arguments... arguments) {
    auto* const function = reinterpret_cast<int (*)(Arguments...)>(copy_.symbol(name));
    const int result = function == nullptr ? -1 : function(arguments...);
    if (result != 0 && first_error_.empty()) first_error_ = std::string(name) + " " + std::to_string(result);
    return result;
  }
  bool come_up() {
    void* context = nullptr;
    for (int tries = 0; tries < 100; ++tries) {  // a domain that has fallen takes some time
      first_error_.clear();
      if (call("cuInit", 0U) == 0 && call("cuDevicePrimaryCtxRetain", &context, 0) == 0) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    return call("cuCtxSetCurrent", context) == 0 && call("cuModuleLoadData", &module_, ptx) == 0;
  }
  bool map(int* kept) {
    Properties properties;
    Access access;
    unsigned long long handle = 0;
    std::uint64_t got = 0;
    if (*kept < 0) {
      call("cuMemCreate", &handle, size_bytes, static_cast<const void*>(&properties), 0ULL);
    } else {
      call("cuMemImportFromShareableHandle", &handle,
           reinterpret_cast<void*>(static_cast<std::intptr_t>(*kept)), 1);
    }
    call("cuMemAddressReserve", &got, size_bytes, std::size_t{0}, address, 0ULL);
    call("cuMemMap", got, size_bytes, std::size_t{0}, handle, 0ULL);
    call("cuMemSetAccess", got, size_bytes, static_cast<const void*>(&access), std::size_t{1});
    if (*kept < 0) {
      call("cuMemsetD32_v2", got, 0U, static_cast<std::size_t>(words));
      call("cuMemExportToShareableHandle", static_cast<void*>(kept), handle, 1, 0ULL);
      copy_.let_go(*kept);
    }
    return got == address && first_error_.empty();
  }
  int launch(const char* name, unsigned blocks) {
    void* function = nullptr;
    if (const int result = call("cuModuleGetFunction", &function, module_, name); result != 0) return result;
    std::uint64_t pointer = address;
    unsigned count = words;
    void* arguments[] = {&pointer, &count};
    return call("cuLaunchKernel", function, blocks, 1U, 1U, blocks == 1 ? 1U : 256U, 1U, 1U, 0U,
                static_cast<void*>(nullptr), static_cast<void**>(arguments), static_cast<void**>(nullptr));
  }
  int wait() { return call("cuCtxSynchronize"); }
  std::uint32_t word(std::size_t at) {
    std::uint32_t value = 0;
    call("cuMemcpyDtoH_v2", static_cast<void*>(&value), address + at * 4, sizeof value);
    return value;
  }
  const std::string& first_error() const { return first_error_; }

 private:
  DriverCopy& copy_;
  void* module_ = nullptr;
  std::string first_error_;
};

void print(const char* name, std::vector<double> values) {
  std::ranges::sort(values);
  if (values.empty()) values.push_back(0);
  std::printf(", \"%s\": {\"p50\": %.2f, \"max\": %.2f}", name, values[values.size() / 2], values.back());
}

/// The count of something before the rounds that are compared, and what one round added since.
struct Since {
  std::size_t descriptors = 0;
  std::size_t threads = 0;
  std::size_t maps = 0;
  long kib = 0;

  static Since now() {
    return {count_in("/proc/self/fd"), count_in("/proc/self/task"), lines_of_maps(""), resident_kib()};
  }
};

/// One play: instances that come up, compute, do what `how` says, and are thrown away, one after the other.
struct Play {
  std::string how;
  std::string library;
  std::vector<std::string> pipes;  ///< pipe directories of the domains, taken in turns; empty: no MPS
  int kept = -1;
  std::uint32_t expected = 0;
  int wrong = 0;
  int stored_after_fence = 0;
  int not_gone = 0;
  int done = 0;
  bool was_busy = false;
  std::string error;
  std::vector<double> up, threads_ms, mappings_ms, descriptors_ms, rest_ms;
  std::size_t threads_taken = 0, descriptors_taken = 0, mappings_taken = 0;
  Since first{};

  DriverCopy::Variables variables() const {
    DriverCopy::Variables all;
    if (!pipes.empty()) all.emplace_back("CUDA_MPS_PIPE_DIRECTORY", pipes[std::size_t(done) % pipes.size()]);
    if (how == "dump") {
      all.emplace_back("CUDA_ENABLE_COREDUMP_ON_EXCEPTION", "1");
      all.emplace_back("CUDA_COREDUMP_FILE", "/dev/shm/instances-core");
      all.emplace_back("CUDA_COREDUMP_GENERATION_FLAGS", "skip_global_memory,skip_abort");
    }
    return all;
  }

  /// Computes one step, and looks whether the instance before still stores.
  void compute(Life& life) {
    if (std::exchange(was_busy, false)) {
      const std::uint32_t then = life.word(16);
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      stored_after_fence += life.word(16) != then;
    }
    life.launch("add", (words + 255) / 256);
    life.wait();
    ++expected;
    const bool is_right =
        life.word(0) == expected && life.word(words - 1) == expected && life.first_error().empty();
    wrong += is_right ? 0 : 1;
  }

  /// Does what the play is about, just before the throw.
  void disturb(Life& life) {
    if (how == "trap" || how == "dump" || how == "misaligned") {
      life.launch(how == "dump" ? "trap" : how.c_str(), 1);
      life.wait();
    } else if (how == "busy") {
      life.launch("busy", 1);
      const auto runs = std::chrono::milliseconds(5);
      std::this_thread::sleep_for(runs);
      was_busy = true;
    }
  }

  void throw_away(DriverCopy& copy) {
    const auto taken = copy.counts();
    threads_taken = taken.threads;
    descriptors_taken = taken.descriptors;
    mappings_taken = taken.mappings;
    const Thrown thrown = copy.throw_away();
    threads_ms.push_back(ms(thrown.threads));
    mappings_ms.push_back(ms(thrown.mappings));
    descriptors_ms.push_back(ms(thrown.descriptors));
    rest_ms.push_back(ms(thrown.rest));
    if (!thrown.is_gone && not_gone++ == 0) tell_threads();
  }

  void round() {
    const auto began = std::chrono::steady_clock::now();
    auto copy = DriverCopy::load(library, variables());
    if (!copy) {
      error = firebreak::to_string(copy.error());
      return;
    }
    Life life(**copy);
    if (!life.come_up() || !life.map(&kept)) {
      error = life.first_error() + " in round " + std::to_string(done);
      return;
    }
    up.push_back(ms(std::chrono::steady_clock::now() - began));
    compute(life);
    disturb(life);
    throw_away(**copy);
    if (done == 1) first = Since::now();
  }

  void tell() const {
    const int after_first = std::max(done - 2, 1);
    const Since now = Since::now();
    std::printf(
        "{\"how\": \"%s\", \"rounds\": %d, \"wrong\": %d, \"not_gone\": %d, \"stored_after_fence\": %d, "
        "\"error\": \"%s\"",
        how.c_str(), done, wrong, not_gone, stored_after_fence, error.c_str());
    std::printf(", \"taken\": {\"threads\": %zu, \"descriptors\": %zu, \"mappings\": %zu}", threads_taken,
                descriptors_taken, mappings_taken);
    print("up_ms", up);
    print("throw_threads_ms", threads_ms);
    print("throw_mappings_ms", mappings_ms);
    print("throw_descriptors_ms", descriptors_ms);
    print("throw_rest_ms", rest_ms);
    std::printf(
        ", \"left_a_round\": {\"descriptors\": %.2f, \"threads\": %.2f, \"maps\": %.2f, \"kib\": %.1f}",
        (double(now.descriptors) - double(first.descriptors)) / after_first,
        (double(now.threads) - double(first.threads)) / after_first,
        (double(now.maps) - double(first.maps)) / after_first, double(now.kib - first.kib) / after_first);
    std::printf(
        ", \"left_at_end\": {\"nvidia_descriptors_beside_the_kept\": %d, \"nvidia_mappings\": %zu}}\n",
        int(devices_open()) - (kept >= 0 ? 1 : 0), lines_of_maps("/dev/nvidia"));
    std::fflush(stdout);
  }
};

}  // namespace

int main(int count, char** arguments) {
  if (count < 3) return 2;
  const int rounds = std::atoi(arguments[1]);
  void* const plain = dlopen("libcuda.so.1", RTLD_LAZY);
  Dl_info info{};
  if (plain == nullptr || dladdr(dlsym(plain, "cuInit"), &info) == 0) return 2;
  Play play;
  play.how = arguments[2];
  play.library = std::filesystem::canonical(info.dli_fname);
  if (count > 4) play.pipes = {arguments[3], arguments[4]};
  for (; play.done < rounds && play.error.empty(); ++play.done) play.round();
  play.tell();
  _exit(play.wrong == 0 && play.not_gone == 0 && play.stored_after_fence == 0 && play.error.empty() ? 0 : 1);
}
