// SPDX-License-Identifier: Apache-2.0
/// What a driver's library takes from the C library, and when: tests/hardware/driver_imports.py builds and
/// runs this, once with ROWS as a library that comes before the C library where the driver's imports are
/// looked up, and once as the program. The program loads a copy of the driver behind that library, says what
/// the copy's constructors called, counts each import from then on (the copy's table of addresses is made to
/// lead through a few instructions that count), and goes through a program's usual calls. One line of JSON on
/// standard output.
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

struct Seen {
  const char* name;
  const void* caller;
};
/// What was called until it is asked for.
extern "C" std::size_t seen_calls(Seen* into, std::size_t most);

#ifdef ROWS
// ---- What constructors call.

namespace {

std::array<Seen, 4096> seen{};
std::atomic<std::size_t> seen_count{0};
std::atomic<bool> is_loading{true};

void see(const char* name, const void* caller) {
  if (!is_loading.load()) return;
  const std::size_t at = seen_count.fetch_add(1);
  if (at < seen.size()) seen[at] = {name, caller};
}

template <class Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
void __libc_free(void*);

#define SEEN(name) see(name, __builtin_return_address(0))
void* malloc(std::size_t size) {
  SEEN("malloc");
  return __libc_malloc(size);
}
void* calloc(std::size_t count, std::size_t size) {
  SEEN("calloc");
  return __libc_calloc(count, size);
}
void* realloc(void* old, std::size_t size) {
  SEEN("realloc");
  return __libc_realloc(old, size);
}
void* memalign(std::size_t alignment, std::size_t size) {
  SEEN("memalign");
  return __libc_memalign(alignment, size);
}
void free(void* memory) {
  SEEN("free");
  __libc_free(memory);
}

#define PASS_ON(result, name, parameters, arguments)            \
  result name parameters {                                      \
    SEEN(#name);                                                \
    static const auto real = next<result(*) parameters>(#name); \
    return real arguments;                                      \
  }
PASS_ON(int, pthread_key_create, (unsigned* key, void (*end)(void*)), (key, end))
PASS_ON(int, pthread_create, (unsigned long* t, const void* a, void* (*f)(void*), void* x), (t, a, f, x))
PASS_ON(int, __cxa_atexit, (void (*f)(void*), void* x, void* dso), (f, x, dso))
PASS_ON(int, __cxa_thread_atexit_impl, (void (*f)(void*), void* x, void* dso), (f, x, dso))
PASS_ON(int, __register_atfork, (void (*a)(), void (*b)(), void (*c)(), void* dso), (a, b, c, dso))
PASS_ON(int, socket, (int a, int b, int c), (a, b, c))
PASS_ON(int, pipe, (int* both), (both))
PASS_ON(int, pipe2, (int* both, int flags), (both, flags))
PASS_ON(int, eventfd, (unsigned a, int b), (a, b))
PASS_ON(int, setenv, (const char* a, const char* b, int c), (a, b, c))
PASS_ON(char*, secure_getenv, (const char* a), (a))
PASS_ON(FILE*, fopen, (const char* a, const char* b), (a, b))
PASS_ON(FILE*, fopen64, (const char* a, const char* b), (a, b))
PASS_ON(int, sigaction, (int a, const struct sigaction* b, struct sigaction* c), (a, b, c))
PASS_ON(char*, getenv, (const char* a), (a))
#undef PASS_ON
void* mmap(void* a, std::size_t n, int p, int f, int fd, off_t o) {
  SEEN("mmap");
  return reinterpret_cast<void*>(syscall(SYS_mmap, a, n, p, f, fd, o));
}
void* mmap64(void* a, std::size_t n, int p, int f, int fd, off_t o) {
  SEEN("mmap64");
  return reinterpret_cast<void*>(syscall(SYS_mmap, a, n, p, f, fd, o));
}
int open(const char* path, int flags, ...) {
  SEEN("open");
  va_list more;
  va_start(more, flags);
  const int mode = va_arg(more, int);
  va_end(more);
  return static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}
int open64(const char* path, int flags, ...) {
  SEEN("open64");
  va_list more;
  va_start(more, flags);
  const int mode = va_arg(more, int);
  va_end(more);
  return static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}
std::size_t seen_calls(Seen* into, std::size_t most) {
  is_loading.store(false);
  const std::size_t count = std::min({seen_count.load(), seen.size(), most});
  std::copy_n(seen.begin(), count, into);
  return count;
}
}  // extern "C"

#else   // ROWS

namespace {

// ---- What is in the library.

struct Library {
  link_map* map = nullptr;
  const char* strings = nullptr;
  const Elf64_Sym* symbols = nullptr;
  std::array<std::pair<const Elf64_Rela*, std::size_t>, 2> relocations{};
  std::map<std::int64_t, std::uint64_t> entries;
  std::vector<std::string> needed;
};

Library read(void* handle) {
  Library library;
  dlinfo(handle, RTLD_DI_LINKMAP, &library.map);
  const auto at = [&](std::uint64_t value) {
    return value < library.map->l_addr ? value + library.map->l_addr : value;
  };
  for (const Elf64_Dyn* entry = library.map->l_ld; entry->d_tag != DT_NULL; ++entry) {
    const std::uint64_t value = entry->d_un.d_val;
    library.entries[entry->d_tag] = value;
    if (entry->d_tag == DT_STRTAB) library.strings = reinterpret_cast<const char*>(at(value));
    if (entry->d_tag == DT_SYMTAB) library.symbols = reinterpret_cast<const Elf64_Sym*>(at(value));
    if (entry->d_tag == DT_RELA)
      library.relocations[0].first = reinterpret_cast<const Elf64_Rela*>(at(value));
    if (entry->d_tag == DT_RELASZ) library.relocations[0].second = value / sizeof(Elf64_Rela);
    if (entry->d_tag == DT_JMPREL)
      library.relocations[1].first = reinterpret_cast<const Elf64_Rela*>(at(value));
    if (entry->d_tag == DT_PLTRELSZ) library.relocations[1].second = value / sizeof(Elf64_Rela);
  }
  for (const Elf64_Dyn* entry = library.map->l_ld; entry->d_tag != DT_NULL; ++entry)
    if (entry->d_tag == DT_NEEDED) library.needed.emplace_back(library.strings + entry->d_un.d_val);
  return library;
}

struct Import {
  std::string name;
  const char* type;  ///< of the symbol
  const char* relocation;
  std::uint64_t* place;
  std::atomic<std::uint64_t>* count = nullptr;
};

std::vector<Import> imports_of(const Library& library) {
  std::vector<Import> all;
  for (const auto& [table, count] : library.relocations) {
    for (std::size_t i = 0; i < count; ++i) {
      const auto kind = ELF64_R_TYPE(table[i].r_info);
      const char* const named = kind == R_X86_64_JUMP_SLOT   ? "JUMP_SLOT"
                                : kind == R_X86_64_GLOB_DAT  ? "GLOB_DAT"
                                : kind == R_X86_64_64        ? "64"
                                : kind == R_X86_64_COPY      ? "COPY"
                                : kind == R_X86_64_IRELATIVE ? "IRELATIVE"
                                : kind == R_X86_64_DTPMOD64  ? "DTPMOD64"
                                : kind == R_X86_64_TPOFF64   ? "TPOFF64"
                                                             : nullptr;
      if (named == nullptr) continue;
      const Elf64_Sym& symbol = library.symbols[ELF64_R_SYM(table[i].r_info)];
      if (symbol.st_shndx != SHN_UNDEF || symbol.st_name == 0) {
        if (kind == R_X86_64_IRELATIVE || kind == R_X86_64_DTPMOD64 || kind == R_X86_64_TPOFF64)
          all.push_back({"(own)", "-", named, nullptr});
        continue;
      }
      const auto type = ELF64_ST_TYPE(symbol.st_info);
      all.push_back({library.strings + symbol.st_name,
                     type == STT_FUNC     ? "function"
                     : type == STT_OBJECT ? "object"
                                          : "notype",
                     named, reinterpret_cast<std::uint64_t*>(library.map->l_addr + table[i].r_offset)});
    }
  }
  return all;
}

/// movabs r11, count; lock inc qword [r11]; movabs r11, real; jmp r11.
void count_each(std::vector<Import>& imports) {
  constexpr std::size_t each_bytes = 32;
  auto* code = static_cast<unsigned char*>(::mmap(nullptr, imports.size() * each_bytes,
                                                  PROT_READ | PROT_WRITE | PROT_EXEC,
                                                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  auto* counts = new std::atomic<std::uint64_t>[imports.size()] {};
  for (std::size_t i = 0; i < imports.size(); ++i, code += each_bytes) {
    Import& import = imports[i];
    if (import.place == nullptr || std::strcmp(import.type, "object") == 0 || *import.place == 0) continue;
    import.count = &counts[i];
    const auto count = reinterpret_cast<std::uint64_t>(import.count);
    unsigned char made[each_bytes] = {0x49, 0xbb, 0, 0, 0, 0, 0, 0, 0, 0, 0xf0, 0x49, 0xff, 0x03,
                                      0x49, 0xbb, 0, 0, 0, 0, 0, 0, 0, 0, 0x41, 0xff, 0xe3};
    std::memcpy(made + 2, &count, 8);
    std::memcpy(made + 16, import.place, 8);
    std::memcpy(code, made, each_bytes);
    const auto page = reinterpret_cast<std::uint64_t>(import.place) & ~std::uint64_t{4095};
    mprotect(reinterpret_cast<void*>(page), 8192, PROT_READ | PROT_WRITE);
    const auto thunk = reinterpret_cast<std::uint64_t>(code);
    std::memcpy(import.place, &thunk, 8);
  }
}

// ---- A program's usual calls.

constexpr const char* ptx = R"(.version 7.0
.target sm_70
.address_size 64
.visible .entry add(.param .u64 p){ .reg .b64 %rd<3>; .reg .b32 %r<3>; ld.param.u64 %rd1,[p]; ld.global.u32 %r1,[%rd1]; add.u32 %r1,%r1,1; st.global.u32 [%rd1],%r1; ret; }
.visible .entry stop(.param .u64 p){ trap; ret; }
)";

struct Phase {
  std::string name;
  int result;
  std::map<std::string, std::uint64_t> calls;
};

class Play {
 public:
  Play(void* driver, std::vector<Import>& imports) : driver_(driver), imports_(imports) {}

  template <class... Arguments>
  int call(const char* name, Arguments... arguments) {
    auto* const function = reinterpret_cast<int (*)(Arguments...)>(dlsym(driver_, name));
    return function == nullptr ? -1 : function(arguments...);
  }
  void note(const std::string& name, int result) {
    Phase phase{name, result, {}};
    for (const Import& import : imports_) {
      const std::uint64_t calls = import.count == nullptr ? 0 : import.count->exchange(0);
      if (calls != 0) phase.calls[import.name] += calls;
    }
    phases_.push_back(std::move(phase));
  }
  void run(bool with_fault) {
    void* context = nullptr;
    void* module = nullptr;
    void* function = nullptr;
    std::uint64_t memory = 0;
    note("cuInit", call("cuInit", 0U));
    note("cuDevicePrimaryCtxRetain", call("cuDevicePrimaryCtxRetain", &context, 0));
    note("cuCtxSetCurrent", call("cuCtxSetCurrent", context));
    note("cuModuleLoadData", call("cuModuleLoadData", &module, ptx));
    note("cuModuleGetFunction", call("cuModuleGetFunction", &function, module, "add"));
    note("cuMemAlloc", call("cuMemAlloc_v2", &memory, std::size_t{4096}));
    void* arguments[] = {&memory};
    const auto launch = [&] {
      return call("cuLaunchKernel", function, 1U, 1U, 1U, 1U, 1U, 1U, 0U, static_cast<void*>(nullptr),
                  static_cast<void**>(arguments), static_cast<void**>(nullptr));
    };
    note("first cuLaunchKernel", launch());
    note("cuCtxSynchronize", call("cuCtxSynchronize"));
    int result = 0;
    for (int i = 0; i < 100; ++i) result |= launch();
    note("100 cuLaunchKernel", result);
    note("cuCtxSynchronize again", call("cuCtxSynchronize"));
    std::uint32_t word = 0;
    note("cuMemcpyDtoH", call("cuMemcpyDtoH_v2", static_cast<void*>(&word), memory, sizeof word));
    usleep(1'200'000);
    note("1.2 s of nothing", 0);
    if (with_fault) {
      call("cuModuleGetFunction", &function, module, "stop");
      launch();
      note("a trap", call("cuCtxSynchronize"));
    }
  }
  const std::vector<Phase>& phases() const { return phases_; }

 private:
  void* driver_;
  std::vector<Import>& imports_;
  std::vector<Phase> phases_;
};

void print_calls(const std::map<std::string, std::uint64_t>& calls) {
  const char* separator = "";
  std::printf("{");
  for (const auto& [name, count] : calls) {
    std::printf("%s\"%s\": %lu", separator, name.c_str(), count);
    separator = ", ";
  }
  std::printf("}");
}

}  // namespace

int main(int count, char** words) {
  if (count < 4) return 2;
  const std::string rows = words[1];
  const std::string file = words[2];
  const std::string how = words[3];
  const bool is_lazy = how == "lazy";
  void* const both = dlopen(rows.c_str(), (is_lazy ? RTLD_LAZY : RTLD_NOW) | RTLD_LOCAL | RTLD_DEEPBIND);
  void* const handle = both == nullptr ? nullptr : dlopen(file.c_str(), RTLD_LAZY | RTLD_NOLOAD);
  if (handle == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  if (is_lazy) return 0;
  std::map<std::string, std::uint64_t> by_constructors;
  std::map<std::string, std::uint64_t> by_loader;
  std::vector<Seen> seen(4096);
  seen.resize(reinterpret_cast<decltype(&seen_calls)>(dlsym(both, "seen_calls"))(seen.data(), seen.size()));
  for (const Seen& each : seen) {
    Dl_info who{};
    const bool known = dladdr(each.caller, &who) != 0 && who.dli_fname != nullptr;
    ++(known && file == who.dli_fname ? by_constructors : by_loader)[each.name];
  }
  const Library library = read(handle);
  auto imports = imports_of(library);
  count_each(imports);
  Play play(handle, imports);
  play.run(how == "trap");
  std::printf("{\"by_constructors\": ");
  print_calls(by_constructors);
  std::printf(", \"while_it_was_loaded_by_others\": ");
  print_calls(by_loader);
  std::printf(", \"needed\": [");
  for (std::size_t i = 0; i < library.needed.size(); ++i)
    std::printf("%s\"%s\"", i == 0 ? "" : ", ", library.needed[i].c_str());
  std::printf("], \"dynamic\": {");
  const char* separator = "";
  for (const auto& [tag, value] : library.entries) {
    std::printf("%s\"%lx\": %lu", separator, static_cast<unsigned long>(tag), value);
    separator = ", ";
  }
  std::printf("}, \"imports\": [");
  separator = "";
  for (const Import& import : imports) {
    std::printf("%s[\"%s\", \"%s\", \"%s\"]", separator, import.name.c_str(), import.type, import.relocation);
    separator = ", ";
  }
  std::printf("], \"phases\": [");
  separator = "";
  for (const Phase& phase : play.phases()) {
    std::printf("%s{\"phase\": \"%s\", \"result\": %d, \"calls\": ", separator, phase.name.c_str(),
                phase.result);
    print_calls(phase.calls);
    std::printf("}");
    separator = ", ";
  }
  std::printf("]}\n");
  std::fflush(stdout);
  _exit(0);
}
#endif  // ROWS
