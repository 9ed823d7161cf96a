// SPDX-License-Identifier: Apache-2.0
#include "tests/workloads/fake_firebreak.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "program/cuda/copy.h"

namespace firebreak::workloads::testing {
namespace {

const cuda::Driver& driver() {
  static const auto loaded = cuda::Driver::load(FIREBREAK_SOFTGPU_LIBRARY).value();
  return *loaded;
}

void note(const std::string& call) {
  auto& calls = fake_firebreak().calls;
  if (calls.empty() || calls.back() != call) calls.push_back(call);
}

/// GPU memory of a process goes with it: this is what the vault would have kept.
void keep_memory(CUstream stream) {
  FakeFirebreak& fake = fake_firebreak();
  driver()->cuStreamSynchronize(stream);
  for (const auto& [name, region] : fake.live) {
    fake.memory[name].resize(region.size_bytes);
    static_cast<void>(cuda::copy_to_host(driver(), fake.memory[name], region.address));
  }
}

}  // namespace

FakeFirebreak& fake_firebreak() {
  static FakeFirebreak fake;
  return fake;
}

}  // namespace firebreak::workloads::testing

struct fb_session {};

namespace {
using namespace firebreak::workloads::testing;
fb_session the_session;
}  // namespace

fb_status fb_join(const fb_join_options*, fb_session** session) {
  fake_firebreak().calls.clear();
  fake_firebreak().live.clear();
  note("join");
  *session = &the_session;
  return FB_OK;
}

fb_role fb_session_role(const fb_session*) { return fake_firebreak().role; }

fb_status fb_alloc(fb_session*, const char* name, std::uint64_t size_bytes, std::int64_t,
                   std::uint64_t* address) {
  note("alloc");
  FakeFirebreak& fake = fake_firebreak();
  CUdeviceptr allocated = 0;
  if (driver()->cuMemAlloc(&allocated, size_bytes) != CUDA_SUCCESS) return FB_ERROR_CUDA;
  fake.live[name] = {allocated, size_bytes};
  *address = allocated;
  const auto kept = fake.memory.find(name);
  if (kept == fake.memory.end()) return FB_OK;
  const bool copied = kept->second.size() == size_bytes &&
                      firebreak::cuda::copy_to_device(driver(), allocated, kept->second).has_value();
  return copied ? FB_OK : FB_ERROR_CORRUPT;
}

fb_status fb_ready(fb_session*) {
  note("ready");
  return FB_OK;
}

fb_status fb_wait_promotion(fb_session*, std::int64_t, fb_resume* resume) {
  note("wait_promotion");
  FakeFirebreak& fake = fake_firebreak();
  if (fake.finished) return FB_ERROR_REFUSED;
  *resume = {};
  if (fake.role == FB_ROLE_ACTIVE) return FB_OK;  // nobody was before it
  fake.role = FB_ROLE_ACTIVE;
  *resume = {.epoch = 1,
             .next_step = fake.next_step,
             .state = fake.next_step > 0 ? fake.state.data() : nullptr,
             .state_bytes = fake.state.size(),
             .promoted_at_ns = 1};
  return FB_OK;
}

fb_status fb_turn_wanted(fb_session*, std::int64_t, std::uint64_t units) {
  fake_firebreak().wanted.push_back(units);
  return FB_OK;
}

fb_status fb_turn(fb_session*, std::int64_t) {
  fake_firebreak().has_turn = true;
  return FB_OK;
}

/// Whoever has not asked for its turn commits nothing.
fb_status fb_commit(fb_session*, void* stream, std::uint64_t step, const void* state,
                    std::size_t state_bytes) {
  note("commit");
  FakeFirebreak& fake = fake_firebreak();
  if (step != fake.next_step || state_bytes > FB_STATE_BYTES_MAX) return FB_ERROR_INVALID_ARGUMENT;
  if (step == fake.ends_at_commit) {
    keep_memory(static_cast<CUstream>(stream));
    return fake.end;
  }
  if (!std::exchange(fake.has_turn, false)) return FB_ERROR_INVALID_ARGUMENT;
  const auto* bytes = static_cast<const std::byte*>(state);
  fake.state.assign(bytes, bytes + state_bytes);
  fake.next_step = step + 1;
  return FB_OK;
}

fb_status fb_commit_changes(fb_session* session, void* stream, std::uint64_t step, const fb_change* changes,
                            std::size_t count) {
  std::vector<std::byte> state = fake_firebreak().state;
  for (const fb_change& change : std::span(changes, count)) {
    state.resize(std::max<std::size_t>(state.size(), change.offset + change.size_bytes));
    std::memcpy(state.data() + change.offset, change.bytes, change.size_bytes);
  }
  return fb_commit(session, stream, step, state.data(), state.size());
}

fb_status fb_committed(fb_session*, std::uint64_t* next_step) {
  *next_step = fake_firebreak().next_step;
  return FB_OK;
}

fb_status fb_resumed(fb_session*) {
  note("resumed");
  return FB_OK;
}

/// Whoever is fenced in these plays was too late, and ends.
fb_status fb_stand_down(fb_session*) {
  note("stand_down");
  return FB_ERROR_REFUSED;
}

fb_status fb_leave(fb_session*) {
  note("leave");
  return FB_OK;
}

const char* fb_last_error(const fb_session*) { return "what the library says"; }

const char* fb_status_name(fb_status status) {
  return status == FB_ERROR_CUDA ? "FB_ERROR_CUDA" : "FB_ERROR";
}
