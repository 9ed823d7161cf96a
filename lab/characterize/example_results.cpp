// SPDX-License-Identifier: Apache-2.0
#include "characterize/example_results.h"

namespace firebreak::characterize::example {
namespace {

constexpr const char* error = "CUDA_ERROR_ILLEGAL_ADDRESS";

Participant dies(pid_t pid, double at_ms) {
  Participant dead;
  dead.pid = pid;
  dead.error = error;
  dead.error_ms = at_ms;
  return dead;
}

Participant lives(pid_t pid, double stall_ms) {
  Participant alive;
  alive.pid = pid;
  alive.start_ms = 50;
  alive.kernels = 100;
  alive.longest_stall = Stall{1, 1 + stall_ms};
  return alive;
}

}  // namespace

Expected expected(const std::string& kind) {
  Expected one;
  one.kind = kind;
  one.summary = "a store to nowhere";
  one.fault_class = "mmu_replayable";
  one.faulter = error;
  one.co_client = error;
  one.xids = {31};
  one.first_seen_by = "uvm_event";
  return one;
}

Run run(const std::string& kind, int repeat) {
  Run one;
  one.kind = kind;
  one.repeat = repeat;
  one.date = "2026-11-21T12:00:00Z";
  one.participants = {{"faulter", dies(1, 2)},
                      {"co_client", dies(2, 4)},
                      {"other_domain", lives(3, 5)},
                      {"outside", lives(4, 6)}};
  one.signals = {{"uvm_event", "fatal fault", 1, {}, "faulter"}, {"xid", "Xid 31", 3, 31, "server_a"}};
  one.attribution = {Verdict::Right, "faulter", "certain", {"UVM named it"}, 1};
  one.restart = {130, 80, 1, ""};
  one.memory_left_bytes = 0;
  one.took_ms = 400;
  return one;
}

Results results(const std::vector<std::string>& kinds, int repeat) {
  Results made;
  made.machine = {"Some GPU", "580.1", "6.1.0", "abc123", "2026-11-21"};
  made.command = "firebreak-lab characterize --repeat 1 --seed 1";
  made.repeat = repeat;
  made.finished = true;
  for (const std::string& kind : kinds) made.expected.push_back(expected(kind));
  for (int i = 1; i <= repeat; ++i) {
    for (const std::string& kind : kinds) made.runs.push_back(run(kind, i));
  }
  return made;
}

}  // namespace firebreak::characterize::example
