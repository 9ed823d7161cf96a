// SPDX-License-Identifier: Apache-2.0
#include "agent/parking/park/evidence_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "ground/base/units.h"
#include "ground/os/file.h"
#include "ground/os/owned_file.h"

namespace firebreak::park {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class EvidenceFolderTest : public testing::Test {
 protected:
  void SetUp() override {
    auto made = os::TemporaryDirectory::create();
    ASSERT_TRUE(made) << to_string(made.error());
    directory_.emplace(std::move(*made));
    path_ = directory_->path();
  }
  static Evidence evidence(const std::string& id) {
    Evidence made;
    made.id = id;
    made.name = "rogue-77";
    return made;
  }
  void keep(const EvidenceFolder& folder, const std::string& id, std::size_t dump_bytes,
            uid_t user = ::geteuid()) const {
    auto dump = folder.begin_dump(id, user);
    ASSERT_TRUE(dump) << to_string(dump.error());
    ASSERT_TRUE(dump->write(std::string(dump_bytes, 'd')) && dump->finish());
    const Status kept = folder.keep(evidence(id), user);
    ASSERT_TRUE(kept) << to_string(kept.error());
  }
  struct stat look_at(const std::string& name) const {
    struct stat info {};
    EXPECT_EQ(::stat((path_ + "/" + name).c_str(), &info), 0) << name;
    return info;
  }

