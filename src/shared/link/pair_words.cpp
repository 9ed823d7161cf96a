// SPDX-License-Identifier: Apache-2.0
#include "shared/link/pair_words.h"

#include <string>

namespace firebreak::pair {

const char* to_string(Phase phase) {
  switch (phase) {
    case Phase::Empty:
      return "empty";
    case Phase::Serving:
      return "serving";
    case Phase::Suspecting:
      return "suspecting";
    case Phase::Orphaned:
      return "orphaned";
    case Phase::Promoting:
      return "promoting";
    case Phase::Lost:
      return "lost";
    case Phase::Finished:
      return "finished";
  }
  return "?";
}

const char* to_string(Standby standby) {
  switch (standby) {
    case Standby::None:
      return "none";
    case Standby::Joined:
      return "joined";
    case Standby::Ready:
      return "ready";
  }
  return "?";
}

Result<Phase> phase_from(std::string_view name) {
  for (const Phase phase : {Phase::Empty, Phase::Serving, Phase::Suspecting, Phase::Orphaned,
                            Phase::Promoting, Phase::Lost, Phase::Finished}) {
    if (name == to_string(phase)) return phase;
  }
  return fail(ErrorCode::InvalidArgument, "no phase '" + std::string(name) + "'");
}

Result<Standby> standby_from(std::string_view name) {
  for (const Standby standby : {Standby::None, Standby::Joined, Standby::Ready}) {
    if (name == to_string(standby)) return standby;
  }
  return fail(ErrorCode::InvalidArgument, "no state '" + std::string(name) + "' of a standby");
}

}  // namespace firebreak::pair
