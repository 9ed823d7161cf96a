// SPDX-License-Identifier: Apache-2.0
/// Records of others that decide what is taken for a fault: the driver's queue of UVM events, and the files
/// that say which faults the lab makes.
#include <algorithm>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "agent/faults/watch/uvm_listener.h"
#include "ground/os/event_loop.h"
#include "ground/os/memory.h"
#include "inject/catalogue.h"
#include "inject/schedule.h"
#include "tests/doubles/os/fake_kernel.h"
#include "tests/fuzz/targets.h"

namespace firebreak::fuzz {
namespace {

bool is_one_line(std::string_view text) {
  return std::ranges::none_of(text, [](char letter) {
    const auto code = static_cast<unsigned char>(letter);
    return code < 0x20 || code == 0x7f;
  });
}

// --- UVM's queue

constexpr pid_t target_pid = 4711;
constexpr const char* uvm_path = "/dev/nvidia-uvm";

/// The driver's side: it writes what the input says.
class Driver {
 public:
  Driver(os::FakeKernel& kernel, watch::UvmLayout layout) : kernel_(kernel), layout_(layout) {
    os::FakeDevice device;
    device.ioctl = [this](const os::Fd&, unsigned long request, void* argument) {
      return answer(request, argument);
    };
    kernel_.set_device(abi::uvm_tools_path, std::move(device));
  }

  bool is_tied() const { return tracker_.control_buffer != 0; }
  void write_entry(std::size_t index, std::string_view bytes) {
    const std::size_t size = watch::entry_bytes(layout_);
    auto* entry = reinterpret_cast<char*>(tracker_.queue_buffer) + index % watch::UvmQueue::entries * size;
    std::memcpy(entry, bytes.data(), std::min(bytes.size(), size));
  }
  /// But for the indices that are the reader's.
  void write_control(std::size_t at, std::string_view bytes) {
    constexpr std::size_t first = offsetof(abi::UvmToolsControl, put_ahead);
    at = first + at % (sizeof(abi::UvmToolsControl) - first);
    std::memcpy(reinterpret_cast<char*>(tracker_.control_buffer) + at, bytes.data(),
                std::min(bytes.size(), sizeof(abi::UvmToolsControl) - at));
  }
  void put(std::uint32_t index) { control().put_behind = index; }
  std::uint32_t put_index() const { return control().put_behind; }
  std::uint32_t get_index() const { return control().get_behind; }
  std::span<const std::byte> entry(std::uint32_t index) const {
    const std::size_t size = watch::entry_bytes(layout_);
    return {reinterpret_cast<const std::byte*>(tracker_.queue_buffer) + index * size, size};
  }

 private:
  abi::UvmToolsControl& control() const {
    return *reinterpret_cast<abi::UvmToolsControl*>(tracker_.control_buffer);
  }
  Status answer(unsigned long request, void* argument) {
    const bool v1 = request == abi::uvm_tools_init_event_tracker;
    if (v1 || request == abi::uvm_tools_init_event_tracker_v2) {
      if (v1 != (layout_ == watch::UvmLayout::V1)) return fail(ErrorCode::Internal, "it knows the other one");
      auto& tracker = *static_cast<abi::UvmToolsInitEventTracker*>(argument);
      // As the driver: it pins the queue, of which the first try has a page too few.
      tracker.rm_status = tries_++ == 0 ? abi::nv_err_invalid_address : abi::nv_ok;
      if (tracker.rm_status == abi::nv_ok) tracker_ = tracker;
    }
    return {};
  }

  os::FakeKernel& kernel_;
  watch::UvmLayout layout_;
  int tries_ = 0;
  abi::UvmToolsInitEventTracker tracker_{};
};

/// What is told of one process, and that it is nothing else.
struct Told {
  std::uint64_t faults = 0;
  std::uint64_t page_faults = 0;
  std::uint64_t gaps = 0;
  std::uint64_t ends = 0;

