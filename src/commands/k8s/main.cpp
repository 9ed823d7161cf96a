// SPDX-License-Identifier: Apache-2.0
/// firebreak-k8s: seats in the agent's domains, for the kubelet.
#include <fmt/format.h>
#include <grpc/support/log.h>
#include <signal.h>
#include <CLI/CLI.hpp>
#include <cctype>
#include <exception>

#include "commands/cluster/access.h"
#include "commands/cluster/api_server.h"
#include "commands/cluster/messenger.h"
#include "commands/k8s/command_line.h"
#include "commands/k8s/plugin.h"
#include "commands/seats/seats.h"
#include "ground/base/log.h"
#include "ground/os/event_loop.h"
#include "ground/os/file.h"
#include "ground/os/host_name.h"
#include "ground/os/self.h"
#include "ground/pages/arguments.h"
#include "ground/pages/pages.h"
#include "shared/link/agent_question.h"

namespace firebreak::k8s {
namespace {

constexpr Milliseconds between_looks{500};

void tell(const std::string& line) { fmt::print(stderr, "firebreak-k8s: {}\n", line); }

Result<OfferRules> rules_of(const PluginOptions& options) {
  OfferRules rules;
  rules.seats_of_domain = options.seats;
  rules.agent_socket = options.socket_path;
  rules.check_directory = seats::check_directory;
  rules.agent_patience = std::chrono::seconds(options.agent_patience_s);
  rules.shared_memory = options.shared_memory;
  auto library = seats::choose_guard_library(options.guard_library, options.without_guard);
  if (!library) return propagate(library);
  rules.guard_library = std::move(*library);
  return rules;
}

std::string variable(const char* name) { return os::environment_variable(name).value_or(""); }

/// Empty: nobody is told.
std::function<Result<cluster::ApiAccess>()> access_of(const PluginOptions& options) {
  constexpr const char* usual = "/etc/firebreak/kubeconfig";
  std::string path = options.kubeconfig;
  if (path.empty() && os::is_there(usual)) path = usual;
  if (!path.empty()) return [path] { return cluster::access_by_kubeconfig(path); };
  if (variable("KUBERNETES_SERVICE_HOST").empty()) return nullptr;
  return [] { return cluster::access_in_pod(variable); };
}

/// Names the node as a kubelet does where nobody has told it: a path and a name of events are made of it.
Result<std::string> node_name_of(const PluginOptions& options) {
  std::string name = options.node_name.empty() ? os::host_name() : options.node_name;
  bool is_name = !name.empty();
  for (char& byte : name) {
    byte = static_cast<char>(std::tolower(static_cast<unsigned char>(byte)));
    is_name = is_name && (std::isalnum(static_cast<unsigned char>(byte)) || byte == '-' || byte == '.');
  }
  if (!is_name)
    return fail(ErrorCode::InvalidArgument, fmt::format("'{}' is no node's name", name), "--node-name");
  return name;
}

/// Whoever tells the API server, with its connection.
class Cluster {
 public:
  Cluster(std::function<Result<cluster::ApiAccess>()> access, std::string node, Nanoseconds agent_patience)
      : server_(std::move(access), "firebreak-k8s/" + platform::version()),
        messenger_(cluster::Reporter(std::move(node), agent_patience),
                   {now, [this](const cluster::ApiCall& call) { return server_.send(call); },
                    [this] { server_.give_up(); }, tell}) {}
  void hear(const Result<std::string>& status) { messenger_.hear(status); }

 private:
  static cluster::Instant now() { return {SystemClock().now(), std::chrono::system_clock::now()}; }

  cluster::ApiServer server_;
  cluster::Messenger messenger_;
};

/// Null: nobody is told.
Result<std::unique_ptr<Cluster>> cluster_of(const PluginOptions& options) {
  auto access = access_of(options);
  if (!access) {
    tell("no API server is told of faults: there is no /etc/firebreak/kubeconfig, and this is no pod");
    return nullptr;
  }
  auto node = node_name_of(options);
  if (!node) return propagate(node);
  return std::make_unique<Cluster>(std::move(access), std::move(*node),
                                   std::chrono::seconds(options.agent_patience_s));
}

Status serve(const PluginOptions& options) {
  const auto rules = rules_of(options);
  if (!rules) return propagate(rules);
  if (auto held = os::hold_signals({SIGINT, SIGTERM}); !held) return held;
  const auto loop = os::EventLoop::create();
  if (!loop) return propagate(loop);
  const auto signals = (*loop)->on_signals({SIGINT, SIGTERM}, [raw = loop->get()](int) { raw->stop(); });
  if (!signals) return propagate(signals);
  const auto cluster = cluster_of(options);
  if (!cluster) return propagate(cluster);
  link::AgentQuestion agent(options.socket_path);
  const auto ask = [&agent, &cluster] {
    auto status = agent.ask();
    if (*cluster) (*cluster)->hear(status);
    return status;
  };
  const SystemClock clock;
  Plugin plugin(options.kubelet_folder, *rules, {clock, ask, tell});
  plugin.look();
  const auto looks = (*loop)->every(between_looks, [&plugin] { plugin.look(); });
  if (!looks) return propagate(looks);
  (*loop)->run();
  return {};
}

}  // namespace
}  // namespace firebreak::k8s

int main(int argument_count, char** arguments) {
  using namespace firebreak;
  CLI::App app;
  k8s::PluginOptions options;
  k8s::describe_command_line(app, options);
  const pages::Subject subject{"firebreak-k8s",
                               8,
                               platform::version(),
                               {{"Offers eight seats in each domain, and tells the API server of faults",
                                 "firebreak-k8s --seats 8 --kubeconfig /etc/firebreak/kubeconfig"}}};
  if (pages::print_if_asked(app, subject, argument_count, arguments)) return 0;
  if (const auto status = pages::read_arguments(app, subject.name, argument_count, arguments)) return *status;
  set_up_logging("firebreak-k8s");
  gpr_set_log_function([](gpr_log_func_args*) {});  // our own lines say what goes wrong
  try {
    const Status served = k8s::serve(options);
    if (served) return 0;
    k8s::tell(to_string(served.error()));
  } catch (const std::exception& unexpected) {  // the process may have no more threads
    k8s::tell(unexpected.what());
  }
  return 1;
}
