// SPDX-License-Identifier: Apache-2.0
#include "commands/cli/tenant_start.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "commands/cli/placed_environment.h"
#include "commands/cli/wishes.h"
#include "ground/os/program_needs.h"
#include "ground/os/self.h"
#include "ground/platform/gpu_list.h"
#include "ground/platform/platform.h"
#include "program/guard/guard.h"
#include "shared/abi/spare_page.h"
#include "shared/dump_mode/mode.h"
#include "shared/guard_page/probe_program.h"

namespace firebreak::cli {
namespace {

constexpr const char* visible_devices = "CUDA_VISIBLE_DEVICES";

/// What the tenant's environment will have: what the agent says goes before our own.
std::optional<std::string> tenant_variable(const abi::Placed& placed, const std::string& name) {
  for (const auto& [its_name, value] : placed.environment) {
    if (its_name == name) return value;
  }
  return os::environment_variable(name);
}

/// A program that has settings of its own for its core dumps keeps them, and is not parked.
std::vector<std::pair<std::string, std::string>> without_what_is_its_own(
    std::vector<std::pair<std::string, std::string>> placed, bool parking) {
  const bool has_its_own = std::ranges::any_of(placed, [](const auto& variable) {
    return park::is_of_mode(variable.first) && os::environment_variable(variable.first).has_value();
  });
  // A pipe that nobody reads would hold up whoever dumps into it.
  if (has_its_own || !parking)
    std::erase_if(placed, [](const auto& each) { return is_of_dumps(each.first); });
  return without_dumps_to_files(std::move(placed));
}

/// The agent's word alone loads nothing here.
Status check_environment(const abi::Placed& placed, Environment& environment) {
  // Of a real GPU nothing is needed that an agent may not say anyway.
  const auto gpu = tenant_variable(placed, "FIREBREAK_GPU");
  const auto own = gpu == "soft" ? platform::choose({}, *gpu) : fail(ErrorCode::NotFound, "it is real");
  const Environment needed = own ? own->environment : Environment{};
  prefer_own_driver(environment, needed);
  return check_placed_environment(environment, needed, own ? own->state_variable : std::string());
}

/// In a mount namespace of our own the agent's socket may lie elsewhere: where we have found it.
void use_reachable_socket(std::vector<std::pair<std::string, std::string>>& environment,
                          const std::string& ours) {
  std::error_code ignored;
  for (auto& [name, value] : environment) {
    if (name == "FIREBREAK_SOCKET" && !std::filesystem::exists(value, ignored))
      value = std::filesystem::absolute(ours);
  }
}

/// A domain that has all GPUs is no reason to see more of them than was asked for.
void show_wanted_gpus(Environment& environment, const TenantOptions& options) {
  const auto its =
      std::ranges::find(environment, visible_devices, [](const auto& each) { return each.first; });
  if (options.hides_gpus) {
    if (its != environment.end()) environment.erase(its);
  } else if (its == environment.end() && !options.gpu.empty()) {
    environment.emplace_back(visible_devices, options.gpu);
  }
}

/// Those variables as our own environment has them, where it does.
Environment own_of(const Environment& placed) {
  Environment own;
  for (const auto& [name, value] : placed) {
    if (auto its = os::environment_variable(name)) own.emplace_back(name, std::move(*its));
  }
  return own;
}

/// The library that is the guard, and the spare driver instance.
Status add_preload(os::SpawnRequest& request, const TenantOptions& options) {
  const bool has_spare = std::ranges::count(request.environment, abi::spare_variable,
                                            [](const auto& each) { return each.first; }) != 0;
  if (options.guard == Part::No && !has_spare) return {};
  auto preload = platform::guard_preload();
  if (!preload) return propagate(preload);
  for (auto& variable : *preload) request.environment.push_back(std::move(variable));
  if (options.guard == Part::No) request.environment.emplace_back(guard::guard_variable, "0");
  return {};
}

/// What the tenant is guarded by; whether that works here is known by then, and the guard itself says so.
Status prepare_guard(os::SpawnRequest& request, const abi::Placed& placed, bool shares_memory) {
  if (shares_memory) request.environment.emplace_back(guard::sharing_variable, "1");
  const auto platform = platform::choose({}, tenant_variable(placed, "FIREBREAK_GPU").value_or(""));
  if (!platform) return propagate(platform);
  (void)guard::known_or_new_probe_result(*platform->kernel, guard::Probed::GuardRanges,
                                         platform::probe(*platform, "guard-probe"));
  return {};
}

/// Empty: they are not known.
std::vector<std::string> uuids_of(const platform::Platform& platform) {
  if (platform.gpu == platform::Gpu::Soft) return platform.gpu_uuids;
  std::vector<std::string> uuids;
  for (platform::ListedGpu& each : platform::listed_gpus(*platform.kernel))
    uuids.push_back(std::move(each.uuid));
  return uuids;
}

}  // namespace

Status heed_environment(TenantOptions& options) {
  const auto share = os::environment_variable("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE");
  if (share && options.sm_percent == 0) {
    ShareWish wish = share_wish(*share);
    options.sm_percent = wish.percent;
    if (wish.percent != 0) options.heeded.emplace_back("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE");
    if (!wish.note.empty()) options.notes.push_back(std::move(wish.note));
  }
  const auto gpus = os::environment_variable(visible_devices);
  if (!gpus && options.gpu.empty()) return {};
  const auto platform = platform::choose();
  const auto uuids = platform ? uuids_of(*platform) : std::vector<std::string>{};
  if (options.gpu.empty()) {
    auto wish = gpu_wish(*gpus, uuids);
    if (!wish) return propagate(wish);
    options.gpu = std::move(wish->gpu);
    options.hides_gpus = wish->hides_all;
    if (!options.gpu.empty()) options.heeded.emplace_back(visible_devices);
    if (!wish->note.empty()) options.notes.push_back(std::move(wish->note));
  }
  if (options.gpu.empty()) return {};
  // The agent knows no GPU of a domain that has all of them, and CUDA would show the program none.
  auto gpu = platform::choose_gpu(uuids, options.gpu);
  if (!gpu) return propagate(gpu);
  options.gpu = std::move(*gpu);
  return {};
}

abi::Place place_question(const TenantOptions& options, abi::Role role) {
  return {options.name,
          role,
          options.gpu,
          options.sm_percent,
          options.memory_mib,
          options.spare == Part::Yes,
          options.spare == Part::IfPossible};
}

abi::Adopt adopt_question(const TenantOptions& options, abi::Role role, pid_t pid) {
  return {options.name, role, pid,
          options.report_only ? abi::StrayPolicy::Report : abi::StrayPolicy::Default};
}

Status choose_by_program(TenantOptions& options, const std::string& file) {
  const auto needs = os::program_needs(file);
  if (!needs) return {};
  const bool is_of_musl = needs->dynamic_linker.find("/ld-musl-") != std::string::npos;
  if (is_of_musl && (options.guard != Part::No || options.spare != Part::No)) {
    if (options.guard == Part::Yes || options.spare == Part::Yes)
      return fail(ErrorCode::Unsupported, file + " is built for musl: guard and spare need glibc");
    options.guard = options.spare = Part::No;
    options.notes.push_back(file + " is built for musl: it has neither guard nor spare, which need glibc");
  }
  return {};
}

Result<os::SpawnRequest> start_request(const TenantOptions& options, const abi::Placed& placed,
                                       std::vector<std::string>& notes) {
  notes = options.notes;
  os::SpawnRequest request;
  request.command = options.command;
  request.environment = without_what_is_its_own(placed.environment, options.parking);
  if (const Status checked = check_environment(placed, request.environment); !checked)
    return propagate(checked);
  use_reachable_socket(request.environment, options.socket_path);
  show_wanted_gpus(request.environment, options);
  for (std::string& note :
       notes_of_replaced(request.environment, own_of(request.environment), options.heeded))
    notes.push_back(std::move(note));
  if (!options.turn_class.empty()) request.environment.emplace_back("FIREBREAK_CLASS", options.turn_class);
  if (const Status added = add_preload(request, options); !added) return propagate(added);
  if (options.guard == Part::No) return request;
  if (const Status prepared = prepare_guard(request, placed, options.guard_ipc); !prepared)
    return propagate(prepared);
  return request;
}

}  // namespace firebreak::cli
