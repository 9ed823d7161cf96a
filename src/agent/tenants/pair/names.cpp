// SPDX-License-Identifier: Apache-2.0
#include "agent/tenants/pair/pair.h"

namespace firebreak::pair {

const char* to_string(EventType event) {
  switch (event) {
    case EventType::ActiveJoined:
      return "active joined";
    case EventType::StandbyJoined:
      return "standby joined";
    case EventType::StandbyReady:
      return "standby ready";
    case EventType::StandbyExited:
      return "standby exited";
    case EventType::ActiveExited:
      return "active exited";
    case EventType::ActiveFinished:
      return "active finished";
    case EventType::ActiveStoodDown:
      return "active stood down";
    case EventType::DangerSeen:
      return "danger seen";
    case EventType::FenceSeen:
      return "fence seen";
    case EventType::ContextLost:
      return "context lost";
    case EventType::Resumed:
      return "resumed";
    case EventType::DeadlinePassed:
      return "deadline passed";
  }
  return "?";
}

const char* to_string(ActionType action) {
  switch (action) {
    case ActionType::StartDeadline:
      return "start deadline";
    case ActionType::Promote:
      return "promote";
    case ActionType::EndActive:
      return "end active";
    case ActionType::EndOldActive:
      return "end old active";
    case ActionType::EndStandby:
      return "end standby";
    case ActionType::BeginEpoch:
      return "begin epoch";
    case ActionType::TellProtected:
      return "tell protected";
    case ActionType::TellUnprotected:
      return "tell unprotected";
    case ActionType::TellLost:
      return "tell lost";
    case ActionType::TellWaiting:
      return "tell waiting";
    case ActionType::DismissStandby:
      return "dismiss standby";
  }
  return "?";
}

}  // namespace firebreak::pair
