// SPDX-License-Identifier: Apache-2.0
/// The parts of the virtual driver that need no driver.
#include <gmock/gmock.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <future>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "program/virtual/addresses.h"
#include "program/virtual/code_image.h"
#include "program/virtual/gate.h"
#include "program/virtual/instance.h"
#include "program/virtual/memory.h"
#include "program/virtual/news.h"
#include "program/virtual/objects.h"
#include "program/virtual/taken_variables.h"

namespace firebreak::virtual_driver {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::Ge;
using testing::IsEmpty;
using testing::SizeIs;

// ---- Addresses ----

TEST(Addresses, TheLowestGapThatIsLargeEnoughIsTaken) {
  Addresses all(1000, 100);
  EXPECT_EQ(all.take(40, 1), 1000U);
  EXPECT_EQ(all.take(20, 1), 1040U);
  EXPECT_EQ(all.take(40, 1), 1060U);
  EXPECT_EQ(all.take(1, 1), std::nullopt) << "all is taken";
  EXPECT_TRUE(all.give(1040));
  EXPECT_FALSE(all.give(1040));
  EXPECT_EQ(all.take(21, 1), std::nullopt);
  EXPECT_EQ(all.take(20, 1), 1040U);
}

TEST(Addresses, GapsCountFromTheAlignmentOn) {
  Addresses all(0, 64);
  EXPECT_EQ(all.take(1, 16), 0U);
  EXPECT_EQ(all.take(16, 16), 16U);
  EXPECT_EQ(all.take(33, 16), std::nullopt);
  EXPECT_EQ(all.take(32, 16), 32U);
}

TEST(Addresses, AnAddressIsFoundInItsRangeAlone) {
  Addresses all(0, 64);
  ASSERT_EQ(all.take(8, 8), 0U);
  ASSERT_EQ(all.take(8, 8), 8U);
  EXPECT_EQ(all.find(7)->begin, 0U);
  EXPECT_EQ(all.find(8)->begin, 8U);
  EXPECT_FALSE(all.find(16));
}

// ---- Code ----

CodeState read(const char* text) { return CodeImage::of(text, false)->read({}); }

TEST(CodeImage, SaysWhatKernelsMayChange) {
  const CodeState state = read(
      ".version 7.0\n.visible .global .align 4 .u32 steps = 0;\n.const .f32 pi;\n"
      ".entry f() { ld.global.u32 %r1, [steps]; }");
  EXPECT_THAT(state.variables, ElementsAre("steps"));
  EXPECT_THAT(state.named, ElementsAre("pi", "steps"));
  EXPECT_EQ(state.why_unknown, nullptr);
  EXPECT_THAT(read(".version 7.0\n").variables, IsEmpty());
}

TEST(CodeImage, SaysWhyItIsNotKnown) {
  EXPECT_STREQ(read("something else").why_unknown, "it loads code that is damaged");
  EXPECT_STREQ(read(".version 7.0\n.extern .func free (.param .b64 a);").why_unknown,
               "it loads code that allocates memory in its kernels");
}

TEST(CodeImage, OfUnknownLengthThereIsNone) {
  EXPECT_EQ(CodeImage::of(nullptr, false), nullptr);
  const std::array<std::uint32_t, 4> nothing{};
  EXPECT_EQ(CodeImage::of(nothing.data(), true), nullptr);
}

TEST(CodeImage, IsACopyUnlessTheCallerKeepsIt) {
  const std::string text = ".version 7.0\n";
  const auto given = [](const CodeImage& image) {
    return image.use([](const void* bytes) { return bytes; });
  };
  EXPECT_NE(given(*CodeImage::of(text.c_str(), false)), text.c_str());
  EXPECT_EQ(given(*CodeImage::of(text.c_str(), true)), text.c_str());
}

/// An empty fat binary: one in this program's file, and one that nobody keeps.
constexpr std::array<std::uint64_t, 2> constant_fat_binary{0x00100001BA55ED50, 0};

TEST(CodeImage, WhatIsWrappedStaysInItsProgramsFile) {
  std::array<std::uint64_t, 2> on_stack = constant_fat_binary;
  const auto is_copy = [](const void* bytes) {
    const fatbin::Wrapper wrapper{fatbin::wrapper_magic, 1, bytes, nullptr};
    return CodeImage::of(&wrapper, false)->is_copy();
  };
  EXPECT_FALSE(is_copy(constant_fat_binary.data()));
  EXPECT_TRUE(is_copy(on_stack.data()));
}

TEST(CodeImage, WhatIsUnloadedIsNotReadAnyMore) {
  const auto image = CodeImage::of(".version 7.0\n.global .u32 a; a", true);
  EXPECT_THAT(image->read({}).variables, ElementsAre("a"));
  image->forget();
  EXPECT_THAT(image->read({}).variables, IsEmpty());
  EXPECT_FALSE(image->use([](const void*) { return 1; }));
}

TEST(CodeImage, IsForgottenOnceNobodyUsesIt) {
  const auto image = CodeImage::of(".version 7.0\n", true);
  std::atomic<bool> is_used{false};
  std::atomic<bool> is_forgotten{false};
  std::atomic<bool> may_end{false};
  std::thread user([&] {
    image->use([&](const void*) {
      is_used = true;
      while (!may_end) std::this_thread::yield();
      EXPECT_FALSE(is_forgotten);
      return 0;
    });
  });
  while (!is_used) std::this_thread::yield();
  std::thread unloader([&] {
    may_end = true;
    image->forget();
    is_forgotten = true;
  });
  user.join();
  unloader.join();
  EXPECT_TRUE(is_forgotten);
}

// ---- The gate ----

TEST(Gate, ClosesOnceNobodyIsInside) {
  Gate gate;
  std::atomic<bool> is_inside{false};
  std::atomic<bool> leaves{false};
  std::thread caller([&] {
    const Pass pass(gate);
    is_inside = true;
    while (!leaves) std::this_thread::yield();
  });
  while (!is_inside) std::this_thread::yield();
  EXPECT_FALSE(gate.close(Milliseconds(1))) << "somebody is inside";
  leaves = true;
  EXPECT_TRUE(gate.close(std::chrono::minutes(1)));
  caller.join();
  gate.open();
}

TEST(Gate, NobodyComesInWhileItIsClosed) {
  Gate gate;
  ASSERT_TRUE(gate.close(Milliseconds(0)));
  std::atomic<bool> was_inside{false};
  std::atomic<bool> has_come{false};
  std::thread caller([&] {
    has_come = true;
    const Pass pass(gate);
    was_inside = true;
  });
  while (!has_come) std::this_thread::yield();
  EXPECT_FALSE(was_inside);
  gate.open();
  caller.join();
  EXPECT_TRUE(was_inside);
}

TEST(Gate, ACallWithinACallIsNotHeldUp) {
  Gate gate;
  std::atomic<bool> is_inside{false};
  std::atomic<bool> is_closing{false};
  std::atomic<bool> has_ended{false};
  std::thread caller([&] {
    const Pass outer(gate);
    is_inside = true;
    while (!is_closing) std::this_thread::yield();
    for (int i = 0; i < 1000; ++i) const Pass inner(gate);
    has_ended = true;
  });
  std::thread closer([&] {
    while (!is_inside) std::this_thread::yield();
    is_closing = true;
    EXPECT_TRUE(gate.close(std::chrono::minutes(1)));
    EXPECT_TRUE(has_ended);
    gate.open();
  });
  caller.join();
  closer.join();
}

/// What the gate is for: a value that is changed while it is closed is never seen in between.
TEST(Gate, NobodySeesWhatIsChangedMeanwhile) {
  Gate gate;
  std::atomic<int> first{0};
  std::atomic<int> second{0};
  std::atomic<bool> ends{false};
  std::atomic<int> torn{0};
  std::vector<std::thread> callers;
  for (int i = 0; i < 3; ++i) {
    callers.emplace_back([&] {
      while (!ends) {
        const Pass pass(gate);
        const int seen = first.load(std::memory_order_relaxed);
        std::this_thread::yield();
        torn += second.load(std::memory_order_relaxed) != seen ? 1 : 0;
      }
    });
  }
  for (int i = 1; i <= 500; ++i) {
    ASSERT_TRUE(gate.close(std::chrono::minutes(1)));
    first.store(i, std::memory_order_relaxed);
    std::this_thread::yield();
    second.store(i, std::memory_order_relaxed);
    gate.open();
  }
  ends = true;
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(torn, 0);
}

// ---- What is new ----

TEST(News, WakesWhoLooksOnceUntilItLooks) {
  News news;
  EXPECT_TRUE(news.tell());
  EXPECT_FALSE(news.tell());
  EXPECT_TRUE(news.is_any());
  news.begin();
  EXPECT_FALSE(news.is_any());
  EXPECT_TRUE(news.tell());
}

TEST(News, TakesATenthOfACore) {
  EXPECT_EQ(News::rest_after(Milliseconds(1)), Milliseconds(9));
  EXPECT_EQ(News::rest_after(Milliseconds(1000)), Milliseconds(50));
}

// ---- Objects ----

/// A driver that counts what is made.
struct Made {
  static inline std::vector<std::string> calls;
  static inline std::uintptr_t next = 0x1000;
};

Object::Step make_step(const std::string& name) {
  return {{}, [name](Making& making) {
            Made::calls.push_back("make " + name + " in " + std::to_string(making.slot));
            making.made = Made::next += 0x10;
            return CUDA_SUCCESS;
          }};
}

Object::Step set_step(const std::string& key, CUstream of, int value) {
  return {key, [=](Making& making) {
            Made::calls.push_back("set " + std::to_string(value) + " of " +
                                  std::to_string(number_of(making.in(of))) + " in " +
                                  std::to_string(making.slot));
            return CUDA_SUCCESS;
          }};
}

class ObjectsTest : public testing::Test {
 protected:
  ObjectsTest() { Made::calls.clear(); }
  Object& add(std::uintptr_t own, Slot slot, const std::string& name = "x") {
    std::vector<Object::Step> steps;
    steps.push_back(make_step(name));
    return objects_.add(Family::Stream, own, slot, std::move(steps));
  }
  static CUstream stream(std::uintptr_t number) { return reinterpret_cast<CUstream>(number); }

