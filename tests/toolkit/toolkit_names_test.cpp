// SPDX-License-Identifier: Apache-2.0
// Compiled only where a CUDA toolkit is installed: whatever its headers declare has a row in
// shared/abi/cuda_api.def, and the other way round. The headers of CUDA 13.0 name what 12.x had as well,
// since a driver goes on exporting it.
#include <gmock/gmock.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <string_view>

#include "shared/abi/cuda_api.h"

namespace firebreak::cuda {
namespace {

using ::testing::IsEmpty;
using ::testing::Not;

std::string text_of(const std::string& header) {
  std::ifstream file(std::string(FIREBREAK_TOOLKIT_HEADERS) + "/" + header);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

bool is_name(char letter) { return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_'; }

/// Every name that follows `before` in the header.
std::set<std::string> names_after(const std::string& header, std::string_view before) {
  const std::string text = text_of(header);
  std::set<std::string> names;
  for (auto at = text.find(before); at != std::string::npos; at = text.find(before, at)) {
    at = std::min(text.find_first_not_of(" \n", at + before.size()), text.size());
    auto end = at;
    while (end < text.size() && is_name(text[end])) ++end;
    if (text.compare(at, 2, "cu") == 0) names.insert(text.substr(at, end - at));
  }
  return names;
}

/// "#define cuMemAlloc   cuMemAlloc_v2"
std::set<std::string> renamed() {
  std::istringstream lines(text_of("cuda.h"));
  std::set<std::string> names;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string define;
    std::string from;
    std::string to;
    words >> define >> from >> to;
    if (define == "#define" && from.starts_with("cu") && to.starts_with("cu")) names.insert(to);
  }
  return names;
}

/// The header declares most functions under their plain name and has macros give them the newest version's.
std::set<std::string> declared() {
  auto names = names_after("cuda.h", "CUresult CUDAAPI");
  names.merge(names_after("cudaProfiler.h", "CUresult CUDAAPI"));
  names.merge(renamed());
  for (const std::string& name : names_after("cuda.h", "__CUDA_API_PTSZ(")) names.insert(name + "_ptsz");
  for (const std::string& name : names_after("cuda.h", "__CUDA_API_PTDS(")) names.insert(name + "_ptds");
  names.erase("cuGetProcAddress_v2_ptsz");  // a function in the header itself
  return names;
}

/// "cuMemAlloc_v3020": what cuGetProcAddress knows, and since when.
std::set<std::string> versions_in(const std::string& header) {
  std::set<std::string> versions;
  for (std::string name : names_after(header, "CUDAAPI *PFN_")) {
    if (name.ends_with("_ptsz") || name.ends_with("_ptds")) continue;
    versions.insert(name);
  }
  return versions;
}

std::set<std::string> without(std::set<std::string> all, const std::set<std::string>& known) {
  std::erase_if(all, [&](const std::string& each) { return known.contains(each); });
  return all;
}

std::set<std::string> symbols_of_the_table() {
  std::set<std::string> symbols;
  for (const abi::CudaFunction& function : abi::cuda_functions()) {
    symbols.emplace(function.symbol);
    if (!function.per_thread_symbol.empty()) symbols.emplace(function.per_thread_symbol);
  }
  return symbols;
}

std::set<std::string> versions_of_the_table() {
  std::set<std::string> versions;
  for (const abi::CudaFunction& function : abi::cuda_functions()) {
    if (function.since > 0)
      versions.insert(std::string(function.name) + "_v" + std::to_string(function.since));
  }
  return versions;
}

TEST(ToolkitNames, EachDeclaredFunctionHasARow) {
  ASSERT_THAT(declared(), Not(IsEmpty()));
  EXPECT_THAT(without(declared(), symbols_of_the_table()), IsEmpty());
}

TEST(ToolkitNames, EachRowIsDeclared) { EXPECT_THAT(without(symbols_of_the_table(), declared()), IsEmpty()); }

TEST(ToolkitNames, EachVersionOfAFunctionHasARow) {
  auto versions = versions_in("cudaTypedefs.h");
  versions.merge(versions_in("cudaProfilerTypedefs.h"));
  ASSERT_THAT(versions, Not(IsEmpty()));
  EXPECT_THAT(without(versions, versions_of_the_table()), IsEmpty());
  EXPECT_THAT(without(versions_of_the_table(), versions), IsEmpty());
}

/// What libcuda.so.1 exports besides: interoperation with OpenGL, EGL and VDPAU, whose types are those
/// libraries'. Nobody who shares a GPU by MPS draws with it.
TEST(ToolkitNames, OnlyGraphicsIsLeftOut) {
  for (const char* const header : {"cudaGL.h", "cudaEGL.h", "cudaVDPAU.h"}) {
    for (const std::string& name : names_after(header, "CUresult CUDAAPI")) {
      const auto has = [&name](const char* part) { return name.find(part) != std::string::npos; };
      const bool is_graphics = has("GL") || has("Egl") || has("VDPAU");
      EXPECT_TRUE(is_graphics) << name << " in " << header;
      EXPECT_EQ(abi::cuda_function_of_symbol(name), nullptr) << name;
    }
  }
}

}  // namespace
}  // namespace firebreak::cuda
