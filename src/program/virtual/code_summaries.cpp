// SPDX-License-Identifier: Apache-2.0
#include "program/virtual/code_summaries.h"

#include "kernels/ptx/parse.h"

namespace firebreak::virtual_driver {
namespace {

// Of one image's text. A word takes some 90 bytes in memory while it is read, and code as compilers write it
// has one for each three bytes.
constexpr std::size_t most_bytes = std::size_t{8} << 20;
constexpr std::size_t most_words = 2'600'000;
constexpr std::size_t most_functions = 20'000;
// Of all kernels of an image: names of variables that are kept, and steps of their analysis.
constexpr std::size_t most_names = 4'000'000;
constexpr std::uint64_t most_steps = 24'000'000;
constexpr std::size_t most_bytes_of_a_call = std::size_t{1} << 20;

bool is_of_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '$' ||
         c == '%';
}

bool is_blank(char c) { return c == ' ' || c == '\n' || c == '\t'; }

// Whatever the text is, it takes no more memory than one that is as large as may be.
bool is_large(const std::string& text) {
  if (text.size() > most_bytes) return true;
  std::size_t words = 0;
  bool is_in_name = false;
  for (const char c : text) {
    const bool goes_on = is_in_name && is_of_name(c);
    if (!goes_on && !is_blank(c)) ++words;
    is_in_name = is_of_name(c);
  }
  std::size_t functions = 0;
  for (const char* const kind : {".entry", ".func"})
    for (std::size_t at = text.find(kind); at != std::string::npos; at = text.find(kind, at + 1)) ++functions;
  return words > most_words || functions > most_functions;
}

}  // namespace

bool CodeSummaries::is_read(const std::shared_ptr<CodeImage>& image) const {
  const std::lock_guard lock(mutex_);
  const auto found = code_.find(image.get());
  return found != code_.end() && found->second.image.lock() == image;
}

void CodeSummaries::forget_gone() {
  const std::lock_guard lock(mutex_);
  std::erase_if(code_, [](const auto& each) { return each.second.image.expired(); });
}

CodeSummaries::Code CodeSummaries::read(const std::shared_ptr<CodeImage>& image, const std::string& text) {
  Code code;
  code.image = image;
  code.is_too_large = is_large(text);
  if (text.empty() || code.is_too_large) return code;
  const auto module = ptx::parse(text, "its code", ptx::UnknownInstructions::Kept);
  if (!module) return code;
  code.is_too_large = module->functions.size() * module->variables.size() > most_names;
  std::uint64_t steps = 0;
  for (const ptx::Function& kernel : module->functions) {
    if (!kernel.is_entry || !kernel.has_body || code.is_too_large) continue;
    auto summary = access::summarise(*module, kernel);
    steps += summary.analysis_steps;
    code.is_too_large = steps > most_steps;
    summary.values = nullptr;  // only words need them, and they are large
    code.kernels.emplace(kernel.name, std::make_shared<const access::KernelSummary>(std::move(summary)));
  }
  return code;
}

bool CodeSummaries::read_new(const std::vector<std::shared_ptr<CodeImage>>& images,
                             const fatbin::TargetGpu& gpu) {
  forget_gone();
  std::size_t read_bytes = 0;
  for (const std::shared_ptr<CodeImage>& image : images) {
    if (is_read(image)) continue;
    if (read_bytes > most_bytes_of_a_call) return false;
    const std::string text = image->compiled_ptx(gpu).value_or("");
    read_bytes += text.size();
    Code code = read(image, text);
    const std::lock_guard lock(mutex_);
    code_.insert_or_assign(image.get(), std::move(code));
  }
  return true;
}

CodeSummaries::Summary CodeSummaries::find(const CodeImage* image, const std::string& kernel,
                                           const char*& why) const {
  const std::lock_guard lock(mutex_);
  const auto code = code_.find(image);
  why =
      code == code_.end() ? "its code has just come, and has not been read" : "its code is not known as PTX";
  if (code == code_.end() || code->second.image.expired()) return nullptr;
  if (code->second.is_too_large) why = "its code is too large to be read";
  const auto found = code->second.kernels.find(kernel);
  return found == code->second.kernels.end() ? nullptr : found->second;
}

}  // namespace firebreak::virtual_driver