  Objects objects_;
  cuda::Backend driver_{};
};

TEST_F(ObjectsTest, BeforeAFlipTheProgramHasTheDriversOwnHandle) {
  EXPECT_EQ(add(0x500, 1).seen, 0x500U);
  EXPECT_EQ(objects_.translate(stream(0x500), 1), stream(0x500));
  EXPECT_EQ(objects_.translate(stream(0x600), 1), stream(0x600)) << "not followed";
}

TEST_F(ObjectsTest, AfterAFlipTheHandleIsOursAndNobodyElses) {
  add(0x500, 1);
  objects_.flipped();
  Object& other = add(0x500, 2);  // that instance happens to use the same number
  EXPECT_NE(other.seen, 0x500U);
  EXPECT_EQ(objects_.translate(stream(other.seen), 2), stream(0x500));
  EXPECT_EQ(objects_.translate(stream(0x500), 2), nullptr) << "the first one is not there";
}

TEST_F(ObjectsTest, DefaultStreamsAreTheSameEverywhere) {
  for (const std::uintptr_t each : {0, 1, 2}) EXPECT_EQ(objects_.translate(stream(each), 3), stream(each));
}

TEST_F(ObjectsTest, WhatIsMissingIsMadeInTheOrderOfTheProgram) {
  Object& first = add(0x500, 1, "a");
  add(0x600, 1, "b");
  EXPECT_FALSE(objects_.make_all(driver_, 2));
  EXPECT_THAT(Made::calls, ElementsAre("make a in 2", "make b in 2"));
  EXPECT_NE(first.in[2].load(), 0U);
  EXPECT_FALSE(objects_.make_all(driver_, 2));
  EXPECT_EQ(Made::calls.size(), 2U) << "once";
}

// A program that ended while its next spare got much code was inside a driver that was taken down (H200).
TEST_F(ObjectsTest, NothingMoreIsMadeForAProgramThatEnds) {
  add(0x500, 1, "a");
  objects_.add(Family::Stream, 0x600, 1, {Object::Step{{}, [this](Making&) {
                                                         objects_.make_no_more();
                                                         return CUDA_SUCCESS;
                                                       }}});
  add(0x700, 1, "c");
  const auto failed = objects_.make_all(driver_, 2);
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->first, CUDA_ERROR_DEINITIALIZED);
  EXPECT_THAT(Made::calls, ElementsAre("make a in 2"));
}

