// SPDX-License-Identifier: Apache-2.0
/// What an agent that runs as its own user asks of the process that stays root's
/// (agent/root/privileged_helper.h). Each question is one line of words with one space between them, and
/// nothing else is one. Pure.
///
///   prepare DOMAIN                the directories of that MPS domain
///   clear DOMAIN                  what a daemon that is gone has left in its pipe directory goes
///   start DOMAIN GPU              its daemon; answered with the process, as a number and a pidfd
///   bound DOMAIN                  what is too much of its logs is moved away
///   control DOMAIN MS COMMAND     a command of MPS's own, and how long to wait for the answer: "STATUS
///   SIGNAL",
///                                 a line feed, and what was said
///   parked DOMAIN 0|1             whether the file is there that says that the domain is parked
///   name DOMAIN PID               to a driver that contains faults: that process is the domain's MPS server
///   driver-file NAME              one of such a driver's files that only root may read, opened
///   give UID                      with a file attached, of the agent's own: it becomes that user's
///   mark 0|1                      with a named pipe attached: whether it is marked (ground/os/file.h)
///   probe guard|spares            whether that works on this machine: "works", or the answer and why
///   known guard|spares            the same where it was tried before; nothing is tried
///   devices                       the GPU driver's modules are loaded, and its devices there
///
/// DOMAIN is a, b or anchor, after a number of at most three digits where there are several GPUs. GPU is a
/// UUID, or - for what CUDA finds. COMMAND is one of those that agent/domains/mps/domain.h needs, with its
/// numbers.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>

#include "ground/base/clock.h"
#include "ground/base/result.h"

namespace firebreak::agent {

enum class PrivilegedAct {
  Prepare,
  Clear,
  Start,
  Bound,
  Control,
  Parked,
  Name,
  DriverFile,
  Give,
  Mark,
  Probe,
  Known,
  Devices,
};

struct PrivilegedQuestion {
  PrivilegedAct act{};
  std::string domain = {};
  std::string gpu = {};  ///< empty: what CUDA finds
  Milliseconds timeout{};
  std::string command = {};  ///< command of MPS's
  bool is_on = false;
  pid_t pid = 0;
  uid_t user = 0;
  std::string name = {};  ///< name of a file of the driver's, or of what is probed
};

/// How long an answer of MPS's is waited for at most.
inline constexpr Milliseconds longest_control{120'000};

std::string text_of(const PrivilegedQuestion& question);
/// `attached`: how many descriptors came with it. InvalidArgument: that is no question.
Result<PrivilegedQuestion> privileged_question_from(std::string_view text, std::size_t attached);

/// Returns which of so many GPUs that domain is of, where that is its name; none: it is of none of them. With
/// 0 GPUs there is one: what CUDA finds.
std::optional<std::size_t> gpu_of_domain(std::string_view domain, std::size_t gpus);

/// True for an act that is over before anybody notices.
bool is_done_at_once(PrivilegedAct act);

}  // namespace firebreak::agent
