/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libfirebreak: what a tenant of a shared GPU calls so that a standby can go on where it stopped.
 *
 *   fb_session* session;
 *   fb_join(NULL, &session);                          as active or standby, as `firebreak run` placed us
 *   fb_alloc(session, "state", bytes, -1, &address);  GPU memory that outlives this process
 *   if (fb_session_role(session) == FB_ROLE_STANDBY)
 *     fb_ready(session);                              after the warm-up: it could take over from now on
 *   fb_wait_promotion(session, -1, &resume);          returns when this process is the active one: at once if
 * it is for (step = resume.next_step; step < n; step++) {
 *     ... launch the step's kernels on `stream` ...
 *     fb_commit(session, stream, step, &host_state, sizeof host_state);   or fb_commit_changes, what changed
 *     if (resume.epoch > 0 && step == resume.next_step)
 *       fb_resumed(session);                          once that step's kernels have completed; may be left
 * out
 *   }
 *   fb_leave(session);
 *
 * Every function returns an fb_status and none ends the process or throws. What failed can be tried again,
 * with the same step where it was a commit. Pointers given out stay valid until fb_leave. A CUDA context must
 * be current in the calling thread for the functions that take a stream or return an address.
 *
 * Threads: different sessions never disturb each other. Of one session
 *   - fb_session_role and fb_committed may be called by any thread at any time, also while another waits in
 *     fb_wait_promotion, from fb_join's return until fb_leave is called;
 *   - all others are for one thread at a time; which one may change.
 * fb_join, fb_small_context, fb_status_name and fb_last_error(NULL) are for any thread at any time. A child
 * of fork() may use no session of its parent's.
 */
#ifndef FIREBREAK_FIREBREAK_H
#define FIREBREAK_FIREBREAK_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define FB_API __attribute__((visibility("default")))
#else
#define FB_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* What a call came to. Values are part of the ABI and never change their meaning. */
typedef enum fb_status {
  FB_OK = 0,
  FB_ERROR_INVALID_ARGUMENT =
      1,                  /* a null pointer, a size of 0, a name that is too long, a call in the wrong role */
  FB_ERROR_NO_AGENT = 2,  /* no agent at the socket, or it went away */
  FB_ERROR_REFUSED = 3,   /* the agent said no: fb_last_error says why */
  FB_ERROR_FENCED = 4,    /* another process is the active one now, or is to be: fb_stand_down */
  FB_ERROR_TIMEOUT = 5,   /* it did not happen in the given time */
  FB_ERROR_CUDA = 6,      /* the driver failed: fb_last_error has its error */
  FB_ERROR_NO_MEMORY = 7, /* GPU or host memory, or the tenant's quota */
  FB_ERROR_CORRUPT = 8,   /* shared state that is torn or of another version; never used */
  FB_ERROR_CLIENT_GONE = 9 /* the tenant's client has closed its connection. Since 0.4 */
} fb_status;

typedef enum fb_role { FB_ROLE_ACTIVE = 1, FB_ROLE_STANDBY = 2 } fb_role;

/* What GPU memory is for. Since 0.3. */
typedef enum fb_memory {
  FB_MEMORY_STATE = 1, /* every process of the tenant may write it */
  FB_MEMORY_WEIGHTS =
      2, /* read-only but for who made it, and for an active that begins before anything was committed */
  FB_MEMORY_SHARED = 3 /* the same, until fb_share; then other tenants may map it. Since 0.8 */
} fb_memory;

typedef struct fb_session fb_session;

/* How to join. A null pointer or a null field means: from the environment, as `firebreak run` set it
 * (FIREBREAK_SOCKET, FIREBREAK_TENANT, FIREBREAK_ROLE). `size_bytes` is sizeof(fb_join_options): it tells
 * versions apart. */
typedef struct fb_join_options {
  size_t size_bytes;
  const char* socket_path;
  const char* tenant; /* at most 63 bytes */
  fb_role role;       /* 0: from the environment */
} fb_join_options;

/* Where to go on, for an active that starts (epoch 0, next_step 0, no state) and for a promoted standby. */
typedef struct fb_resume {
  uint64_t epoch;     /* promotions so far */
  uint64_t next_step; /* the first step that is not committed */
  const void* state;  /* forward state of step next_step - 1; null when nothing was committed */
  size_t state_bytes;
  int64_t promoted_at_ns; /* CLOCK_MONOTONIC, when the agent decided; 0 without a promotion */
} fb_resume;

