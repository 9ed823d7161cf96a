// SPDX-License-Identifier: Apache-2.0
/// What others write into memory that we map, and read as it is: the pages of tenants, and what an agent
/// before kept.
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "agent/parking/spares.h"
#include "agent/service/client_connections.h"
#include "agent/tenants/kept_state.h"
#include "ground/os/memory.h"
#include "program/journal/commit_recovery.h"
#include "program/journal/commit_writer.h"
#include "program/redo/redo_decision.h"
#include "program/redo/ring_reader.h"
#include "program/redo/ring_writer.h"
#include "shared/abi/commit_journal.h"
#include "shared/abi/guard_page.h"
#include "shared/abi/redo_ring.h"
#include "shared/abi/spare_page.h"
#include "shared/guard_page/guard_view.h"
#include "shared/guard_page/work_view.h"
#include "tests/fuzz/targets.h"

namespace firebreak::fuzz {
namespace {

constexpr std::size_t page_bytes = 4096;

/// Pieces of an input: three bytes say where, one how many follow, which stand there. What comes first is the
/// number of a unit, so that far places are reached as easily as near ones.
template <class Write>
void for_each_patch(std::string_view bytes, std::size_t unit_bytes, Write write) {
  while (bytes.size() > 4) {
    std::size_t at = 0;
    for (int i = 0; i < 3; ++i) at = at << 8 | static_cast<std::uint8_t>(bytes[static_cast<std::size_t>(i)]);
    const std::size_t count = static_cast<std::uint8_t>(bytes[3]);
    bytes.remove_prefix(4);
    const std::string_view patch = bytes.substr(0, count);
    bytes.remove_prefix(patch.size());
    write(at * unit_bytes, patch);
  }
}

void patch(std::span<std::byte> memory, std::string_view bytes, std::size_t unit_bytes = 4) {
  for_each_patch(bytes, unit_bytes, [&](std::size_t at, std::string_view one) {
    at %= memory.size();
    std::memcpy(memory.data() + at, one.data(), std::min(one.size(), memory.size() - at));
  });
}

bool is_printable(std::string_view text) {
  return std::ranges::all_of(text, [](char letter) { return letter >= ' ' && letter <= '~'; });
}

struct MappedFile {
  os::Fd file;
  os::Mapping mapping;

