// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/service/service_manager.h"

namespace firebreak::agent {
namespace {

using testing::ElementsAre;

TEST(Systemd, IsGivenTheVariablesThatItTakes) {
  EXPECT_THAT(
      that_systemd_takes({"PATH=/bin", "LANG=", "_A1=b=c", "LINES=one\n\ttwo", "PATH=/tmp", "NONE", "=x",
                          "BASH_FUNC_f%%=() {\n}", "1A=x", "BELL=\a", "ERASE=\x7f", "CITY=Z\xc3\xbcrich"}),
      ElementsAre("PATH=/bin", "LANG=", "_A1=b=c", "LINES=one\n\ttwo", "CITY=Z\xc3\xbcrich"));
}

}  // namespace
}  // namespace firebreak::agent
