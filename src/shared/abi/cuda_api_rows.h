// SPDX-License-Identifier: Apache-2.0
/// Macros that make C++ out of the parameters of a row of cuda_api.def. CUDA_TYPES(...) gives their types,
/// CUDA_PARAMETERS(...) declares them, CUDA_ARGUMENTS(...) passes them on. A row has up to 27 of them.
/// And macros that make C++ of each of a row's symbols, and that read tables which have rows for some
/// symbols.
#pragma once

#define CUDA_ROW_PARENTHESES ()
#define CUDA_ROW_EXPAND(...) CUDA_ROW_EXPAND_3(CUDA_ROW_EXPAND_3(CUDA_ROW_EXPAND_3(__VA_ARGS__)))
#define CUDA_ROW_EXPAND_3(...) CUDA_ROW_EXPAND_2(CUDA_ROW_EXPAND_2(CUDA_ROW_EXPAND_2(__VA_ARGS__)))
#define CUDA_ROW_EXPAND_2(...) CUDA_ROW_EXPAND_1(CUDA_ROW_EXPAND_1(CUDA_ROW_EXPAND_1(__VA_ARGS__)))
#define CUDA_ROW_EXPAND_1(...) __VA_ARGS__

#define CUDA_EACH(what, ...) __VA_OPT__(CUDA_ROW_EXPAND(CUDA_EACH_STEP(what, __VA_ARGS__)))
#define CUDA_EACH_STEP(what, first, ...) \
  what first __VA_OPT__(, CUDA_EACH_AGAIN CUDA_ROW_PARENTHESES(what, __VA_ARGS__))
#define CUDA_EACH_AGAIN() CUDA_EACH_STEP

#define CUDA_ONE_TYPE(kind, type, name, ...) type
#define CUDA_ONE_PARAMETER(kind, type, name, ...) type name
#define CUDA_ONE_ARGUMENT(kind, type, name, ...) name

#define CUDA_TYPES(...) CUDA_EACH(CUDA_ONE_TYPE, __VA_ARGS__)
#define CUDA_PARAMETERS(...) CUDA_EACH(CUDA_ONE_PARAMETER, __VA_ARGS__)
#define CUDA_ARGUMENTS(...) CUDA_EACH(CUDA_ONE_ARGUMENT, __VA_ARGS__)

/// For each symbol of a row, define(EXPORTED, symbol, is_per_thread, ...): of the row's own, and of the one
/// for callers whose default stream is their thread's own.
#define CUDA_SYMBOLS(per_thread, define, symbol, ...) \
  define(symbol, symbol, false, __VA_ARGS__) CUDA_SYMBOLS_##per_thread(define, symbol, __VA_ARGS__)
#define CUDA_SYMBOLS_same(...)
#define CUDA_SYMBOLS_ptsz(define, symbol, ...) define(symbol##_ptsz, symbol, true, __VA_ARGS__)
#define CUDA_SYMBOLS_ptds(define, symbol, ...) define(symbol##_ptds, symbol, true, __VA_ARGS__)

// A row of such a table is a macro that begins with something to be skipped. A name that is no macro is
// itself skipped, so that what follows it in the list says what holds for symbols without a row.
#define CUDA_SECOND(...) CUDA_SECOND_OF(__VA_ARGS__)
#define CUDA_SECOND_OF(first, second, ...) second
#define CUDA_THIRD(...) CUDA_THIRD_OF(__VA_ARGS__)
#define CUDA_THIRD_OF(first, second, third, ...) third
#define CUDA_JOINED(begin, end) CUDA_JOINED_OF(begin, end)
#define CUDA_JOINED_OF(begin, end) begin##end
