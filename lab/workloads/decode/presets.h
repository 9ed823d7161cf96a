// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "workloads/common/options.h"
#include "workloads/decode/schedule.h"

namespace firebreak::workloads::decode {

struct Preset {
  Shape shape;
  Traffic traffic;
  std::uint64_t steps = 0;
};

/// Suits the software GPU: some milliseconds a step.
inline constexpr Preset small_preset{.shape = {.layers = 2,
                                               .hidden = 64,
                                               .heads = 4,
                                               .key_heads = 2,
                                               .head_size = 16,
                                               .intermediate = 128,
                                               .vocabulary = 256,
                                               .streams = 2,
                                               .page_tokens = 4,
                                               .pages = 16},
                                     .traffic = {.prompt_tokens_min = 3,
                                                 .prompt_tokens_max = 6,
                                                 .answer_tokens_min = 8,
                                                 .answer_tokens_max = 24},
                                     .steps = 100};

/// Suits a real GPU: a model of 167 million parameters.
inline constexpr Preset medium_preset{.shape = {.layers = 12,
                                                .hidden = 1024,
                                                .heads = 16,
                                                .key_heads = 4,
                                                .head_size = 64,
                                                .intermediate = 2816,
                                                .vocabulary = 32768,
                                                .streams = 8,
                                                .page_tokens = 16,
                                                .pages = 256},
                                      .traffic = {.prompt_tokens_min = 16,
                                                  .prompt_tokens_max = 64,
                                                  .answer_tokens_min = 64,
                                                  .answer_tokens_max = 384},
                                      .steps = 500};

/// Preset with which a standby warms up: every kernel, next to no memory.
inline constexpr Preset warm_up_preset{.shape = {.layers = 1,
                                                 .hidden = 32,
                                                 .heads = 2,
                                                 .key_heads = 1,
                                                 .head_size = 16,
                                                 .intermediate = 32,
                                                 .vocabulary = 64,
                                                 .streams = 2,
                                                 .page_tokens = 4,
                                                 .pages = 2},
                                       .traffic = {.prompt_tokens_min = 1,
                                                   .prompt_tokens_max = 1,
                                                   .answer_tokens_min = 1,
                                                   .answer_tokens_max = 1},
                                       .steps = 1};

constexpr const Preset& preset_of(Size size) { return size == Size::Small ? small_preset : medium_preset; }

}  // namespace firebreak::workloads::decode
