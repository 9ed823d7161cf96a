// SPDX-License-Identifier: Apache-2.0
#include "commands/exporter/metrics.h"

#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

namespace firebreak::exporter {
namespace {

using nlohmann::json;
using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using Labels = std::vector<ClientMetric::Label>;

constexpr double us_per_s = 1e6;

/// Nothing where it has none. Lives as long as `in`.
const json& member_of(const json& in, const char* name) {
  static const json nothing;
  const auto found = in.is_object() ? in.find(name) : in.end();
  return found == in.end() ? nothing : *found;
}

std::string word_of(const json& in, const char* name) {
  const json& found = member_of(in, name);
  return found.is_string() ? found.get<std::string>() : std::string();
}

double number_of(const json& in, const char* name) {
  const json& found = member_of(in, name);
  return found.is_number() ? found.get<double>() : 0;
}

const json& list_of(const json& in, const char* name) {
  static const json none = json::array();
  const json& found = member_of(in, name);
  return found.is_array() ? found : none;
}

const json& object_of(const json& in, const char* name) {
  static const json none = json::object();
  const json& found = member_of(in, name);
  return found.is_object() ? found : none;
}

class Family {
 public:
  Family(MetricType type, const char* name, const char* help) : family_{name, help, type, {}} {}

  void add(const Labels& labels, double value) {
    ClientMetric metric;
    metric.label = labels;
    (family_.type == MetricType::Counter ? metric.counter.value : metric.gauge.value) = value;
    family_.metric.push_back(std::move(metric));
  }
  void add(ClientMetric metric) { family_.metric.push_back(std::move(metric)); }
  MetricFamily take() { return std::move(family_); }

