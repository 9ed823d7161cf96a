// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-daemon.h>
#include <systemd/sd-login.h>

#include <cstdlib>
#include <utility>

#include "agent/kept_names.h"
#include "agent/service_manager.h"
#include "os/fd.h"
#include "os/self.h"
#include "os/socket.h"

namespace firebreak::agent {
namespace {

constexpr const char* manager_name = "org.freedesktop.systemd1";
/// Where systemd itself listens for root, also on a machine without a D-Bus daemon.
constexpr const char* manager_address = "unix:path=/run/systemd/private";

constexpr std::uint64_t answer_timeout_us = 2'000'000;

struct BusCloser {
  void operator()(sd_bus* bus) const { ::sd_bus_flush_close_unref(bus); }
};
using Bus = std::unique_ptr<sd_bus, BusCloser>;

Status open_bus(Bus& bus) {
  sd_bus* made = nullptr;
  if (::sd_bus_open_system(&made) >= 0) {
    bus.reset(made);
    return {};
  }
  int failed = ::sd_bus_new(&made);
  if (failed < 0) return os::fail_errno("reach systemd", -failed);
  bus.reset(made);
  failed = ::sd_bus_set_address(made, manager_address);
  if (failed >= 0) failed = ::sd_bus_start(made);
  return failed < 0 ? Status(os::fail_errno("reach systemd", -failed)) : Status();
}

bool is_of_a_service() {
  char* unit = nullptr;
  if (::sd_booted() <= 0 || ::sd_pid_get_unit(0, &unit) < 0) return false;
  const std::string name = unit;
  std::free(unit);
  return name.ends_with(".service");
}

class Systemd final : public ServiceManager {
 public:
  std::map<std::string, os::Fd> take_descriptors() override {
    (void)descriptors();
    return std::exchange(descriptors_, {});
  }

  const std::map<std::string, os::Fd>& descriptors() override {
    char** names = nullptr;
    // From now on no program that we start, and no second call, finds any.
    const int count = ::sd_listen_fds_with_names(1, &names);
    for (int i = 0; i < count; ++i) {
      names_.add(names[i]);
      descriptors_.insert_or_assign(names[i], os::Fd(SD_LISTEN_FDS_START + i));
      std::free(names[i]);
    }
    std::free(names);
    return descriptors_;
  }

  Status keep(const std::string& name, int descriptor) override {
    const bool somebody_listens = !os::environment_variable("NOTIFY_SOCKET").value_or("").empty();
    if (!somebody_listens) return nobody_keeps();
    if (auto room = names_.room_for(std::span(&name, 1)); !room) return room;
    // Without FDPOLL=0 a descriptor whose poll says "hung up" would be dropped.
    const std::string state = fmt::format("FDSTORE=1\nFDNAME={}\nFDPOLL=0", name);
    const int sent = ::sd_pid_notify_with_fds(0, 0, state.c_str(), &descriptor, 1);
    if (sent < 0) return os::fail_errno("have " + name + " kept", -sent);
    if (sent == 0) return nobody_keeps();
    names_.add(name);
    return {};
  }

  Status room_for(std::span<const std::string> names) override { return names_.room_for(names); }

  void drop(const std::string& name) override {
    names_.remove(name);
    (void)::sd_pid_notify(0, 0, fmt::format("FDSTOREREMOVE=1\nFDNAME={}", name).c_str());
  }

  Status give_own_unit(const std::string& name, const std::string& description, pid_t pid) override {
    if (!is_of_a_service()) return fail(ErrorCode::Unsupported, "this process is of no service of systemd's");
    Bus bus;
    if (auto opened = open_bus(bus); !opened) return opened;
    (void)::sd_bus_set_method_call_timeout(bus.get(), answer_timeout_us);
    const std::string unit = name + ".scope";
    sd_bus_error why = SD_BUS_ERROR_NULL;
    const int done = ::sd_bus_call_method(bus.get(), manager_name, "/org/freedesktop/systemd1",
                                          "org.freedesktop.systemd1.Manager", "StartTransientUnit", &why,
                                          nullptr, "ssa(sv)a(sa(sv))", unit.c_str(), "fail", 3, "Description",
                                          "s", description.c_str(), "CollectMode", "s", "inactive-or-failed",
                                          "PIDs", "au", 1, static_cast<std::uint32_t>(pid), 0);
    const std::string words = why.message != nullptr ? why.message : "";
    ::sd_bus_error_free(&why);
    if (done >= 0) return {};
    if (words.empty()) return os::fail_errno("make the unit " + unit, -done);
    return fail(ErrorCode::Unavailable, "cannot make the unit " + unit + ": " + words);
  }

  void tell_ready() override { (void)::sd_notify(0, "READY=1"); }
  void tell_status(const std::string& line) override { (void)::sd_notify(0, ("STATUS=" + line).c_str()); }

  std::optional<Nanoseconds> ends_the_silent_after() override {
    std::uint64_t limit_us = 0;
    // From now on no program that we start takes it for its own.
    if (::sd_watchdog_enabled(1, &limit_us) > 0) limit_ = std::chrono::microseconds(limit_us);
    return limit_;
  }

  /// sd_notify() waits for room, as long as a manager that is stopped likes.
  void give_sign() override { say_at_once("WATCHDOG=1"); }
  void end_signs() override { say_at_once("WATCHDOG_USEC=0"); }

 private:
  static Status nobody_keeps() {
    return fail(ErrorCode::Unsupported, "nobody keeps descriptors for this process",
                "start it by systemd with FileDescriptorStoreMax=, or with --supervised");
  }

  static void say_at_once(const std::string& state) {
    const auto path = os::environment_variable("NOTIFY_SOCKET");
    if (path && !path->empty()) (void)os::send_datagram(*path, state);
  }

  KeptNames names_;
  std::map<std::string, os::Fd> descriptors_;  ///< that nobody has taken yet
  std::optional<Nanoseconds> limit_;
};

}  // namespace

std::unique_ptr<ServiceManager> find_service_manager() { return std::make_unique<Systemd>(); }

}  // namespace firebreak::agent