TEST_F(ObjectsTest, GraphsAreMadeLast) {
  objects_.add(Family::GraphExec, 0x400, 1, {make_step("graph")});
  add(0x500, 1, "later");
  EXPECT_FALSE(objects_.make_all(driver_, 2));
  EXPECT_THAT(Made::calls, ElementsAre("make later in 2", "make graph in 2"));
}

TEST_F(ObjectsTest, WhatIsSetLaterIsSetThereTooAndTheLastValueCounts) {
  Object& object = add(0x500, 1, "a");
  objects_.add_step(object, 1, set_step("size", stream(0x500), 1));
  EXPECT_FALSE(objects_.make_all(driver_, 2));
  Made::calls.clear();
  objects_.add_step(object, 1, set_step("size", stream(0x500), 2));
  objects_.add_step(object, 1, set_step("size", stream(0x500), 3));
  EXPECT_FALSE(objects_.make_all(driver_, 2));
  EXPECT_THAT(Made::calls, ElementsAre("set 3 of " + std::to_string(object.in[2].load()) + " in 2"));
}

TEST_F(ObjectsTest, WhatIsSetToWhatItIsIsNotSetAgain) {
  Object& object = add(0x500, 1);
  const auto set_size = [&](int value) {
    Object::Step step = set_step("size", stream(0x500), value);
    step.value = std::to_string(value);
    return objects_.add_step(object, 1, std::move(step));
  };
  EXPECT_TRUE(set_size(1));
  EXPECT_FALSE(set_size(1));
  EXPECT_TRUE(set_size(2));
  EXPECT_TRUE(set_size(1));
  EXPECT_TRUE(objects_.add_step(object, 1, set_step("size", stream(0x500), 1))) << "not known to be the same";
}

