// SPDX-License-Identifier: Apache-2.0
#include "kernels/ptx/parse.h"

#include "kernels/ptx/immediates.h"
#include "kernels/ptx/parser.h"
#include "kernels/ptx/validate.h"

namespace firebreak::ptx {

namespace {

// Each costs a look at the whole module.
constexpr int most_invalid_functions = 32;

Function* function_around(Module& module, SourceLocation location) {
  Function* found = nullptr;
  for (Function& each : module.functions)
    if (each.has_body && each.location.line <= location.line &&
        (found == nullptr || each.location.line > found->location.line))
      found = &each;
  return found;
}

}  // namespace

Result<Module> parse(std::string_view source, std::string_view file_name, UnknownInstructions unknown) {
  Parser parser(lex(source));
  parser.keeps_unknown = unknown == UnknownInstructions::Kept;
  parse_module(parser);
  Finding problem = parser.tokens.failure();
  for (std::size_t i = 0; i < parser.module.functions.size() && !problem; ++i) {
    Function& function = parser.module.functions[i];
    problem = encode_immediates(parser.module, function);
    if (!problem || !parser.keeps_unknown) continue;
    make_opaque(function, problem->message);
    problem.reset();
  }
  if (problem) return fail(ErrorCode::InvalidArgument, to_string(*problem, file_name));
  problem = find_invalid(parser.module);
  for (int tries = 0; problem && parser.keeps_unknown && tries < most_invalid_functions; ++tries) {
    Function* const function = function_around(parser.module, problem->location);
    if (function == nullptr) break;
    make_opaque(*function, problem->message);
    problem = find_invalid(parser.module);
  }
  if (problem) return fail(ErrorCode::InvalidArgument, to_string(*problem, file_name));
  return std::move(parser.module);
}

}  // namespace firebreak::ptx