/* The most bytes of forward state. Up to 0.2 it was 4096. */
#define FB_STATE_BYTES_MAX 16777216

/* New bytes of the forward state, from byte `offset` on. Since 0.3. */
typedef struct fb_change {
  uint64_t offset;
  const void* bytes; /* null only with a size of 0 */
  size_t size_bytes;
} fb_change;

/* Joins the agent. Fails with FB_ERROR_NO_AGENT when there is none: the tenant may then go on unprotected.
 * `*session` is null after every failure. An active that begins anew waits until the kernels of its dead
 * predecessor have left the GPU: most often not at all, else while the agent holds the dead (--hold-s), or
 * somebody else what it had there. Any thread. */
FB_API fb_status fb_join(const fb_join_options* options, fb_session** session);

/* FB_ROLE_STANDBY turns into FB_ROLE_ACTIVE by promotion. 0 for a null session. Any thread. */
FB_API fb_role fb_session_role(const fb_session* session);

/* GPU memory under `name` (at most 63 bytes), at the same address in the active and in its standby. The
 * active creates it, zeroed; the standby gets the active's, waiting for it at most `timeout_ms` (-1: for
 * ever). Sizes are rounded up to the driver's granularity (2 MiB), and a tenant has at most 1024 of them.
 * FB_ERROR_INVALID_ARGUMENT where one of that name is there, and has less.
 * After FB_ERROR_TIMEOUT of the active's the agent may have it or not: ask again for the same. The memory
 * goes back when the tenant has finished, or some time after its last process is gone (firebreakd --lease-s):
 * an active that is started before goes on with it. */
FB_API fb_status fb_alloc(fb_session* session, const char* name, uint64_t size_bytes, int64_t timeout_ms,
                          uint64_t* device_address);

/* The same for what the memory is for; fb_alloc is for FB_MEMORY_STATE. Who gets what another process made
 * gets it as that one said. Since 0.3. */
FB_API fb_status fb_alloc_as(fb_session* session, const char* name, uint64_t size_bytes, fb_memory memory,
                             int64_t timeout_ms, uint64_t* device_address);

/*
 * Memory that several tenants map, as one model's weights for many: GPU memory of FB_MEMORY_SHARED, at an
 * address that is the same in every process of the machine. It lives while any tenant that made or mapped it
 * has a process, and for firebreakd --lease-s after: its maker may end. It counts for its maker's quota.
 */

/* Says that all that this tenant has allocated as FB_MEMORY_SHARED is written: from now on others may map it,
 * and nothing is added. Waits for the current context's work to end. Active only. A maker that ends before
 * takes the memory along, unless its standby goes on. Who is started later under the maker's name finds it by
 * fb_map_shared. FB_ERROR_INVALID_ARGUMENT: nothing was allocated so, or it has been shared already. After
 * FB_ERROR_TIMEOUT call again. Since 0.8. */
FB_API fb_status fb_share(fb_session* session);

/* The address of what the tenant `owner` has allocated as `name` and shared: read-only, in an active as in a
 * standby, which maps it before fb_ready. Waits for fb_share at most `timeout_ms` (-1: for ever). `owner` is
 * a tenant of the same user, or was one. FB_ERROR_TIMEOUT: it shares nothing; FB_ERROR_INVALID_ARGUMENT: it
 * does, and nothing of that name; FB_ERROR_REFUSED: it is another user's, whatever it shares. Read-only
 * guards against mistakes, not against who wants to write. Since 0.8. */
FB_API fb_status fb_map_shared(fb_session* session, const char* owner, const char* name, int64_t timeout_ms,
                               uint64_t* device_address);

/* Tells the agent that this standby has done its warm-up and could take over at once. Returns when the agent
 * knows the MPS server that has its context, or has looked for it in vain: within 30 s. Standby only. */
FB_API fb_status fb_ready(fb_session* session);

/* Blocks until this standby is promoted or `timeout_ms` has passed (-1: for ever); spinning is not needed,
 * the wake-up takes microseconds. FB_ERROR_NO_AGENT when the agent is gone, FB_ERROR_REFUSED when the tenant
 * has finished and nobody is needed any more, or when this standby had lost its connection and the agent does
 * not want it back (fb_last_error says why), FB_ERROR_FENCED when another process was promoted after it. An
 * active gets its fb_resume at once. */
FB_API fb_status fb_wait_promotion(fb_session* session, int64_t timeout_ms, fb_resume* resume);

