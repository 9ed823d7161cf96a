// SPDX-License-Identifier: Apache-2.0
#include "agent/tenants/weights_keeper.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <set>
#include <utility>

#include "ground/base/units.h"

namespace firebreak::agent {
namespace {

std::string shelf_name(const WeightsName& name, const std::string& piece) {
  return memory_name(weights_owner(name), piece);
}

}  // namespace

WeightsName WeightsKeeper::name_of(const Tenant& tenant) const {
  return {at_.credentials.owner_of(tenant.name()).value_or(0), tenant.name()};
}

Tenant* WeightsKeeper::maker_of(const WeightsName& name) const {
  Tenant* const tenant = at_.tenants.find(name.owner);
  return tenant != nullptr && name_of(*tenant) == name ? tenant : nullptr;
}

bool WeightsKeeper::has(const Tenant& tenant, const std::string& piece) const {
  return at_.weights.find(name_of(tenant), piece) != nullptr;
}

bool WeightsKeeper::has_unshared(const Tenant& tenant) const {
  const SharedWeights::Group* const group = at_.weights.find(name_of(tenant));
  return group != nullptr && !group->is_shared;
}

std::uint64_t WeightsKeeper::bytes_of(const Tenant& tenant) const {
  return at_.weights.bytes_of(name_of(tenant));
}

Status WeightsKeeper::may_end(const Tenant& tenant) const {
  const SharedWeights::Group* const group = at_.weights.find(name_of(tenant));
  if (group == nullptr) return {};
  std::set<std::string> others = group->tenants;
  others.erase(tenant.name());
  if (others.empty()) return {};
  return fail(ErrorCode::PermissionDenied,
              fmt::format("nothing was ended, since others map what tenant '{}' shares: {}", tenant.name(),
                          fmt::join(others, ", ")),
              "end them first, or firebreak stop --force, which leaves it to them");
}

void WeightsKeeper::refuse(Connection& connection, const Error& why) {
  if (why.code != ErrorCode::InvalidArgument) return at_.answers.give(connection, tl::unexpected(why));
  connection.answer(abi::Refused{to_string(why), false, false, true});
}

// --- made and shared

void WeightsKeeper::publish(Connection& connection, const Tenant& tenant, const abi::Publish& request,
                            const Descriptors& descriptors) {
  const WeightsName name = name_of(tenant);
  const vault::Entry* piece = at_.weights.find(name, request.name);
  // The agent before died before it answered.
  const bool is_again =
      piece != nullptr && piece->size_bytes == request.size_bytes && request.memory == abi::Memory::Shared;
  if (!is_again) {
    if (auto taken = take_in(connection, tenant, request, std::move(*descriptors)); !taken)
      return refuse(connection, taken.error());
    piece = at_.weights.find(name, request.name);
  }
  put_away(connection.asker(), name, *piece);
}

/// Shared memory outlives its maker: a user has no more of it than it may have tenants.
Status WeightsKeeper::room_for(const Connection& connection, const WeightsName& name) const {
  if (at_.weights.find(name) != nullptr) return {};
  const auto of_user = static_cast<std::size_t>(std::ranges::count_if(
      at_.weights.all(), [&](const auto& each) { return each.first.user == name.user; }));
  if (connection.asking().entrance == Entrance::Tenants && of_user >= at_.options.tenants_of_user_max) {
    return fail(ErrorCode::ResourceExhausted,
                fmt::format("user {} has shared memory of {} tenants already", name.user, of_user));
  }
  return at_.records.room_for_weights(name);
}

Status WeightsKeeper::take_in(const Connection& connection, const Tenant& tenant, const abi::Publish& request,
                              std::vector<os::Fd> descriptors) {
  const WeightsName name = name_of(tenant);
  if (auto good = abi::check_name(request.name); !good) return good;
  const auto own = tenant.vault.entries();
  const bool is_taken = std::ranges::find(own, request.name, &vault::Entry::name) != own.end();
  if (is_taken || at_.weights.find(name, request.name) != nullptr) {
    return fail(ErrorCode::InvalidArgument,
                fmt::format("the tenant already has an allocation '{}'", request.name));
  }
  if (descriptors.size() != 1)
    return fail(ErrorCode::InvalidArgument, "an allocation comes with one descriptor");
  if (auto room = at_.budget.room_for_allocation(request.name); !room) return room;
  if (auto room = room_for(connection, name); !room) return room;
  const auto address = at_.weights.add(
      name, {request.name, 0, request.size_bytes, abi::Memory::Shared, std::move(descriptors.front())},
      tenant.vault.total_bytes());
  if (!address) return propagate(address);
  at_.records.save_weights();
  Connection* const standby = at_.server.find(tenant.standby.connection);
  if (standby != nullptr && standby->numbers())
    standby->send(abi::Allocation{request.name, *address, request.size_bytes, abi::Memory::Shared});
  return {};
}

/// Answers who asked when it is put away, or cannot be, as of other memory.
void WeightsKeeper::put_away(const Asker& asker, const WeightsName& name, const vault::Entry& piece) {
  const auto answer_asker = [this, asker, name, its = piece.name] {
    at_.server.handle(asker, [&](Connection& connection) {
      const vault::Entry* const found = at_.weights.find(name, its);
      if (found == nullptr) return refuse(connection, Error{ErrorCode::NotFound, "that memory is gone", {}});
      connection.answer(abi::Allocation{found->name, found->address, found->size_bytes, found->memory});
    });
  };
  if (piece.is_put_away) return answer_asker();
  at_.shelves.put(shelf_name(name, piece.name), piece.descriptor.get(),
                  [=, this, its = piece.name](const Status& put) {
                    if (put) at_.weights.put_away(name, its);
                    if (!put) {
                      spdlog::error("shared memory '{}' of tenant {} would not outlive the agent: {}", its,
                                    name.owner, to_string(put.error()));
                    }
                    answer_asker();
                  });
}

void WeightsKeeper::share(Connection& connection, const abi::Share& request) {
  Tenant* const tenant = at_.tenants.of(connection, &Tenant::active);
  if (tenant == nullptr) return refuse(connection, not_in_that_role("share").error());
  if (tenant->put_off([=, this, asker = connection.asker()] {
        at_.server.handle(asker, [&](Connection& then) { share(then, request); });
      }))
    return;
  const WeightsName name = name_of(*tenant);
  const SharedWeights::Group* const group = at_.weights.find(name);
  const bool is_again = request.again && group != nullptr && group->is_shared;
  if (!is_again) {
    if (auto shared = at_.weights.share(name); !shared) return refuse(connection, shared.error());
  }
  at_.records.save_weights();
  at_.answers.give_once(connection, {});
  tell_waiting(name);
}

void WeightsKeeper::tell_waiting(const WeightsName& name) {
  for (const auto& [id, awaited] : waiting_) {
    if (awaited != name) continue;
    if (Connection* const connection = at_.server.find(id)) connection->send(abi::Shared{name.owner});
  }
  std::erase_if(waiting_, [&](const auto& each) { return each.second == name; });
}

// --- given

bool WeightsKeeper::give_own(Connection& connection, const Tenant& tenant, const std::string& piece) {
  const WeightsName name = name_of(tenant);
  if (!has(tenant, piece)) return false;
  const auto given = at_.weights.give(name, piece, tenant.name());
  at_.records.save_weights();
  at_.giver.give(connection, **given, at_.weights.find(name)->is_shared, shelf_name(name, piece));
  return true;
}

/// Refuses for whose that tenant is, which says nothing of what it shares.
void WeightsKeeper::give(Connection& connection, const abi::GiveShared& request) {
  const Tenant* const tenant = at_.tenants.of(connection);
  if (tenant == nullptr) return refuse(connection, not_in_that_role("give_shared").error());
  for (const std::string& each : {request.owner, request.name}) {
    if (auto good = abi::check_name(each); !good) return refuse(connection, good.error());
  }
  const WeightsName name{name_of(*tenant).user, request.owner};
  const SharedWeights::Group* const group = at_.weights.find(name);
  const bool is_there = group != nullptr && group->is_shared;
  if (!is_there && at_.credentials.owner_of(request.owner).value_or(name.user) != name.user) {
    return refuse(
        connection,
        Error{ErrorCode::PermissionDenied, fmt::format("tenant '{}' is another user's", request.owner), {}});
  }
  if (!is_there) {
    waiting_.insert_or_assign(connection.id(), name);
    return connection.answer(abi::Done{});
  }
  const auto given = at_.weights.give(name, request.name, tenant->name());
  if (!given) return refuse(connection, given.error());
  at_.records.save_weights();
  at_.giver.give(connection, **given, true, shelf_name(name, request.name));
}

// --- released

void WeightsKeeper::has_no_process(const Tenant& tenant) {
  at_.weights.leave(tenant.name(), at_.clock.now());
  look();
  at_.records.save_weights();
}

void WeightsKeeper::is_no_more(const Tenant& tenant, const char* why) {
  if (has_unshared(tenant)) release(name_of(tenant), why);
  has_no_process(tenant);
}

void WeightsKeeper::forget_all(const char* why) {
  while (!at_.weights.all().empty()) release(WeightsName(at_.weights.all().begin()->first), why);
}

void WeightsKeeper::look() {
  for (const WeightsName& name : at_.weights.ended(at_.clock.now())) release(name, "its lease is over");
  next_end_.cancel();
  const auto next = at_.weights.next_end();
  if (!next) return;
  const auto left = std::chrono::ceil<Milliseconds>(*next - at_.clock.now());
  auto timer = at_.loop.after(std::max(left, Milliseconds(1)), [this] { look(); });
  if (!timer) return spdlog::error("shared memory is released late: {}", to_string(timer.error()));
  next_end_ = std::move(*timer);
}

/// First what says that there is such memory, as of a tenant's.
void WeightsKeeper::release(const WeightsName& name, const char* why) {
  const SharedWeights::Group& group = *at_.weights.find(name);
  abi::Event event;
  event.what = abi::EventKind::MemoryReleased;
  event.tenant = name.owner;
  event.text = fmt::format("{} MiB in {} shared allocations: {}", group.pieces.total_bytes() / mib,
                           group.pieces.entries().size(), why);
  at_.records.leaves(weights_owner(name));
  at_.records.forget(name);
  clear_shelf_of(weights_owner(name));
  at_.weights.erase(name);
  at_.teller.tell(std::move(event));
}

void WeightsKeeper::clear_shelf_of(const std::string& owner) {
  at_.shelves.drop(shelf_folder(owner), [this, owner] { at_.records.has_left(owner); });
}

// --- restored

void WeightsKeeper::restore(const std::vector<KeptWeights>& kept) {
  for (const KeptWeights& each : kept) {
    SharedWeights::Group group{vault::Vault(at_.weights.quota_bytes()), each.is_shared};
    std::ranges::copy_if(each.tenants, std::inserter(group.tenants, group.tenants.end()),
                         [this](const std::string& tenant) { return at_.tenants.contains(tenant); });
    std::vector<std::string> names;
    std::vector<std::string> pieces;
    for (const KeptAllocation& piece : each.pieces) {
      const Status added =
          group.pieces.add({piece.name, piece.address, piece.size_bytes, piece.memory, os::Fd(), true});
      if (!added) spdlog::error("shared memory is lost: {}", to_string(added.error()));
      names.push_back(shelf_name(each.name, piece.name));
      pieces.push_back(piece.name);
    }
    at_.weights.restore(each.name, std::move(group), at_.clock.now());
    Tenant* const maker = maker_of(each.name);
    if (maker == nullptr && !each.is_shared) {
      release(each.name, "its maker is gone");
      continue;
    }
    if (maker != nullptr) maker->await_answer();
    at_.shelves.have(std::move(names), [this, pieces, name = each.name](const std::vector<bool>& there) {
      forget_lost(name, pieces, there);
      if (Tenant* const found = maker_of(name)) found->answered();
    });
  }
  look();
}

/// Forgets what was written down, and never came to a shelf, or went with it.
void WeightsKeeper::forget_lost(const WeightsName& name, const std::vector<std::string>& pieces,
                                const std::vector<bool>& there) {
  if (at_.weights.find(name) == nullptr) return;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    if (there[i]) continue;
    spdlog::error("shared memory '{}' of tenant {} is lost", pieces[i], name.owner);
    at_.weights.forget(name, pieces[i]);
    at_.records.forget_text_of(name);
  }
  if (at_.weights.find(name) == nullptr) at_.records.forget(name);
  at_.records.save_weights();
}

bool WeightsKeeper::takes_up(const std::string& leaving) {
  if (!is_weights_owner(leaving)) return false;
  // Memory that was made since goes with that.
  const bool is_there_again = std::ranges::any_of(
      at_.weights.all(), [&](const auto& each) { return weights_owner(each.first) == leaving; });
  is_there_again ? at_.records.has_left(leaving) : clear_shelf_of(leaving);
  return true;
}

}  // namespace firebreak::agent
