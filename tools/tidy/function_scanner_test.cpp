// SPDX-License-Identifier: Apache-2.0
#include "tools/tidy/function_scanner.h"

#include <gtest/gtest.h>

namespace firebreak::tidy {
namespace {

std::vector<std::string> names(std::string_view code) {
  std::vector<std::string> result;
  for (const auto& function : find_functions(code)) result.push_back(function.name);
  return result;
}

using Names = std::vector<std::string>;

TEST(FunctionScanner, FreeFunctionsMembersAndTemplates) {
  EXPECT_EQ(names("namespace a::b { int f(int x) { return x; } }"), Names{"f"});
  EXPECT_EQ(names("class A : public B { public: void g() const override { if (x) { y(); } } int z = 0; };"),
            Names{"g"});
  EXPECT_EQ(names("template <class T, class U = std::vector<T>> Result<T> h(T t) { }"), Names{"h"});
  EXPECT_EQ(names("Result<Fd> Kernel::open(const char* p = \"\") { } Kernel::~Kernel() { }"),
            (Names{"Kernel::open", "Kernel::~Kernel"}));
}

TEST(FunctionScanner, ConstructorsWithBracesInTheirMemberList) {
  EXPECT_EQ(names("A::A(int x) : b_{x}, c_(x), d_{std::move(x)} { f(); } void g() {}"), (Names{"A::A", "g"}));
  EXPECT_EQ(names("A() : Base<int>{1} {}"), Names{"A"});
  EXPECT_EQ(names("auto f() -> std::string { return {}; }"), Names{"f"});
}

TEST(FunctionScanner, InitializersAndTypesAreNoFunctions) {
  EXPECT_EQ(
      names("constexpr std::array<Row, 2> rows{{ {1, f(2)}, {3, 4} }}; int x{3}; Foo foo = make(1, {2});"),
      Names{});
  EXPECT_EQ(
      names("enum class E : std::uint8_t { A, B }; struct alignas(16) S { int a; }; union U { int b; };"),
      Names{});
  EXPECT_EQ(names("extern \" \" { void f() { } }"), Names{"f"});
  EXPECT_EQ(names("extern \" \" int f() { }"), Names{"f"});
}

TEST(FunctionScanner, LambdasInTablesCountInFunctionsDoNot) {
  EXPECT_EQ(find_functions("const Table table{{1, [](int x) { return x; }}, {2, [&] { return 1; }}};").size(),
            2u);
  EXPECT_EQ(find_functions("constexpr auto f = [](int x) { return x; };").size(), 1u);
  EXPECT_EQ(find_functions("void f() { auto g = [&](int x) { return x; }; g(1); }").size(), 1u);
}

TEST(FunctionScanner, OperatorsAndTestMacros) {
  EXPECT_EQ(find_functions("bool operator==(const A& a, const A& b) { return true; }").size(), 1u);
  EXPECT_EQ(find_functions("A& operator=(A&& other) noexcept { return *this; }").size(), 1u);
  EXPECT_EQ(names("TEST(Words, Count) { EXPECT_EQ(1, 1); }"), Names{"TEST"});
}

TEST(FunctionScanner, SpansReachFromTheSignatureToTheClosingBrace) {
  const std::string_view code = "int a;\n\ntemplate <class T>\nint f(\n  T t) {\n}\nint b;";
  const auto functions = find_functions(code);
  ASSERT_EQ(functions.size(), 1u);
  EXPECT_EQ(functions[0].signature, code.find("int f"));
  EXPECT_EQ(functions[0].end, code.find('}'));
}

TEST(FunctionScanner, UnbalancedCodeEndsQuietly) {
  EXPECT_EQ(find_functions("void f() { {").size(), 1u);
  EXPECT_EQ(find_functions("} } ) ( {").size(), 0u);
}

}  // namespace
}  // namespace firebreak::tidy
