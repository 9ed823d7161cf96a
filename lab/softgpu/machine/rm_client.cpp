// SPDX-License-Identifier: Apache-2.0
#include "softgpu/machine/rm_client.h"

#include <map>
#include <utility>

#include "ground/os/self.h"
#include "softgpu/machine/liveness.h"

namespace firebreak::softgpu {

namespace {
constexpr std::uint32_t rm_magic = 0x4c434d52;  // "RMCL"
}

Result<RmClient> RmClient::create(std::optional<Nanoseconds> orphaned_work) {
  auto fd = os::create_memory_file(memfd_name, sizeof(RmClientPage));
  if (!fd) return propagate(fd);
  auto mapping = os::Mapping::of_file(fd->get(), sizeof(RmClientPage), os::Protection::ReadWrite);
  if (!mapping) return propagate(mapping);
  RmClient client(std::move(*fd), std::move(*mapping));
  client.page_->owner_pid.store(os::own_pid());
  client.page_->orphaned_work_is_endless.store(orphaned_work ? 0 : 1);
  client.page_->orphaned_work_ns.store(orphaned_work ? orphaned_work->count() : 0);
  client.page_->magic.store(rm_magic);
  return client;
}

Result<RmClient> RmClient::from(int fd) {
  if (!os::has_fixed_size(fd, sizeof(RmClientPage))) {
    return fail(ErrorCode::InvalidArgument, "not a descriptor of the resource manager");
  }
  auto mapping = os::Mapping::of_file(fd, sizeof(RmClientPage), os::Protection::ReadWrite);
  if (!mapping) return propagate(mapping);
  RmClient client({}, std::move(*mapping));
  if (client.page_->magic.load() != rm_magic) {
    return fail(ErrorCode::InvalidArgument, "not a descriptor of the resource manager");
  }
  return client;
}

bool RmClient::has_waiting_work() const {
  const pid_t server = page_->server_pid.load();
  return page_->waiting.load() > 0 && (server == 0 || is_alive(server));
}

std::optional<Nanoseconds> RmClient::orphaned_work() const {
  if (page_->orphaned_work_is_endless.load() != 0) return std::nullopt;
  return Nanoseconds(page_->orphaned_work_ns.load());
}

RmClient::Ticket RmClient::queue_word(const FileWord& word) {
  constexpr std::uint64_t taken = ~std::uint64_t{0};
  const std::uint64_t order = page_->words_queued.fetch_add(1) + 1;
  for (Ticket ticket = 0; ticket < no_ticket; ++ticket) {
    QueuedWord& queued = page_->words[ticket];
    std::uint64_t free = 0;
    if (!queued.order.compare_exchange_strong(free, taken)) continue;
    queued.file.store(word.place.file);
    queued.offset_bytes.store(word.place.offset_bytes);
    queued.value.store(word.value);
    queued.size_bytes.store(word.size_bytes);
    queued.order.store(order);
    return ticket;
  }
  return no_ticket;
}

void RmClient::finish_word(Ticket ticket) {
  if (ticket != no_ticket) page_->words[ticket].order.store(0);
}

std::vector<FileWord> RmClient::queued_words() const {
  std::map<std::uint64_t, FileWord> in_order;
  for (const QueuedWord& queued : page_->words) {
    const std::uint64_t order = queued.order.load();
    if (order == 0 || order > page_->words_queued.load()) continue;
    in_order[order] = {
        {queued.file.load(), queued.offset_bytes.load()}, queued.value.load(), queued.size_bytes.load()};
  }
  std::vector<FileWord> words;
  for (const auto& [order, word] : in_order) words.push_back(word);
  return words;
}

void RmClient::begin_stores(std::span<const std::uint64_t> addresses) {
  std::size_t place = 0;
  for (const std::uint64_t address : addresses) {
    for (; place < RmClientPage::stores_max; ++place) {
      std::uint64_t free = 0;
      if (page_->stores[place].compare_exchange_strong(free, address)) break;
    }
  }
}

void RmClient::end_stores(std::span<const std::uint64_t> addresses) {
  std::size_t place = 0;
  for (const std::uint64_t address : addresses) {
    for (; place < RmClientPage::stores_max; ++place) {
      std::uint64_t its = address;
      if (page_->stores[place].compare_exchange_strong(its, 0)) break;
    }
  }
}

std::vector<std::uint64_t> RmClient::stores() const {
  std::vector<std::uint64_t> addresses;
  for (const auto& store : page_->stores) {
    if (const std::uint64_t address = store.load(); address != 0) addresses.push_back(address);
  }
  return addresses;
}

void RmClient::add_child(pid_t child) {
  for (auto& place : page_->children) {
    std::int32_t nobody = 0;
    if (place.compare_exchange_strong(nobody, child)) return;
  }
}

std::vector<pid_t> RmClient::children() const {
  std::vector<pid_t> pids;
  for (const auto& place : page_->children) {
    if (const pid_t pid = place.load(); pid != 0) pids.push_back(pid);
  }
  return pids;
}

}  // namespace firebreak::softgpu
