# SPDX-License-Identifier: Apache-2.0
# cmake -D IN=file -D NAMESPACE=firebreak::x -D FUNCTION=text -D OUT=file.cpp -P embed_text.cmake
# A source file that defines std::string_view NAMESPACE::FUNCTION().
file(READ ${IN} hex HEX)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," bytes "${hex}")
string(REGEX REPLACE "(('[^']*',){24})" "\\1\n" bytes "${bytes}")
get_filename_component(name ${IN} NAME)
file(WRITE ${OUT} "// Made from ${name} by embed_text.cmake.
#include <string_view>

namespace ${NAMESPACE} {
namespace {

constexpr char bytes[] = {
${bytes}};

}  // namespace

std::string_view ${FUNCTION}();
std::string_view ${FUNCTION}() { return {bytes, sizeof bytes}; }

}  // namespace ${NAMESPACE}
")
