// SPDX-License-Identifier: Apache-2.0
#include "idempotency/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "idempotency/check.h"
#include "idempotency/instrument.h"
#include "idempotency/recorded_launches.h"
#include "kernels/access/describe.h"
#include "program/cuda/copy.h"
#include "program/cuda/device_buffer.h"
#include "program/cuda/first_gpu.h"
#include "program/cuda/module.h"
#include "program/cuda/stream.h"

namespace firebreak::idempotency {
namespace {

constexpr auto longest_run = std::chrono::seconds(20);
constexpr std::uint64_t never = ~std::uint64_t{0};
constexpr std::uint64_t most_checked_bytes = std::uint64_t{1} << 22;
constexpr std::uint64_t most_ranges = 128;

// A kernel whose threads go through words 0 to `words`: %rd0 is the place of one. `loads` and `body` have
// registers from %rd10 and %r10 on, and %p1.
std::string kernel_of_words(const char* name, const char* parameters, const char* loads, const char* body) {
  return fmt::format(R"(
.visible .entry {}(.param .u64 words, {})
{{
  .reg .pred %p<3>;
  .reg .b32 %r<20>;
  .reg .b64 %rd<20>;
  ld.param.u64 %rd1, [words];
  {}
  mov.u32 %r0, %ctaid.x;
  mov.u32 %r1, %ntid.x;
  mov.u32 %r2, %tid.x;
  mad.lo.u32 %r0, %r0, %r1, %r2;
  mov.u32 %r2, %nctaid.x;
  mul.lo.u32 %r1, %r1, %r2;
  cvt.u64.u32 %rd0, %r0;
  cvt.u64.u32 %rd2, %r1;
next:
  setp.ge.u64 %p0, %rd0, %rd1;
  @%p0 bra end;
  {}
  add.u64 %rd0, %rd0, %rd2;
  bra next;
end:
  ret;
}}
)",
                     name, parameters, loads, body);
}

// fill: word i is (a mixed number & what is for even or odd words) | always. compare: counts words that
// differ.
std::string own_kernels() {
  return ".version 7.0\n.target sm_70\n.address_size 64\n" +
         kernel_of_words(
             "fill",
             ".param .u64 to, .param .u32 seed, .param .u32 even, .param .u32 odd, .param .u32 always",
             R"(ld.param.u64 %rd10, [to];
  ld.param.u32 %r10, [seed];
  ld.param.u32 %r11, [even];
  ld.param.u32 %r12, [odd];
  ld.param.u32 %r13, [always];)",
             R"(cvt.u32.u64 %r14, %rd0;
  add.u32 %r15, %r14, %r10;
  mul.lo.u32 %r15, %r15, 0x9E3779B1;
  shr.u32 %r16, %r15, 15;
  xor.b32 %r15, %r15, %r16;
  mul.lo.u32 %r15, %r15, 0x85EBCA77;
  shr.u32 %r16, %r15, 13;
  xor.b32 %r15, %r15, %r16;
  and.b32 %r14, %r14, 1;
  setp.eq.u32 %p1, %r14, 0;
  selp.b32 %r14, %r11, %r12, %p1;
  and.b32 %r15, %r15, %r14;
  or.b32 %r15, %r15, %r13;
  shl.b64 %rd11, %rd0, 2;
  add.u64 %rd11, %rd11, %rd10;
  st.global.u32 [%rd11], %r15;)") +
         kernel_of_words("compare", ".param .u64 a, .param .u64 b, .param .u64 count",
                         R"(ld.param.u64 %rd10, [a];
  ld.param.u64 %rd11, [b];
  ld.param.u64 %rd12, [count];)",
                         R"(shl.b64 %rd13, %rd0, 2;
  add.u64 %rd14, %rd13, %rd10;
  add.u64 %rd15, %rd13, %rd11;
  ld.global.u32 %r10, [%rd14];
  ld.global.u32 %r11, [%rd15];
  setp.ne.u32 %p1, %r10, %r11;
  @%p1 red.global.add.u32 [%rd12], 1;)");
}

