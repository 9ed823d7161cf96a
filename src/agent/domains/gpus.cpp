// SPDX-License-Identifier: Apache-2.0
#include "agent/domains/gpus.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "agent/faults/fault/xid.h"

namespace firebreak::agent {
namespace {

using fault::DeviceNeed;

/// NVML tells of an Xid again, some milliseconds after the kernel's log; by then the need may be over.
constexpr Milliseconds echo_takes{5'000};

std::string reason_of(const fault::Fault& fault) {
  if (!fault.xid) return fault.kind;
  const fault::XidAction action = fault::find_xid(*fault.xid).action;
  return fmt::format("{}, {}", fault.kind, fault::to_string(action));
}

}  // namespace

Gpus::Gpus(const std::vector<MachineGpu>& all, Domains& domains) : domains_(domains) {
  for (const MachineGpu& each : all) gpus_.push_back({each});
}

void Gpus::begin() {
  for (const mps::DomainReport& report : domains_.reports()) {
    const auto found = std::ranges::find(gpus_, report.gpu, [](const Gpu& gpu) { return gpu.is.uuid; });
    std::optional<std::uint32_t>& number = number_of_[report.name];
    number.reset();
    if (found != gpus_.end()) number = static_cast<std::uint32_t>(found - gpus_.begin());
    if (report.gpu.empty() && gpus_.size() == 1) number = 0;
  }
}

void Gpus::restore(const std::vector<KeptGpu>& kept) {
  for (const KeptGpu& each : kept) {
    const auto found = std::ranges::find(gpus_, each.pci, [](const Gpu& gpu) { return gpu.is.pci; });
    if (found == gpus_.end()) continue;
    for (const DeviceNeed need : {DeviceNeed::Drain, DeviceNeed::Reset, DeviceNeed::Reboot}) {
      if (each.needs == to_string(need))
        set(static_cast<std::size_t>(found - gpus_.begin()), need, each.reason, {});
    }
  }
}

std::vector<KeptGpu> Gpus::kept() const {
  std::vector<KeptGpu> kept;
  for (const Gpu& gpu : gpus_) {
    if (gpu.needs > DeviceNeed::Nothing) kept.push_back({gpu.is.pci, to_string(gpu.needs), gpu.reason});
  }
  return kept;
}

std::optional<std::uint32_t> Gpus::number_of(std::string_view domain) const {
  const auto found = number_of_.find(domain);
  return found == number_of_.end() ? std::nullopt : found->second;
}

bool Gpus::may_be_in(const fault::Fault& fault, std::string_view domain) const {
  return fault::may_be_same(fault.gpu, {.number = number_of(domain)});
}

bool Gpus::is_ours(const fault::Gpu& gpu) const {
  return gpu.is_here && std::ranges::any_of(number_of_, [&](const auto& domain) {
           return fault::may_be_same(gpu, {.number = domain.second});
         });
}

std::string Gpus::note(const fault::Fault& fault) {
  if (fault.needs == DeviceNeed::Unsaid || !fault.gpu.is_here || !fault.gpu.number) return {};
  const std::size_t number = *fault.gpu.number;
  if (number >= gpus_.size()) return {};
  const Gpu& gpu = gpus_[number];
  if (fault.needs == DeviceNeed::Nothing) {
    if (gpu.needs == DeviceNeed::Nothing) return {};
    return set(number, DeviceNeed::Nothing, "the driver says so", fault.when);
  }
  const bool is_echo =
      fault.source == fault::FaultSource::Nvml && gpu.since_well && fault.when - *gpu.since_well < echo_takes;
  if (fault.needs <= gpu.needs || is_echo) return {};
  return set(number, fault.needs, reason_of(fault), fault.when);
}

Result<std::string> Gpus::recover(const std::string& named) {
  std::vector<std::size_t> found;
  std::vector<std::string> names;
  const std::string address = fault::pci_address(named);
  for (std::size_t number = 0; number < gpus_.size(); ++number) {
    const MachineGpu& gpu = gpus_[number].is;
    const bool is_it = named == std::to_string(number) || (!address.empty() && address == gpu.pci) ||
                       (named.starts_with("GPU-") && gpu.uuid.starts_with(named));
    if (is_it) found.push_back(number);
    names.push_back(fmt::format("{} ({})", gpu.uuid, gpu.pci));
  }
  if (found.size() != 1) {
    return fail(ErrorCode::NotFound,
                fmt::format("{} '{}'", found.empty() ? "there is no GPU" : "several GPUs begin with", named),
                names.empty() ? "this agent does not know the machine's GPUs"
                              : fmt::format("there is {}", fmt::join(names, ", ")));
  }
  if (gpus_[found.front()].needs == DeviceNeed::Nothing) return name_of(found.front()) + " is well";
  return set(found.front(), DeviceNeed::Nothing, "an operator says so", {});
}

std::string Gpus::set(std::size_t number, DeviceNeed needs, const std::string& reason, Monotonic when) {
  Gpu& gpu = gpus_[number];
  const bool is_well = needs == DeviceNeed::Nothing;
  gpu.needs = needs;
  gpu.reason = is_well ? std::string() : reason;
  if (is_well) gpu.since_well = when;
  const std::vector<std::string> names = domains_on(number);
  const std::string words = is_well ? "" : fmt::format("its GPU needs a {} ({})", to_string(needs), reason);
  for (const std::string& domain : names) {
    domains_.set_gpu_needs(domain, words);
    // What its clients had there is gone; without servers it can be reset.
    if (needs >= DeviceNeed::Reset) domains_.note_fault(domain);
  }
  if (is_well) return fmt::format("{} is well again: {}", name_of(number), reason);
  const std::string follows = names.empty()
                                  ? "none of our domains is there"
                                  : fmt::format("until then nobody is placed in {}", fmt::join(names, ", "));
  return fmt::format("{} needs a {} ({}): {}", name_of(number), to_string(needs), reason, follows);
}

std::vector<std::string> Gpus::domains_on(std::size_t number) const {
  std::vector<std::string> names;
  for (const auto& [domain, its] : number_of_) {
    if (its == number) names.push_back(domain);
  }
  return names;
}

std::string Gpus::name_of(std::size_t number) const {
  return fault::describe(
      fault::Gpu{.number = static_cast<std::uint32_t>(number), .pci = gpus_[number].is.pci});
}

}  // namespace firebreak::agent
