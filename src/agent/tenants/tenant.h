// SPDX-License-Identifier: Apache-2.0
/// One tenant as the agent knows it: its processes, its vault, its shared page and where its pair stands.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/service/client_connections.h"
#include "agent/tenants/member.h"
#include "agent/tenants/pair/pair.h"
#include "agent/tenants/vault/vault.h"
#include "ground/base/clock.h"
#include "ground/base/result.h"
#include "ground/os/event_loop.h"
#include "ground/os/memory.h"
#include "shared/abi/shared_page.h"
#include "shared/abi/wire.h"

namespace firebreak::agent {

/// Belongs to the loop's thread. What is in the shared page was written by the tenant as well: it is shown to
/// people, and nothing is decided by it but what concerns this tenant alone.
class Tenant {
 public:
  /// Begin of a tenant's allocations, in every process of it: free on every machine seen so far, and CUDA
  /// grants it.
  static constexpr std::uint64_t arena_base = 0x500000000000;

  /// `quota_bytes`: of its memory in the vault; 0: no limit.
  static Result<std::unique_ptr<Tenant>> create(const std::string& name, std::uint64_t quota_bytes);

  /// Restores a tenant with the page that an agent before had made. Protocol: it is none.
  static Result<std::unique_ptr<Tenant>> restore(const std::string& name, std::uint64_t quota_bytes,
                                                 os::Fd page);

  const std::string& name() const { return name_; }
  int page_descriptor() const { return page_fd_.get(); }
  abi::SharedPage& page() { return *mapping_.as<abi::SharedPage>(); }
  const abi::SharedPage& page() const { return *mapping_.as<abi::SharedPage>(); }
  /// The last committed step, plus one, of whoever took office last.
  std::uint64_t committed() const;

  /// How many pieces of work the active one's GPU has done; empty while it has none to do, and for one
  /// without heartbeats.
  std::optional<std::uint64_t> progress() const;

  /// The active of this epoch has done a step of its own, or had a heartbeat.
  bool has_begun() const;

  /// The active has left in good order, though nobody may have been there to hear it: its own word, that
  /// concerns itself alone.
  bool active_has_left() const;

  /// Takes the active's word that it rests, of the try of that number. False: it has taken it back, or given
  /// none.
  bool take_hand_over(std::uint32_t number);

  /// Hands over: the standby becomes the active one, and is woken. Stores and one wake, nothing else;
  /// take_turns() follows when all who wait have been woken.
  void promote(std::uint32_t epoch, std::int64_t now_ns);
  /// The members' part of that.
  void take_turns();
  /// Returns what the page says; its processes can write it.
  std::uint32_t promoted_epoch() const;
  bool was_promoted(const Member& member, std::uint32_t epoch) const;
  /// The same for an active that has joined a lost tenant: whoever was active before is fenced.
  void begin_epoch(std::uint32_t epoch);
  /// Whether its processes are to tell when they want their turn.
  void say_whether_turns_are_given(bool are_given);
  /// Wakes the standby for good: the tenant is done.
  void dismiss_standby();

  /// A question to the shelves is under way, about what an agent before had put there.
  void await_answer() { ++awaited_answers_; }
  /// Notes an answer: if it was the last one, what was put off is done.
  void answered();
  /// Puts it off, since it needs all these answers; false: it is not put off, and nobody does it.
  bool put_off(std::function<void()> what);

  bool empty() const { return active.pid == 0 && standby.pid == 0 && old_active.pid == 0; }

  Member& member(abi::Role role) { return role == abi::Role::Active ? active : standby; }

  Member active;
  Member standby;
  Member old_active;  ///< fenced, and not yet seen to end
  vault::Vault vault;
  ClientConnections clients;
  pair::State pair;
  os::Watch deadline;                          ///< the pair's timer
  os::Watch first_step;                        ///< looks for that of whoever was promoted
  std::string waiting_for;                     ///< the words that an operator was told; empty: nothing
  os::Watch lease;                             ///< runs while it has no process
  std::optional<Monotonic> unprotected_since;  ///< time since which it serves without a standby
  abi::StrayPolicy strays = abi::StrayPolicy::Default;
  std::string last_stray;    ///< last stray in words; empty: none was seen
  bool ended_by_us = false;  ///< its end is no word of its own that it has no work under way

 private:
  Tenant(std::string name, std::uint64_t quota_bytes, os::Fd page_fd, os::Mapping mapping)
      : vault(quota_bytes),
        name_(std::move(name)),
        page_fd_(std::move(page_fd)),
        mapping_(std::move(mapping)) {}

  std::string name_;
  os::Fd page_fd_;
  os::Mapping mapping_;
  int awaited_answers_ = 0;
  std::vector<std::function<void()>> put_off_;
};

}  // namespace firebreak::agent
