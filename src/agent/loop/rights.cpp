// SPDX-License-Identifier: Apache-2.0
#include "agent/loop/rights.h"

#include <fmt/format.h>

#include <charconv>
#include <system_error>

#include "ground/base/overloaded.h"

namespace firebreak::agent {
namespace {

/// One row each: what it needs, which tenant it names, and how the log calls it.
struct Row {
  Need need = Need::Nothing;
  std::string_view tenant = {};
  std::string_view audited = {};
};

Row row_of(const abi::Message& request) {
  return std::visit(Overloaded{
                        [](const abi::Join& of) {
                          return Row{Need::Nothing, of.tenant, {}};
                        },
                        [](const abi::Rejoin& of) {
                          return Row{Need::Nothing, of.tenant, {}};
                        },
                        [](const abi::StandDown&) { return Row{Need::Member}; },
                        [](const abi::Publish&) { return Row{Need::Member}; },
                        [](const abi::GiveAllocation&) { return Row{Need::Member}; },
                        [](const abi::Share&) { return Row{Need::Member}; },
                        // Its handler looks whose the other tenant is.
                        [](const abi::GiveShared&) { return Row{Need::Member}; },
                        [](const abi::Listen&) { return Row{Need::Member}; },
                        [](const abi::GiveListener&) { return Row{Need::Member}; },
                        [](const abi::NextConnection&) { return Row{Need::Member}; },
                        [](const abi::ReleaseConnection&) { return Row{Need::Member}; },
                        [](const abi::Ready&) { return Row{Need::Member}; },
                        [](const abi::Resumed&) { return Row{Need::Member}; },
                        [](const abi::Finish&) { return Row{Need::Member}; },
                        [](const abi::TurnWanted&) { return Row{Need::Member}; },
                        [](const abi::Injected&) { return Row{Need::Member}; },
                        [](const abi::Output&) { return Row{Need::Member}; },
                        [](const abi::Place& of) {
                          return Row{Need::Owner, of.tenant, "place"};
                        },
                        [](const abi::Adopt& of) {
                          return Row{Need::Owner, of.tenant, "adopt"};
                        },
                        [](const abi::EndProcess& of) {
                          return Row{Need::Owner, of.tenant, "end_process"};
                        },
                        [](const abi::EndTenant& of) {
                          return Row{Need::Owner, of.tenant, "end_tenant"};
                        },
                        [](const abi::Inject& of) {
                          return Row{Need::Owner, of.tenant, "inject"};
                        },
                        [](const abi::HandOver& of) {
                          return Row{Need::Owner, of.tenant, "hand_over"};
                        },
                        [](const abi::Rest& of) {
                          const bool is_back = of.level == abi::RestLevel::Awake;
                          return Row{Need::Owner, of.tenant, is_back ? "resume" : "suspend"};
                        },
                        // The answer is about the process that asks, by its number.
                        [](const abi::GiveCoreDumpPipe&) { return Row{Need::Nothing}; },
                        [](const abi::CoreDumpMode&) { return Row{Need::Nothing}; },
                        [](const abi::StatusRequest&) { return Row{Need::Nothing}; },
                        [](const abi::Subscribe&) { return Row{Need::Nothing}; },
                        [](const abi::Shutdown&) {
                          return Row{Need::Operator, {}, "shutdown"};
                        },
                        [](const abi::GpuRecovered&) {
                          return Row{Need::Operator, {}, "gpu_recovered"};
                        },
                        [](const auto&) { return Row{}; },
                    },
                    request);
}

/// "uid1000.llm" is user 1000's, also while nobody has it.
std::optional<uid_t> user_in_name(std::string_view tenant) {
  constexpr std::string_view begin = "uid";
  if (!tenant.starts_with(begin)) return std::nullopt;
  const std::string_view rest = tenant.substr(begin.size());
  uid_t user = 0;
  const auto read = std::from_chars(rest.data(), rest.data() + rest.size(), user);
  const bool is_number = read.ec == std::errc() && read.ptr != rest.data() + rest.size() && *read.ptr == '.';
  return is_number ? std::optional(user) : std::nullopt;
}

}  // namespace

Need need_of(const abi::Message& request) { return row_of(request).need; }

std::string_view tenant_named_by(const abi::Message& request) { return row_of(request).tenant; }

std::string_view audited_name(const abi::Message& request) { return row_of(request).audited; }

Status may_ask(const Asking& who, const abi::Message& request, const std::optional<uid_t>& owner) {
  if (who.entrance == Entrance::Operators) return {};
  if (who.entrance == Entrance::Observers && !std::holds_alternative<abi::StatusRequest>(request))
    return fail(ErrorCode::PermissionDenied, "this socket is for the status alone");
  const Row row = row_of(request);
  if (row.need == Need::Operator)
    return fail(ErrorCode::PermissionDenied, "that is for an operator to ask", "use the operators' socket");
  if (!row.tenant.empty() && !who.bound.empty() && row.tenant != who.bound) {
    return fail(ErrorCode::PermissionDenied, fmt::format("this connection is tenant '{}' alone", who.bound));
  }
  const std::optional<uid_t> named = user_in_name(row.tenant);
  if (named && *named != who.user) {
    return fail(ErrorCode::PermissionDenied,
                fmt::format("names of tenants that begin with 'uid{}.' are that user's", *named));
  }
  if (row.need == Need::Owner && owner && *owner != who.user) {
    return fail(ErrorCode::PermissionDenied, fmt::format("tenant '{}' is another user's", row.tenant));
  }
  return {};
}

bool may_see(const Asking& who, const std::optional<uid_t>& owner) {
  return who.entrance != Entrance::Tenants || owner == who.user;
}

}  // namespace firebreak::agent