/* Publishes that `step` is done: `state`, all of the forward state, is copied at once, and becomes valid on
 * the GPU's own time line, when all work queued on `stream` (a CUstream) before this call has ended. Does not
 * wait for the GPU unless 256 commits, or 32 MiB of them, are queued. Steps count up by one from next_step.
 * Active only; FB_ERROR_FENCED when another process took over, or is to take over since the operator wants it
 * so (fb_stand_down). */
FB_API fb_status fb_commit(fb_session* session, void* stream, uint64_t step, const void* state,
                           size_t state_bytes);

/* The same for what this step changed, in that order; every other byte of the forward state stays as it was.
 * The forward state grows to the end of what is changed, and bytes that nobody has written are 0; only
 * fb_commit makes it smaller. Costs what is changed, whatever the size of the state. `count` may be 0. Since
 * 0.3. */
FB_API fb_status fb_commit_changes(fb_session* session, void* stream, uint64_t step, const fb_change* changes,
                                   size_t count);

/* Where the GPU counts steps: the device address of 8 bytes, aligned, the same until this session ends. For
 * tenants who let a kernel of theirs count, with fb_prepare_changes. Active only: a standby asks once it is
 * promoted. Since 0.3. */
FB_API fb_status fb_counter(fb_session* session, uint64_t* device_address);

/* fb_commit_changes without a call of the driver: the step counts once a kernel of the tenant's stores `step`
 * + 1 at fb_counter's address, as 8 bytes with system scope (st.release.sys.u64, or a volatile store behind
 * __threadfence_system()). That kernel
 *   - is launched after this call, or the step is found counted without its state, which is FB_ERROR_CORRUPT;
 *   - runs after all work of the step has ended, as the last one of its stream does, and stores only once all
 * threads that work for the step have: one kernel of one thread at the end, or the last block of the last
 * kernel;
 *   - stores no step before the step before it: steps are counted in order.
 * `stream` is where it will be launched, and is only asked whether it has failed. Steps may be counted by
 * either, in turn. Since 0.3. */
FB_API fb_status fb_prepare_changes(fb_session* session, void* stream, uint64_t step,
                                    const fb_change* changes, size_t count);

/* The last step whose commit has taken effect, plus one; 0 when none has. Any thread; leaves fb_last_error
 * alone. */
FB_API fb_status fb_committed(fb_session* session, uint64_t* next_step);

/* Tells a hang from a long step: counts up on the GPU when all work queued on `stream` before this call has
 * ended. For tenants whose steps take long, or that have none to do; every commit is a heartbeat of itself.
 * Does not wait for the GPU. FB_ERROR_FENCED as of fb_commit. Since 0.2. */
FB_API fb_status fb_heartbeat(fb_session* session, void* stream);

/* Says that the first kernel after a promotion has completed: the fenced predecessor may be ended, and
 * reports have the recovery time. Without it the first step that the GPU has committed, or its first
 * heartbeat, says the same up to 100 ms later. */
FB_API fb_status fb_resumed(fb_session* session);

/* Makes an active whose CUDA context works the standby of the process that takes over from it: of the one
 * that did, where it was told FB_ERROR_FENCED because it was only taken for faulted, or else of its standby,
 * which goes on at the first step that is not committed (planned hand-over, since 0.6). Waits for the GPU
 * work to end; none may be queued meanwhile. Then fb_ready and fb_wait_promotion, as for any standby; its
 * memory is where it was. FB_ERROR_CUDA when the context does not work any more. FB_ERROR_REFUSED: no standby
 * is ready, and this process is active as before; or, of a fenced one, another standby is there already, or
 * the agent is about to end this process. FB_ERROR_TIMEOUT: the agent did not answer, and this process is
 * active as before; where fb_commit says FB_ERROR_FENCED then, call again. Since 0.3. */
FB_API fb_status fb_stand_down(fb_session* session);

/*
 * Turns, for tenants of one GPU of whom one is to compute at a time (firebreakd --turns): between two steps
 * the agent's word says who goes on. Without an agent, and with one that gives no turns, everybody does at
 * once. Who never asks never waits. Both are for the active; FB_ERROR_FENCED as of fb_commit.
 */

/* Before each step: returns when it is this tenant's turn, at once in most cases, and waits at most
 * `timeout_ms` (-1: for ever). FB_ERROR_TIMEOUT: it is not yet; ask again. While others are more urgent that
 * is up to --turn-max-ms, also where the agent ends, and what they then need for a tenth of it each. Where
 * turns are given it also waits while two steps that were committed have not ended: so one is queued ahead at
 * most, and who has to wait has left the GPU within a step. Since 0.7. */
