// SPDX-License-Identifier: Apache-2.0
// Damaged PTX gives a located error or a valid module. The seed is printed; FIREBREAK_TEST_SEED replays it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "kernels/ptx/dump.h"
#include "kernels/ptx/lexer.h"
#include "kernels/ptx/parse.h"
#include "kernels/ptx/validate.h"
#include "tests/doubles/base/test_seed.h"

namespace firebreak::ptx {
namespace {

constexpr int input_count = 10'000;

std::string read(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

class Mutator {
 public:
  explicit Mutator(std::uint64_t seed_value) : random_(seed_value) {}

  std::size_t below(std::size_t end) {
    return std::uniform_int_distribution<std::size_t>(0, end - 1)(random_);
  }

  std::string mutate(const std::string& original) {
    std::string text = original;
    const std::size_t count = 1 + below(3);
    for (std::size_t i = 0; i < count && text.size() > 1; ++i) text = once(std::move(text));
    return text;
  }

 private:
  std::string once(std::string text) {
    switch (below(8)) {
      case 0:
        return text.substr(0, below(text.size()));
      case 1:
        text[below(text.size())] = static_cast<char>(below(256));
        return text;
      case 2:
        return swap_tokens(text);
      case 3:
        return change_lines(text, true);
      case 4:
        return change_lines(text, false);
      case 5:
        return text.erase(below(text.size()), 1 + below(20));
      case 6:
        return text.insert(below(text.size()), pick_hostile());
      default:
        return replace_number(text);
    }
  }

  std::string swap_tokens(const std::string& text) {
    std::vector<Token> tokens = lex(text);
    std::erase_if(tokens, [](const Token& token) { return token.kind == TokenKind::Error; });
    if (tokens.size() < 3) return text;
    const std::size_t a = below(tokens.size() - 1);
    const std::size_t b = below(tokens.size() - 1);
    const std::string_view first = tokens[std::min(a, b)].text;
    const std::string_view second = tokens[std::max(a, b)].text;
    const auto start = [&](std::string_view part) {
      return static_cast<std::size_t>(part.data() - text.data());
    };
    if (start(first) + first.size() > start(second)) return text;
    const std::size_t between = start(first) + first.size();
    return text.substr(0, start(first)) + std::string(second) +
           text.substr(between, start(second) - between) + std::string(first) +
           text.substr(start(second) + second.size());
  }

  std::string change_lines(const std::string& text, bool duplicate) {
    const std::size_t middle = below(text.size());
    const std::size_t newline = text.rfind('\n', middle);
    const std::size_t start = newline == std::string::npos ? 0 : newline + 1;
    const std::size_t end = std::min(text.find('\n', middle), text.size() - 1) + 1;
    if (start >= end) return text;
    const std::string line = text.substr(start, end - start);
    return text.substr(0, start) + (duplicate ? line + line : "") + text.substr(end);
  }

  std::string replace_number(const std::string& text) {
    const std::vector<Token> tokens = lex(text);
    for (int attempt = 0; attempt < 20; ++attempt) {
      const Token& token = tokens[below(tokens.size())];
      if (token.kind != TokenKind::Integer) continue;
      constexpr std::array numbers{
          "0", "-1", "4000000000", "18446744073709551615", "1099511627776", "0x7fffffffffffffff", "1000000"};
      const auto start = static_cast<std::size_t>(token.text.data() - text.data());
      return text.substr(0, start) + numbers[below(numbers.size())] + text.substr(start + token.text.size());
    }
    return text;
  }

  std::string pick_hostile() {
    switch (below(7)) {
      case 0:
        return std::string(200, '(');
      case 1:
        return std::string(200, '{');
      case 2:
        return ".reg .b32 %x<4000000000>;";
      case 3:
        return ".global .b8 huge[1099511627776][1099511627776];";
      case 4:
        return "/*";
      case 5:
        return std::string(1, '\0');
      default:
        return std::string(100, '-') + "1";
    }
  }

  std::mt19937_64 random_;
};

// "fuzz:line:column: what", with a place inside the text.
testing::AssertionResult is_located(const std::string& message, const std::string& text) {
  unsigned line = 0;
  unsigned column = 0;
  int consumed = 0;
  if (std::sscanf(message.c_str(), "fuzz:%u:%u: %n", &line, &column, &consumed) != 2 || consumed == 0)
    return testing::AssertionFailure() << "no location: " << message;
  if (static_cast<std::size_t>(consumed) >= message.size())
    return testing::AssertionFailure() << "no reason: " << message;
  std::vector<std::size_t> lengths{0};
  for (const char c : text) {
    if (c == '\n')
      lengths.push_back(0);
    else
      ++lengths.back();
  }
  const bool inside = line >= 1 && line <= lengths.size() && column >= 1 && column <= lengths[line - 1] + 1;
  return inside ? testing::AssertionSuccess()
                : testing::AssertionFailure() << "outside the file: " << message;
}

testing::AssertionResult is_bounded(const Module& module, const std::string& text) {
  std::size_t pieces = module.variables.size() + module.functions.size();
  for (const Function& function : module.functions)
    pieces += function.registers.size() + function.instructions.size() + function.variables.size() +
              function.labels.size();
  return pieces <= text.size()
             ? testing::AssertionSuccess()
             : testing::AssertionFailure() << pieces << " pieces from " << text.size() << " bytes";
}

std::vector<std::string> corpus() {
  std::vector<std::string> texts;
  for (const auto& entry : std::filesystem::directory_iterator(FIREBREAK_PTX_TESTDATA))
    if (entry.path().extension() == ".ptx") texts.push_back(read(entry.path()));
  std::sort(texts.begin(), texts.end());
  return texts;
}

TEST(FuzzParse, DamagedSourcesGiveALocatedErrorOrAValidModule) {
  const std::uint64_t seed_value = test_seed();
  const std::vector<std::string> originals = corpus();
  ASSERT_GE(originals.size(), 3U);
  int valid = 0;
  for (int i = 0; i < input_count && !testing::Test::HasFailure(); ++i) {
    Mutator mutator(seed_value + static_cast<std::uint64_t>(i));
    const std::string text = mutator.mutate(originals[mutator.below(originals.size())]);
    SCOPED_TRACE("FIREBREAK_TEST_SEED=" + std::to_string(seed_value) + ", input " + std::to_string(i));
    const Result<Module> module = parse(text, "fuzz");
    if (!module) {
      EXPECT_EQ(module.error().code, ErrorCode::InvalidArgument);
      EXPECT_TRUE(is_located(module.error().message, text));
      continue;
    }
    ++valid;
    EXPECT_TRUE(validate(*module));
    EXPECT_TRUE(is_bounded(*module, text));
    EXPECT_FALSE(dump(*module).empty());
  }
  // Mutations that always or never hurt would test nothing.
  EXPECT_GT(valid, input_count / 100);
  EXPECT_LT(valid, input_count * 9 / 10);
}

TEST(FuzzParse, EveryPrefixOfASourceGivesALocatedErrorOrAValidModule) {
  for (const std::string& original : corpus()) {
    ASSERT_TRUE(parse(original, "fuzz"));
    for (std::size_t length = 0; length < original.size(); length += 7) {
      const std::string text = original.substr(0, length);
      const Result<Module> module = parse(text, "fuzz");
      if (!module) {
        EXPECT_TRUE(is_located(module.error().message, text));
      }
    }
  }
}

}  // namespace
}  // namespace firebreak::ptx
