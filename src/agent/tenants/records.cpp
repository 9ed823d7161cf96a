// SPDX-License-Identifier: Apache-2.0
#include "agent/tenants/records.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

namespace firebreak::agent {
namespace {

/// Largest number of a process's traces: a document has room for so many. More are very many children.
constexpr std::size_t most_kept_traces = 256;

}  // namespace

KeptCommon Records::take_up_common(std::map<std::string, os::Fd>& descriptors) {
  os::Fd file = take_descriptor(descriptors, document_name());
  if (!file) return {};
  auto document = KeptDocument::open(std::move(file));
  auto read = document ? decode_common(document->read()) : propagate(document);
  if (document) document_ = std::move(*document);
  if (read) leaving_ = {read->leaving.begin(), read->leaving.end()};
  if (read) return std::move(*read);
  spdlog::error("which MPS servers there were, and who was told where to run, is not known any more: {}",
                to_string(read.error()));
  return {};
}

std::vector<KeptTenant> Records::take_up_tenants(std::map<std::string, os::Fd>& descriptors) {
  std::vector<KeptTenant> tenants;
  for (auto at = descriptors.begin(); at != descriptors.end();) {
    const std::string name = tenant_of_document(at->first);
    if (name.empty()) {
      ++at;
      continue;
    }
    auto document = KeptDocument::open(std::move(at->second));
    auto read = document ? decode_tenant(document->read()) : propagate(document);
    if (read) {
      document->close_descriptor();
      tenants.push_back(std::move(*read));
      tenant_documents_.emplace(name, TenantDocument{std::move(*document), {}});
      at = descriptors.erase(at);
    } else {
      spdlog::error("tenant {} is lost: {}", name, to_string(read.error()));
      ++at;
    }
  }
  return tenants;
}

std::vector<KeptWeights> Records::take_up_weights(std::map<std::string, os::Fd>& descriptors) {
  std::vector<KeptWeights> weights;
  for (auto at = descriptors.begin(); at != descriptors.end();) {
    if (!is_weights_document(at->first)) {
      ++at;
      continue;
    }
    auto document = KeptDocument::open(std::move(at->second));
    auto read = document ? decode_weights(document->read()) : propagate(document);
    if (read && weights_document_name(read->name) == at->first) {
      document->close_descriptor();
      weights_documents_.emplace(read->name, WeightsDocument{std::move(*document), {}});
      weights.push_back(std::move(*read));
      at = descriptors.erase(at);
    } else {
      spdlog::error("shared memory ({}) is lost: {}", at->first,
                    read ? "it is another's" : to_string(read.error()));
      ++at;
    }
  }
  return weights;
}

bool Records::begin() {
  if (document_) return true;
  auto document = KeptDocument::create();
  if (!document) {
    spdlog::error("nothing can be kept: {}", to_string(document.error()));
    return true;
  }
  if (!at_.manager.keep(document_name(), document->descriptor())) return false;
  document_ = std::move(*document);
  return true;
}

/// Tenants first: who was placed is one of them before the placement goes.
void Records::save() {
  if (!document_) return;
  for (const auto& [name, tenant] : at_.tenants.all()) save(*tenant);
  save_weights();
  save_common();
}

void Records::save_weights() {
  if (!document_) return;
  for (const auto& [name, group] : at_.weights.all()) save(name, group);
}

void Records::save(const WeightsName& name, const SharedWeights::Group& group) {
  auto found = weights_documents_.find(name);
  if (found == weights_documents_.end()) {
    auto document = KeptDocument::create();
    if (!document) {
      return spdlog::error("what tenant {} shares would not outlive the agent: {}", name.owner,
                           to_string(document.error()));
    }
    keep(weights_document_name(name), document->descriptor());
    document->close_descriptor();
    found = weights_documents_.emplace(name, WeightsDocument{std::move(*document), {}}).first;
  }
  const auto text = found->second.text.update(name, group);
  if (!text) return;
  if (auto written = found->second.document.write(*text); !written)
    spdlog::error("{}", to_string(written.error()));
}

void Records::save_for(const Connection& connection) {
  const Tenant* its = at_.tenants.of(connection);
  if (its == nullptr) return save();
  save(*its);
  save_common();
}

void Records::save_common() {
  if (!document_) return;
  KeptCommon common{at_.warm_standbys.servers(),
                    at_.placements.kept(),
                    {leaving_.begin(), leaving_.end()},
                    at_.tally.counts(),
                    at_.gpus.kept()};
  if (written_common_ == common) return;
  const Status written = document_->write(encode_common(common));
  if (!written) return spdlog::error("{}", to_string(written.error()));
  written_common_ = std::move(common);
}

void Records::save(const Tenant& tenant) {
  if (!document_) return;
  auto found = tenant_documents_.find(tenant.name());
  if (found == tenant_documents_.end()) {
    auto document = KeptDocument::create();
    if (!document) {
      return spdlog::error("tenant {} would not outlive the agent: {}", tenant.name(),
                           to_string(document.error()));
    }
    keep(tenant_document_name(tenant.name()), document->descriptor());
    document->close_descriptor();
    found = tenant_documents_.emplace(tenant.name(), TenantDocument{std::move(*document), {}}).first;
  }
  const auto text = found->second.text.update(kept_of(tenant), tenant.vault.entries(), tenant.clients);
  if (!text) return;
  if (auto written = found->second.document.write(*text); !written)
    spdlog::error("{}", to_string(written.error()));
}

/// Returns the tenant without what is kept beside it.
KeptTenant Records::kept_of(const Tenant& tenant) const {
  KeptTenant kept;
  kept.name = tenant.name();
  kept.token = at_.credentials.known_token_of(tenant.name());
  kept.owner = at_.credentials.owner_of(tenant.name());
  kept.pair = tenant.pair;
  kept.strays = tenant.strays;
  kept.ended_by_us = tenant.ended_by_us;
  kept.active = tenant.active;
  kept.standby = tenant.standby;
  kept.old_active = tenant.old_active;
  kept.processes = kept_processes_of(tenant);
  kept.last_connection = tenant.clients.last_id();
  return kept;
}

/// Returns the processes in a role, and the dead that are in none any more.
std::vector<KeptProcess> Records::kept_processes_of(const Tenant& tenant) const {
  std::vector<KeptProcess> kept;
  const auto add = [&](pid_t pid, const std::string& domain, bool has_left) {
    hold::Traces traces = at_.holder.traces_of(pid);
    const Process* process = has_left ? at_.processes.dying(pid) : at_.processes.living(pid);
    if (process == nullptr) process = at_.processes.dying(pid);
    const auto where = process == nullptr ? Whereabouts() : process->whereabouts();
    if (traces.empty() && where.known.empty() && where.expected.empty()) return;
    traces.marks.resize(std::min(traces.marks.size(), most_kept_traces));
    traces.others.resize(std::min(traces.others.size(), most_kept_traces));
    kept.push_back({pid, domain, has_left, std::move(traces), where});
  };
  for (const Member* member : {&tenant.active, &tenant.standby, &tenant.old_active}) {
    if (member->pid != 0) add(member->pid, member->domain, false);
  }
  if (at_.processes.dying_count() == 0) return kept;
  for (const Process* each : at_.processes.all_dying()) {
    if (each->tenant() == tenant.name() && each->remainder.has_left) add(each->pid(), each->domain(), true);
  }
  return kept;
}

void Records::forget_text_of(const std::string& tenant) {
  if (const auto its = tenant_documents_.find(tenant); its != tenant_documents_.end()) its->second.text = {};
}

void Records::forget(const std::string& tenant) {
  at_.manager.drop(tenant_document_name(tenant));
  tenant_documents_.erase(tenant);
}

void Records::forget(const WeightsName& name) {
  at_.manager.drop(weights_document_name(name));
  weights_documents_.erase(name);
}

void Records::forget_text_of(const WeightsName& name) {
  if (const auto its = weights_documents_.find(name); its != weights_documents_.end()) its->second.text = {};
}

void Records::leaves(const std::string& tenant) {
  leaving_.insert(tenant);
  save_common();
}

void Records::has_left(const std::string& tenant) {
  if (const auto one = leaving_.find(tenant); one != leaving_.end()) leaving_.erase(one);
  save_common();
}

void Records::end() {
  for (const auto& [tenant, its] : tenant_documents_) at_.manager.drop(tenant_document_name(tenant));
  tenant_documents_.clear();
  for (const auto& [name, its] : weights_documents_) at_.manager.drop(weights_document_name(name));
  weights_documents_.clear();
  if (document_) at_.manager.drop(document_name());
  document_.reset();
}

std::uint32_t Records::returns_ms() const {
  return document_ ? static_cast<std::uint32_t>(returns_within_.count()) : 0;
}

Status Records::room_for_tenant(const std::string& tenant) const {
  if (!are_kept()) return {};
  const std::array<std::string, 2> names = {page_name(tenant), tenant_document_name(tenant)};
  return at_.manager.room_for(names);
}

Status Records::room_for_weights(const WeightsName& name) const {
  if (!are_kept()) return {};
  const std::array<std::string, 1> names = {weights_document_name(name)};
  return at_.manager.room_for(names);
}

void Records::keep(const std::string& name, int descriptor) {
  if (!document_) return;
  if (auto kept = at_.manager.keep(name, descriptor); !kept) {
    spdlog::error("{} would not outlive the agent: {}", name, to_string(kept.error()));
  }
}

}  // namespace firebreak::agent