struct FillWords {
  std::uint32_t even = 0;
  std::uint32_t odd = 0;
  std::uint32_t always = 0;
};

// Numbers are between 1 and 2 in size as halves, and below 2 as floats. Small ones are 0 or 1, also in 64
// bits.
FillWords words_of(MadeUpData data) {
  switch (data) {
    case MadeUpData::Numbers:
      return {0x83FF'83FF, 0x83FF'83FF, 0x3C00'3C00};
    case MadeUpData::SmallNumbers:
      return {1, 0, 0};
    default:
      return {};
  }
}

// A part of the GPU's memory that a launch may use, and what it holds before the launch.
struct Place {
  std::uint64_t recorded = 0;  ///< where it lay; 0: a variable of the module
  CUdeviceptr address = 0;
  std::uint64_t size_bytes = 0;
  CUdeviceptr initial = 0;  ///< of a variable: what it holds first
};

struct LoadedKernel {
  cuda::Module module;
  cuda::Function function;
  CUdeviceptr trace = 0;  ///< where the address of the header goes
  std::vector<Place> variables;
  std::map<std::string, std::uint64_t> addresses;
  std::vector<cuda::DeviceBuffer> initial;
};

class GpuReplayer : public Replayer {
 public:
  static Result<std::unique_ptr<Replayer>> open(const ReplayOptions& options) {
    auto gpu = cuda::FirstGpu::open(options.cuda_library);
    if (!gpu) return propagate(gpu);
    std::unique_ptr<GpuReplayer> made(new GpuReplayer(options, std::move(*gpu)));
    if (const Status prepared = made->prepare(); !prepared) return propagate(prepared);
    return made;
  }

  Result<ReplayReport> play(const RecordedLaunch& launch, const RecordedKernel& kernel,
                            MadeUpData first) override {
    ReplayReport report;
    auto loaded = load(launch, kernel);
    if (!loaded) return left_out(loaded.error());
    auto placed = place(launch, **loaded);
    if (!placed) return left_out(placed.error());
    launch_ = &launch;
    kernel_ = *loaded;
    for (const MadeUpData data : {MadeUpData::Numbers, MadeUpData::SmallNumbers, MadeUpData::Zeroes}) {
      if (data < first) continue;
      report.data = data;
      const auto header = traced(data, never);
      if (!header) return propagate(header);
      if (header->strays != 0) continue;
      report.access_count = header->next;
      report.is_whole = header->next <= options_.most_records;
      const Status judged = judge(report, *kernel.summary);
      if (!judged) return propagate(judged);
      return report;
    }
    report.left_out = "made-up data lead it out of its memory";
    return report;
  }

 private:
  GpuReplayer(ReplayOptions options, cuda::FirstGpu gpu)
      : options_(std::move(options)), gpu_(std::move(gpu)), driver_(gpu_.driver()) {}

  static ReplayReport left_out(const Error& error) {
    ReplayReport report;
    report.left_out = error.message.substr(0, 200);
    return report;
  }

  Status prepare() {
    auto stream = cuda::Stream::create(driver_);
    if (!stream) return propagate(stream);
    stream_.emplace(std::move(*stream));
    auto own = cuda::Module::load_ptx(driver_, own_kernels());
    if (!own) return propagate(own);
    own_.emplace(std::move(*own));
    const auto fill = own_->function("fill");
    const auto compare = own_->function("compare");
    if (!fill || !compare) return fail(ErrorCode::Internal, "own kernels are missing");
    fill_.emplace(*fill);
    compare_.emplace(*compare);
    for (const auto& [buffer, size_bytes] :
         {std::pair{&header_, sizeof(TraceHeader) + most_ranges * 16},
          std::pair{&records_, options_.most_records * sizeof(TraceRecord)},
          std::pair{&count_, std::size_t{8}}}) {
      auto made = cuda::DeviceBuffer::allocate(driver_, size_bytes);
      if (!made) return propagate(made);
      buffer->emplace(std::move(*made));
    }
    return {};
  }

  Result<LoadedKernel*> load(const RecordedLaunch& launch, const RecordedKernel& kernel) {
    const auto& block = launch.arguments.block;
    const std::uint32_t threads = block[0] * block[1] * block[2];
    const std::string key = fmt::format("{} {} {}", launch.image, launch.kernel, threads);
    if (const auto known = kernels_.find(key); known != kernels_.end()) return &known->second;
    const auto text = instrument(kernel.image->text, kernel.image->module, *kernel.function, threads);
    if (!text) return propagate(text);
    auto module = cuda::Module::load_ptx(driver_, *text);
    if (!module) return propagate(module);
    const auto function = module->function(launch.kernel);
    const auto trace = module->variable(trace_variable);
    if (!function || !trace) return fail(ErrorCode::Internal, "what was instrumented is missing");
    LoadedKernel made{std::move(*module), *function, trace->address, {}, {}, {}};
    for (const ptx::Variable& variable : kernel.image->module.variables) {
      const auto found = made.module.variable(variable.name);
      if (!found || found->size_bytes == 0) continue;
      made.addresses[variable.name] = found->address;
      if (variable.space != ptx::StateSpace::Global) continue;
      auto initial = cuda::DeviceBuffer::allocate(driver_, found->size_bytes);
      if (!initial) return propagate(initial);
      if (const Status copied =
              cuda::copy_on_device(driver_, initial->address(), found->address, found->size_bytes);
          !copied)
        return propagate(copied);
      made.variables.push_back({0, found->address, found->size_bytes, initial->address()});
      made.initial.push_back(std::move(*initial));
    }
    return &kernels_.emplace(key, std::move(made)).first->second;
  }

  // Memory for all that the launch had, and its parameters with the new addresses.
  Status place(const RecordedLaunch& launch, const LoadedKernel& kernel) {
    work_.clear();
    wholes_.clear();
    places_ = kernel.variables;
    std::uint64_t all_bytes = 0;
    for (const access::MemoryRange& range : launch.memory) {
      const bool is_variable = std::ranges::any_of(launch.variables, [&](const auto& variable) {
        return variable.second - range.address < range.size_bytes;
      });
      if (is_variable) continue;
      all_bytes += range.size_bytes;
      if (all_bytes > options_.most_memory_bytes || places_.size() == most_ranges)
        return fail(ErrorCode::ResourceExhausted, "it has more memory than is played with");
      places_.push_back({range.address, 0, range.size_bytes, 0});
    }
    for (const Place& each : places_) {
      auto whole = cuda::DeviceBuffer::allocate(driver_, each.size_bytes + 3);
      if (!whole) return propagate(whole);
      wholes_.push_back(std::move(*whole));
    }
    if (const Status made = make_work_memory(); !made) return made;
    parameters_ = launch.parameters;
    for (std::size_t at = 0; at + sizeof(std::uint64_t) <= parameters_.size(); at += sizeof(std::uint64_t)) {
      std::uint64_t word = 0;
      std::memcpy(&word, parameters_.data() + at, sizeof word);
      for (const Place& each : places_) {
        if (each.recorded == 0 || word - each.recorded >= each.size_bytes) continue;
        word = word - each.recorded + each.address;
        std::memcpy(parameters_.data() + at, &word, sizeof word);
        break;
      }
    }
    return {};
  }

  // What lay one behind the other does so again.
  Status make_work_memory() {
    for (std::size_t i = kernel_variable_count(); i < places_.size();) {
      const std::uint64_t begin = places_[i].recorded;
      std::uint64_t end = begin;
      std::size_t behind = i;
      for (; behind < places_.size() && places_[behind].recorded == end; ++behind)
        end += places_[behind].size_bytes;
      auto buffer = cuda::DeviceBuffer::allocate(driver_, end - begin + 3);
      if (!buffer) return propagate(buffer);
      for (; i < behind; ++i) places_[i].address = buffer->address() + (places_[i].recorded - begin);
      work_.push_back(std::move(*buffer));
    }
    return {};
  }

  std::size_t kernel_variable_count() const {
    return static_cast<std::size_t>(
        std::ranges::count_if(places_, [](const Place& each) { return each.recorded == 0; }));
  }

  Status fill(MadeUpData data) {
    const FillWords words = words_of(data);
    std::uint32_t seed = 1;
    for (const Place& each : places_) {
      seed += 7919;
      if (each.initial != 0) {
        const Status copied =
            cuda::copy_on_device(driver_, each.address, each.initial, each.size_bytes, stream_->handle());
        if (!copied) return propagate(copied);
        continue;
      }
      const Status filled =
          fill_->launch(stream_->handle(), shape_of(each), std::uint64_t{each.size_bytes / 4}, each.address,
                        seed, words.even, words.odd, words.always);
      if (!filled) return propagate(filled);
    }
    return {};
  }

  static cuda::LaunchShape shape_of(const Place& place) {
    const auto blocks = static_cast<unsigned>(std::clamp<std::uint64_t>(place.size_bytes / 4096, 1, 1024));
    return {{blocks, 1, 1}, {256, 1, 1}, 0};
  }

  // Fills memory and runs the launch on it. Nothing: it is not traced.
  Result<TraceHeader> traced(MadeUpData data, std::uint64_t stop_after) {
    if (const Status filled = fill(data); !filled) return propagate(filled);
    return run(options_.most_records, stop_after);
  }

  Result<TraceHeader> run(std::uint64_t most, std::uint64_t stop_after) {
    TraceHeader header{.most = most, .stop_after = stop_after, .records = records_->address()};
    std::vector<std::uint64_t> words(sizeof header / 8);
    header.range_count = places_.size();
    std::memcpy(words.data(), &header, sizeof header);
    for (const Place& each : places_) {
      words.push_back(each.address);
      words.push_back(each.address + each.size_bytes);
    }
    const CUdeviceptr at = header_->address();
    Status done = cuda::copy_to_device(driver_, at, std::as_bytes(std::span(words)));
    if (done) done = cuda::copy_to_device(driver_, kernel_->trace, std::as_bytes(std::span(&at, 1)));
    if (done) done = launch();
    if (done) done = cuda::copy_to_host(driver_, std::as_writable_bytes(std::span(&header, 1)), at);
    if (!done) return propagate(done);
    return header;
  }

  // What is not traced is not slowed down, but for the calls.
  Status run_untraced() {
    const std::uint64_t none = 0;
    const Status done = cuda::copy_to_device(driver_, kernel_->trace, std::as_bytes(std::span(&none, 1)));
    return done ? launch() : done;
  }

  Status launch() {
    if (const Status waited = wait(); !waited) return waited;
    const auto shared = static_cast<int>(launch_->shared_bytes);
    if (shared > 48 << 10)
      if (const Status set =
              kernel_->function.set_attribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, shared);
          !set)
        return set;
    std::size_t size_bytes = parameters_.size();
    void* extra[] = {reinterpret_cast<void*>(CU_LAUNCH_PARAM_BUFFER_POINTER_AS_INT), parameters_.data(),
                     reinterpret_cast<void*>(CU_LAUNCH_PARAM_BUFFER_SIZE_AS_INT), &size_bytes, nullptr};
    const auto& grid = launch_->arguments.grid;
    const auto& block = launch_->arguments.block;
    const CUresult launched =
        driver_->cuLaunchKernel(kernel_->function.handle(), grid[0], grid[1], grid[2], block[0], block[1],
                                block[2], launch_->shared_bytes, stream_->handle(), nullptr, extra);
    if (launched != CUDA_SUCCESS) return driver_.check(launched, "cuLaunchKernel");
    return wait();
  }

  Status wait() {
    const auto begin = std::chrono::steady_clock::now();
    while (true) {
      const auto idle = stream_->idle();
      if (!idle) return fail(ErrorCode::Device, idle.error().message);
      if (*idle) return {};
      const auto waited = std::chrono::steady_clock::now() - begin;
      if (waited > longest_run) return fail(ErrorCode::Timeout, "it does not end");
      if (waited > std::chrono::milliseconds(1)) std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
  }

  Result<std::vector<softgpu::ObservedAccess>> recorded(std::uint64_t count) {
    std::vector<TraceRecord> records(std::min(count, options_.most_records));
    if (records.empty()) return std::vector<softgpu::ObservedAccess>();
    const Status copied =
        cuda::copy_to_host(driver_, std::as_writable_bytes(std::span(records)), records_->address());
    if (!copied) return propagate(copied);
    std::vector<softgpu::ObservedAccess> accesses;
    accesses.reserve(records.size());
    for (const TraceRecord& record : records) accesses.push_back(observed(record));
    return accesses;
  }

  Status judge(ReplayReport& report, const access::KernelSummary& summary) {
    const auto accesses = recorded(report.access_count);
    if (!accesses) return propagate(accesses);
    std::vector<access::MemoryRange> memory;
    for (const Place& each : places_) memory.push_back({each.address, each.size_bytes, each.address});
    std::sort(memory.begin(), memory.end(),
              [](const auto& a, const auto& b) { return a.address < b.address; });
    const std::vector<std::uint64_t> variables = variable_addresses(summary, kernel_->addresses);
    access::LaunchArguments arguments = launch_->arguments;
    arguments.parameters = parameters_;
    arguments.memory = memory;
    arguments.variable_addresses = variables;
    report.decision = access::decide(summary, arguments, workspace_);
    report.cause = cause_of(summary, report.decision);
    if (summary.refusal.empty()) report.problem = find_unpredicted(summary, arguments, *accesses, workspace_);
    if (!report.problem.empty() || !report.is_whole) return {};
    report.truth = find_truth(*accesses);
    const bool is_idempotent = report.decision.verdict == access::Verdict::Idempotent;
    if (is_idempotent && !report.truth.is_idempotent)
      report.problem = fmt::format("called idempotent, but line {} writes 0x{:x}, which line {} had read",
                                   report.truth.write_line, report.truth.address, report.truth.read_line);
    std::uint64_t touched_bytes = 0;
    for (const softgpu::ObservedAccess& each : *accesses) touched_bytes += each.size_bytes;
    const access::OperationEffects effects = access::find_effects(summary, arguments, workspace_);
    if (report.problem.empty() && touched_bytes <= most_checked_bytes)
      report.problem = find_uncertain(effects, *accesses);
    report.leaves_to_chance = effects.values_may_race;
    return is_idempotent && report.problem.empty() ? tear(report) : Status();
  }

  Status tear(ReplayReport& report) {
    Status done = run_whole(report.data);
    if (done) done = keep();
    if (done) done = run_whole(report.data);
    if (!done) return done;
    const auto by_chance = count_different();
    if (!by_chance) return propagate(by_chance);
    report.leaves_to_chance = report.leaves_to_chance || *by_chance != 0;
    for (int i = 0; i < options_.tears && !report.leaves_to_chance && report.problem.empty(); ++i) {
      const std::uint64_t stop = report.access_count == 0 ? 0 : random_() % report.access_count;
      if (const auto torn = traced(report.data, stop); !torn) return propagate(torn);
      if (const Status redone = run_untraced(); !redone) return redone;
      const auto different = count_different();
      if (!different) return propagate(different);
      if (*different != 0)
        report.problem =
            fmt::format("torn after {} accesses and done again, {} words differ", stop, *different);
      else
        ++report.redo_count;
    }
    return {};
  }

  Status run_whole(MadeUpData data) {
    const Status filled = fill(data);
    return filled ? run_untraced() : filled;
  }

  // What memory holds is what a whole run leaves.
  Status keep() {
    for (std::size_t i = 0; i < places_.size(); ++i) {
      const Status copied = cuda::copy_on_device(driver_, wholes_[i].address(), places_[i].address,
                                                 places_[i].size_bytes, stream_->handle());
      if (!copied) return copied;
    }
    return wait();
  }

  Result<std::uint32_t> count_different() {
    Status done = cuda::fill_words(driver_, count_->address(), 0, 2);
    for (std::size_t i = 0; i < places_.size() && done; ++i)
      done =
          compare_->launch(stream_->handle(), shape_of(places_[i]), std::uint64_t{places_[i].size_bytes / 4},
                           places_[i].address, wholes_[i].address(), count_->address());
    std::uint32_t count = 0;
    if (done) done = wait();
    if (done)
      done = cuda::copy_to_host(driver_, std::as_writable_bytes(std::span(&count, 1)), count_->address());
    if (!done) return propagate(done);
    return count;
  }

  const ReplayOptions options_;
  cuda::FirstGpu gpu_;
  const cuda::Driver& driver_;
  std::optional<cuda::Stream> stream_;
  std::optional<cuda::Module> own_;
  std::optional<cuda::Function> fill_;
  std::optional<cuda::Function> compare_;
  std::optional<cuda::DeviceBuffer> header_;
  std::optional<cuda::DeviceBuffer> records_;
  std::optional<cuda::DeviceBuffer> count_;
  std::map<std::string, LoadedKernel> kernels_;
  access::DecisionWorkspace workspace_;
  std::mt19937_64 random_{20261128};
  // Of the launch at hand.
  const RecordedLaunch* launch_ = nullptr;
  const LoadedKernel* kernel_ = nullptr;
  std::vector<cuda::DeviceBuffer> work_;    ///< what the launch works on
  std::vector<cuda::DeviceBuffer> wholes_;  ///< by place: what a whole run leaves
  std::vector<Place> places_;
  std::vector<std::byte> parameters_;
};

nlohmann::json to_json(const RecordedLaunch& launch, const RecordedKernel& kernel, std::uint64_t times,
                       const ReplayReport& report) {
  nlohmann::json json{{"kernel", launch.kernel}, {"times", times}, {"beside", kernel.image->is_beside}};
  if (!report.left_out.empty()) {
    json["left_out"] = report.left_out;
    return json;
  }
  json["verdict"] = access::to_string(report.decision.verdict);
  json["cause"] = report.cause;
  json["data"] = to_string(report.data);
  json["accesses"] = report.access_count;
  if (report.is_whole) json["is_idempotent"] = report.truth.is_idempotent;
  json["leaves_to_chance"] = report.leaves_to_chance;
  json["redone"] = report.redo_count;
  json["problem"] = report.problem;
  return json;
}

void print(const nlohmann::json& json) {
  fmt::print("{}\n", json.dump());
  (void)std::fflush(stdout);
}

}  // namespace