TEST_F(ObjectsTest, WhatIsGoneIsNotMade) {
  Object& object = add(0x500, 1);
  objects_.remove(object);
  EXPECT_FALSE(objects_.make_all(driver_, 2));
  EXPECT_THAT(Made::calls, IsEmpty());
  EXPECT_EQ(objects_.find(Family::Stream, 0x500), nullptr);
}

TEST_F(ObjectsTest, WhatGoesWithAnObjectIsGoneWithIt) {
  const auto add_of = [&](Family family, std::uintptr_t own, Object::Origin origin) -> Object& {
    std::vector<Object::Step> steps;
    steps.push_back(make_step(std::to_string(own)));
    return objects_.add(family, own, 1, std::move(steps), origin);
  };
  Object& context = add_of(Family::Context, 0x100, {});
  Object& module = add_of(Family::Module, 0x200, {nullptr, 0x100});
  Object& kernel = add_of(Family::Code, 0x300, {&module, 0x100});
  const Object& function = add_of(Family::Code, 0x400, {&kernel, 0});
  const Object& stream_there = add_of(Family::Stream, 0x500, {nullptr, 0x100});
  const Object& other = add_of(Family::Code, 0x600, {nullptr, 0x700});
  objects_.remove(module);
  EXPECT_TRUE(kernel.is_gone.load());
  EXPECT_TRUE(function.is_gone.load());
  EXPECT_FALSE(stream_there.is_gone.load());
  objects_.remove(context);
  EXPECT_TRUE(stream_there.is_gone.load());
  EXPECT_FALSE(other.is_gone.load());
  EXPECT_FALSE(objects_.make_all(driver_, 2));
  EXPECT_THAT(Made::calls, ElementsAre("make 1536 in 2"));
}

TEST_F(ObjectsTest, WhatIsMadeIsMadeInItsContext) {
  static std::vector<CUcontext> current;
  current.clear();
  driver_.cuCtxSetCurrent = [](CUcontext context) {
    current.push_back(context);
    return CUDA_SUCCESS;
  };
  Object& context = objects_.add_seen(Family::Context, 0x100);
  objects_.set_own(context, 2, 0x900);
  std::vector<Object::Step> steps;
  steps.push_back(make_step("stream"));
  steps.back().context = 0x100;
  objects_.add(Family::Stream, 0x500, 1, std::move(steps));
  EXPECT_FALSE(objects_.make_all(driver_, 2));
  EXPECT_THAT(current, ElementsAre(reinterpret_cast<CUcontext>(0x900)));
}

TEST_F(ObjectsTest, AThreadThatRememberedAnObjectHearsThatAnotherOneHasItsHandle) {
  Object& first = add(0x500, 1);
  EXPECT_EQ(objects_.find(Family::Stream, 0x500), &first);
  objects_.remove(first);
  Object& second = add(0x500, 1);
  EXPECT_EQ(objects_.find(Family::Stream, 0x500), &second);
}

TEST_F(ObjectsTest, OfWhatIsMadeWithoutEndTheNextOneTakesTheLastOnesPlace) {
  Object& first = add(0x500, 1, "a");
  first.work.queued.store(7);
  EXPECT_FALSE(objects_.make_all(driver_, 2));
  for (int i = 0; i < 100; ++i) {
    Object& other = i == 0 ? first : add(0x500, 1);
    objects_.remove(other);
    objects_.give_place(other);
  }
  Object& last = add(0x600, 1, "b");
  EXPECT_EQ(&last, &first);
  EXPECT_EQ(objects_.count(), 1U);
  EXPECT_EQ(last.work.queued.load(), 7U) << "who waits for the first one must not end the work of this one";
  EXPECT_FALSE(last.work.is_under_way());
  EXPECT_EQ(objects_.translate(stream(0x600), 2), nullptr);
  Made::calls.clear();
  EXPECT_FALSE(objects_.make_all(driver_, 2));
  EXPECT_THAT(Made::calls, ElementsAre("make b in 2"));
  EXPECT_EQ(objects_.translate(stream(0x500), 2), stream(0x500)) << "not followed any more";
}

