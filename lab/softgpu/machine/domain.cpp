// SPDX-License-Identifier: Apache-2.0
#include "softgpu/machine/domain.h"

#include <thread>
#include <utility>

#include "ground/os/self.h"
#include "softgpu/machine/liveness.h"

namespace firebreak::softgpu {

namespace {
constexpr std::uint32_t domain_magic = 0x474d4f44;  // "DOMG"
}

Domain::Domain(os::Fd fd, os::Mapping mapping)
    : fd_(std::move(fd)), mapping_(std::move(mapping)), page_(mapping_.as<DomainPage>()) {}

Result<std::shared_ptr<Domain>> Domain::create(pid_t server_pid) {
  auto fd = os::create_memory_file("firebreak-softgpu-domain", sizeof(DomainPage));
  if (!fd) return propagate(fd);
  auto mapping = os::Mapping::of_file(fd->get(), sizeof(DomainPage), os::Protection::ReadWrite);
  if (!mapping) return propagate(mapping);
  std::shared_ptr<Domain> domain(new Domain(std::move(*fd), std::move(*mapping)));
  domain->page_->server_pid.store(server_pid);
  domain->page_->magic.store(domain_magic);
  return domain;
}

Result<std::shared_ptr<Domain>> Domain::from(os::Fd fd) {
  if (!os::has_fixed_size(fd.get(), sizeof(DomainPage))) {
    return fail(ErrorCode::Protocol, "the MPS server sent something that is not a domain");
  }
  auto mapping = os::Mapping::of_file(fd.get(), sizeof(DomainPage), os::Protection::ReadWrite);
  if (!mapping) return propagate(mapping);
  std::shared_ptr<Domain> domain(new Domain(std::move(fd), std::move(*mapping)));
  if (domain->page_->magic.load() != domain_magic) {
    return fail(ErrorCode::Protocol, "the MPS server sent something that is not a domain");
  }
  return domain;
}

std::optional<std::uint32_t> Domain::join(pid_t pid) {
  for (std::uint32_t index = 0; index < DomainPage::client_count_max; ++index) {
    std::int32_t nobody = 0;
    if (page_->clients[index].pid.compare_exchange_strong(nobody, pid)) return index;
  }
  return std::nullopt;
}

void Domain::leave(std::uint32_t slot) {
  DomainPage::ClientSlot& client = page_->clients[slot];
  client.terminated.store(0);
  client.terminate_acknowledged.store(0);
  client.faulted_alone.store(0);
  client.pieces_of_work.store(0);
  client.core_dump.store(static_cast<std::uint32_t>(CoreDump::None));
  client.newcomer.store(0);
  client.worked_on.store(0);
  client.pid.store(0);
}

bool Domain::is_quiet() const {
  for (std::uint32_t index = 0; index < DomainPage::client_count_max; ++index) {
    const DomainPage::ClientSlot& client = page_->clients[index];
    if (client.pieces_of_work.load() != 0 && is_alive(client.pid.load())) return false;
  }
  return true;
}

void Domain::wait_until_quiet(std::chrono::milliseconds limit) const {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (!is_quiet() && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

void Domain::write_record(const DomainFault& fault) {
  DomainPage::ClientSlot& client = page_->clients[fault.faulter_slot];
  client.error.store(static_cast<std::uint32_t>(fault.error));
  client.when_ns.store(fault.when_ns);
  client.faulter_error_due_ns.store(fault.faulter_error_due_ns);
  client.co_client_error_due_ns.store(fault.co_client_error_due_ns);
  client.mps_log_due_ns.store(fault.mps_log_due_ns);
  client.teller_pid.store(os::own_pid());
}

bool Domain::raise(const DomainFault& fault) {
  // Whoever holds the domain may have had a fault of its own since.
  const bool holds = page_->held.load(std::memory_order_acquire) == fault.faulter_slot + 1;
  if (holds ? !healthy() : is_faulted(fault.faulter_slot)) return false;
  write_record(fault);
  std::uint32_t none = 0;
  return page_->fault.compare_exchange_strong(none, fault.faulter_slot + 1);
}

bool Domain::raise_alone(const DomainFault& fault) {
  if (is_faulted(fault.faulter_slot)) return false;
  write_record(fault);
  page_->clients[fault.faulter_slot].faulted_alone.store(1);
  return true;
}

bool Domain::is_told() const {
  const std::uint32_t raised = page_->fault.load(std::memory_order_acquire);
  if (raised == 0 || raised > DomainPage::client_count_max || page_->told.load() != 0) return true;
  return !is_alive(page_->clients[raised - 1].teller_pid.load());
}

void Domain::want_core_dump(std::uint32_t slot) {
  auto none = static_cast<std::uint32_t>(CoreDump::None);
  page_->clients[slot].core_dump.compare_exchange_strong(none, static_cast<std::uint32_t>(CoreDump::Wanted));
}

void Domain::finish_core_dump(std::uint32_t slot) {
  page_->clients[slot].core_dump.store(static_cast<std::uint32_t>(CoreDump::Complete));
}

void Domain::refuse_core_dump(std::uint32_t slot) {
  page_->clients[slot].core_dump.store(static_cast<std::uint32_t>(CoreDump::Refused));
}

bool Domain::is_there(std::uint32_t slot) const {
  const pid_t pid = client_pid(slot);
  return pid != 0 && !is_terminated(slot) && is_alive(pid);
}

bool Domain::has_core_dumps() const {
  for (std::uint32_t slot = 0; slot < DomainPage::client_count_max; ++slot) {
    if (wants_core_dump(slot) && is_there(slot)) return true;
  }
  return false;
}

bool Domain::has_worker_beside(std::uint32_t slot) const {
  for (std::uint32_t other = 0; other < DomainPage::client_count_max; ++other) {
    const bool works = page_->clients[other].worked_on.load() != 0;
    if (other != slot && works && has_dumped(other) && is_there(other)) return true;
  }
  return false;
}

bool Domain::falls_late(std::uint32_t faulter) const {
  bool has_worker = false;
  bool has_holder = false;
  for (std::uint32_t slot = 0; slot < DomainPage::client_count_max; ++slot) {
    if (slot == faulter || !has_dumped(slot) || !is_there(slot)) continue;
    (page_->clients[slot].worked_on.load() != 0 ? has_worker : has_holder) = true;
  }
  return has_worker && has_holder;
}

bool Domain::is_hold_over() const {
  const std::uint32_t held = page_->held.load(std::memory_order_acquire);
  const bool known = held != 0 && held <= DomainPage::client_count_max;
  return !known || !is_there(held - 1) || !has_core_dumps();
}

bool Domain::hold(const DomainHold& hold) {
  if (is_faulted(hold.faulter_slot) || page_->held.load() != 0) return false;
  DomainPage::ClientSlot& client = page_->clients[hold.faulter_slot];
  client.held_cause.store(static_cast<std::uint32_t>(hold.cause));
  client.held_access.store(static_cast<std::uint32_t>(hold.access));
  client.held_address.store(hold.address);
  client.held_exception.store(hold.exception.number);
  client.held_program_counter.store(hold.exception.program_counter);
  client.held_multiprocessor.store(hold.exception.multiprocessor);
  client.held_switches.store(hold.switches);
  client.dumps_due_ns.store(hold.dumps_due_ns);
  std::uint32_t none = 0;
  return page_->held.compare_exchange_strong(none, hold.faulter_slot + 1);
}

std::optional<DomainHold> Domain::hold() const {
  const std::uint32_t held = page_->held.load(std::memory_order_acquire);
  if (held == 0 || held > DomainPage::client_count_max || !healthy()) return std::nullopt;
  const DomainPage::ClientSlot& client = page_->clients[held - 1];
  DomainHold hold;
  hold.faulter_slot = held - 1;
  hold.cause = static_cast<FaultCause>(client.held_cause.load());
  hold.access = static_cast<GpuAccess>(client.held_access.load());
  hold.address = client.held_address.load();
  hold.exception = {client.held_exception.load(), client.held_program_counter.load(),
                    client.held_multiprocessor.load()};
  hold.switches = client.held_switches.load();
  hold.dumps_due_ns = client.dumps_due_ns.load();
  return hold;
}

std::optional<DomainFault> Domain::fault_of(std::uint32_t slot) const {
  const bool alone = page_->clients[slot].faulted_alone.load() != 0;
  const std::uint32_t raised = alone ? slot + 1 : page_->fault.load(std::memory_order_acquire);
  if (raised == 0 || raised > DomainPage::client_count_max) return std::nullopt;
  const DomainPage::ClientSlot& client = page_->clients[raised - 1];
  DomainFault fault;
  fault.error = static_cast<CUresult>(client.error.load());
  fault.faulter_slot = raised - 1;
  fault.when_ns = client.when_ns.load();
  fault.faulter_error_due_ns = client.faulter_error_due_ns.load();
  fault.co_client_error_due_ns = client.co_client_error_due_ns.load();
  fault.mps_log_due_ns = client.mps_log_due_ns.load();
  return fault;
}

}  // namespace firebreak::softgpu
