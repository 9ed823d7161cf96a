// SPDX-License-Identifier: Apache-2.0
/// The C ABI: arguments checked, nothing thrown, the last failure kept for fb_last_error.
#include <firebreak/firebreak.h>

#include <exception>
#include <optional>

#include "program/client/session.h"
#include "program/client/tenant_context.h"

using firebreak::Milliseconds;
using firebreak::client::Counting;
using firebreak::client::Failure;
using firebreak::client::JoinOptions;
using firebreak::client::Outcome;
using firebreak::client::Session;
using firebreak::journal::NewState;

/// The opaque handle is the session itself.
struct fb_session {
  std::unique_ptr<Session> session;
};

namespace {

/// This belongs to this thread's calls that have no session to keep it in.
thread_local std::string join_error;

template <class Call>
auto without_exceptions(Call call) -> decltype(call()) {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    return tl::unexpected(Failure{FB_ERROR_NO_MEMORY, "out of memory"});
  } catch (const std::exception& unexpected) {
    return tl::unexpected(Failure{FB_ERROR_REFUSED, unexpected.what()});
  }
}

/// Allocates nothing: an exception would leave through the C ABI.
template <class T>
fb_status keep(std::string& last_error, Outcome<T>&& outcome) {
  last_error.clear();
  if (outcome) return FB_OK;
  last_error = std::move(outcome.error().message);
  return outcome.error().status;
}

fb_status bad_argument(fb_session* session, const char* what) {
  const auto refused = [what]() -> Outcome<void> {
    return tl::unexpected(Failure{FB_ERROR_INVALID_ARGUMENT, what});
  };
  keep(session != nullptr ? session->session->last_error : join_error, without_exceptions(refused));
  return FB_ERROR_INVALID_ARGUMENT;
}

/// None: it is no such value.
std::optional<firebreak::abi::Memory> memory_of(fb_memory memory) {
  switch (memory) {
    case FB_MEMORY_STATE:
      return firebreak::abi::Memory::State;
    case FB_MEMORY_WEIGHTS:
      return firebreak::abi::Memory::Weights;
    case FB_MEMORY_SHARED:
      return firebreak::abi::Memory::Shared;
  }
  return std::nullopt;
}

JoinOptions read_options(const fb_join_options* options) {
  JoinOptions read;
  if (options == nullptr) return read;
  if (options->socket_path != nullptr) read.socket_path = options->socket_path;
  if (options->tenant != nullptr) read.tenant = options->tenant;
  read.role = options->role;
  return read;
}

fb_status commit(fb_session* session, void* stream, uint64_t step, const NewState& state, Counting counting) {
  return keep(session->session->last_error, without_exceptions([&] {
                return session->session->commit(static_cast<CUstream>(stream), step, state, counting);
              }));
}

}  // namespace

fb_status fb_join(const fb_join_options* options, fb_session** session) {
  if (session == nullptr) return bad_argument(nullptr, "fb_join: session is null");
  *session = nullptr;
  if (options != nullptr && options->size_bytes < sizeof(fb_join_options)) {
    return bad_argument(nullptr, "fb_join: options->size_bytes is not sizeof(fb_join_options)");
  }
  return keep(join_error, without_exceptions([&]() -> Outcome<void> {
                auto joined = Session::join(read_options(options));
                if (!joined) return tl::unexpected(std::move(joined.error()));
                *session = new fb_session{std::move(*joined)};
                return {};
              }));
}

fb_role fb_session_role(const fb_session* session) {
  return session == nullptr ? fb_role{} : session->session->role();
}

fb_status fb_alloc(fb_session* session, const char* name, uint64_t size_bytes, int64_t timeout_ms,
                   uint64_t* device_address) {
  if (session == nullptr || name == nullptr || device_address == nullptr)
    return bad_argument(session, "fb_alloc: null");
  return fb_alloc_as(session, name, size_bytes, FB_MEMORY_STATE, timeout_ms, device_address);
}

fb_status fb_alloc_as(fb_session* session, const char* name, uint64_t size_bytes, fb_memory memory,
                      int64_t timeout_ms, uint64_t* device_address) {
  if (session == nullptr || name == nullptr || device_address == nullptr)
    return bad_argument(session, "fb_alloc_as: null");
  const auto its = memory_of(memory);
  if (!its) return bad_argument(session, "fb_alloc_as: no such memory");
  auto address = without_exceptions(
      [&] { return session->session->allocate(name, size_bytes, *its, Milliseconds(timeout_ms)); });
  if (address) *device_address = *address;
  return keep(session->session->last_error, std::move(address));
}