TEST_F(ObjectsTest, NobodyTakesThePlaceOfWhatSomebodyHasAtHand) {
  Object& kept = add(0x500, 1);
  kept.is_kept.store(true);
  objects_.remove(kept);
  objects_.give_place(kept);
  EXPECT_NE(&add(0x500, 1), &kept);
  Object& alive = add(0x600, 1);
  objects_.give_place(alive);  // it is not gone
  EXPECT_NE(&add(0x700, 1), &alive);
  Object& module = objects_.add(Family::Module, 0x800, 1, {make_step("module")});
  objects_.remove(module);
  objects_.give_place(module);  // what was found in it may be at hand
  EXPECT_NE(&objects_.add(Family::Module, 0x800, 1, {make_step("module")}), &module);
}

// The keeper makes it, while the program ends it and makes another one.
TEST_F(ObjectsTest, WhatIsMadeTooLateIsNotTheNextOnes) {
  Object* object = nullptr;
  Object::Step step = make_step("late");
  step.again = [&](Making& making) {
    objects_.remove(*object);
    objects_.give_place(*object);
    EXPECT_EQ(&add(0x600, 1, "next"), object);
    making.made = 0x900;
    return CUDA_SUCCESS;
  };
  object = &objects_.add(Family::Stream, 0x500, 1, {std::move(step)});
  EXPECT_FALSE(objects_.make_all(driver_, 2));
  EXPECT_EQ(objects_.translate(stream(0x600), 2), nullptr);
  EXPECT_FALSE(objects_.make_all(driver_, 2));
  EXPECT_THAT(Made::calls, ElementsAre("make next in 2"));
  EXPECT_NE(objects_.translate(stream(0x600), 2), stream(0x900));
}

TEST_F(ObjectsTest, WhatTheDriverAnswersAgainIsTheSameObject) {
  const auto add_code = [&]() -> Object& {
    return objects_.add(Family::Code, 0x500, 1, {make_step("code")});
  };
  Object& first = add_code();
  EXPECT_EQ(&add_code(), &first);
}

// Another thread has unloaded the code of one that was called so, and is about to say so here.
TEST_F(ObjectsTest, WhatTheDriverAnswersOfOtherCodeIsAnotherObject) {
  Object& code = objects_.add(Family::Module, 0x800, 1, {make_step("code")});
  Object& next_code = objects_.add(Family::Module, 0x900, 1, {make_step("next code")});
  Object& kernel = objects_.add(Family::Code, 0x500, 1, {make_step("kernel")}, {&code});
  EXPECT_EQ(objects_.find_answered(Family::Code, 0x500, 1, &code), &kernel);
  EXPECT_EQ(objects_.find_answered(Family::Code, 0x500, 1, &next_code), nullptr);
  Object& next = objects_.add(Family::Code, 0x500, 1, {make_step("next kernel")}, {&next_code});
  EXPECT_NE(&next, &kernel);
  objects_.remove(code);
  EXPECT_EQ(objects_.find(Family::Code, 0x500), &next);
}

// Another thread has destroyed it in the driver, and is about to say so here.
TEST_F(ObjectsTest, AHandleThatTheDriverGivesToTheNextOneIsTheNextOnes) {
  Object& first = add(0x500, 1, "a");
  Object& second = add(0x500, 1, "b");
  EXPECT_NE(&second, &first);
  EXPECT_TRUE(objects_.remove(first));
  EXPECT_FALSE(objects_.remove(first)) << "it is gone already";
  EXPECT_EQ(objects_.find(Family::Stream, 0x500), &second);
  EXPECT_EQ(objects_.find_own(Family::Stream, 0x500, 1), &second);
  EXPECT_FALSE(objects_.make_all(driver_, 2));
  EXPECT_THAT(Made::calls, ElementsAre("make b in 2"));
}

// ---- Memory ----

/// The GPU's memory is a number each. A descriptor of it is one of the kernel's, which somebody has to close.
struct FakeGpu {
  static inline std::atomic<int> created = 0;
  static constexpr const char* name = "fake-gpu-memory";

  static std::vector<int> open_descriptors() {
    std::vector<int> found;
    for (int number = 0; number < 4096; ++number) {
      std::error_code ignored;
      const auto target = std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(number), ignored);
      if (target.string().find(name) != std::string::npos) found.push_back(number);
    }
    return found;
  }
};