  std::span<std::byte> bytes(std::size_t count) { return {static_cast<std::byte*>(mapping.data()), count}; }
};

MappedFile mapped_file(const char* name, std::size_t size_bytes) {
  os::Fd file = std::move(os::create_memory_file(name, size_bytes).value());
  os::Mapping mapping =
      std::move(os::Mapping::of_file(file.get(), size_bytes, os::Protection::ReadWrite).value());
  return {std::move(file), std::move(mapping)};
}

/// What is kept beside it is encoded by others.
agent::KeptTenant without_lists(agent::KeptTenant tenant) {
  tenant.allocations.clear();
  tenant.connections.clear();
  return tenant;
}

void read_kept_text(std::string_view text) {
  if (const auto common = agent::decode_common(text)) {
    const auto again = agent::decode_common(agent::encode_common(*common));
    require(again && *again == *common, "what is kept of all is read as it was written");
  }
  const auto tenant = agent::decode_tenant(text);
  if (!tenant) return;
  agent::KeptText kept;
  const auto written = kept.update(*tenant, {}, agent::ClientConnections());
  require(written.has_value(), "a tenant is written down");
  const auto again = agent::decode_tenant(*written);
  require(again && without_lists(*again) == without_lists(*tenant), "a tenant is read as it was written");
}

}  // namespace

/// As the text of a document; and as what stands in the file of one that was whole.
void read_kept_state(std::string_view bytes) {
  read_kept_text(bytes);
  auto document = std::move(agent::KeptDocument::create().value());
  require(document.write("whole").has_value(), "a document takes what fits");
  for_each_patch(bytes, 8, [&](std::size_t at, std::string_view one) {
    at %= 2 * agent::KeptDocument::bytes_max;
    (void)!::pwrite(document.descriptor(), one.data(), one.size(), static_cast<off_t>(at));
  });
  require(document.read().size() <= agent::KeptDocument::bytes_max, "no more is read than there is");
  std::map<std::string, os::Fd> all;
  all.emplace(agent::document_name(), os::Fd(::dup(document.descriptor())));
  (void)agent::check_versions(all);
  auto opened = agent::KeptDocument::open(os::Fd(::dup(document.descriptor())));
  if (opened) (void)opened->read();
}

void read_guard_page(std::string_view bytes) {
  MappedFile file = mapped_file(abi::guard_page_name, sizeof(abi::GuardPage));
  auto& page = *file.mapping.as<abi::GuardPage>();
  page.magic = abi::guard_page_magic;
  page.version = abi::guard_page_version;
  page.ranges = 1;
  page.slots_used = 2;
  patch(file.bytes(sizeof(abi::GuardPage)), bytes);
  const auto view = guard::GuardView::of(file.file.get());
  if (!view) return;
  (void)view->state();
  (void)view->guard_range_bytes();
  (void)view->allocating_calls();
  require(view->note().size() <= abi::guard_note_bytes, "a note is no longer than its room");
  for (const std::uint64_t address :
       {std::uint64_t{0}, page.range[0].begin.load(), page.allocation[0].address.load(), ~std::uint64_t{0}}) {
    (void)view->covers(address, Monotonic{});
    const auto nearest = view->nearest(address);
    if (!nearest) continue;
    const bool is_near =
        nearest->side == guard::Nearest::Side::Inside || nearest->distance_bytes <= guard::nearest_bytes_max;
    require(is_near, "no allocation is named that is far away");
    require(!guard::describe(*nearest).empty(), "what is named can be told");
  }
  (void)guard::to_string(guard::state_of(view->work()));
  for (const auto since : {guard::Since::Now, guard::Since::Lately}) {
    const auto kernels = kernels_in_flight(view->work(), since);
    for (const std::string& kernel : kernels)
      require(kernel.find('\n') == kernel.npos, "a kernel's name is in one line");
    (void)guard::describe_kernels(kernels);
  }
}

void read_spare_page(std::string_view bytes) {
  MappedFile file = mapped_file(abi::spare_page_name, page_bytes);
  new (file.mapping.data()) abi::SparePage();
  patch(file.bytes(page_bytes), bytes, 1);
  const auto view = agent::SpareView::of(file.file.get());
  if (!view) return;
  require(view->state() <= abi::SpareState::Lost, "a state is one that there is");
  require(std::string_view(agent::to_string(view->state())).size() > 3, "and has a name");
  for (const std::string& text :
       {view->active_domain(), view->spare_domain(), view->reason(), view->last_move()}) {
    require(text.size() < abi::SparePage::text_bytes, "a text ends within its room");
    require(is_printable(text), "a text is one line");
  }
  view->ask_to_leave();
  view->set_rule(view->active_domain(), abi::DomainRule::Held);
}

/// A page and a journal with a few commits, of which others have written in any place.
void read_shared_memory(std::string_view bytes) {
  const os::Mapping mapping = std::move(os::Mapping::anonymous(sizeof(abi::SharedMemory)).value());
  auto& shared = *mapping.as<abi::SharedMemory>();
  journal::CommitWriter writer(shared, 0, journal::Recovered{});
  std::string state = "as of step 0";
  for (char step = '0'; step < '6'; ++step) {
    state.back() = step;
    require(writer.append(journal::NewState::of(std::as_bytes(std::span(state)))),
            "there is room for a state");
    writer.area().next_step.store(writer.next_step());
    writer.fold_some();
  }
  const auto undisturbed = journal::recover(shared, 1);
  require(undisturbed && undisturbed->state.size() == state.size() &&
              std::memcmp(undisturbed->state.data(), state.data(), state.size()) == 0,
          "what was committed is found");
  const std::size_t journal_at =
      static_cast<std::size_t>(&writer.area() - shared.page.areas) * sizeof(abi::CommitJournal) +
      offsetof(abi::SharedMemory, journals);
  auto* const memory = reinterpret_cast<std::byte*>(&shared);
  // The page, the marks and the entries, and the first of the sums.
  constexpr std::size_t journal_bytes = offsetof(abi::CommitJournal, sums) + page_bytes;
  std::string_view rest = bytes.substr(std::min<std::size_t>(1, bytes.size()));
  const bool is_page = !bytes.empty() && bytes.front() % 2 == 1;
  patch(is_page ? std::span(memory, sizeof(abi::SharedPage)) : std::span(memory + journal_at, journal_bytes),
        rest, 8);
  for (const std::uint64_t epoch : {1, 2, 3}) {
    const auto found = journal::recover(shared, epoch);
    if (!found) continue;
    require(found->state.size() <= abi::state_bytes_max, "a state is no longer than it can be");
    require(!found->journal || *found->journal < abi::commit_areas,
            "it was found in a journal that there is");
  }
}

/// A ring with some records, of which others have written in any place.
void read_redo_ring(std::string_view bytes) {
  constexpr std::size_t file_bytes = sizeof(abi::RedoRing) + abi::redo_capacity_min;
  redo::RingMemory memory(file_bytes);
  auto writer = redo::RingWriter::make(memory.bytes());
  require(writer.has_value(), "a ring is made");
  const std::vector<std::byte> parameters(100);
  for (std::uint64_t i = 0; i < 4; ++i) {
    abi::RedoLaunch launch{};
    launch.kernel = i;
    writer->start_region(i % 2, {0, 0, i});
    writer->launch(i % 2, launch, parameters);
    writer->save(i % 2, {0x1000, 64, 0x2000, {1, 0, i}});
    writer->copy(i % 2, {{0x1000, 64, 64, 1}, {0x3000, 64, 64, 1}});
  }
  // The records lie at the beginning.
  patch(memory.bytes().first(2 * page_bytes), bytes, 1);
  const auto log = redo::read_ring(memory.bytes());
  if (!log) return;
  require(log->payloads.size() <= abi::redo_capacity_min, "no more is read than there is");
  for (const redo::RedoEntry& entry : log->entries) {
    require(entry.payload_at <= log->payloads.size() &&
                entry.payload_bytes <= log->payloads.size() - entry.payload_at,
            "a payload is in what was read");
  }
  const auto decision = redo::decide(*log);
  require(decision.first <= decision.last && decision.last <= log->entries.size(),
          "what is done again was noted");
  for (const std::size_t each : decision.restore) {
    require(each < log->entries.size() && log->entries[each].kind == abi::RedoKind::Save,
            "only what was saved is put back");
  }
}

}  // namespace firebreak::fuzz
