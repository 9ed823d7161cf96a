// SPDX-License-Identifier: Apache-2.0
#include "ground/os/self.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "ground/os/file.h"
#include "ground/os/library_name.h"

namespace firebreak::os {
namespace {

TEST(Library, SymbolOfALibraryIsCallable) {
  const auto symbol = load_symbol("libm.so.6", "floor");
  ASSERT_TRUE(symbol) << to_string(symbol.error());
  EXPECT_EQ(reinterpret_cast<double (*)(double)>(*symbol)(2.5), 2.0);
}

TEST(Library, ANeighbourLiesInTheSameFolder) {
  namespace fs = std::filesystem;
  const fs::path neighbour = fs::canonical(fs::path(beside_this_library("x")).parent_path());
  EXPECT_EQ(neighbour, fs::path(executable_path().value()).parent_path());
}

TEST(Library, WhatIsMissingIsNamed) {
  const auto library = load_symbol("libno-such-thing.so", "floor");
  ASSERT_FALSE(library);
  EXPECT_EQ(library.error().code, ErrorCode::NotFound);
  EXPECT_THAT(library.error().message, ::testing::HasSubstr("libno-such-thing.so"));
  const auto symbol = load_symbol("libm.so.6", "no_such_symbol");
  ASSERT_FALSE(symbol);
  EXPECT_EQ(symbol.error().code, ErrorCode::NotFound);
  EXPECT_EQ(symbol.error().message, "libm.so.6 has no no_such_symbol");
}

TEST(Library, SaysItsOwnName) {
  const void* const in_library = load_symbol("libm.so.6", "floor").value();
  EXPECT_EQ(own_name_of_library(in_library), "libm.so.6");
  EXPECT_EQ(own_name_of_library(reinterpret_cast<const void*>(&load_symbol)), "") << "a program has none";
  const int on_stack = 0;
  EXPECT_EQ(own_name_of_library(&on_stack), "");
  EXPECT_EQ(own_name_of_library(nullptr), "");
}

/// A library that is put in the place of another one each time, as a driver that is updated.
class PrivateCopies : public testing::Test {
 protected:
  void SetUp() override {
    const auto its = library_of(reinterpret_cast<const void*>(load_symbol("libm.so.6", "floor").value()));
    ASSERT_TRUE(its);
    original_ = *its;
    update();
  }
  void TearDown() override {
    for (const std::string& each : made_) std::filesystem::remove(each);
  }
  void update() {
    std::filesystem::remove(path_);
    std::filesystem::copy_file(original_, path_);
  }
  /// The path of the copy.
  std::string load(unsigned int copy = 1) {
    const auto library = PrivateLibrary::load(path_, copy);
    EXPECT_TRUE(library) << to_string(library.error());
    if (!library) return {};
    const auto origin = PrivateLibrary::origin_of(library->symbol("floor"));
    EXPECT_TRUE(origin);
    if (!origin) return {};
    made_.push_back(origin->path);
    return origin->path;
  }
  static void let_age(const std::string& path, std::chrono::minutes age) {
    std::filesystem::last_write_time(path, std::filesystem::file_time_type::clock::now() - age);
  }

  TemporaryDirectory directory_ = TemporaryDirectory::create().value();
  std::string original_;
  /// The name differs from that of what others copy meanwhile.
  std::string path_ = directory_.path() + "/libcopied-" + std::to_string(own_pid()) + ".so";
  std::vector<std::string> made_;
};

TEST_F(PrivateCopies, OfALibraryAsItWasBeforeGoOnceTheyAreOld) {
  const std::string first = load();
  const std::string second = load(2);
  let_age(first, std::chrono::minutes(61));
  update();
  const std::string next = load();
  EXPECT_NE(next, first);
  EXPECT_FALSE(std::filesystem::exists(first));
  EXPECT_TRUE(std::filesystem::exists(second)) << "it may be in use beside the new one";
  EXPECT_TRUE(std::filesystem::exists(next));
}

TEST_F(PrivateCopies, OfTheSameLibraryStay) {
  const std::string first = load();
  let_age(first, std::chrono::hours(100));
  EXPECT_NE(load(2), first);
  EXPECT_TRUE(std::filesystem::exists(first));
  EXPECT_EQ(load(), first);
}

/// The copies of a user's libraries, where somebody else came first to the name of that user's folder.
class CopiesOfAUser : public testing::Test {
 protected:
  static constexpr uid_t user = 64'987;
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can be two users";
    remove_all();
    ASSERT_TRUE(make_directories(folder_));
  }
  void TearDown() override {
    if (::geteuid() == 0) remove_all();
  }
  void remove_all() {
    std::vector<std::filesystem::path> all;
    for (const auto& each : std::filesystem::directory_iterator("/dev/shm"))
      if (each.path().string().starts_with(folder_)) all.push_back(each.path());
    for (const auto& each : all) std::filesystem::remove_all(each);
  }
  /// The path of that user's copy; empty: there is none.
  static std::string load_as_user() {
    const auto its = library_of(load_symbol("libm.so.6", "floor").value());
    EXPECT_EQ(::seteuid(user), 0);
    const auto library = PrivateLibrary::load(its.value(), 1);
    const auto origin = library ? PrivateLibrary::origin_of(library->symbol("floor")) : std::nullopt;
    EXPECT_EQ(::seteuid(0), 0);
    EXPECT_TRUE(library) << to_string(library.error());
    return origin ? origin->path : std::string();
  }

  const std::string folder_ = "/dev/shm/firebreak-" + std::to_string(user);
};

TEST_F(CopiesOfAUser, SomebodyElsesFolderIsNotInTheWay) {
  const std::string path = load_as_user();
  EXPECT_THAT(path, testing::StartsWith(folder_ + "-"));
  const std::string folder = path.substr(0, path.rfind('/'));
  struct stat status {};
  ASSERT_EQ(::stat(folder.c_str(), &status), 0);
  EXPECT_EQ(status.st_uid, user);
  EXPECT_EQ(status.st_mode & 0777, 0700U);
  EXPECT_EQ(load_as_user(), path) << "the next process finds it";
}

TEST_F(CopiesOfAUser, NoFolderOfOthersWithSuchANameIsTaken) {
  const std::string theirs = folder_ + "-AAAAAA";
  ASSERT_TRUE(make_directories(theirs));
  std::filesystem::permissions(theirs, std::filesystem::perms::all);
  const std::string path = load_as_user();
  EXPECT_THAT(path, testing::StartsWith(folder_ + "-"));
  EXPECT_THAT(path, testing::Not(testing::StartsWith(theirs)));
}

}  // namespace
}  // namespace firebreak::os