  void check(const fault::Fault& fault) const {
    require(ends == 0, "nothing is told after the end");
    require(
        fault.pid == target_pid && fault.domain == "a" && fault.tenant == "decode" && fault.gpu.number == 2U,
        "a fault is of the process whose queue it was in");
    require(fault.source == fault::FaultSource::UvmEvent, "its source is named");
    require(!fault.kind.empty() && is_one_line(fault.kind), "its kind is one line");
  }
};

watch::UvmListenerOptions options_of(Told& told) {
  watch::UvmListenerOptions options;
  options.page_faults = true;
  options.on_page_fault = [&told](const watch::PageFault& each) {
    told.check(each.fault);
    require(!each.fault.conclusive, "a page fault alone ends nobody");
    require(!each.access.empty() && is_one_line(each.access), "an access is a word");
    ++told.page_faults;
  };
  options.on_gap = [&told](const watch::Gap& gap) {
    require(told.ends == 0, "nothing is told after the end");
    require(gap.pid == target_pid && is_one_line(gap.text), "a gap is of that process, in one line");
    ++told.gaps;
  };
  return options;
}

/// Takes the input apart.
class Input {
 public:
  explicit Input(std::string_view bytes) : left_(bytes) {}
  bool is_over() const { return left_.empty(); }
  std::uint8_t byte() { return static_cast<std::uint8_t>(take(1).empty() ? 0 : last_.front()); }
  std::uint32_t number() {
    const std::uint32_t high = byte();
    return high << 8 | byte();
  }
  std::string_view take(std::size_t count) {
    last_ = left_.substr(0, count);
    left_.remove_prefix(last_.size());
    return last_;
  }

