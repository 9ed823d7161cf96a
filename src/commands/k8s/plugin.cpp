// SPDX-License-Identifier: Apache-2.0
#include "commands/k8s/plugin.h"

#include <fmt/format.h>

#include <utility>

namespace firebreak::k8s {

void Plugin::look() {
  ask_agent();
  look_at_kubelet();
}

void Plugin::Teller::say(const Surroundings& at, const std::string& line) {
  if (std::exchange(said_, line) != line) at.tell(line);
}

void Plugin::ask_agent() {
  const auto status = at_.ask();
  const bool is_new = status ? keeper_.agent_said(link::parse_status(*status), at_.clock.now())
                             : keeper_.agent_is_away(at_.clock.now());
  of_agent_.say(at_, status ? "the agent answers" : to_string(status.error()));
  of_seats_.say(at_, keeper_.described());
  if (is_new && server_) server_->publish(keeper_.offer());
}

void Plugin::look_at_kubelet() {
  KubeletLook seen;
  seen.kubelet = kubelet_.find_its_socket();
  seen.has_own_socket = server_ && kubelet_.find(endpoint) == server_socket_;
  seen.watchers = server_ ? server_->watchers() : 0;
  if (!seen.kubelet) of_kubelet_.say(at_, "waits for " + kubelet_.path("kubelet.sock"));
  if (!registration_.is_due(seen, at_.clock.now())) return;
  if (!seen.has_own_socket) server_.reset();  // first: it takes what is at its path along
  const Status done = register_now();
  registration_.note(done.has_value(), at_.clock.now());
  of_kubelet_.say(at_,
                  done ? fmt::format("the kubelet has {}", seats::resource_name) : to_string(done.error()));
}

Status Plugin::register_now() {
  if (!server_) {
    auto server = PluginServer::listen(kubelet_.path(endpoint), keeper_.offer());
    if (!server) return propagate(server);
    server_ = std::move(*server);
    server_socket_ = kubelet_.find(endpoint);
  }
  return kubelet_.register_plugin(endpoint, register_timeout);
}

}  // namespace firebreak::k8s
