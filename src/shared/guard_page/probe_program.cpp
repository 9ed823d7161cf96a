// SPDX-License-Identifier: Apache-2.0
#include "shared/guard_page/probe_program.h"

#include "ground/os/file.h"
#include "ground/os/program.h"

namespace firebreak::guard {
namespace {

// Exit statuses of the program; others (it crashed) mean that nothing was found out.
constexpr int works_status = 0;
constexpr int fails_status = 3;
constexpr int untested_status = 4;

/// A driver may have had its say before.
std::string last_line(std::string text) {
  while (text.ends_with('\n')) text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

}  // namespace

int exit_status_of(const ProbeResult& result) {
  switch (result.answer) {
    case ProbeResult::Answer::Works:
      return works_status;
    case ProbeResult::Answer::Fails:
      return fails_status;
    case ProbeResult::Answer::Untested:
      break;
  }
  return untested_status;
}

ProbeResult known_or_new_probe_result(os::Kernel& kernel, Probed what, Result<os::SpawnRequest> program,
                                      Milliseconds patience) {
  const ProbeResult known = known_probe_result(kernel, what);
  if (known.answer != ProbeResult::Answer::Untested) return known;
  if (!program) return {ProbeResult::Answer::Untested, program.error().message};
  // A client without the variable looks for a daemon in the default place: this one finds an empty folder.
  const auto nobody = os::TemporaryDirectory::create();
  if (!nobody) return {ProbeResult::Answer::Untested, nobody.error().message};
  program->environment.emplace_back("CUDA_MPS_PIPE_DIRECTORY", nobody->path());
  program->environment.emplace_back("LD_PRELOAD", "");
  program->environment.emplace_back("CUDA_ENABLE_COREDUMP_ON_EXCEPTION", "0");
  const auto ran = os::run_program(kernel, std::move(*program), "", patience);
  if (!ran) return {ProbeResult::Answer::Untested, ran.error().message};
  const std::string said = last_line(ran->output);
  const bool ended = ran->status.signal == 0;
  ProbeResult result{ProbeResult::Answer::Untested, said.empty() ? "its probe ended without a word" : said};
  if (ended && ran->status.exit_code == works_status) result = {ProbeResult::Answer::Works, ""};
  if (ended && ran->status.exit_code == fails_status) result.answer = ProbeResult::Answer::Fails;
  (void)keep_probe_result(kernel, what, result);  // a result that cannot be kept is tried again
  return result;
}

}  // namespace firebreak::guard
