// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-daemon.h>
#include <systemd/sd-login.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <functional>
#include <map>
#include <set>
#include <thread>
#include <utility>

#include "agent/service/kept_names.h"
#include "agent/service/service_manager.h"
#include "ground/os/fd.h"
#include "ground/os/self.h"
#include "ground/os/socket.h"

namespace firebreak::agent {
namespace {

constexpr const char* manager_name = "org.freedesktop.systemd1";
/// The address where systemd itself listens for root, also on a machine without a D-Bus daemon.
constexpr const char* manager_address = "unix:path=/run/systemd/private";

constexpr const char* manager_path = "/org/freedesktop/systemd1";
constexpr const char* manager_interface = "org.freedesktop.systemd1.Manager";

constexpr std::uint64_t answer_timeout_us = 2'000'000;
constexpr Milliseconds process_timeout{5'000};
constexpr Milliseconds between_process_looks{5};
/// The limits are this service's (packaging/firebreakd.service): the memory killer takes others first, and a
/// daemon has a descriptor for each of its clients.
constexpr int out_of_memory_score = -900;
constexpr std::uint64_t descriptors_max = 65'536;

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

/// True for systemd's words to this service alone.
bool is_this_services(std::string_view name) {
  constexpr std::array<std::string_view, 6> all = {"NOTIFY_SOCKET", "WATCHDOG_PID",   "WATCHDOG_USEC",
                                                   "INVOCATION_ID", "JOURNAL_STREAM", "SYSTEMD_EXEC_PID"};
  return std::ranges::count(all, name) > 0 || name.starts_with("LISTEN_");
}

/// A call of the manager's that is being put together. What fails is found out by call().
class ManagerCall {
 public:
  ManagerCall(sd_bus* bus, const char* member) : bus_(bus) {
    note(::sd_bus_message_new_method_call(bus, &message_, manager_name, manager_path, manager_interface,
                                          member));
  }
  ManagerCall(const ManagerCall&) = delete;
  ManagerCall& operator=(const ManagerCall&) = delete;
  ~ManagerCall() {
    ::sd_bus_message_unref(message_);
    ::sd_bus_error_free(&why_);
  }

  template <class... Values>
  ManagerCall& add(const char* types, Values... values) {
    note(::sd_bus_message_append(message_, types, values...));
    return *this;
  }
  ManagerCall& open(char type, const char* contents) {
    note(::sd_bus_message_open_container(message_, type, contents));
    return *this;
  }
  ManagerCall& close() {
    note(::sd_bus_message_close_container(message_));
    return *this;
  }
  ManagerCall& add_all(const std::vector<std::string>& strings) {
    open('a', "s");
    for (const std::string& each : strings) add("s", each.c_str());
    return close();
  }

  /// `what`: in words, for who hears that it failed.
  Status call(const std::string& what) {
    if (failed_ >= 0) note(::sd_bus_call(bus_, message_, answer_timeout_us, &why_, nullptr));
    if (failed_ >= 0) return {};
    if (why_.message == nullptr) return os::fail_errno(what, -failed_);
    return fail(ErrorCode::Unavailable, "cannot " + what + ": " + why_.message);
  }

 private:
  void note(int result) {
    if (failed_ >= 0) failed_ = result;
  }

  sd_bus* bus_;
  sd_bus_message* message_ = nullptr;
  sd_bus_error why_ = SD_BUS_ERROR_NULL;
  int failed_ = 0;
};

/// The service's own come before this process's, and later ones
/// before earlier ones.
std::vector<std::string> environment_of(const ApartService& service) {
  const std::map<std::string, std::string, std::less<>> own(service.environment.rbegin(),
                                                            service.environment.rend());
  auto all = that_systemd_takes(os::environment_but_for(
      [&](std::string_view name) { return is_this_services(name) || own.contains(name); }));
  for (const auto& [name, value] : own) all.push_back(name + "=" + value);
  return all;
}

/// A descriptor stays open in systemd until the program has it.
void add_streams(ManagerCall& start, const ApartService& service) {
  if (service.input >= 0) start.add("(sv)", "StandardInputFileDescriptor", "h", service.input);
  for (const char* const stream : {"StandardOutput", "StandardError"}) {
    const std::string name(stream);
    if (service.output_path.empty()) {
      start.add("(sv)", (name + "FileDescriptor").c_str(), "h", service.output);
    } else {
      start.add("(sv)", (name + "FileToAppend").c_str(), "s", service.output_path.c_str());
    }
  }
}

Status start_unit(sd_bus* bus, const std::string& unit, const ApartService& service) {
  const std::vector<std::string> environment = environment_of(service);
  ManagerCall start(bus, "StartTransientUnit");
  start.add("ss", unit.c_str(), "fail").open('a', "(sv)");
  start.add("(sv)", "Description", "s", service.description.c_str());
  start.add("(sv)", "Type", "s", "exec");
  start.add("(sv)", "CollectMode", "s", "inactive-or-failed");
  start.add("(sv)", "KillMode", "s", "process");
  start.add("(sv)", "OOMScoreAdjust", "i", out_of_memory_score);
  start.add("(sv)", "LimitNOFILE", "t", descriptors_max);
  add_streams(start, service);
  start.open('r', "sv").add("s", "Environment").open('v', "as").add_all(environment).close().close();
  start.open('r', "sv").add("s", "ExecStart").open('v', "a(sasb)").open('a', "(sasb)").open('r', "sasb");
  start.add("s", service.command.front().c_str()).add_all(service.command).add("b", 0);
  start.close().close().close().close();
  return start.close().add("a(sa(sv))", 0).call("start the service " + unit);
}

/// Returns the process of a service that is being started.
Result<pid_t> process_of(sd_bus* bus, const std::string& unit) {
  char* path = nullptr;
  if (const int made = ::sd_bus_path_encode("/org/freedesktop/systemd1/unit", unit.c_str(), &path); made < 0)
    return os::fail_errno("name the service " + unit, -made);
  const std::unique_ptr<char, decltype(&std::free)> its(path, &std::free);
  const Monotonic until = SystemClock().now() + process_timeout;
  while (SystemClock().now() < until) {
    std::uint32_t pid = 0;
    const int asked = ::sd_bus_get_property_trivial(
        bus, manager_name, path, "org.freedesktop.systemd1.Service", "MainPID", nullptr, 'u', &pid);
    if (asked < 0) return os::fail_errno("ask for the process of the service " + unit, -asked);
    if (pid != 0) return static_cast<pid_t>(pid);
    std::this_thread::sleep_for(between_process_looks);
  }
  return fail(ErrorCode::Timeout, "the service " + unit + " has no process");
}

bool is_of_a_service() {
  char* unit = nullptr;
  if (::sd_booted() <= 0 || ::sd_pid_get_unit(0, &unit) < 0) return false;
  const std::string name = unit;
  std::free(unit);
  return name.ends_with(".service");
}

/// Unsupported: we are of no service.
Status reach_manager(Bus& bus) {
  if (!is_of_a_service()) return fail(ErrorCode::Unsupported, "this process is of no service of systemd's");
  if (auto opened = open_bus(bus); !opened) return opened;
  (void)::sd_bus_set_method_call_timeout(bus.get(), answer_timeout_us);
  return {};
}

class Systemd final : public ServiceManager {
 public:
  std::map<std::string, os::Fd> take_descriptors() override {
    (void)descriptors();
    return std::exchange(descriptors_, {});
  }

  const std::map<std::string, os::Fd>& descriptors() override {
    char** names = nullptr;
    // Programs that we start, and a second call, find none from now on.
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
    if (!somebody_listens()) return nobody_keeps();
    if (auto room = names_.room_for(std::span(&name, 1)); !room) return room;
    // The option FDPOLL=0 keeps systemd from dropping a descriptor whose poll says "hung up".
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
    Bus bus;
    if (auto reached = reach_manager(bus); !reached) return reached;
    const std::string unit = name + ".scope";
    return ManagerCall(bus.get(), "StartTransientUnit")
        .add("ssa(sv)a(sa(sv))", unit.c_str(), "fail", 3, "Description", "s", description.c_str(),
             "CollectMode", "s", "inactive-or-failed", "PIDs", "au", 1, static_cast<std::uint32_t>(pid), 0)
        .call("make the unit " + unit);
  }

  /// Requests about others' services are root's with systemd.
  bool can_start_apart() override { return os::is_root() && is_of_a_service(); }

  Result<pid_t> start_apart(const ApartService& service) override {
    Bus bus;
    if (auto reached = reach_manager(bus); !reached) return propagate(reached);
    const std::string unit = service.name + ".service";
    if (auto started = start_unit(bus.get(), unit, service); !started) return propagate(started);
    auto pid = process_of(bus.get(), unit);
    // The unit's start is stopped where it still waits: a child of ours takes its place.
    if (!pid)
      (void)ManagerCall(bus.get(), "StopUnit").add("ss", unit.c_str(), "replace").call("stop " + unit);
    return pid;
  }

  bool starts_the_next() override { return somebody_listens(); }
  void tell_ready() override { (void)::sd_notify(0, "READY=1"); }
  void tell_status(const std::string& line) override { (void)::sd_notify(0, ("STATUS=" + line).c_str()); }

  std::optional<Nanoseconds> ends_the_silent_after() override {
    std::uint64_t limit_us = 0;
    // Programs that we start do not take it for their own from now on.
    if (::sd_watchdog_enabled(1, &limit_us) > 0) limit_ = std::chrono::microseconds(limit_us);
    return limit_;
  }

  /// sd_notify() waits for room, as long as a manager that is stopped likes.
  void give_sign() override { say_at_once("WATCHDOG=1"); }
  void end_signs() override { say_at_once("WATCHDOG_USEC=0"); }

 private:
  static bool somebody_listens() { return !os::environment_variable("NOTIFY_SOCKET").value_or("").empty(); }
  static Status nobody_keeps() {
    return fail(ErrorCode::Unsupported, "nobody keeps descriptors for this process",
                "start it by systemd with FileDescriptorStoreMax=, or with --supervised");
  }

  static void say_at_once(const std::string& state) {
    const auto path = os::environment_variable("NOTIFY_SOCKET");
    if (path && !path->empty()) (void)os::send_datagram(*path, state);
  }

  KeptNames names_;
  std::map<std::string, os::Fd> descriptors_;  ///< descriptors that nobody has taken yet
  std::optional<Nanoseconds> limit_;
};

}  // namespace

std::vector<std::string> that_systemd_takes(const std::vector<std::string>& environment) {
  const auto is_of_name = [](unsigned char byte) { return std::isalnum(byte) != 0 || byte == '_'; };
  const auto is_control = [](unsigned char byte) {
    return (byte < ' ' && byte != '\t' && byte != '\n') || byte == 0x7f;
  };
  std::vector<std::string> taken;
  std::set<std::string_view> names;
  for (const std::string& variable : environment) {
    const std::size_t end = variable.find('=');
    if (end == std::string::npos || end == 0) continue;
    const std::string_view name = std::string_view(variable).substr(0, end);
    const bool is_name =
        std::ranges::all_of(name, is_of_name) && std::isdigit(static_cast<unsigned char>(name[0])) == 0;
    if (is_name && std::ranges::none_of(variable, is_control) && names.insert(name).second)
      taken.push_back(variable);
  }
  return taken;
}

std::unique_ptr<ServiceManager> find_service_manager() { return std::make_unique<Systemd>(); }

}  // namespace firebreak::agent
