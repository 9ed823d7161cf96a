// SPDX-License-Identifier: Apache-2.0
#include "idempotency/corpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>

#include "kernels/access/decision_memo.h"
#include "kernels/access/describe.h"
#include "kernels/ptx/parse.h"

namespace firebreak::idempotency {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t first_address = 0x7000'0000'0000;
constexpr std::uint64_t buffer_bytes = 1ULL << 30;
constexpr std::uint64_t apart_bytes = 1ULL << 32;
constexpr std::size_t most_pointers = 600;

// What of a refusal is not about one line or one name.
std::string cause_of(const std::string& refusal) {
  const std::size_t colon = refusal.find(": ");
  std::string cause = colon == std::string::npos ? refusal : refusal.substr(colon + 2);
  const std::size_t quote = cause.find('\'');
  return quote == std::string::npos ? cause : cause.substr(0, cause.find('.', quote)) + "' is not known";
}

class Surveyor {
 public:
  Surveyor() {
    for (std::size_t i = 0; i < most_pointers; ++i)
      memory_.push_back({first_address + i * apart_bytes, buffer_bytes, first_address + i * apart_bytes});
  }

  KernelSurvey run(const std::vector<std::string>& files) {
    for (const std::string& path : files) add_file(path);
    result_.times = timer_.take();
    return std::move(result_);
  }

 private:
  void add_file(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    const Clock::time_point start = Clock::now();
    const auto module = ptx::parse(text, path, ptx::UnknownInstructions::Kept);
    result_.parse_time += Clock::now() - start;
    ++result_.files;
    if (!module) {
      ++result_.unread_files;
      fmt::print(stderr, "{}\n", to_string(module.error()));
      return;
    }
    for (const ptx::Function& function : module->functions)
      if (function.is_entry && function.has_body) add_kernel(*module, function);
  }

  void add_kernel(const ptx::Module& module, const ptx::Function& function) {
    const Clock::time_point start = Clock::now();
    const access::KernelSummary summary = access::summarise(module, function);
    result_.analysis_time += Clock::now() - start;
    ++result_.kernels;
    const bool stores = std::any_of(summary.groups.begin(), summary.groups.end(),
                                    [](const auto& group) { return group.kind != ptx::EffectKind::Read; });
    result_.storing_kernels += stores || !summary.refusal.empty() ? 1 : 0;
    if (!summary.refusal.empty()) ++result_.refusals[cause_of(summary.refusal)];
    const access::LaunchArguments launch = make_launch(module, function);
    const access::Decision decision = access::decide(summary, launch, workspace_);
    ++result_.verdicts[name_of(decision)];
    timer_.measure(summary, launch, workspace_);
  }

  static std::string name_of(const access::Decision& decision) {
    using access::DecisionReason;
    const auto because = [&]() -> std::string {
      switch (decision.reason) {
        case DecisionReason::Atomic:
          return ", an atomic";
        case DecisionReason::Overlap:
          return ", a store meets a load";
        case DecisionReason::WideOverlap:
          return ", somewhere in one allocation";
        case DecisionReason::UnknownAddress:
          return ", an address that is not known";
        case DecisionReason::OutsideMemory:
          return ", outside memory";
        case DecisionReason::TooComplicated:
          return ", too complicated an address";
        case DecisionReason::Refused:
          return ", refused";
        case DecisionReason::ByOrder:
          return ", where the order of threads chooses what is written";
        default:
          return "";
      }
    };
    return access::to_string(decision.verdict) + because();
  }

  access::LaunchArguments make_launch(const ptx::Module& module, const ptx::Function& function) {
    parameters_.assign(function.parameter_bytes, std::byte{0});
    std::size_t pointers = 0;
    const auto put = [this](std::uint64_t at, auto value) {
      std::memcpy(parameters_.data() + at, &value, sizeof(value));
    };
    for (const ptx::Parameter& parameter : function.parameters) {
      if (parameter.size_bytes == 8)
        put(parameter.offset_bytes, first_address + (pointers++ % (most_pointers / 2)) * apart_bytes);
      else
        for (std::uint64_t at = 0; at + 4 <= parameter.size_bytes; at += 4)
          put(parameter.offset_bytes + at, std::uint32_t{64});
    }
    variables_.assign(module.variables.size(), 0);
    for (std::size_t i = 0; i < variables_.size(); ++i)
      variables_[i] = first_address + (most_pointers / 2 + i % (most_pointers / 2)) * apart_bytes;
    access::LaunchArguments launch;
    launch.grid = {16, 1, 1};
    launch.block = {256, 1, 1};
    launch.parameters = parameters_;
    launch.memory = memory_;
    launch.variable_addresses = variables_;
    return launch;
  }

  KernelSurvey result_;
  access::DecisionWorkspace workspace_;
  DecisionTimer timer_;
  std::vector<access::MemoryRange> memory_;
  std::vector<std::uint64_t> variables_;
  std::vector<std::byte> parameters_;
};

}  // namespace

KernelSurvey survey(const std::vector<std::string>& files) { return Surveyor().run(files); }

std::string to_text(const KernelSurvey& survey) {
  const auto seconds = [](std::chrono::nanoseconds time) { return static_cast<double>(time.count()) / 1e9; };
  std::string text = fmt::format("{} files ({} not read), {} kernels, {} that store or were refused\n",
                                 survey.files, survey.unread_files, survey.kernels, survey.storing_kernels);
  text += fmt::format("parsed in {:.1f} s, analysed in {:.1f} s\n", seconds(survey.parse_time),
                      seconds(survey.analysis_time));
  text += "refused:\n";
  for (const auto& [cause, count] : survey.refusals) text += fmt::format("  {:6} {}\n", count, cause);
  text += "one made-up launch of each, pointers apart:\n";
  for (const auto& [verdict, count] : survey.verdicts) text += fmt::format("  {:6} {}\n", count, verdict);
  const auto line = [](const char* what, const std::vector<std::chrono::nanoseconds>& times) {
    return fmt::format("{}: p50 {:.2f} us, p99 {:.2f} us, largest {:.2f} us\n", what,
                       percentile_us(times, 0.5), percentile_us(times, 0.99), percentile_us(times, 1));
  };
  return text + line("a decision", survey.times.decided) + line("a remembered one", survey.times.remembered);
}

}  // namespace firebreak::idempotency
