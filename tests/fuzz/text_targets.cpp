// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>

#include "agent/domains/mps/control_output.h"
#include "agent/faults/fault/core_dump.h"
#include "agent/faults/fault/mps_log.h"
#include "agent/faults/fault/xid.h"
#include "ground/os/processes.h"
#include "kernels/ptx/dump.h"
#include "kernels/ptx/parse.h"
#include "kernels/ptx/validate.h"
#include "shared/abi/wire.h"
#include "shared/link/status_view.h"
#include "tests/fuzz/targets.h"

namespace firebreak::fuzz {
namespace {

void for_each_line(std::string_view text, const auto& read) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    read(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

bool lies_in(std::string_view part, std::string_view whole) { return whole.find(part) != whole.npos; }

}  // namespace

/// What is understood is said again in the same words, so that what an agent passes on is what it has judged.
void read_wire(std::string_view bytes) {
  (void)abi::number_in(bytes);
  const auto letter = abi::decode_letter(bytes);
  if (!letter) return;
  const std::string text = abi::encode(letter->message, letter->number);
  const auto again = abi::decode_letter(text);
  require(again.has_value(), "what was understood and written is understood again");
  require(again->number == letter->number, "with the same number");
  require(again->message.index() == letter->message.index(), "as the same kind of message");
  require(abi::encode(again->message, again->number) == text, "in the same words");
}

void read_status(std::string_view bytes) {
  const link::StatusView view = link::parse_status(std::string(bytes));
  for (const auto& [name, tenant] : view.tenants)
    require(view.tenant(name).has_value(), "a tenant is found by its name");
}

/// Whoever can print a line there must not invent a process or a place.
void read_kernel_log(std::string_view bytes) {
  for_each_line(bytes, [](std::string_view line) {
    const auto xid = fault::parse_xid(line);
    if (!xid) return;
    require(line.find("NVRM: Xid") != line.npos, "an Xid is the driver's word");
    require(lies_in(xid->pci, line) && lies_in(xid->detail, line), "what it says stands in the line");
    require(!xid->process || lies_in(*xid->process, line), "as does the name of the process");
    require(!xid->pid || *xid->pid >= 0, "a process has a number");
    const fault::Fault made = fault::from_xid(*xid, Monotonic{});
    require(made.xid == xid->code && !describe(made).empty(), "the fault is the one of the line");
  });
}

void read_mps_log(std::string_view bytes) {
  for_each_line(bytes, [](std::string_view line) {
    const auto read = fault::parse_mps_log(line);
    if (!read) return;
    require(lies_in(read->text, line), "what it says stands in the line");
    require(!read->client || *read->client > 0, "a client has a number");
  });
}

void read_mps_answer(std::string_view bytes) {
  (void)mps::parse_answer(bytes);
  const auto processes = mps::parse_process_ids(bytes);
  if (!processes) return;
  require(std::ranges::all_of(*processes, [](pid_t pid) { return pid > 0; }), "a process has a number");
}

void read_core_dump_lines(std::string_view bytes) {
  fault::CoreDumpReader reader;
  for_each_line(bytes, [&reader](std::string_view line) {
    const bool is_about = fault::is_about_exception(line);
    const auto exception = reader.read(line);
    if (!exception) return;
    require(is_about, "only a line about an exception makes one");
    require(exception->warp.has_value(), "an exception without a warp is nobody's");
    require(!describe(fault::from_core_dump(*exception, 1, Monotonic{})).empty(), "it can be told");
  });
}

/// As /proc/PID/stat, as /proc/PID/status, and as an environment.
void read_proc(std::string_view bytes) {
  for (int field = 3; field < 60; ++field)
    require(!lies_in(" ", os::stat_field(bytes, field)), "a field is one word");
  (void)os::is_alive(bytes);
  (void)os::stat_flags(bytes);
  (void)os::image(bytes);
  require(os::start_time(bytes) == os::stat_field(bytes, 22), "the start time is a field");
  require(lies_in(os::program_name(bytes), bytes), "the name stands there");
  const auto user = os::user_in(bytes);
  require(!os::is_of_user_alone(bytes, 1000) || user == uid_t{1000}, "who is alone is the user");
  require(!os::is_of_user_alone(bytes, 0) || user == uid_t{0}, "as root is");
  std::size_t texts = 0;
  os::for_each_text(bytes, [&texts](std::string_view text) {
    ++texts;
    require(!lies_in(std::string_view("\0", 1), text), "a text ends at its first NUL");
  });
  require(texts <= bytes.size(), "there are no more texts than bytes");
  if (const auto value = os::variable_in(bytes, "CUDA_MPS_PIPE_DIRECTORY"))
    require(lies_in("CUDA_MPS_PIPE_DIRECTORY=" + *value, bytes), "a value stands behind its name");
}

/// What the interpreter takes is what the analysis takes, and is valid when it is looked at again.
void read_ptx(std::string_view bytes) {
  const auto kept = ptx::parse(bytes, "fuzz", ptx::UnknownInstructions::Kept);
  const auto module = ptx::parse(bytes, "fuzz");
  if (kept) (void)ptx::dump(*kept);
  if (!module) return;
  require(kept.has_value(), "who keeps unknown instructions takes what others take");
  require(ptx::validate(*module).has_value(), "what was taken is valid");
  require(ptx::dump(*module) == ptx::dump(*kept), "and is the same to both");
}

}  // namespace firebreak::fuzz