const char* to_string(MadeUpData data) {
  switch (data) {
    case MadeUpData::Numbers:
      return "numbers";
    case MadeUpData::SmallNumbers:
      return "small numbers";
    default:
      return "zeroes";
  }
}

Result<std::unique_ptr<Replayer>> Replayer::open(const ReplayOptions& options) {
  return GpuReplayer::open(options);
}

Status replay_recorded(const std::string& folder, const ReplayOptions& options, const ReplayPart& part) {
  auto replayer = Replayer::open(options);
  if (!replayer) return propagate(replayer);
  RecordedImages images(folder);
  std::uint64_t number = 0;
  Status end;
  const auto play = [&](const std::optional<RecordedLaunch>& launch, std::uint64_t times) {
    const std::uint64_t own = number++;
    if (!end || own < part.begin || !launch) return;
    if (std::hash<std::string>{}(launch->kernel) % part.parts != part.part) return;
    const RecordedKernel kernel = images.find(*launch);
    if (!kernel.problem.empty()) return;
    print({{"begin", own}});
    const auto report =
        (*replayer)->play(*launch, kernel, own == part.begin ? part.first_data : MadeUpData::Numbers);
    if (!report) end = propagate(report, launch->kernel);
    if (report) print(to_json(*launch, kernel, times, *report));
  };
  const Status visited = visit_recorded(folder, {[](const RecordedTotals&) {}, play});
  // Its context would wait for a kernel that does not end.
  if (!end) (void)replayer->release();
  return visited ? end : visited;
}

}  // namespace firebreak::idempotency