FB_API fb_status fb_turn(fb_session* session, int64_t timeout_ms);

/* What is still to do: `units` steps, by `deadline_ns` (CLOCK_MONOTONIC; 0: some time; a time that has passed
 * counts as now, one beyond a day as none). `units` 0: nothing, so that nobody waits for this tenant. To be
 * called when work comes, when all is done, and as often as wished in between; who is promoted takes over
 * what its predecessor said. Since 0.7. */
FB_API fb_status fb_turn_wanted(fb_session* session, int64_t deadline_ns, uint64_t units);

/*
 * A tenant's own clients, over TCP, who see a pause and nothing else when its standby takes over. The agent
 * keeps the socket at which they come, and each connection from its acceptance until it is released; nothing
 * passes through it. Who is promoted gets all of them, and goes on writing each stream where it stands: how
 * far that is the kernel knows. What a client is told should be committed first, so that the successor would
 * tell it the same. All of these are for the active; FB_ERROR_FENCED when another process took over. Since
 * 0.4.
 */

/* One client's connection. `id` counts up from 1 as clients come, and is never given twice. `descriptor` is
 * the caller's to close; the client notices nothing of that before fb_release_connection. */
typedef struct fb_connection {
  uint64_t id;
  int descriptor;
} fb_connection;

/* Has the agent keep `descriptor`, a TCP socket that listens, for this process and those after it. It becomes
 * non-blocking. Called again it is another one. */
FB_API fb_status fb_listen(fb_session* session, int descriptor);

/* That socket, of whomever it was, to be closed by the caller: readable when somebody waits. Accept from it
 * with fb_next_connection alone. FB_ERROR_REFUSED: there is none yet. */
FB_API fb_status fb_listener(fb_session* session, int* descriptor);

/* The connection with the lowest id above `after`, and where there is none, the next that waits to be
 * accepted. A process begins with 0, and so gets what its predecessor had. Does not wait: FB_ERROR_TIMEOUT
 * where nobody is there. */
FB_API fb_status fb_next_connection(fb_session* session, uint64_t after, fb_connection* connection);

/* Writes a connection's stream, of which `bytes` are those from `offset` on, counted from its beginning: as
 * many of them as there is room for, and none that was written before, by whomever. `*taken` is how long the
 * stream is now: less than offset + size_bytes where the client is slow (try again when the descriptor is
 * writable), more where a predecessor was ahead. A predecessor that still runs writes nothing once this call
 * has begun. Nobody else may write to the connection. Does not wait for the client.
 * FB_ERROR_INVALID_ARGUMENT: `offset` is beyond the stream's end; FB_ERROR_TIMEOUT: a predecessor was stopped
 * while it wrote, and has not ended yet. */
FB_API fb_status fb_send(fb_session* session, int descriptor, uint64_t offset, const void* bytes,
                         size_t size_bytes, uint64_t* taken);

/* The agent forgets that connection; it ends when `descriptor` is closed as well. */
FB_API fb_status fb_release_connection(fb_session* session, uint64_t id);

/* A CUDA context for a standby to wait in, which takes little GPU memory: 48 MiB with 2 to 8 multiprocessors
 * on an H100, where a full one takes 254, and 519 with room for stacks. `*context` (a CUcontext) is current
 * on the calling thread and the caller's to destroy; it has at least `multiprocessors` of them, as the driver
 * rounds, and a stack limit of 0. `device` is the driver's ordinal. The driver does that for MPS clients
 * alone: elsewhere this is a full context, and
 * `*is_small` (may be null) is 0. Needs no session. What to do once promoted: docs/use/pairs.md, "A small
 * standby". FB_ERROR_CUDA; FB_ERROR_NO_MEMORY. Any thread. Since 0.5. */
FB_API fb_status fb_small_context(int device, unsigned int multiprocessors, void** context, int* is_small);

/* Leaves in good order: the tenant is done, its standby is told so. An agent that is away is waited for some
 * seconds, and the next one finds it written down. Frees the session in every case. */
FB_API fb_status fb_leave(fb_session* session);

/* One line about the last failure of this session, or, for null, of this thread's last fb_join,
 * fb_small_context or fb_leave; empty where it did not fail. Never null; valid until the next call. */
FB_API const char* fb_last_error(const fb_session* session);

/* "FB_OK", "FB_ERROR_FENCED", ... ; never null; valid for ever. Any thread. */
FB_API const char* fb_status_name(fb_status status);

#ifdef __cplusplus
}
#endif

#endif