template <Slot slot>
struct FakeDriver {
  static inline std::map<CUdeviceptr, int> mapped;
  static inline std::set<CUmemGenericAllocationHandle> imported;
  static inline bool is_dead = false;
  static inline bool refuses_export = false;

  static CUresult answer() { return is_dead ? CUDA_ERROR_ILLEGAL_ADDRESS : CUDA_SUCCESS; }
  /// What an instance has imported it may not export (H100).
  static CUresult export_it(void* to, CUmemGenericAllocationHandle handle) {
    if (imported.contains(handle)) return CUDA_ERROR_INVALID_VALUE;
    if (refuses_export) return CUDA_ERROR_OUT_OF_MEMORY;
    const int fd = ::memfd_create(FakeGpu::name, MFD_CLOEXEC);
    if (::pwrite(fd, &handle, sizeof handle, 0) != sizeof handle) return CUDA_ERROR_OPERATING_SYSTEM;
    *static_cast<int*>(to) = fd;
    return answer();
  }
  static CUresult import_it(CUmemGenericAllocationHandle* handle, void* from) {
    const int fd = static_cast<int>(reinterpret_cast<std::intptr_t>(from));
    if (::pread(fd, handle, sizeof *handle, 0) != sizeof *handle) return CUDA_ERROR_INVALID_VALUE;
    imported.insert(*handle);
    return answer();
  }
  static std::unique_ptr<Instance> instance() {
    mapped.clear();
    imported.clear();
    is_dead = false;
    refuses_export = false;
    cuda::Backend driver{};
    driver.cuMemCreate = [](CUmemGenericAllocationHandle* handle, std::size_t, const CUmemAllocationProp*,
                            unsigned long long) {
      *handle = static_cast<CUmemGenericAllocationHandle>(++FakeGpu::created);
      return answer();
    };
    driver.cuMemMap = [](CUdeviceptr address, std::size_t, std::size_t, CUmemGenericAllocationHandle handle,
                         unsigned long long) {
      mapped[address] = static_cast<int>(handle);
      return answer();
    };
    driver.cuMemUnmap = [](CUdeviceptr address, std::size_t) {
      mapped.erase(address);
      return answer();
    };
    driver.cuMemSetAccess = [](CUdeviceptr, std::size_t, const CUmemAccessDesc*, std::size_t) {
      return answer();
    };
    driver.cuMemRelease = [](CUmemGenericAllocationHandle) { return answer(); };
    driver.cuMemRetainAllocationHandle = [](CUmemGenericAllocationHandle* handle, void* address) {
      *handle = static_cast<CUmemGenericAllocationHandle>(mapped.at(reinterpret_cast<CUdeviceptr>(address)));
      return answer();
    };
    driver.cuMemExportToShareableHandle = [](void* to, CUmemGenericAllocationHandle handle,
                                             CUmemAllocationHandleType,
                                             unsigned long long) { return export_it(to, handle); };
    driver.cuMemImportFromShareableHandle = [](CUmemGenericAllocationHandle* handle, void* from,
                                               CUmemAllocationHandleType) { return import_it(handle, from); };
    return Instance::of(driver, slot);
  }
};

class WindowMemoryTest : public testing::Test {
 protected:
  using First = FakeDriver<1>;
  using Second = FakeDriver<2>;
  using Third = FakeDriver<3>;

  std::vector<CUdeviceptr> allocate(int count) {
    std::vector<CUdeviceptr> all(static_cast<std::size_t>(count));
    for (CUdeviceptr& each : all) EXPECT_EQ(memory_.allocate(*first_, block_bytes, 0, &each), CUDA_SUCCESS);
    return all;
  }

  std::unique_ptr<Instance> first_ = First::instance();
  std::unique_ptr<Instance> second_ = Second::instance();
  std::unique_ptr<Instance> third_ = Third::instance();
  Receiver receiver_{nullptr};
  WindowMemory memory_{receiver_};
};

TEST_F(WindowMemoryTest, IsTheSameInTheNextInstanceAndInTheOneAfterThat) {
  const auto all = allocate(3);
  EXPECT_EQ(memory_.bring_to(*second_, *first_), CUDA_SUCCESS);
  EXPECT_EQ(Second::mapped, First::mapped);
  First::is_dead = true;
  EXPECT_EQ(memory_.bring_to(*third_, *second_), CUDA_SUCCESS);
  EXPECT_EQ(Third::mapped, First::mapped);
  EXPECT_THAT(FakeGpu::open_descriptors(), SizeIs(3));
  for (const CUdeviceptr each : all) EXPECT_TRUE(memory_.free(each, *third_));
  EXPECT_THAT(FakeGpu::open_descriptors(), IsEmpty());
}

