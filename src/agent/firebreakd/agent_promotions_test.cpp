// SPDX-License-Identifier: Apache-2.0
/// Tests of what the agent does between a signal and the last promotion that follows from it: counted from
/// outside, by a tracer. A program of its own, since it replaces operator new.
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

#include "tests/doubles/agent/agent_test_support.h"

namespace {

std::atomic<std::uint64_t> allocations{0};

void* counted(std::size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  void* memory = std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

// The thread sanitizer makes g++ 12 take malloc() in the first for another allocator than free() in the
// others.
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"
void* operator new(std::size_t size) { return counted(size); }
void* operator new[](std::size_t size) { return counted(size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

namespace firebreak::agent {
namespace {

/// Numbers of no system call: they mark what the tracer counts.
constexpr long begins = 1'000'001;
constexpr long ends = 1'000'002;

/// The counts between the two marks: system calls up to and including the last futex's, how many of them were
/// of a futex, and what had been allocated by then.
struct Counted {
  bool works = false;
  std::uint64_t wakes = 0;
  std::uint64_t calls = 0;
  std::uint64_t allocations = 0;
};

/// A process of its own that counts. Its parent is stopped at each of its system calls.
[[noreturn]] void trace(pid_t thread, int ready, Counted* counted) {
  int status = 0;
  const auto next = [&] {
    return ::ptrace(PTRACE_SYSCALL, thread, 0, 0) == 0 && ::waitpid(thread, &status, __WALL) == thread;
  };
  const bool attached = ::ptrace(PTRACE_SEIZE, thread, 0, PTRACE_O_TRACESYSGOOD) == 0 &&
                        ::ptrace(PTRACE_INTERRUPT, thread, 0, 0) == 0 &&
                        ::waitpid(thread, &status, __WALL) == thread;
  (void)!::write(ready, "", 1);
  if (!attached) ::_exit(1);
  bool counts = false;
  std::uint64_t calls = 0;
  while (next()) {
    __ptrace_syscall_info info{};
    ::ptrace(PTRACE_GET_SYSCALL_INFO, thread, sizeof(info), &info);
    if (info.op != PTRACE_SYSCALL_INFO_ENTRY) continue;
    const auto number = static_cast<long>(info.entry.nr);
    if (number == ends) break;
    if (counts) ++calls;
    if (counts && number == SYS_futex) {
      ++counted->wakes;
      counted->calls = calls;
      counted->allocations = static_cast<std::uint64_t>(::ptrace(PTRACE_PEEKDATA, thread, &allocations, 0));
    }
    if (number == begins) {
      counts = true;
      counted->works = true;
    }
  }
  ::ptrace(PTRACE_DETACH, thread, 0, 0);
  ::_exit(0);
}

class AgentPromotions : public AgentTest {
 protected:
  static constexpr int tenants = 50;

  AgentPromotions() {
    for (int i = 0; i < tenants; ++i) pairs.push_back(pair("tenant-with-a-long-name-" + std::to_string(i)));
    ask(subscriber, abi::Subscribe{});
  }

  template <class Happens>
  Counted count(Happens happens) {
    const os::Fd file = std::move(os::create_memory_file("counted", sizeof(Counted)).value());
    const os::Mapping shared =
        std::move(os::Mapping::of_file(file.get(), sizeof(Counted), os::Protection::ReadWrite).value());
    auto* counted = new (shared.as<Counted>()) Counted;
    std::array<int, 2> go{}, ready{};
    EXPECT_EQ(::pipe(go.data()) + ::pipe(ready.data()), 0);
    const auto thread = static_cast<pid_t>(::syscall(SYS_gettid));
    const pid_t tracer = ::fork();
    char byte = 0;
    if (tracer == 0) {
      if (::read(go[0], &byte, 1) == 1) trace(thread, ready[1], counted);
      ::_exit(1);
    }
    ::prctl(PR_SET_PTRACER, tracer, 0, 0, 0);
    EXPECT_EQ(::write(go[1], &byte, 1), 1);
    EXPECT_EQ(::read(ready[0], &byte, 1), 1);
    allocations = 0;
    ::syscall(begins);
    happens();
    ::syscall(ends);
    EXPECT_EQ(::waitpid(tracer, nullptr, 0), tracer);
    for (const int each : {go[0], go[1], ready[0], ready[1]}) ::close(each);
    return *counted;
  }

  fault::Fault fence_in_a() {
    fault::Fault fault;
    fault.fault_class = fault::FaultClass::Sm;
    fault.pid = FakeDomains::server_of_a;
    fault.when = clock.now();
    return placed(fault);
  }

  std::vector<ProtectedTenant> pairs;
  Peer subscriber = peer();
};

TEST_F(AgentPromotions, AFaultsPromotionsAreOneSystemCallEachAndNoAllocation) {
  const fault::Fault fault = fence_in_a();
  const Counted counted = count([&] { detectors.callbacks.on_fault(fault); });
  ASSERT_TRUE(counted.works) << "nobody could be traced here";
  std::uint64_t promoted = 0;
  for (const ProtectedTenant& each : pairs) promoted += word(each.page).epoch == 1 ? 1 : 0;
  EXPECT_EQ(promoted, tenants);
  EXPECT_EQ(counted.wakes, tenants);
  EXPECT_EQ(counted.calls, tenants);
  EXPECT_EQ(counted.allocations, 0u);
}

// The count is not empty.
TEST_F(AgentPromotions, WhatFollowsThemIsCountedAsWell) {
  const fault::Fault fault = fence_in_a();
  const Counted counted = count([&] {
    detectors.callbacks.on_fault(fault);
    os::futex_wake(pairs.front().page.as<abi::SharedPage>()->promotion);
  });
  EXPECT_EQ(counted.wakes, tenants + 1);
  EXPECT_GT(counted.calls, tenants + 1);
  EXPECT_GT(counted.allocations, 0u);
}

}  // namespace
}  // namespace firebreak::agent