 private:
  std::string_view left_;
  std::string_view last_;
};

/// One thing that a driver may do.
void act(Driver& driver, FakeClock& clock, Input& input) {
  enum Act : std::uint8_t { Entry, Next, Put, Control, Time, acts };
  switch (input.byte() % acts) {
    case Entry: {
      const std::uint32_t index = input.number();
      driver.write_entry(index, input.take(input.byte()));
      break;
    }
    case Next: {  // in order, as drivers do: an event, and the index behind it
      const std::uint32_t put = driver.put_index();
      driver.write_entry(put, input.take(input.byte()));
      driver.put((put + 1) % watch::UvmQueue::entries);
      break;
    }
    case Put:
      driver.put(input.number());
      break;
    case Control: {
      const std::uint32_t at = input.number();
      driver.write_control(at, input.take(input.byte()));
      break;
    }
    default:
      clock.advance(Milliseconds(input.number()));
  }
}

/// How many of the events that wait are to be told: up to the first that makes no sense, those of a GPU.
std::uint64_t to_be_told(const Driver& driver, watch::UvmLayout layout, Monotonic now) {
  if (driver.put_index() >= watch::UvmQueue::entries) return 0;
  std::uint64_t count = 0;
  for (std::uint32_t at = driver.get_index(); at != driver.put_index();
       at = (at + 1) % watch::UvmQueue::entries) {
    const auto record = watch::decode(layout, driver.entry(at));
    if (record && !watch::implausible(*record, now).empty()) break;
    if (record && !record->of_the_cpu) ++count;
  }
  return count;
}

// --- schedules

constexpr std::uint64_t most_planned = 10'000;

void check_entry(const inject::ScheduleEntry& entry) {
  const auto all = inject::catalogue();
  require(!entry.kinds.empty(), "an entry has a kind");
  for (const inject::Kind* kind : entry.kinds)
    require(std::ranges::find(all, kind) != all.end(), "a kind is one of the catalogue's");
  require(std::chrono::milliseconds(0) <= entry.earliest && entry.earliest <= entry.latest,
          "the earliest comes before the latest");
  require(entry.latest <= std::chrono::hours(24), "nothing happens after a day");
  require(entry.times >= 1, "what is an entry happens");
}

/// Each is one of an entry's, as often as that says.
void check_plan(const std::vector<inject::ScheduleEntry>& schedule,
                const std::vector<inject::ScheduledFault>& faults) {
  require(std::ranges::is_sorted(faults, {}, &inject::ScheduledFault::at), "faults are in their order");
  for (const inject::ScheduledFault& fault : faults) {
    const bool is_of_one = std::ranges::any_of(schedule, [&](const inject::ScheduleEntry& entry) {
      return std::ranges::find(entry.kinds, fault.kind) != entry.kinds.end() && fault.into == entry.into &&
             entry.earliest <= fault.at && fault.at <= entry.latest;
    });
    require(is_of_one, "a fault is one that an entry says");
  }
}

}  // namespace

void read_uvm_queue(std::string_view bytes) {
  Input input(bytes);
  const watch::UvmLayout layout = input.byte() % 2 == 0 ? watch::UvmLayout::V1 : watch::UvmLayout::V2;
  os::FakeKernel kernel;
  FakeClock clock;
  const auto loop = os::EventLoop::create(&clock).value();
  Driver driver(kernel, layout);
  kernel.add_process(target_pid);
  kernel.give_descriptor(target_pid, 11, uvm_path,
                         os::create_memory_file("va-space", os::page_size()).value());
  Told told;
  watch::UvmListener listener(
      *loop, kernel, clock, {.pid = target_pid, .gpu = 2, .domain = "a", .tenant = "decode"},
      options_of(told),
      [&told](const fault::Fault& fault) {
        told.check(fault);
        ++told.faults;
      },
      [&told](const Error& error) {
        require(is_one_line(error.message), "why it ended is one line");
        ++told.ends;
      });
  require(listener.start().has_value() && listener.attached() && driver.is_tied(), "the queue is tied");
  while (!input.is_over() && told.ends == 0) {
    act(driver, clock, input);
    const std::uint64_t expected = told.faults + told.page_faults + to_be_told(driver, layout, clock.now());
    const std::uint32_t put = driver.put_index();
    // By the loop, so that what makes no sense ends it, and not only while it is asked.
    kernel.wake(abi::uvm_tools_path);
    while (loop->run_once(Milliseconds(0))) {
    }
    require(told.faults + told.page_faults == expected, "each event of a GPU is told, and nothing else");
    require(put < watch::UvmQueue::entries || told.ends == 1, "an index out of its range is the end");
    require(told.ends == 1 || driver.get_index() == put, "all that waited was taken");
  }
  const auto& counters = listener.counters();
  require(told.faults == counters.fatal_faults + counters.overflows, "each fault is told once");
  require(told.page_faults == counters.page_faults, "each page fault is told once");
  require(told.ends <= 1 && listener.attached() == (told.ends == 0), "it ends once, and is deaf then");
}

void read_schedule(std::string_view bytes) {
  const auto schedule = inject::parse_schedule(bytes);
  if (!schedule) {
    require(schedule.error().code == ErrorCode::InvalidArgument, "what is wrong is the file");
    require(is_one_line(schedule.error().message), "what is wrong is one line");
    return;
  }
  std::uint64_t times = 0;
  for (const inject::ScheduleEntry& entry : *schedule) {
    check_entry(entry);
    times += entry.times;
  }
  if (times > most_planned) return;
  for (const std::uint64_t seed : {std::uint64_t{0}, std::uint64_t{bytes.size()}}) {
    const auto faults = inject::plan(*schedule, seed);
    require(faults.size() == times, "each happens as often as it is to");
    check_plan(*schedule, faults);
    const auto again = inject::plan(*schedule, seed);
    const auto same = [](const inject::ScheduledFault& one, const inject::ScheduledFault& other) {
      return one.at == other.at && one.kind == other.kind && one.into == other.into;
    };
    require(std::ranges::equal(faults, again, same), "a seed gives the same again");
  }
}

}  // namespace firebreak::fuzz