fb_status fb_share(fb_session* session) {
  if (session == nullptr) return bad_argument(session, "fb_share: session is null");
  return keep(session->session->last_error, without_exceptions([&] { return session->session->share(); }));
}

fb_status fb_map_shared(fb_session* session, const char* owner, const char* name, int64_t timeout_ms,
                        uint64_t* device_address) {
  if (session == nullptr || owner == nullptr || name == nullptr || device_address == nullptr)
    return bad_argument(session, "fb_map_shared: null");
  auto address =
      without_exceptions([&] { return session->session->map_shared(owner, name, Milliseconds(timeout_ms)); });
  if (address) *device_address = *address;
  return keep(session->session->last_error, std::move(address));
}

fb_status fb_stand_down(fb_session* session) {
  if (session == nullptr) return bad_argument(session, "fb_stand_down: session is null");
  return keep(session->session->last_error,
              without_exceptions([&] { return session->session->stand_down(); }));
}

fb_status fb_ready(fb_session* session) {
  if (session == nullptr) return bad_argument(session, "fb_ready: session is null");
  return keep(session->session->last_error, without_exceptions([&] { return session->session->ready(); }));
}

fb_status fb_wait_promotion(fb_session* session, int64_t timeout_ms, fb_resume* resume) {
  if (session == nullptr || resume == nullptr) return bad_argument(session, "fb_wait_promotion: null");
  auto promoted =
      without_exceptions([&] { return session->session->wait_promotion(Milliseconds(timeout_ms)); });
  if (promoted) *resume = *promoted;
  return keep(session->session->last_error, std::move(promoted));
}

fb_status fb_commit(fb_session* session, void* stream, uint64_t step, const void* state, size_t state_bytes) {
  if (session == nullptr || (state == nullptr && state_bytes > 0))
    return bad_argument(session, "fb_commit: null");
  const auto bytes = std::span(static_cast<const std::byte*>(state), state_bytes);
  return commit(session, stream, step, NewState::of(bytes), Counting::Library);
}

fb_status fb_commit_changes(fb_session* session, void* stream, uint64_t step, const fb_change* changes,
                            size_t count) {
  if (session == nullptr || (changes == nullptr && count > 0))
    return bad_argument(session, "fb_commit_changes: null");
  return commit(session, stream, step, NewState::of(std::span(changes, count)), Counting::Library);
}

fb_status fb_prepare_changes(fb_session* session, void* stream, uint64_t step, const fb_change* changes,
                             size_t count) {
  if (session == nullptr || (changes == nullptr && count > 0))
    return bad_argument(session, "fb_prepare_changes: null");
  return commit(session, stream, step, NewState::of(std::span(changes, count)), Counting::Tenant);
}

fb_status fb_counter(fb_session* session, uint64_t* device_address) {
  if (session == nullptr || device_address == nullptr) return bad_argument(session, "fb_counter: null");
  auto address = without_exceptions([&] { return session->session->counter(); });
  if (address) *device_address = *address;
  return keep(session->session->last_error, std::move(address));
}

fb_status fb_committed(fb_session* session, uint64_t* next_step) {
  // It does not go into last_error: another thread may be using that.
  if (session == nullptr || next_step == nullptr) return FB_ERROR_INVALID_ARGUMENT;
  *next_step = session->session->committed();
  return FB_OK;
}

fb_status fb_heartbeat(fb_session* session, void* stream) {
  if (session == nullptr) return bad_argument(session, "fb_heartbeat: session is null");
  return keep(session->session->last_error,
              without_exceptions([&] { return session->session->heartbeat(static_cast<CUstream>(stream)); }));
}

fb_status fb_resumed(fb_session* session) {
  if (session == nullptr) return bad_argument(session, "fb_resumed: session is null");
  return keep(session->session->last_error, without_exceptions([&] { return session->session->resumed(); }));
}

fb_status fb_turn(fb_session* session, int64_t timeout_ms) {
  if (session == nullptr) return bad_argument(session, "fb_turn: session is null");
  return keep(session->session->last_error,
              without_exceptions([&] { return session->session->turn(Milliseconds(timeout_ms)); }));
}

