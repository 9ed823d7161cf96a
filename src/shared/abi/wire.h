// SPDX-License-Identifier: Apache-2.0
/// Messages between tenants, the firebreak command and the agent: one JSON object a message, over a
/// SOCK_SEQPACKET socket, with descriptors attached where noted. No promotion waits for one. Each request
/// carries a number, which counts up from 1 in the process that asks, and its answer repeats it: so an answer
/// that comes after nobody waits for it any more is not taken for another one's. Messages that nobody asked
/// for have no number. Programs built before 0.7 number nothing; the agent answers them as its predecessors
/// did, without numbers, and sends them whole what newer ones ask for (noted below).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "ground/base/result.h"
#include "shared/abi/rest_level.h"

namespace firebreak::abi {

/// The most bytes of one message, both ways.
inline constexpr std::size_t wire_bytes_max = 64 * 1024;
/// The longest tenant or allocation name.
inline constexpr std::size_t name_bytes_max = 63;

enum class Role { Active, Standby };

/// The use of an allocation, which says who may write it.
enum class Memory {
  State,    ///< writable for every process of the tenant
  Weights,  ///< writable for its maker; read-only for the tenant's other processes
  Shared,   ///< the same, and once its maker has shared it read-only for other tenants of its user
};

/// The consequence for a guarded tenant that strays. The operator decides on it, never the tenant.
enum class StrayPolicy {
  Default,  ///< follow the agent's own option
  End,      ///< end the tenant in the orderly way, since it computes nonsense
  Report,   ///< tell of its strays, up to a number of blocks
};

// --- from tenants
// -----------------------------------------------------------------------------------------------

/// Wants to be the tenant's active or its standby. Answered by Joined or Refused.
struct Join {
  std::string tenant;
  Role role = Role::Active;
  std::string token = {};  ///< the token that Placed gave; empty where nobody was placed
  /// One no other join has: asked again with it, where the answer was lost with its agent, it is the same
  /// one.
  std::string attempt = {};
  std::string pipe_directory = {};  ///< its CUDA_MPS_PIPE_DIRECTORY; empty: it has none
};
/// A process that had joined, and lost its connection or the agent itself. Answered by Done; or Refused where
/// it is not wanted any more.
struct Rejoin {
  std::string tenant;
  std::string token = {};
  bool ready = false;  ///< the process is a standby that has warmed up, and waits
};
/// A fenced process that can work on wants to be its successor's standby; an active whose GPU work has ended
/// wants its standby to go on, and to be that one's standby. Answered by Done, also to who is the standby
/// already, or Refused.
struct StandDown {
  std::uint32_t word = 0;  ///< the number of a HandOverWord on the shared page; 0: there is none
};
/// An allocation of the active; its exported descriptor is attached. Answered by Done, by Allocation where it
/// is shared, whose address the agent says, or Refused.
struct Publish {
  std::string name;
  std::uint64_t address = 0;  ///< 0 where it is shared
  std::uint64_t size_bytes = 0;
  Memory memory = Memory::State;
};
/// The tenant's allocation of that name. Answered by Allocation with its descriptor attached, by Done where
/// the tenant has none of that name (a standby is told when it has), or Refused.
struct GiveAllocation {
  std::string name;
};
/// All shared memory of the active's tenant is written: from now on others may have it. Answered by Done or
/// Refused.
struct Share {
  bool again = false;  ///< an earlier one was not answered: it may have been shared already
};
/// The memory of that name that a tenant shares. Answered by Allocation with its descriptor attached, by Done
/// where it is not there, or not shared yet (who asked is told Shared when it is), or Refused.
struct GiveShared {
  std::string owner;
  std::string name;
};
/// A TCP socket of the active's that listens, attached: clients that come there are kept for the tenant.
/// Again: another. Answered by Done or Refused.
struct Listen {};
/// Answered by Done, with that socket attached, or Refused.
struct GiveListener {};
/// The connection of a client with the lowest id above `after`, or of one that waits to be accepted; to the
/// active. Answered by ClientConnection, by Done where nobody waits, or Refused.
struct NextConnection {
  std::uint64_t after = 0;
};
/// Tells the agent that a connection is not needed any more. Answered by Done or Refused.
struct ReleaseConnection {
  std::uint64_t id = 0;
};
/// The standby has warmed up. Answered by Done once it is ready to take over: when the agent knows its MPS
/// server, or has looked for that in vain for some seconds; or Refused.
struct Ready {};
/// The promoted standby's first kernel has completed; it went on from `next_step`. Answered by Done.
struct Resumed {
  std::uint64_t next_step = 0;
};
/// The active leaves in good order. Answered by Done.
struct Finish {};
/// The active wants its turns from now on, by another time, or none any more: what it wants is on the shared
/// page. Told to agents that want to hear it (TurnPlace::heard), and not answered.
struct TurnWanted {};
/// Tells how an Inject ended: raised at `raised_at_ns` (CLOCK_MONOTONIC), or not, for a reason. Not answered.
struct Injected {
  std::int64_t raised_at_ns = 0;
  std::string refusal;  ///< empty: it is raised right after this
};

/// Asks where a GPU core dump of this process would go, whose environment does not say so, so that its MPS
/// domain can be parked. Answered by CoreDumpPipe, by Done where the process is not to be in the mode or is
/// already, or Refused.
struct GiveCoreDumpPipe {};
/// Tells that the process is in the core dump mode from now on, by the driver's calls, with the pipe that it
/// was given; or that it cannot be. Answered by Done.
struct CoreDumpMode {
  std::string why_not;  ///< empty: it is
};

// --- from the firebreak command
// ---------------------------------------------------------------------------------

/// Asks where this tenant would run. Answered by Placed or Refused. The last answer on a connection holds
/// until that is closed, or the process has been adopted.
struct Place {
  std::string tenant;
  Role role = Role::Active;
  std::string gpu = {};          ///< UUID or how one begins; empty: any
  std::uint32_t sm_percent = 0;  ///< 0: what the agent was started with; both
  std::uint32_t memory_mib = 0;
  bool spare = false;                  ///< asks for a spare driver instance in another domain of that GPU
  bool spare_if_there_is_one = false;  ///< the same where the agent gives one, and else without
};
/// `pid` was started with what Placed said, by this agent or the one before. Answered by Done, also where it
/// has been adopted already, or Refused.
struct Adopt {
  std::string tenant;
  Role role = Role::Active;
  std::int64_t pid = 0;
  StrayPolicy strays = StrayPolicy::Default;
};
/// Asks that a process of the tenant end without harm to others; its standby goes on in its place. Answered
/// by Done once that has begun, or Refused.
struct EndProcess {
  std::string tenant;
  std::int64_t pid = 0;
};
/// Asks that all processes of the tenant end without harm to others. Answered by Ended when they are gone, or
/// Refused.
struct EndTenant {
  std::string tenant;
  std::uint32_t grace_ms = 0;  ///< time between SIGTERM and SIGKILL
  bool force = false;          ///< also where others have memory that it shares
};
/// Whole lines that an adopted process wrote to its standard error: those that name a fault. Not answered.
struct Output {
  std::int64_t pid = 0;
  std::string text;
};
/// Answered by StatusDocument.
struct StatusRequest {};
/// Asks for every Event from now on, on this connection too. Answered by Done.
struct Subscribe {};
/// A fault on purpose inside the tenant's active process, at its `commits`-th commit from now. The agent
/// passes it on to the tenant, and answers with the tenant's Injected, or Refused.
struct Inject {
  std::string tenant;
  std::string kind;
  std::uint32_t commits = 1;
};
/// The active is to hand over to its standby, between two steps. The agent passes it on to the tenant.
/// Answered by Done once that is asked, or Refused where no standby is ready.
struct HandOver {
  std::string tenant;
};
/// A tenant that knows nothing of us is to give its GPU up as far as that, or to get it again. Answered by
/// Done once it is so, or by Refused, with the reason; then it is as before.
struct Rest {
  std::string tenant;
  RestLevel level = RestLevel::Awake;
};
/// Everything is to end: all tenants, the MPS daemons, what is kept for the next agent, and the agent, which
/// nobody is to start again. Answered by Ended when all but the agent is gone, and nothing is kept; or by
/// Refused, with who is there, unless `force`.
struct Shutdown {
  bool force = false;          ///< shut down although tenants are there
  std::uint32_t grace_ms = 0;  ///< time between SIGTERM and SIGKILL, for each of their processes
};

/// A GPU that was taken for broken is well again, since it was reset: by its UUID or how that begins, its PCI
/// address or its number. Answered by Done or Refused.
struct GpuRecovered {
  std::string gpu;
};

// --- from the agent
// ---------------------------------------------------------------------------------------------

/// The shared page's descriptor is attached.
struct Joined {
  std::uint32_t epoch = 0;
  std::uint64_t arena_base =
      0;  ///< first GPU address for the tenant's allocations, the same in each of its processes
  /// Number of allocations that the tenant has already. A program that numbers nothing is sent them at once,
  /// with their descriptors.
  std::uint32_t allocations = 0;
  /// How long to wait for the next agent where this one is gone; 0: none will know the tenant.
  std::uint32_t agent_returns_ms = 0;
  std::uint32_t member = 0;  ///< number by which the shared page names this process when it is promoted
  /// The addresses of shared memory, the same in every process of every tenant; 0: agents before 0.8 have
  /// none.
  std::uint64_t shared_base = 0;
  std::uint64_t shared_bytes = 0;
};
/// The answer to GiveAllocation, with the descriptor attached. Unasked, to the standby for each allocation
/// that its tenant gets, without it: who needs it asks for it, so that nobody is sent more than it takes.
/// (With it, and for each that the tenant has when it joins, to who numbers nothing.)
struct Allocation {
  std::string name;
  std::uint64_t address = 0;
  std::uint64_t size_bytes = 0;
  Memory memory = Memory::State;
  bool is_shared = false;  ///< others may have it by now: it is read-only
};
/// Unasked, to who asked for that tenant's shared memory before it was shared.
struct Shared {
  std::string owner;
};
/// Its descriptor is attached.
struct ClientConnection {
  std::uint64_t id = 0;  ///< counts up from 1
};
/// A named pipe. Attached is a descriptor of its place (O_PATH), for who cannot reach it by its path.
struct CoreDumpPipe {
  std::string path;
};
struct Placed {
  std::vector<std::pair<std::string, std::string>> environment;
  /// How long to wait for the next agent, which knows of this, where this one is gone before it has answered
  /// Adopt; 0: none will.
  std::uint32_t agent_returns_ms = 0;
};
struct Done {
  std::int64_t pid = 0;  ///< the process's number where the agent is, for an Adopt; 0: nobody asked for one
};
struct Refused {
  std::string reason;
  bool used_up = false;  ///< a quota or another limit is reached
  bool not_yet = false;  ///< the same may be asked for again in a moment
  bool invalid = false;  ///< the same will never be done
};
/// How each process of a tenant ended, in one line for a person.
struct Ended {
  std::string text;
};
/// `json` is a document for people and scripts; its form is in docs of `firebreak status`. Empty: it is in a
/// memory file, whose descriptor is attached, since it is longer than a message. (Who numbers nothing is
/// refused that.)
struct StatusDocument {
  std::string json;
};
/// What the agent tells of (shared/abi/events.def, docs/use/events.md).
enum class EventKind : std::uint8_t {
  Other,  ///< a kind of an agent that is newer than this program; this one never tells it
#define FIREBREAK_EVENT(name, word) name,
#include "shared/abi/events.def"
#undef FIREBREAK_EVENT
};

/// Returns the kind's word on the wire; "other" for Other.
std::string_view to_string(EventKind kind);
/// Returns the kind of a word; Other when there is no such word.
EventKind event_kind(std::string_view word);

/// Something happened. Empty strings and zeros: does not apply.
struct Event {
  std::int64_t at_ns = 0;  ///< CLOCK_MONOTONIC
  EventKind what = EventKind::Other;
  std::string tenant;
  std::string domain;
  std::int64_t pid = 0;
  std::string source;  ///< source of a fault
  std::uint32_t epoch = 0;
  std::uint64_t step = 0;
  std::string text;        ///< one line for a person
  std::string fault = {};  ///< its id in `firebreak faults`
};

using Message =
    std::variant<Join, Rejoin, StandDown, Publish, GiveAllocation, Share, GiveShared, Listen, GiveListener,
                 NextConnection, ReleaseConnection, Ready, Resumed, Finish, TurnWanted, Injected,
                 GiveCoreDumpPipe, CoreDumpMode, Inject, Place, Adopt, EndProcess, EndTenant, Output,
                 StatusRequest, Subscribe, HandOver, Rest, Shutdown, GpuRecovered, Joined, Allocation, Shared,
                 ClientConnection, CoreDumpPipe, Placed, Done, Refused, Ended, StatusDocument, Event>;

/// A message as it travels.
struct Letter {
  std::uint64_t number = 0;  ///< number of the request; 0: none
  Message message;
};

std::string encode(const Message& message, std::uint64_t number = 0);
/// Protocol, with what is wrong, for anything that is not one of the messages above. Never throws.
Result<Letter> decode_letter(std::string_view text);
/// The same for who does not care for the number.
Result<Message> decode(std::string_view text);
/// Returns the number in a text that need be no message of ours; 0: it has none.
std::uint64_t number_in(std::string_view text);

/// "active" or "standby".
const char* to_string(Role role);
Result<Role> role_from(std::string_view text);
/// "state", "weights" or "shared".
const char* to_string(Memory memory);
Result<Memory> memory_from(std::string_view text);
/// "default", "end" or "report".
const char* to_string(StrayPolicy policy);
Result<StrayPolicy> stray_policy_from(std::string_view text);
/// "awake", "still", "without contexts" or "without memory".
const char* to_string(RestLevel level);
Result<RestLevel> rest_level_from(std::string_view text);
/// InvalidArgument unless 1 to name_bytes_max of letters, digits, '.', '_' and '-'.
Status check_name(std::string_view name);

}  // namespace firebreak::abi
