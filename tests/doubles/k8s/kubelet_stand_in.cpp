// SPDX-License-Identifier: Apache-2.0
#include "tests/doubles/k8s/kubelet_stand_in.h"

#include <algorithm>
#include <chrono>
#include <filesystem>

namespace firebreak::k8s {
namespace {

constexpr std::chrono::seconds patience{60};

void set_deadline(grpc::ClientContext& context) {
  context.set_deadline(std::chrono::system_clock::now() + patience);
}

}  // namespace

KubeletStandIn::KubeletStandIn(std::string folder, Habits habits)
    : folder_(std::move(folder)), habits_(habits) {
  std::filesystem::create_directories(folder_);
  for (const auto& left : std::filesystem::directory_iterator(folder_)) {
    if (!left.is_directory()) std::filesystem::remove(left.path());
  }
  grpc::ServerBuilder builder;
  builder.AddListeningPort("unix:" + folder_ + "/kubelet.sock", grpc::InsecureServerCredentials());
  builder.RegisterService(this);
  server_ = builder.BuildAndStart();
}

KubeletStandIn::~KubeletStandIn() {
  stop_watching();
  if (server_) server_->Shutdown(std::chrono::system_clock::now());
}

KubeletStandIn::Health KubeletStandIn::health() const {
  const std::lock_guard lock(mutex_);
  return health_;
}

bool KubeletStandIn::wait(const std::function<bool()>& holds) {
  const auto limit = std::chrono::steady_clock::now() + patience;
  while (!holds()) {
    std::unique_lock lock(mutex_);
    if (std::chrono::steady_clock::now() > limit) return false;
    changed_.wait_for(lock, std::chrono::milliseconds(10));
  }
  return true;
}

std::vector<v1beta1::RegisterRequest> KubeletStandIn::registrations() const {
  const std::lock_guard lock(mutex_);
  return registrations_;
}

std::size_t KubeletStandIn::streams() const {
  const std::lock_guard lock(mutex_);
  return static_cast<std::size_t>(
      std::ranges::count_if(watches_, [](const auto& watch) { return watch->is_open; }));
}

std::vector<std::size_t> KubeletStandIn::lists() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::size_t> counts;
  for (const auto& watch : watches_) counts.push_back(watch->lists);
  return counts;
}

grpc::Status KubeletStandIn::Register(grpc::ServerContext*, const v1beta1::RegisterRequest* request,
                                      v1beta1::Empty*) {
  {
    const std::lock_guard lock(mutex_);
    registrations_.push_back(*request);
  }
  changed_.notify_all();
  if (habits_.refuses) return {grpc::StatusCode::INVALID_ARGUMENT, "requested API version is not supported"};
  if (habits_.watches) watch();
  return grpc::Status::OK;
}

void KubeletStandIn::watch() {
  const std::lock_guard lock(mutex_);
  Watch& made = *watches_.emplace_back(std::make_unique<Watch>());
  made.thread = std::thread([this, &made] { read(made); });
}

void KubeletStandIn::read(Watch& watch) {
  const auto stub = plugin();
  const auto stream = stub->ListAndWatch(&watch.context, v1beta1::Empty());
  v1beta1::ListAndWatchResponse list;
  while (stream->Read(&list)) {
    {
      const std::lock_guard lock(mutex_);
      health_.clear();
      for (const auto& device : list.devices()) health_[device.id()] = device.health();
      ++watch.lists;
    }
    changed_.notify_all();
  }
  (void)stream->Finish();
  {
    const std::lock_guard lock(mutex_);
    watch.is_open = false;
  }
  changed_.notify_all();
}

void KubeletStandIn::stop_watching() {
  std::vector<std::thread> threads;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& watch : watches_) {
      watch->context.TryCancel();
      if (watch->thread.joinable()) threads.push_back(std::move(watch->thread));
    }
  }
  for (std::thread& thread : threads) thread.join();
}

void KubeletStandIn::vanish() {
  // gRPC removes the name; a process that is killed does not.
  const std::string name = folder_ + "/kubelet.sock", aside = folder_ + "/aside";
  stop_watching();
  std::filesystem::rename(name, aside);
  server_->Shutdown(std::chrono::system_clock::now());
  server_.reset();
  std::filesystem::rename(aside, name);
}

std::unique_ptr<v1beta1::DevicePlugin::Stub> KubeletStandIn::plugin() const {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return v1beta1::DevicePlugin::NewStub(grpc::CreateCustomChannel(
      "unix:" + folder_ + "/firebreak.sock", grpc::InsecureChannelCredentials(), arguments));
}

grpc::Status KubeletStandIn::allocate(const std::vector<std::string>& ids,
                                      v1beta1::ContainerAllocateResponse& response) const {
  v1beta1::AllocateRequest request;
  auto& container = *request.add_container_requests();
  for (const std::string& id : ids) container.add_devicesids(id);
  grpc::ClientContext context;
  set_deadline(context);
  v1beta1::AllocateResponse answer;
  grpc::Status status = plugin()->Allocate(&context, request, &answer);
  if (answer.container_responses_size() == 1) response = answer.container_responses(0);
  return status;
}

grpc::Status KubeletStandIn::prefer(const std::vector<std::string>& available, int size,
                                    std::vector<std::string>& chosen) const {
  v1beta1::PreferredAllocationRequest request;
  auto& container = *request.add_container_requests();
  for (const std::string& id : available) container.add_available_deviceids(id);
  container.set_allocation_size(size);
  grpc::ClientContext context;
  set_deadline(context);
  v1beta1::PreferredAllocationResponse answer;
  grpc::Status status = plugin()->GetPreferredAllocation(&context, request, &answer);
  for (const auto& response : answer.container_responses())
    chosen.insert(chosen.end(), response.deviceids().begin(), response.deviceids().end());
  return status;
}

}  // namespace firebreak::k8s
