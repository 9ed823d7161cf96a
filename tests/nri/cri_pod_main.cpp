// SPDX-License-Identifier: Apache-2.0
// cri-pod SOCKET LOGS POD ANNOTATIONS CONTAINERS COMMAND...: has a container runtime run a pod, as a kubelet
// does, with these containers one after another, and says for each "CONTAINER: ran" or "CONTAINER: refused:
// WHY". Annotations are NAME=VALUE with ';' between them, containers have ',' between them. What they wrote
// is in LOGS/POD.CONTAINER.
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <cstdio>
#include <iostream>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <cri.grpc.pb.h>

namespace {

namespace cri = runtime::v1;

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

void be_on_the_hosts_network(cri::NamespaceOption& options) {
  options.set_network(cri::NODE);
  options.set_pid(cri::CONTAINER);
}

class Runtime {
 public:
  explicit Runtime(const std::string& socket)
      : stub_(cri::RuntimeService::NewStub(
            grpc::CreateChannel("unix:" + socket, grpc::InsecureChannelCredentials()))) {}

  grpc::Status run_pod(const cri::PodSandboxConfig& pod) {
    pod_ = pod;
    cri::RunPodSandboxRequest request;
    *request.mutable_config() = pod;
    grpc::ClientContext context;
    cri::RunPodSandboxResponse response;
    const grpc::Status done = stub_->RunPodSandbox(&context, request, &response);
    id_ = response.pod_sandbox_id();
    return done;
  }
  /// Until it has ended.
  grpc::Status run_container(const std::string& name, const std::vector<std::string>& command) {
    cri::CreateContainerRequest request;
    request.set_pod_sandbox_id(id_);
    *request.mutable_sandbox_config() = pod_;
    cri::ContainerConfig& config = *request.mutable_config();
    config.mutable_metadata()->set_name(name);
    config.mutable_image()->set_image("localhost/pause:1");
    for (const std::string& word : command) config.add_command(word);
    config.set_log_path(pod_.metadata().name() + "." + name);
    be_on_the_hosts_network(*config.mutable_linux()->mutable_security_context()->mutable_namespace_options());
    grpc::ClientContext context;
    cri::CreateContainerResponse created;
    if (auto done = stub_->CreateContainer(&context, request, &created); !done.ok()) return done;
    cri::ContainerRequest container;
    container.set_container_id(created.container_id());
    grpc::ClientContext starting;
    cri::Empty nothing;
    if (auto done = stub_->StartContainer(&starting, container, &nothing); !done.ok()) return done;
    return wait_for_end(container);
  }
  void remove_pod() {
    cri::StopPodSandboxRequest request;
    request.set_pod_sandbox_id(id_);
    cri::Empty nothing;
    grpc::ClientContext stopping;
    stub_->StopPodSandbox(&stopping, request, &nothing);
    grpc::ClientContext removing;
    stub_->RemovePodSandbox(&removing, request, &nothing);
  }

 private:
  grpc::Status wait_for_end(const cri::ContainerRequest& container) {
    for (;;) {
      grpc::ClientContext context;
      cri::ContainerStatusResponse response;
      const grpc::Status done = stub_->ContainerStatus(&context, container, &response);
      if (!done.ok() || response.status().state() == cri::CONTAINER_EXITED) return done;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  }

  std::unique_ptr<cri::RuntimeService::Stub> stub_;
  cri::PodSandboxConfig pod_;
  std::string id_;
};

cri::PodSandboxConfig pod_of(const std::string& logs, const std::string& name,
                             const std::string& annotations) {
  cri::PodSandboxConfig pod;
  pod.mutable_metadata()->set_name(name);
  pod.mutable_metadata()->set_uid("uid-" + name);
  pod.mutable_metadata()->set_namespace_("default");
  pod.set_log_directory(logs);
  for (const std::string& each : split(annotations, ';')) {
    const auto sign = each.find('=');
    (*pod.mutable_annotations())[each.substr(0, sign)] = each.substr(sign + 1);
  }
  be_on_the_hosts_network(*pod.mutable_linux()->mutable_security_context()->mutable_namespace_options());
  return pod;
}

}  // namespace

int main(int argument_count, char** arguments) {
  const std::vector<std::string> words(arguments + 1, arguments + argument_count);
  if (words.size() < 6) {
    std::cerr << "cri-pod SOCKET LOGS POD ANNOTATIONS CONTAINERS COMMAND...\n";
    return 2;
  }
  Runtime runtime(words[0]);
  if (const auto done = runtime.run_pod(pod_of(words[1], words[2], words[3])); !done.ok()) {
    std::cout << "pod: refused: " << done.error_message() << "\n";
    return 1;
  }
  for (const std::string& container : split(words[4], ',')) {
    const auto done = runtime.run_container(container, {words.begin() + 5, words.end()});
    std::cout << container << ": " << (done.ok() ? "ran" : "refused: " + done.error_message()) << "\n";
  }
  runtime.remove_pod();
  return 0;
}
