// SPDX-License-Identifier: Apache-2.0
#include "kernels/ptx/parse.h"

#include "kernels/ptx/immediates.h"
#include "kernels/ptx/parser.h"
#include "kernels/ptx/validate.h"

namespace firebreak::ptx {

Result<Module> parse(std::string_view source, std::string_view file_name, UnknownInstructions unknown) {
  Parser parser(lex(source));
  parser.keeps_unknown = unknown == UnknownInstructions::Kept;
  parse_module(parser);
  Finding problem = parser.tokens.failure();
  if (!problem) problem = encode_immediates(parser.module);
  if (problem) return fail(ErrorCode::InvalidArgument, to_string(*problem, file_name));
  if (const Status valid = validate(parser.module, file_name); !valid) return propagate(valid);
  return std::move(parser.module);
}

}  // namespace firebreak::ptx
