// SPDX-License-Identifier: Apache-2.0
#include "ground/os/capabilities.h"

#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>

#include "ground/os/fd.h"

namespace firebreak::os {
namespace {

struct Sets {
  std::uint64_t effective = 0;
  std::uint64_t permitted = 0;
  std::uint64_t inheritable = 0;
};

using Halves = std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3>;

constexpr std::uint64_t bit_of(Capability which) { return std::uint64_t{1} << static_cast<unsigned>(which); }

Result<Sets> own_sets() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  Halves halves{};
  if (::syscall(SYS_capget, &header, halves.data()) != 0) return fail_errno("ask for capabilities", errno);
  const auto joined = [](std::uint32_t low, std::uint32_t high) { return std::uint64_t{high} << 32 | low; };
  return Sets{joined(halves[0].effective, halves[1].effective),
              joined(halves[0].permitted, halves[1].permitted),
              joined(halves[0].inheritable, halves[1].inheritable)};
}

Status set_own(const Sets& sets) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  Halves halves{};
  for (unsigned i = 0; i < halves.size(); ++i) {
    halves.at(i) = {static_cast<std::uint32_t>(sets.effective >> (32 * i)),
                    static_cast<std::uint32_t>(sets.permitted >> (32 * i)),
                    static_cast<std::uint32_t>(sets.inheritable >> (32 * i))};
  }
  if (::syscall(SYS_capset, &header, halves.data()) != 0) return fail_errno("give up capabilities", errno);
  return {};
}

Status set_no_new_privs() {
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return fail_errno("set no_new_privs", errno);
  return {};
}

/// Bars the capability from programs that are started from now on.
Status bar(Capability which) {
  const auto number = static_cast<unsigned long>(which);
  if (::prctl(PR_CAPBSET_READ, number, 0, 0, 0) == 0) return {};
  if (::prctl(PR_CAPBSET_DROP, number, 0, 0, 0) == 0) return {};
  // A user who is not root would lose more by it: set-user-ID programs.
  return ::geteuid() == 0 ? set_no_new_privs() : Status{};
}

}  // namespace

bool has_capability(Capability which) {
  const auto sets = own_sets();
  return sets && (sets->effective & bit_of(which)) != 0;
}

Status give_up_all_capabilities_but(std::span<const Capability> kept) {
  const auto sets = own_sets();
  if (!sets) return propagate(sets);
  std::uint64_t wanted = 0;
  for (const Capability each : kept) wanted |= bit_of(each);
  return set_own({sets->effective & wanted, sets->permitted & wanted, 0});
}

Status give_up_capability(Capability which, const std::function<bool()>& is_well_without) {
  const auto before = own_sets();
  if (!before) return propagate(before);
  const std::uint64_t others = ~bit_of(which);
  Sets sets = *before;
  sets.effective &= others;
  if (auto lowered = set_own(sets); !lowered) return lowered;
  if (!is_well_without()) {
    if (auto restored = set_own(*before); !restored) return restored;
    return fail(ErrorCode::PermissionDenied, "what this process has to see is not seen without it");
  }
  if (auto barred = bar(which); !barred) return barred;
  sets.permitted &= others;
  sets.inheritable &= others;
  return set_own(sets);
}

Result<User> user_named(const std::string& name) {
  std::array<char, 16384> room{};
  ::passwd entry{};
  ::passwd* found = nullptr;
  uid_t number = 0;
  const auto read = std::from_chars(name.data(), name.data() + name.size(), number);
  const bool is_number = read.ec == std::errc() && read.ptr == name.data() + name.size();
  if (is_number) (void)::getpwuid_r(number, &entry, room.data(), room.size(), &found);
  if (!is_number) (void)::getpwnam_r(name.c_str(), &entry, room.data(), room.size(), &found);
  if (found == nullptr && !is_number)
    return fail(ErrorCode::InvalidArgument, "there is no user '" + name + "'",
                "make it with useradd --system");
  const User user = found == nullptr ? User{number, number} : User{found->pw_uid, found->pw_gid};
  if (user.uid == 0 || user.gid == 0)
    return fail(ErrorCode::InvalidArgument, "user '" + name + "' is root, or of root's group");
  return user;
}

namespace {

Status set_ids(const User& user) {
  if (::setgroups(user.groups.size(), user.groups.data()) != 0) return fail_errno("set groups", errno);
  if (::setresgid(user.gid, user.gid, user.gid) != 0) return fail_errno("set the group", errno);
  if (::setresuid(user.uid, user.uid, user.uid) != 0) return fail_errno("set the user", errno);
  return {};
}

}  // namespace

Status become_user(const User& user, std::span<const Capability> kept) {
  if (user.uid == 0 || user.gid == 0) return fail(ErrorCode::InvalidArgument, "that user is root");
  if (::prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) != 0) return fail_errno("keep capabilities", errno);
  if (auto set = set_ids(user); !set) return set;
  const auto sets = own_sets();
  if (!sets) return propagate(sets);
  std::uint64_t wanted = 0;
  for (const Capability each : kept) wanted |= bit_of(each);
  wanted &= sets->permitted;
  if (auto set = set_own({wanted, wanted, 0}); !set) return set;
  if (::prctl(PR_SET_KEEPCAPS, 0, 0, 0, 0) != 0) return fail_errno("keep capabilities no more", errno);
  if (auto set = set_no_new_privs(); !set) return set;
  if (::setuid(0) == 0 || ::setgid(0) == 0) return fail(ErrorCode::Internal, "this process is root's still");
  return {};
}

Status allow_prompt_waking() {
  constexpr rlimit lowest{1, 1};
  rlimit now{};
  if (::getrlimit(RLIMIT_RTPRIO, &now) == 0 && now.rlim_cur >= lowest.rlim_cur) return {};
  if (::setrlimit(RLIMIT_RTPRIO, &lowest) != 0) return fail_errno("allow to be woken promptly", errno);
  return {};
}

}  // namespace firebreak::os