TEST_F(WindowMemoryTest, LeavesTheProgramItsDescriptors) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit few{200, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  allocate(300);
  EXPECT_EQ(memory_.bring_to(*second_, *first_), CUDA_SUCCESS);
  EXPECT_EQ(Second::mapped, First::mapped);
  EXPECT_THAT(FakeGpu::open_descriptors(), AllOf(SizeIs(300), Each(Ge(200))));
  rlimit after{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &after), 0);
  EXPECT_EQ(after.rlim_cur, 200U);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
}

TEST_F(WindowMemoryTest, WaitsForNobodyWhileItIsBrought) {
  allocate(200);
  const auto waiter =
      std::async(std::launch::async, [&] { EXPECT_EQ(memory_.bring_to(*second_, *first_), CUDA_SUCCESS); });
  const auto all = allocate(50);
  for (const CUdeviceptr each : all) EXPECT_TRUE(memory_.free(each, *first_));
  waiter.wait();
  EXPECT_EQ(memory_.bring_to(*second_, *first_), CUDA_SUCCESS);
  EXPECT_EQ(Second::mapped, First::mapped);
}

// Its domain may die right after the call that has made it.
TEST_F(WindowMemoryTest, ThatNobodyElseHasYetOutlivesWhoMadeIt) {
  allocate(1);
  First::is_dead = true;
  EXPECT_EQ(memory_.bring_to(*second_, *first_), CUDA_SUCCESS);
  EXPECT_EQ(Second::mapped, First::mapped);
}

// Exporting takes 0.7 to 2 ms (H100).
TEST(AtOnce, TakesATenthOfTheTimeAtMost) {
  FakeClock clock;
  clock.advance(std::chrono::hours(1));
  AtOnce at_once;
  int done = 0;
  const auto take_2_ms = [&] {
    ++done;
    clock.advance(Milliseconds(2));
  };
  at_once.maybe(clock, take_2_ms);
  at_once.maybe(clock, take_2_ms);
  EXPECT_EQ(done, 1);
  clock.advance(Milliseconds(17));
  at_once.maybe(clock, take_2_ms);
  EXPECT_EQ(done, 1);
  clock.advance(Milliseconds(1));
  at_once.maybe(clock, take_2_ms);
  EXPECT_EQ(done, 2);
}

TEST_F(WindowMemoryTest, ThatCouldNotBeExportedAtOnceIsExportedLater) {
  First::refuses_export = true;
  allocate(1);
  EXPECT_EQ(memory_.bring_to(*second_, *first_), CUDA_ERROR_OUT_OF_MEMORY);
  First::refuses_export = false;
  EXPECT_EQ(memory_.bring_to(*second_, *first_), CUDA_SUCCESS);
  EXPECT_EQ(Second::mapped, First::mapped);
}

// ---- Variables whose address the program has ----

class TakenTest : public testing::Test {
 protected:
  static constexpr Slot first = 1;
  static constexpr Slot second = 2;

  void write(CUdeviceptr address, std::string_view bytes, bool is_done = true) {
    taken_.wrote(address, bytes.data(), bytes.size(), is_done);
  }
  TakenVariable& only() {
    TakenVariable* found = nullptr;
    taken_.for_each([&](TakenVariable& each) { found = &each; });
    return *found;
  }
  std::string written() {
    std::string all;
    for (const auto& run : taken_.written_to(only()))
      all += std::to_string(run.offset_bytes) + ":" + run.bytes + " ";
    return all;
  }

  Object code_;
  Object other_code_;
  TakenVariables taken_;
};

TEST_F(TakenTest, AnAddressInsideIsOneThere) {
  EXPECT_EQ(taken_.translate(0x1000, second), 0x1000U) << "nothing is taken";
  EXPECT_EQ(taken_.take(code_, "a", 0x1000, 16, first), 0x1000U);
  EXPECT_EQ(taken_.translate(0x1004, second), 0x1004U) << "it is not there yet";
  only().in[second].store(0x9000);
  EXPECT_EQ(taken_.translate(0x1000, second), 0x9000U);
  EXPECT_EQ(taken_.translate(0x100f, second), 0x900fU);
  EXPECT_EQ(taken_.translate(0x1010, second), 0x1010U);
  EXPECT_EQ(taken_.translate(0xfff, second), 0xfffU);
  EXPECT_EQ(taken_.translate(0x1004, first), 0x1004U);
}

