// SPDX-License-Identifier: Apache-2.0
#include "commands/inject_schedule.h"

#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <random>

#include "commands/inject_into.h"
#include "ground/base/clock.h"
#include "ground/os/program.h"
#include "ground/os/real_kernel.h"
#include "ground/os/self.h"
#include "inject/schedule.h"

namespace firebreak::commands {
namespace {

using Json = nlohmann::ordered_json;

/// The driver answers within seconds; a process that hangs in it is killed.
constexpr Milliseconds fault_limit{60'000};

std::uint64_t draw_seed() {
  std::random_device entropy;
  return (std::uint64_t{entropy()} << 32) | entropy();
}

void print(const Json& event, bool json) {
  if (json) {
    fmt::print("{}\n", event.dump());
  } else if (event.contains("seed")) {
    fmt::print("seed {} ({} faults)\n", event["seed"].get<std::uint64_t>(), event["faults"].get<int>());
  } else {
    const auto into = event["into"].get<std::string>();
    fmt::print("{:>4} {:>8} ms  {:<24} {:<12} {}\n", event["event"].get<int>(),
               event["at_ms"].get<std::int64_t>(), event["kind"].get<std::string>(),
               into.empty() ? "itself" : into, event["outcome"].get<std::string>());
  }
  std::fflush(stdout);
}

/// Gives the driver's answer, from its last JSON line; how the process ended where it did not live to be
/// answered.
std::string outcome_of(const os::ProgramResult& ended) {
  const auto end = ended.output.find_last_not_of('\n');
  const auto begin = end == std::string::npos ? end : ended.output.rfind('\n', end);
  const std::string last = ended.output.substr(begin == std::string::npos ? 0 : begin + 1);
  const auto line = Json::parse(last, nullptr, false);
  if (!line.is_object() || !line.contains("answered")) return last.substr(0, last.find('\n'));
  if (line["answered"].is_string()) return line["answered"];
  if (ended.status.signal != 0) return fmt::format("ended by signal {}", ended.status.signal);
  return fmt::format("exited with status {}", ended.status.exit_code);
}

class Run {
 public:
  explicit Run(const ScheduleOptions& options) : options_(options) {}

  Result<int> play(const std::vector<inject::ScheduledFault>& faults) {
    const Monotonic begin = clock_.now();
    int number = 0;
    bool all_raised = true;
    for (const inject::ScheduledFault& fault : faults) {
      const auto left = std::chrono::ceil<Milliseconds>(begin + fault.at - clock_.now());
      if (left > Milliseconds(0)) (void)kernel_.poll({}, left);
      const auto outcome = fault.into.empty() ? raise_here(fault) : raise_in_tenant(fault);
      all_raised = all_raised && outcome;
      Json event;
      event["event"] = ++number;
      event["at_ms"] = fault.at.count();
      event["kind"] = fault.kind->name;
      event["into"] = fault.into;
      event["outcome"] = outcome ? *outcome : to_string(outcome.error());
      print(event, options_.json);
    }
    return all_raised ? 0 : 1;
  }

 private:
  /// Raises it in a process of its own, as a user would.
  Result<std::string> raise_here(const inject::ScheduledFault& fault) {
    const auto self = os::executable_path();
    if (!self) return propagate(self);
    os::SpawnRequest request;
    request.command = {*self, "inject", std::string(fault.kind->name), "--json"};
    const auto ended = os::run_program(kernel_, std::move(request), "", fault_limit);
    if (!ended) return propagate(ended);
    if (ended->status.signal == 0 && ended->status.exit_code == 1) {
      return fail(ErrorCode::Device, outcome_of(*ended));
    }
    return outcome_of(*ended);
  }

  Result<std::string> raise_in_tenant(const inject::ScheduledFault& fault) {
    const auto raised = inject_into(options_.socket_path, fault.into, *fault.kind, 1);
    if (!raised) return propagate(raised);
    return std::string("raised");
  }

  const ScheduleOptions& options_;
  os::RealKernel kernel_;
  SystemClock clock_;
};

}  // namespace

Result<int> run_schedule(const ScheduleOptions& options) {
  const auto text = os::RealKernel().read_file(options.path);
  if (!text) return propagate(text);
  const auto schedule = inject::parse_schedule(*text);
  if (!schedule) return propagate(schedule, options.path);
  const std::uint64_t seed = options.seed ? *options.seed : draw_seed();
  const auto faults = inject::plan(*schedule, seed);
  print(Json{{"seed", seed}, {"faults", faults.size()}}, options.json);
  return Run(options).play(faults);
}

}  // namespace firebreak::commands
