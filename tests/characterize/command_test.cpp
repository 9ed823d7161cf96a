// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <signal.h>

#include <filesystem>
#include <set>
#include <thread>

#include "tests/characterize/characterization.h"

namespace firebreak::tests {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

std::set<std::string> sources_of(const nlohmann::json& run) {
  std::set<std::string> sources;
  for (const auto& signal : run.at("signals")) sources.insert(signal.at("source").get<std::string>());
  return sources;
}

/// (kind, repeat) of every run, each of which may be there once.
std::set<std::pair<std::string, int>> runs_in(const nlohmann::json& results) {
  std::set<std::pair<std::string, int>> runs;
  for (const auto& run : results.at("runs"))
    EXPECT_TRUE(runs.emplace(run.at("kind"), run.at("repeat")).second) << run.dump();
  return runs;
}

void let_live(nlohmann::json& participant) {
  participant["error"] = participant["end"] = "";
  participant["error_ms"] = participant["end_ms"] = nullptr;
}

TEST_F(Characterization, TellsWhoDiesOfEachKindAndWhoSawItFirst) {
  const auto result = characterize(
      {"--kinds", "unmapped-store-far,copy-source-unmap,misaligned-load,double-bit-ecc,unmapped-prefetch-far",
       "--repeat", "1", "--json", json_path});
  EXPECT_TRUE(result.status.clean()) << result.output;
  EXPECT_THAT(result.output, HasSubstr("5 of 5 kinds as expected"));
  const auto told = results();
  EXPECT_TRUE(told.at("finished").get<bool>());
  EXPECT_EQ(runs_in(told).size(), 5U);
  for (const auto& run : told.at("runs")) {
    EXPECT_EQ(run.at("problem"), "") << run.dump();
    EXPECT_EQ(run.at("participants").size(), 4U) << run.dump();
    EXPECT_NE(run.at("restart").at("tries"), 0) << run.dump();
    EXPECT_THAT(run.at("notes").get<std::vector<std::string>>(), IsEmpty()) << "every detector listened";
    if (run.at("kind") != "unmapped-store-far") continue;
    EXPECT_THAT(sources_of(run), testing::IsSupersetOf({"uvm_event", "xid", "mps_log", "nvml"}));
  }
  EXPECT_THAT(sandbox.left_behind(), IsEmpty());
}

TEST_F(Characterization, GoesOnWhereAFileEnds) {
  ASSERT_TRUE(is_finished(
      characterize({"--kinds", "unmapped-store-far,misaligned-load", "--repeat", "1", "--json", json_path})));
  const auto before = results().at("runs");
  const auto result = characterize(
      {"--kinds", "unmapped-store-far,misaligned-load", "--repeat", "2", "--json", json_path, "--resume"});
  EXPECT_TRUE(is_finished(result)) << result.output;
  EXPECT_THAT(runs_in(results()), testing::UnorderedElementsAre(
                                      std::pair("unmapped-store-far", 1), std::pair("unmapped-store-far", 2),
                                      std::pair("misaligned-load", 1), std::pair("misaligned-load", 2)));
  const auto after = results().at("runs");
  EXPECT_EQ(after.at(0), before.at(0));
  EXPECT_EQ(after.at(1), before.at(1));
}

TEST_F(Characterization, DoesNotGoOnWithRunsOfAnotherPlan) {
  ASSERT_TRUE(
      is_finished(characterize({"--kinds", "unmapped-store-far", "--repeat", "1", "--json", json_path})));
  const auto result =
      characterize({"--kinds", "unmapped-store-far", "--seed", "2", "--json", json_path, "--resume"});
  EXPECT_FALSE(result.status.clean());
  EXPECT_THAT(result.output, HasSubstr("another seed ('1', now '2')"));
  EXPECT_EQ(runs_in(results()).size(), 1U) << "the file was left as it was";
}

/// The software GPU does what the catalogue says; so its co-client is resurrected in the file.
TEST_F(Characterization, NamesAKindThatDidSomethingElse) {
  ASSERT_TRUE(is_finished(
      characterize({"--kinds", "unmapped-store-far,misaligned-load", "--repeat", "1", "--json", json_path})));
  const std::string original = sandbox.file("original.json");
  std::filesystem::copy(json_path, original);
  auto changed = results();
  for (auto& run : changed.at("runs")) {
    if (run.at("kind") != "misaligned-load") continue;
    let_live(run.at("participants").at("co_client"));
  }
  write_results(changed);
  const auto result = characterize({"--kinds", "unmapped-store-far,misaligned-load", "--repeat", "1",
                                    "--json", json_path, "--resume", "--against", original});
  EXPECT_EQ(result.status.exit_code, 1);
  EXPECT_THAT(
      result.output,
      HasSubstr("misaligned-load: the co-client lived, expected to die of CUDA_ERROR_MISALIGNED_ADDRESS"));
  EXPECT_THAT(result.output, HasSubstr("misaligned-load: co_client: CUDA_ERROR_MISALIGNED_ADDRESS -> lives"));
  EXPECT_THAT(result.output, testing::Not(HasSubstr("unmapped-store-far: co_client")));
}

TEST_F(Characterization, LeavesNothingWhenInterruptedAndGoesOnLater) {
  const std::vector<std::string> arguments = {
      "--kinds", "unmapped-store-far,misaligned-load,copy-source-unmap", "--repeat", "2", "--json",
      json_path};
  const pid_t pid = start(arguments);
  // The first run has been written: the second one begins, or is on its way.
  while (!std::filesystem::exists(json_path)) std::this_thread::yield();
  sandbox.signal(pid, SIGINT);
  EXPECT_EQ(sandbox.wait(pid).exit_code, 2);
  EXPECT_THAT(sandbox.left_behind(), IsEmpty());
  const auto before = results();
  EXPECT_FALSE(before.at("finished").get<bool>());
  EXPECT_LT(before.at("runs").size(), 6U);

  auto resumed = arguments;
  resumed.emplace_back("--resume");
  const auto result = characterize(resumed);
  EXPECT_TRUE(is_finished(result)) << result.output;
  EXPECT_EQ(runs_in(results()).size(), 6U);
  EXPECT_TRUE(results().at("finished").get<bool>());
  EXPECT_EQ(results().at("runs").at(0), before.at("runs").at(0));
}

/// Whose co-client lives in the file, and of which nothing is known before all three runs.
TEST_F(Characterization, UnfinishedIsNoVerdict) {
  ASSERT_TRUE(
      is_finished(characterize({"--kinds", "misaligned-load", "--repeat", "1", "--json", json_path})));
  auto changed = results();
  let_live(changed.at("runs").at(0).at("participants").at("co_client"));
  write_results(changed);
  const auto result = characterize({"--kinds", "misaligned-load", "--repeat", "3", "--json", json_path,
                                    "--resume", "--budget-s", "0.001"});
  EXPECT_EQ(result.status.exit_code, 2);
  EXPECT_THAT(result.output, HasSubstr("0 of 1 kinds as expected"));
  EXPECT_THAT(result.output, HasSubstr("unfinished (the time is up)"));
}

TEST_F(Characterization, StopsWhenItsTimeIsUp) {
  const auto result =
      characterize({"--kinds", "sm", "--repeat", "3", "--json", json_path, "--budget-s", "0.001"});
  EXPECT_EQ(result.status.exit_code, 2);
  EXPECT_THAT(result.output, HasSubstr("unfinished (the time is up)"));
  EXPECT_FALSE(results().at("finished").get<bool>());
}

}  // namespace
}  // namespace firebreak::tests
