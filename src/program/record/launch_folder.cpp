// SPDX-License-Identifier: Apache-2.0
#include "program/record/launch_folder.h"

#include <fmt/format.h>

#include <iterator>

#include "ground/os/file.h"
#include "ground/os/self.h"

namespace firebreak::record {
namespace {

std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (const char each : text) {
    if (each == '"' || each == '\\') result += '\\';
    result += static_cast<unsigned char>(each) < ' ' ? ' ' : each;
  }
  return result + '"';
}

const char* name_of(CodeForm form) {
  switch (form) {
    case CodeForm::Ptx:
      return "ptx";
    case CodeForm::MachineCode:
      return "machine code";
    default:
      return "unknown";
  }
}

std::string to_text(const LaunchLine& line) {
  std::string text;
  auto out = std::back_inserter(text);
  fmt::format_to(out, R"({{"kernel":{},"image":{},"code":"{}")", quoted(line.kernel), quoted(line.image),
                 name_of(line.form));
  fmt::format_to(out, R"(,"grid":[{},{},{}],"block":[{},{},{}])", line.grid[0], line.grid[1], line.grid[2],
                 line.block[0], line.block[1], line.block[2]);
  fmt::format_to(out, R"(,"shared_bytes":{},"parameters":")", line.shared_bytes);
  for (const std::byte each : line.parameters) fmt::format_to(out, "{:02x}", static_cast<unsigned>(each));
  text += R"(","memory":[)";
  const char* between = "";
  for (const LaunchMemory& range : line.memory) {
    fmt::format_to(out, "{}[{},{}]", between, range.address, range.size_bytes);
    between = ",";
  }
  text += R"(],"variables":{)";
  between = "";
  for (const VariableAddress& variable : line.variables) {
    fmt::format_to(out, "{}{}:{}", between, quoted(variable.name), variable.address);
    between = ",";
  }
  return text + "}}\n";
}

}  // namespace

Result<std::unique_ptr<LaunchFolder>> LaunchFolder::create(const std::string& folder) {
  std::unique_ptr<LaunchFolder> made(new LaunchFolder());
  made->folder_ = folder;
  const std::string own = folder + "/" + std::to_string(os::own_pid());
  for (const std::string& each : {own, folder + "/images"})
    if (const Status done = os::make_directories(each); !done) return propagate(done);
  made->lines_.reset(std::fopen((own + "/launches.jsonl").c_str(), "we"));
  const File counts(std::fopen((own + "/counts").c_str(), "w+e"));
  const std::vector<char> zeroes(counts_bytes);
  const bool is_written = made->lines_ != nullptr && counts != nullptr &&
                          std::fwrite(zeroes.data(), 1, zeroes.size(), counts.get()) == zeroes.size() &&
                          std::fflush(counts.get()) == 0;
  if (!is_written) return fail(ErrorCode::PermissionDenied, "cannot write to " + own);
  auto mapping = os::Mapping::of_file(fileno(counts.get()), counts_bytes, os::Protection::ReadWrite);
  if (!mapping) return propagate(mapping);
  made->counts_ = std::move(*mapping);
  return made;
}

void LaunchFolder::write(const LaunchLine& line) {
  const std::string text = to_text(line);
  (void)std::fwrite(text.data(), 1, text.size(), lines_.get());
  (void)std::fflush(lines_.get());
}

void LaunchFolder::write_image(const std::string& name, const LoadedCode& code) {
  write_text(name + (code.form == CodeForm::Ptx ? ".ptx" : ".cubin"), name.empty() ? "" : code.text);
  write_text(name + ".beside.ptx", name.empty() ? "" : code.beside);
}

void LaunchFolder::write_text(const std::string& name, std::string_view text) {
  if (text.empty()) return;
  const std::string path = fmt::format("{}/images/{}", folder_, name);
  if (os::is_there(path)) return;
  // Under its name it is there as a whole: several processes may write one.
  const std::string part = fmt::format("{}.{}", path, os::own_pid());
  const File file(std::fopen(part.c_str(), "we"));
  if (file == nullptr) return;
  (void)std::fwrite(text.data(), 1, text.size(), file.get());
  if (std::fflush(file.get()) == 0) (void)std::rename(part.c_str(), path.c_str());
}

}  // namespace firebreak::record