fb_status fb_turn_wanted(fb_session* session, int64_t deadline_ns, uint64_t units) {
  if (session == nullptr) return bad_argument(session, "fb_turn_wanted: session is null");
  return keep(session->session->last_error,
              without_exceptions([&] { return session->session->turn_wanted(deadline_ns, units); }));
}

fb_status fb_listen(fb_session* session, int descriptor) {
  if (session == nullptr || descriptor < 0)
    return bad_argument(session, "fb_listen: no session, or no socket");
  return keep(session->session->last_error,
              without_exceptions([&] { return session->session->listen(descriptor); }));
}

fb_status fb_listener(fb_session* session, int* descriptor) {
  if (session == nullptr || descriptor == nullptr) return bad_argument(session, "fb_listener: null");
  auto listener = without_exceptions([&] { return session->session->listener(); });
  if (listener) *descriptor = listener->release();
  return keep(session->session->last_error, std::move(listener));
}

fb_status fb_next_connection(fb_session* session, uint64_t after, fb_connection* connection) {
  if (session == nullptr || connection == nullptr) return bad_argument(session, "fb_next_connection: null");
  auto next = without_exceptions([&] { return session->session->next_connection(after); });
  if (next) *connection = {next->id, next->descriptor.release()};
  return keep(session->session->last_error, std::move(next));
}

fb_status fb_send(fb_session* session, int descriptor, uint64_t offset, const void* bytes, size_t size_bytes,
                  uint64_t* taken) {
  if (session == nullptr || (bytes == nullptr && size_bytes > 0) || taken == nullptr)
    return bad_argument(session, "fb_send: null");
  const auto span = std::span(static_cast<const std::byte*>(bytes), size_bytes);
  auto sent = without_exceptions([&] { return session->session->send(descriptor, offset, span); });
  if (sent) *taken = *sent;
  return keep(session->session->last_error, std::move(sent));
}

fb_status fb_release_connection(fb_session* session, uint64_t id) {
  if (session == nullptr) return bad_argument(session, "fb_release_connection: session is null");
  return keep(session->session->last_error,
              without_exceptions([&] { return session->session->release_connection(id); }));
}

fb_status fb_small_context(int device, unsigned int multiprocessors, void** context, int* is_small) {
  if (context == nullptr) return bad_argument(nullptr, "fb_small_context: context is null");
  *context = nullptr;
  if (multiprocessors == 0) return bad_argument(nullptr, "fb_small_context: no multiprocessors");
  return keep(join_error, without_exceptions([&]() -> Outcome<void> {
                const auto made = firebreak::client::make_small_context(device, multiprocessors);
                if (!made) return tl::unexpected(made.error());
                *context = made->handle;
                if (is_small != nullptr) *is_small = made->is_small ? 1 : 0;
                return {};
              }));
}

fb_status fb_leave(fb_session* session) {
  if (session == nullptr) return bad_argument(session, "fb_leave: session is null");
  auto left = without_exceptions([&] { return session->session->leave(); });
  delete session;
  return keep(join_error, std::move(left));
}

const char* fb_last_error(const fb_session* session) {
  return session == nullptr ? join_error.c_str() : session->session->last_error.c_str();
}

const char* fb_status_name(fb_status status) {
  switch (status) {
    case FB_OK:
      return "FB_OK";
    case FB_ERROR_INVALID_ARGUMENT:
      return "FB_ERROR_INVALID_ARGUMENT";
    case FB_ERROR_NO_AGENT:
      return "FB_ERROR_NO_AGENT";
    case FB_ERROR_REFUSED:
      return "FB_ERROR_REFUSED";
    case FB_ERROR_FENCED:
      return "FB_ERROR_FENCED";
    case FB_ERROR_TIMEOUT:
      return "FB_ERROR_TIMEOUT";
    case FB_ERROR_CUDA:
      return "FB_ERROR_CUDA";
    case FB_ERROR_NO_MEMORY:
      return "FB_ERROR_NO_MEMORY";
    case FB_ERROR_CORRUPT:
      return "FB_ERROR_CORRUPT";
    case FB_ERROR_CLIENT_GONE:
      return "FB_ERROR_CLIENT_GONE";
  }
  return "FB_ERROR_UNKNOWN";
}
