// SPDX-License-Identifier: Apache-2.0
// The header alone, in C++11: every function with the type that callers were compiled against.
#include <firebreak/firebreak.h>
#include <firebreak/torch.h>

extern "C" const void* const* functions_seen_from_cpp();

namespace {

fb_status (*const join)(const fb_join_options*, fb_session**) = fb_join;
fb_role (*const session_role)(const fb_session*) = fb_session_role;
fb_status (*const alloc)(fb_session*, const char*, uint64_t, int64_t, uint64_t*) = fb_alloc;
fb_status (*const alloc_as)(fb_session*, const char*, uint64_t, fb_memory, int64_t, uint64_t*) = fb_alloc_as;
fb_status (*const share)(fb_session*) = fb_share;
fb_status (*const map_shared)(fb_session*, const char*, const char*, int64_t, uint64_t*) = fb_map_shared;
fb_status (*const stand_down)(fb_session*) = fb_stand_down;
fb_status (*const ready)(fb_session*) = fb_ready;
fb_status (*const wait_promotion)(fb_session*, int64_t, fb_resume*) = fb_wait_promotion;
fb_status (*const commit)(fb_session*, void*, uint64_t, const void*, size_t) = fb_commit;
fb_status (*const commit_changes)(fb_session*, void*, uint64_t, const fb_change*, size_t) = fb_commit_changes;
fb_status (*const prepare_changes)(fb_session*, void*, uint64_t, const fb_change*,
                                   size_t) = fb_prepare_changes;
fb_status (*const counter)(fb_session*, uint64_t*) = fb_counter;
fb_status (*const committed)(fb_session*, uint64_t*) = fb_committed;
fb_status (*const heartbeat)(fb_session*, void*) = fb_heartbeat;
fb_status (*const resumed)(fb_session*) = fb_resumed;
fb_status (*const turn)(fb_session*, int64_t) = fb_turn;
fb_status (*const turn_wanted)(fb_session*, int64_t, uint64_t) = fb_turn_wanted;
fb_status (*const leave)(fb_session*) = fb_leave;
fb_status (*const listen)(fb_session*, int) = fb_listen;
fb_status (*const listener)(fb_session*, int*) = fb_listener;
fb_status (*const next_connection)(fb_session*, uint64_t, fb_connection*) = fb_next_connection;
fb_status (*const send)(fb_session*, int, uint64_t, const void*, size_t, uint64_t*) = fb_send;
fb_status (*const release_connection)(fb_session*, uint64_t) = fb_release_connection;
fb_status (*const small_context)(int, unsigned int, void**, int*) = fb_small_context;
const char* (*const last_error)(const fb_session*) = fb_last_error;
const char* (*const status_name)(fb_status) = fb_status_name;

template <class Function>
const void* address_of(Function* function) {
  return reinterpret_cast<const void*>(function);
}

}  // namespace

const void* const* functions_seen_from_cpp() {
  static const void* const all[] = {address_of(join),           address_of(session_role),
                                    address_of(alloc),          address_of(ready),
                                    address_of(wait_promotion), address_of(commit),
                                    address_of(commit_changes), address_of(prepare_changes),
                                    address_of(counter),        address_of(committed),
                                    address_of(heartbeat),      address_of(resumed),
                                    address_of(leave),          address_of(last_error),
                                    address_of(status_name),    address_of(alloc_as),
                                    address_of(stand_down),     address_of(listen),
                                    address_of(listener),       address_of(next_connection),
                                    address_of(send),           address_of(release_connection),
                                    address_of(small_context),  address_of(turn),
                                    address_of(turn_wanted),    address_of(share),
                                    address_of(map_shared),     nullptr};
  return all;
}