TEST_F(TakenTest, WhatIsTakenAgainStaysWhereItWas) {
  EXPECT_EQ(taken_.take(code_, "a", 0x1000, 16, first), 0x1000U);
  EXPECT_EQ(taken_.take(code_, "a", 0x5000, 16, second), 0x1000U);
  EXPECT_EQ(taken_.take(other_code_, "a", 0x5000, 16, second), 0x5000U) << "another one of that name";
}

TEST_F(TakenTest, AnAddressThatTheProgramHasOfSomethingElseIsNotTaken) {
  EXPECT_EQ(taken_.take(code_, "a", 0x1000, 16, first), 0x1000U);
  EXPECT_EQ(taken_.take(code_, "b", 0x100f, 4, second), std::nullopt);
  EXPECT_EQ(taken_.take(code_, "c", 0xffd, 4, second), std::nullopt);
  EXPECT_EQ(taken_.take(code_, "d", 0x1010, 4, second), 0x1010U);
  EXPECT_EQ(taken_.take(code_, "e", 0xffc, 4, second), 0xffcU);
}

TEST_F(TakenTest, CodeThatIsGoneTakesItsVariablesAlong) {
  EXPECT_EQ(taken_.take(other_code_, "a", 0x1000, 16, first), 0x1000U);
  only().in[second].store(0x9000);
  other_code_.is_gone.store(true);
  EXPECT_EQ(taken_.translate(0x1000, second), 0x1000U);
  EXPECT_FALSE(taken_.holds(0x1000));
  EXPECT_EQ(taken_.take(code_, "b", 0x1008, 4, second), 0x1008U) << "the driver has used its memory again";
}

TEST_F(TakenTest, ThereIsALimit) {
  for (std::size_t i = 0; i < TakenVariables::variables_max; ++i)
    EXPECT_TRUE(taken_.take(code_, std::to_string(i), 0x1000 + 16 * i, 16, first));
  EXPECT_EQ(taken_.take(code_, "one more", 0x100000, 16, first), std::nullopt);
  EXPECT_EQ(taken_.take(code_, "7", 0x100000, 16, first), 0x1070U) << "that one is taken already";
}

TEST_F(TakenTest, WhatWasWrittenLastIsKept) {
  EXPECT_EQ(taken_.take(code_, "a", 0x1000, 16, first), 0x1000U);
  EXPECT_EQ(written(), "");
  write(0x1004, "abcd");
  write(0x1006, "XY");
  write(0x1002, "12");
  write(0x100f, "z");
  EXPECT_EQ(written(), "2:12abXY 15:z ");
  EXPECT_FALSE(only().is_unknown.load());
}

TEST_F(TakenTest, WhatIsWrittenToALargeOneIsNotKept) {
  constexpr std::size_t most = TakenVariables::content_max_bytes;
  EXPECT_EQ(taken_.take(code_, "large", 0x100000, most + 1, first), 0x100000U);
  write(0x100000, "abcd");
  EXPECT_TRUE(only().is_unknown.load());
  EXPECT_EQ(written(), "");
  EXPECT_EQ(taken_.take(code_, "less", 0x200000, most, first), 0x200000U);
  write(0x200000, "abcd");
  EXPECT_FALSE(only().is_unknown.load());
  EXPECT_EQ(written(), "0:abcd ");
}

TEST_F(TakenTest, WhatIsNotSeenToBeWrittenIsUnknown) {
  for (int how = 0; how < 3; ++how) {
    TakenVariables taken;
    taken.take(code_, "a", 0x1000, 16, first);
    taken.take(code_, "b", 0x1010, 16, first);
    if (how == 0) taken.translate_for_use(0x1004, first);
    if (how == 1) taken.wrote(0x1004, "abcd", 4, false);
    if (how == 2) taken.wrote(0x100e, "abcd", 4, true);  // over its end
    int unknown = 0;
    taken.for_each([&](TakenVariable& each) { unknown += each.is_unknown.load() ? 1 : 0; });
    EXPECT_EQ(unknown, how == 0 ? 1 : 2) << how;
  }
}

TEST(Work, IsUnderWayUntilSomebodyHasWaitedForAllOfIt) {
  Work work;
  EXPECT_FALSE(work.is_under_way());
  work.queued = 2;
  work.end(1);
  EXPECT_TRUE(work.is_under_way());
  work.end(2);
  work.end(1);  // somebody who had begun to wait earlier
  EXPECT_FALSE(work.is_under_way());
}

}  // namespace
}  // namespace firebreak::virtual_driver