 private:
  MetricFamily family_;
};

MetricFamily single(MetricType type, const char* name, const char* help, double value, Labels labels = {}) {
  Family family(type, name, help);
  family.add(labels, value);
  return family.take();
}

// --- domains

/// The domain for anchors counts as well: while it takes nobody no program starts with a spare.
MetricFamily domain_states(const json& status) {
  Family states(MetricType::Gauge, "firebreak_domain_state",
                "1 for the state in which an MPS domain is, 0 for the others; serving takes clients.");
  for (const char* const kind : {"domains", "anchors"}) {
    for (const json& domain : list_of(status, kind)) {
      const std::string is_in = word_of(domain, "state");
      for (const char* state : {"serving", "draining", "restarting", "silent", "gpu_failed"}) {
        states.add({{"domain", word_of(domain, "name")}, {"gpu", word_of(domain, "gpu")}, {"state", state}},
                   is_in == state ? 1 : 0);
      }
    }
  }
  return states.take();
}

/// What NVIDIA's documentation asks for, of each GPU that the driver has said anything about.
MetricFamily gpu_needs(const json& status) {
  Family needs(MetricType::Gauge, "firebreak_gpu_needs",
               "1: the GPU needs that before tenants are placed there, by the driver's own words.");
  for (const json& gpu : list_of(status, "gpus")) {
    for (const char* need : {"drain", "reset", "reboot"}) {
      needs.add({{"gpu", word_of(gpu, "uuid")}, {"pci", word_of(gpu, "pci")}, {"need", need}},
                word_of(gpu, "needs") == need ? 1 : 0);
    }
  }
  return needs.take();
}

MetricFamily domain_restarts(const json& counts) {
  Family restarts(MetricType::Counter, "firebreak_domain_restarts_total",
                  "How often what an MPS domain is made of was started again.");
  for (const auto& [domain, its] : object_of(counts, "domain_restarts").items()) {
    for (const char* what : {"daemon", "server"})
      restarts.add({{"domain", domain}, {"what", what}}, number_of(its, what));
  }
  return restarts.take();
}

// --- faults and promotions

MetricFamily faults(const json& counts) {
  Family faults(MetricType::Counter, "firebreak_faults_total",
                "GPU faults, by what came of each for tenants that had not caused it: contained (nothing), "
                "parked, failed_over (a standby went on), lost.");
  const json& all = object_of(counts, "faults");
  for (const auto& [fault_class, outcomes] : all.items()) {
    for (const auto& [outcome, count] : object_of(all, fault_class.c_str()).items()) {
      faults.add({{"class", fault_class}, {"outcome", outcome}}, number_of(outcomes, outcome.c_str()));
    }
  }
  return faults.take();
}

/// The last one alone: a series for each would never end.
MetricFamily last_fault(const json& counts) {
  Family last(MetricType::Gauge, "firebreak_last_fault_info",
              "The last fault as `firebreak faults` has it; always 1.");
  const json& past = list_of(counts, "past_faults");
  if (past.empty()) return last.take();
  const json& fault = past.back();
  last.add({{"id", word_of(fault, "id")},
            {"at", word_of(fault, "at")},
            {"class", word_of(fault, "class")},
            {"outcome", word_of(fault, "outcome")},
            {"domain", word_of(fault, "domain")},
            {"culprit", word_of(fault, "culprit")}},
           1);
  return last.take();
}

MetricFamily culprits(const json& counts) {
  Family culprits(MetricType::Counter, "firebreak_fault_culprit_total",
                  "GPU faults, by whether the process that caused them is known.");
  const json& its = member_of(counts, "culprits");
  culprits.add({{"known", "true"}}, number_of(its, "known"));
  culprits.add({{"known", "false"}}, number_of(its, "unknown"));
  return culprits.take();
}

MetricFamily promotions(const json& counts) {
  Family promotions(MetricType::Counter, "firebreak_promotions_total",
                    "Standbys that took over, by what proved that their predecessor writes no more.");
  const json& its = object_of(counts, "promotions");
  for (const auto& [fence, count] : its.items())
    promotions.add({{"fence", fence}}, number_of(its, fence.c_str()));
  return promotions.take();
}

MetricFamily promotion_times(const json& counts) {
  Family family(MetricType::Histogram, "firebreak_promotion_duration_seconds",
                "From a promotion until the agent heard that the first kernel after it had ended.");
  const json& its = member_of(counts, "promotion_times");
  const json& bounds = list_of(its, "bounds_s");
  const json& in_bounds = list_of(its, "counts");
  ClientMetric metric;
  metric.histogram.sample_sum = number_of(its, "sum_us") / us_per_s;
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < in_bounds.size(); ++i) {
    sum += in_bounds[i].is_number_unsigned() ? in_bounds[i].get<std::uint64_t>() : 0;
    const bool is_bound = i < bounds.size() && bounds[i].is_number();
    if (is_bound) metric.histogram.bucket.push_back({sum, bounds[i].get<double>()});
  }
  metric.histogram.bucket.push_back({sum, std::numeric_limits<double>::infinity()});
  metric.histogram.sample_count = sum;
  family.add(std::move(metric));
  return family.take();
}

// --- tenants

/// Programs that call firebreak.h alone can have a standby.
bool can_be_protected(const json& tenant) {
  const std::string phase = word_of(tenant, "phase");
  return phase != "empty" && phase != "finished" && !phase.empty();
}

bool is_protected(const json& tenant) {
  return word_of(tenant, "phase") == "serving" && word_of(tenant, "standby_state") == "ready";
}

void add_tenants(const json& tenants, std::vector<MetricFamily>& all) {
  Family is_safe(MetricType::Gauge, "firebreak_tenant_protected",
                 "1: a standby could take over at once. Of programs that call firebreak.h.");
  Family steps(MetricType::Counter, "firebreak_tenant_committed_steps_total",
               "Steps that a tenant's processes have committed.");
  Family strays(MetricType::Counter, "firebreak_tenant_strays_total",
                "Page faults of contained strays of the process that is a tenant's active.");
  Family vault(MetricType::Gauge, "firebreak_vault_bytes",
               "GPU memory of a tenant that outlives its processes.");
  for (const json& tenant : tenants) {
    const Labels labels = {{"tenant", word_of(tenant, "name")}};
    if (can_be_protected(tenant)) is_safe.add(labels, is_protected(tenant) ? 1 : 0);
    steps.add(labels, number_of(tenant, "committed_steps"));
    strays.add(labels, number_of(member_of(tenant, "guard"), "strays"));
    vault.add(labels, number_of(tenant, "memory_bytes"));
  }
  for (Family* family : {&is_safe, &steps, &strays, &vault}) all.push_back(family->take());
}

double held_processes(const json& status) {
  double count = 0;
  for (const json& hold : list_of(status, "holds"))
    count += member_of(hold, "since_death_ms").is_null() ? 0 : 1;
  return count;
}

MetricFamily up(bool is_there) {
  return single(MetricType::Gauge, "firebreak_up", "1: the agent has answered.", is_there ? 1 : 0);
}

}  // namespace

std::vector<MetricFamily> metrics_of(const std::string& status_json) {
  const json status = json::parse(status_json, nullptr, false);
  if (!status.is_object()) return metrics_without_agent();
  std::vector<MetricFamily> all = {up(true)};
  const json& counts = member_of(status, "counts");
  if (const std::string version = version_in(status_json); !version.empty()) {
    all.push_back(single(MetricType::Gauge, "firebreak_build_info", "The agent's version; always 1.", 1,
                         {{"version", version}}));
  }
  all.push_back(domain_states(status));
  all.push_back(gpu_needs(status));
  if (counts.is_object()) {
    all.push_back(single(MetricType::Counter, "firebreak_agent_starts_total",
                         "Agents that were started one after the other, each with what the one before kept.",
                         number_of(counts, "agent_starts")));
    all.push_back(domain_restarts(counts));
    all.push_back(faults(counts));
    all.push_back(last_fault(counts));
    all.push_back(culprits(counts));
    all.push_back(promotions(counts));
    all.push_back(promotion_times(counts));
  }
  add_tenants(list_of(status, "tenants"), all);
  all.push_back(single(MetricType::Gauge, "firebreak_held_processes",
                       "Dead processes whose GPU work may not have ended yet.", held_processes(status)));
  return all;
}

std::vector<MetricFamily> metrics_without_agent() { return {up(false)}; }

std::string version_in(const std::string& status_json) {
  return word_of(json::parse(status_json, nullptr, false), "version");
}

}  // namespace firebreak::exporter
