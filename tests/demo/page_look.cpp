// SPDX-License-Identifier: Apache-2.0
#include "tests/demo/page_look.h"

#include <gmock/gmock.h>

#include <vector>

#include "ground/os/program.h"
#include "ground/os/real_kernel.h"

namespace firebreak::tests {

nlohmann::json look_at(const std::string& page) {
  os::RealKernel kernel;
  os::SpawnRequest request;
  request.command = {FIREBREAK_NODE, FIREBREAK_LOOK_AT_PAGE, FIREBREAK_PAGE_BUILD, page};
  auto result = os::run_program(kernel, request, "", Milliseconds(120'000));
  if (!result || !result->status.clean()) {
    ADD_FAILURE() << (result ? result->output : to_string(result.error()));
    return {};
  }
  return nlohmann::json::parse(result->output);
}

void expect_fits_narrow_screen(const nlohmann::json& seen) {
  using Texts = std::vector<std::string>;
  const auto& narrow = seen.at("narrow");
  EXPECT_LE(narrow.at("page"), narrow.at("screen"));
  for (const char* what : {"outside", "cut", "too_small"})
    EXPECT_THAT(narrow.at(what).get<Texts>(), testing::IsEmpty()) << what;
}

}  // namespace firebreak::tests
