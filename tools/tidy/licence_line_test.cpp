// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/tidy/testing.h"

namespace firebreak::tidy {
namespace {

std::vector<std::string> check(const std::string& path, const std::string& text) {
  return places(check_licence_line(tree_of({{path, text}})));
}

TEST(LicenceLine, FirstLineOrTheOneAfterTheShebang) {
  EXPECT_THAT(check("a.cpp", "// SPDX-License-Identifier: Apache-2.0\n"), testing::IsEmpty());
  EXPECT_THAT(check("dev", "#!/bin/sh\n# SPDX-License-Identifier: Apache-2.0\n"), testing::IsEmpty());
  EXPECT_THAT(check("README.md", "text\n"), testing::IsEmpty());
}

TEST(LicenceLine, MissingOrLateFails) {
  EXPECT_THAT(check("a.cpp", "int a;\n"), testing::ElementsAre("a.cpp:1"));
  EXPECT_THAT(check("a.h", "#pragma once\n// SPDX-License-Identifier: Apache-2.0\n"),
              testing::ElementsAre("a.h:1"));
  EXPECT_THAT(check("a.cmake", ""), testing::ElementsAre("a.cmake:1"));
  EXPECT_THAT(check("run", "#!/bin/sh"), testing::ElementsAre("run:1"));
}

}  // namespace
}  // namespace firebreak::tidy
