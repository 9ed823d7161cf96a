# SPDX-License-Identifier: Apache-2.0
# cmake -D PTX=file -D NAME=decode -D OUT=file.cpp -P embed_ptx.cmake
file(READ ${PTX} hex HEX)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
string(REGEX REPLACE "((0x[0-9a-f][0-9a-f],){24})" "\\1\n" bytes "${bytes}")
file(WRITE ${OUT} "// Made from ${NAME}.ptx by embed_ptx.cmake.
#include <string_view>

namespace firebreak::workloads::${NAME} {
namespace {

constexpr char bytes[] = {
${bytes}};

}  // namespace

std::string_view ptx();
std::string_view ptx() { return {bytes, sizeof bytes}; }

}  // namespace firebreak::workloads::${NAME}
")
