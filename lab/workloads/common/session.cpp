// SPDX-License-Identifier: Apache-2.0
#include "workloads/common/session.h"

#include <fmt/format.h>

#include <utility>

namespace firebreak::workloads {
namespace {

/// A standby may come up before its active has allocated anything.
constexpr std::int64_t allocation_timeout_ms = 60'000;

ErrorCode code_of(fb_status status) {
  switch (status) {
    case FB_OK:
    case FB_ERROR_INVALID_ARGUMENT:
      return ErrorCode::InvalidArgument;
    case FB_ERROR_NO_AGENT:
    case FB_ERROR_REFUSED:
    case FB_ERROR_CLIENT_GONE:
      return ErrorCode::Unavailable;
    case FB_ERROR_FENCED:
      return ErrorCode::PermissionDenied;
    case FB_ERROR_TIMEOUT:
      return ErrorCode::Timeout;
    case FB_ERROR_CUDA:
      return ErrorCode::Device;
    case FB_ERROR_NO_MEMORY:
      return ErrorCode::ResourceExhausted;
    case FB_ERROR_CORRUPT:
      return ErrorCode::Protocol;
  }
  return ErrorCode::Internal;
}

Status describe(fb_status status, const char* call, const fb_session* session) {
  if (status == FB_OK) return {};
  return fail(code_of(status),
              fmt::format("{}: {}: {}", call, fb_status_name(status), fb_last_error(session)));
}

}  // namespace

Status Session::status_of(fb_status status, const char* call) const {
  return describe(status, call, session_);
}

Result<Session> Session::join() {
  fb_session* session = nullptr;
  const Status joined = describe(fb_join(nullptr, &session), "fb_join", nullptr);
  if (!joined) return propagate(joined);
  return Session(session);
}

Result<CUdeviceptr> Session::allocate(const std::string& name, std::uint64_t size_bytes) {
  std::uint64_t address = 0;
  const Status allocated =
      status_of(fb_alloc(session_, name.c_str(), size_bytes, allocation_timeout_ms, &address), "fb_alloc");
  if (!allocated) return propagate(allocated, name);
  return address;
}

Status Session::ready() { return status_of(fb_ready(session_), "fb_ready"); }

Result<std::optional<fb_resume>> Session::wait_for_promotion() {
  fb_resume resume{};
  const fb_status status = fb_wait_promotion(session_, -1, &resume);
  if (status == FB_ERROR_REFUSED) return std::nullopt;
  const Status promoted = status_of(status, "fb_wait_promotion");
  if (!promoted) return propagate(promoted);
  return resume;
}

Status Session::resumed() { return status_of(fb_resumed(session_), "fb_resumed"); }

Status Session::commit(CUstream stream, std::uint64_t step, std::span<const std::byte> state,
                       const std::optional<std::span<const StateRange>>& changed) {
  if (!changed) return status_of(fb_commit(session_, stream, step, state.data(), state.size()), "fb_commit");
  changes_.clear();
  for (const StateRange& range : *changed)
    changes_.push_back({range.offset, state.data() + range.offset, range.size_bytes});
  return status_of(fb_commit_changes(session_, stream, step, changes_.data(), changes_.size()), "fb_commit");
}

Status Session::turn_wanted(std::uint64_t steps) {
  const fb_status status = fb_turn_wanted(session_, 0, steps);
  return status == FB_ERROR_FENCED ? Status{} : status_of(status, "fb_turn_wanted");
}

Status Session::turn() {
  const fb_status status = fb_turn(session_, -1);
  return status == FB_ERROR_FENCED ? Status{} : status_of(status, "fb_turn");
}

Result<bool> Session::stand_down() {
  const fb_status status = fb_stand_down(session_);
  if (status == FB_ERROR_REFUSED) return false;
  const Status stood_down = status_of(status, "fb_stand_down");
  if (!stood_down) return propagate(stood_down);
  return true;
}

Status Session::leave() {
  // fb_leave frees the session in every case, so its error cannot be asked for.
  const fb_status status = fb_leave(std::exchange(session_, nullptr));
  if (status == FB_OK) return {};
  return fail(code_of(status), fmt::format("fb_leave: {}", fb_status_name(status)));
}

}  // namespace firebreak::workloads
