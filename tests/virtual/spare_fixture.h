// SPDX-License-Identifier: Apache-2.0
/// A program with a spare driver instance on a software machine of its own, and what the agent would see and
/// say of it.
#pragma once

#include <fcntl.h>
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "ground/os/self.h"
#include "shared/abi/spare_page.h"
#include "tests/softgpu_driver/machine_test.h"

namespace firebreak::test {

using abi::SparePage;
using abi::SpareState;

/// The page of a process, as the agent finds it.
class Page {
 public:
  explicit Page(pid_t pid) {
    EXPECT_TRUE(eventually([&] { return find(pid); })) << "the process has no page";
  }
  SparePage& operator*() { return *reinterpret_cast<SparePage*>(mapping_.data()); }
  SparePage* operator->() { return &**this; }

  /// Protected is who is so now: its spare has what the program has made before.
  bool is(SpareState state) {
    return eventually([&] {
      const bool is_of_now = state != SpareState::Protected || (*this)->is_behind.load() == 0;
      return is_of_now && (*this)->state.load() == state;
    });
  }
  std::string reason() { return (*this)->reason.data(); }
  std::string active_domain() { return std::filesystem::path((*this)->active_domain.data()).filename(); }
  std::string spare_domain() { return std::filesystem::path((*this)->spare_domain.data()).filename(); }

  /// Asks, as the agent does, and waits for the answer.
  void ask_to_leave() {
    ask();
    EXPECT_TRUE(is_answered());
  }
  void ask() {
    (*this)->asked_to_leave.fetch_add(1);
    (*this)->wake.fetch_add(1);
    os::futex_wake((*this)->wake);
  }
  void set_rule(std::size_t domain, abi::DomainRule rule) {
    (*this)->rules[domain].store(rule);
    (*this)->wake.fetch_add(1);
    os::futex_wake((*this)->wake);
  }
  bool is_answered() {
    return eventually([&] { return (*this)->answered.load() == (*this)->asked_to_leave.load(); });
  }

 private:
  bool find(pid_t pid) {
    std::error_code ignored;
    for (const auto& entry :
         std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/fd", ignored)) {
      const std::string target = std::filesystem::read_symlink(entry, ignored).string();
      if (target.find(abi::spare_page_name) == std::string::npos) continue;
      const os::Fd file(::open(entry.path().c_str(), O_RDWR | O_CLOEXEC));
      auto mapping = os::Mapping::of_file(file.get(), os::page_size(), os::Protection::ReadWrite);
      if (!mapping) return false;
      mapping_ = std::move(*mapping);
      return true;
    }
    return false;
  }

  os::Mapping mapping_;
};

class Spare : public MachineTest {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
    GTEST_SKIP() << "a sanitizer's runtime wants to be the first library";
#endif
  }
  /// In an anchor's domain, with its first working instance in "a" and its spare in "b".
  std::unique_ptr<Client> start_with_spare(const std::string& init = "init",
                                           const Environment& besides = {}) {
    for (const char* const name : {"a", "b", "anchor"}) start_mps(name);
    return start_again(init, besides);
  }
  std::unique_ptr<Client> start_again(const std::string& init = "init", const Environment& besides = {}) {
    Environment all = environment();
    all.insert(all.end(), besides.begin(), besides.end());
    all.emplace_back("LD_PRELOAD", FIREBREAK_GUARD_LIBRARY);
    if (!is_guarded()) all.emplace_back("FIREBREAK_GUARD", "0");
    all.emplace_back("FIREBREAK_SPARE", directory() + "/a:" + directory() + "/b");
    auto program = std::make_unique<Client>(kernel_, all, FIREBREAK_PLAIN_PROGRAM);
    EXPECT_EQ(program->tell(init), CUDA_SUCCESS);
    return program;
  }
  /// Guard ranges lie in front of the virtual driver. FIREBREAK_GUARD=1 says so of all tests.
  virtual bool is_guarded() const { return os::environment_variable("FIREBREAK_GUARD") == "1"; }

  /// The same program without anything of ours: what is right.
  std::unique_ptr<Client> start_plain(const std::string& domain) {
    start_mps(domain);
    auto program = std::make_unique<Client>(kernel_, environment(), FIREBREAK_PLAIN_PROGRAM);
    EXPECT_EQ(program->tell("init"), CUDA_SUCCESS);
    return program;
  }
  void step(Client& program, Client& model, int times = 1) {
    for (int i = 0; i < times; ++i) {
      EXPECT_EQ(program.tell("step"), CUDA_SUCCESS);
      EXPECT_EQ(model.tell("step"), CUDA_SUCCESS);
    }
    expect_same(program, model);
  }
  void expect_same(Client& program, Client& model) {
    for (const char* const question : {"digest", "steps", "read_large", "pinned"}) {
      const auto answer = program.ask(question);
      EXPECT_EQ(answer.result, CUDA_SUCCESS) << question;
      EXPECT_EQ(answer.value, model.ask(question).value) << question;
    }
  }
  /// Files of that kind that the process has mapped.
  static std::size_t copies_in(pid_t pid) {
    std::ifstream maps("/proc/" + std::to_string(pid) + "/maps");
    std::set<std::string> found;
    for (std::string line; std::getline(maps, line);) {
      const std::size_t path = line.find('/');
      if (path != std::string::npos && line.find("/library-", path) != std::string::npos)
        found.insert(line.substr(path));
    }
    return found.size();
  }
  Environment in_domain(const std::string& domain) {
    Environment all = environment();
    for (auto& [variable, value] : all)
      if (variable == "CUDA_MPS_PIPE_DIRECTORY") value = directory() + "/" + domain;
    return all;
  }
  /// A client of that domain that is about to fault.
  std::unique_ptr<Client> start_faulter(const std::string& domain) {
    auto faulter = std::make_unique<Client>(kernel_, in_domain(domain), FIREBREAK_PLAIN_PROGRAM);
    EXPECT_EQ(faulter->tell("init"), CUDA_SUCCESS);
    return faulter;
  }
  /// And with it everybody there.
  static void fault(Client& faulter) {
    ASSERT_EQ(faulter.tell("fault"), CUDA_SUCCESS);
    EXPECT_EQ(faulter.tell("wait"), CUDA_ERROR_MISALIGNED_ADDRESS);
    faulter.kill();
  }
  /// Where nothing has to be under way still: on a busy machine a process takes seconds to start.
  void end_domain(const std::string& domain) { fault(*start_faulter(domain)); }
};

}  // namespace firebreak::test