  std::optional<os::TemporaryDirectory> directory_;
  std::string path_;
};

TEST_F(EvidenceFolderTest, WhatIsKeptIsReadAgain) {
  const EvidenceFolder folder(path_);
  keep(folder, "1-rogue-77", 10);
  const auto read = read_evidence(path_, "1-rogue-77");
  ASSERT_TRUE(read) << to_string(read.error());
  EXPECT_EQ(read->name, "rogue-77");
  EXPECT_EQ(dump_path_of(path_, "1-rogue-77"), path_ + "/1-rogue-77.cudacore");
  EXPECT_EQ(dump_path_of(path_, "2-rogue-77"), "");
}

TEST_F(EvidenceFolderTest, NobodyButItsOwnerReadsAFile) {
  keep(EvidenceFolder(path_), "1", 10);
  for (const char* name : {"1.json", "1.cudacore"}) {
    EXPECT_EQ(look_at(name).st_mode & 07777, 0600u) << name;
    EXPECT_EQ(look_at(name).st_uid, ::geteuid()) << name;
  }
}

/// An owner could let himself write it, and say something else of himself or take everybody's room.
TEST_F(EvidenceFolderTest, TheTenantsUserReadsAFileAndDoesNotOwnIt) {
  keep(EvidenceFolder(path_), "1", 10, 4711);
  for (const char* name : {"1.json", "1.cudacore"}) {
    EXPECT_EQ(look_at(name).st_uid, ::geteuid()) << name;
    EXPECT_EQ(os::reader_of(path_ + "/" + name).value(), 4711u) << name;
    EXPECT_EQ(look_at(name).st_mode & 0027, 0u) << name;
  }
}

TEST_F(EvidenceFolderTest, NobodyTakesTheRoomOfWhoHasNoMoreThanHisPart) {
  const EvidenceFolder folder(path_, {8, 10'000});
  keep(folder, "1", 4'000, 4711);
  for (int i = 2; i < 10; ++i) keep(folder, std::to_string(i), 4'000, 4712);
  EXPECT_THAT(evidence_ids(path_), ElementsAre("1", "9")) << "by bytes";
  const EvidenceFolder wide(path_, {8, 1 << 20});
  for (int i = 10; i < 40; ++i) keep(wide, std::to_string(i), 10, 4712);
  EXPECT_EQ(evidence_ids(path_).size(), 8u);
  EXPECT_NE(dump_path_of(path_, "1"), "") << "by exceptions";
}

/// Where users owned their files they may have made them as large as they liked.
TEST_F(EvidenceFolderTest, WhatAUserHasMadeLargeCostsNobodyElsesReports) {
  keep(EvidenceFolder(path_), "1", 10, 4711);
  keep(EvidenceFolder(path_), "2", 10, 4712);
  std::filesystem::resize_file(path_ + "/2.cudacore", 300 * gib);
  keep(EvidenceFolder(path_), "3", 10, 4713);
  EXPECT_THAT(evidence_ids(path_), ElementsAre("1", "3"));
}

TEST_F(EvidenceFolderTest, OthersCanListTheFolderAndNotWriteIt) {
  ASSERT_TRUE(EvidenceFolder(path_).open());
  EXPECT_EQ(look_at(".").st_mode & 07777, 0755u);
}

TEST_F(EvidenceFolderTest, TheOldestGoesWhereThereAreTooMany) {
  const EvidenceFolder folder(path_, {3, 1 << 20});
  for (const char* id : {"3", "1", "2", "4", "5"}) keep(folder, id, 10);
  EXPECT_THAT(evidence_ids(path_), ElementsAre("3", "4", "5"));
  EXPECT_EQ(dump_path_of(path_, "1"), "");
  EXPECT_NE(dump_path_of(path_, "3"), "");
}

TEST_F(EvidenceFolderTest, TheOldestGoesWhereTheyAreTooLarge) {
  const EvidenceFolder folder(path_, {100, 10'000});
  for (const char* id : {"1", "2", "3"}) keep(folder, id, 4'000);
  EXPECT_THAT(evidence_ids(path_), ElementsAre("2", "3"));
}

TEST_F(EvidenceFolderTest, WhatIsKeptNowStaysHoweverLargeItIs) {
  const EvidenceFolder folder(path_, {2, 1'000});
  keep(folder, "2", 10);
  keep(folder, "1", 4'000);
  EXPECT_THAT(evidence_ids(path_), ElementsAre("1"));
}

// The agent before this one has left them.
TEST_F(EvidenceFolderTest, DumpsWithoutADocumentCountToo) {
  std::ofstream(path_ + "/0-old.cudacore") << std::string(2'000, 'd');
  std::ofstream(path_ + "/something-else") << "x";
  keep(EvidenceFolder(path_, {1, 1 << 20}), "1", 10);
  EXPECT_FALSE(std::filesystem::exists(path_ + "/0-old.cudacore"));
  EXPECT_TRUE(std::filesystem::exists(path_ + "/something-else"));
}

TEST_F(EvidenceFolderTest, WhatIsNoReportIsSaid) {
  EXPECT_EQ(read_evidence(path_, "1").error().code, ErrorCode::NotFound);
  EXPECT_EQ(read_evidence(path_, "../1").error().code, ErrorCode::InvalidArgument);
  std::ofstream(path_ + "/1.json") << "{";
  EXPECT_EQ(read_evidence(path_, "1").error().code, ErrorCode::Protocol);
  std::ofstream(path_ + "/2.json") << to_json(evidence("3"));
  EXPECT_EQ(read_evidence(path_, "2").error().code, ErrorCode::Protocol);
  std::ofstream(path_ + "/elsewhere") << to_json(evidence("4"));
  std::filesystem::create_symlink(path_ + "/elsewhere", path_ + "/4.json");
  EXPECT_EQ(read_evidence(path_, "4").error().code, ErrorCode::Protocol);
  EXPECT_FALSE(EvidenceFolder(path_).keep(evidence("../1"), ::geteuid()));
  EXPECT_THAT(evidence_ids(path_ + "/nowhere"), IsEmpty());
}

TEST_F(EvidenceFolderTest, IntoAFolderThatOthersCanWriteNothingIsPut) {
  std::filesystem::permissions(path_, std::filesystem::perms::all);
  EXPECT_FALSE(EvidenceFolder(path_).keep(evidence("1"), ::geteuid()));
}

}  // namespace
}  // namespace firebreak::park
