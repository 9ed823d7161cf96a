// SPDX-License-Identifier: Apache-2.0
/// Macros that make C++ out of the parameters of a row of cuda_api.def. CUDA_TYPES(...) gives their types,
/// CUDA_PARAMETERS(...) declares them, CUDA_ARGUMENTS(...) passes them on. A row has up to 27 of them.
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
