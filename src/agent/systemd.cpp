// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <systemd/sd-daemon.h>

#include <cstdlib>

#include "agent/service_manager.h"
#include "os/fd.h"
#include "os/self.h"

namespace firebreak::agent {
namespace {

class Systemd final : public ServiceManager {
 public:
  std::map<std::string, os::Fd> take_descriptors() override {
    std::map<std::string, os::Fd> taken;
    char** names = nullptr;
    const int count = ::sd_listen_fds_with_names(1, &names);
    for (int i = 0; i < count; ++i) {
      taken.insert_or_assign(names[i], os::Fd(SD_LISTEN_FDS_START + i));
      std::free(names[i]);
    }
    std::free(names);
    return taken;
  }

  Status keep(const std::string& name, int descriptor) override {
    const bool somebody_listens = !os::environment_variable("NOTIFY_SOCKET").value_or("").empty();
    if (!somebody_listens) return nobody_keeps();
    // Without FDPOLL=0 a descriptor whose poll says "hung up" would be dropped.
    const std::string state = fmt::format("FDSTORE=1\nFDNAME={}\nFDPOLL=0", name);
    const int sent = ::sd_pid_notify_with_fds(0, 0, state.c_str(), &descriptor, 1);
    if (sent < 0) return os::fail_errno("have " + name + " kept", -sent);
    return sent > 0 ? Status{} : nobody_keeps();
  }

  void drop(const std::string& name) override {
    (void)::sd_pid_notify(0, 0, fmt::format("FDSTOREREMOVE=1\nFDNAME={}", name).c_str());
  }

  void tell_ready() override { (void)::sd_notify(0, "READY=1"); }
  void tell_status(const std::string& line) override { (void)::sd_notify(0, ("STATUS=" + line).c_str()); }

 private:
  static Status nobody_keeps() {
    return fail(ErrorCode::Unsupported, "nobody keeps descriptors for this process",
                "start it by systemd with FileDescriptorStoreMax=, or with --supervised");
  }
};

}  // namespace

std::unique_ptr<ServiceManager> find_service_manager() { return std::make_unique<Systemd>(); }

}  // namespace firebreak::agent
