// SPDX-License-Identifier: Apache-2.0
#include "program/cuda/device.h"

#include <gtest/gtest.h>

namespace firebreak::cuda {
namespace {

TEST(FormatUuid, LooksAsInNvidiaSmi) {
  CUuuid uuid{};
  for (int i = 0; i < 16; ++i) uuid.bytes[i] = static_cast<char>(i * 17);
  EXPECT_EQ(format_uuid(uuid), "GPU-00112233-4455-6677-8899-aabbccddeeff");
}

}  // namespace
}  // namespace firebreak::cuda
