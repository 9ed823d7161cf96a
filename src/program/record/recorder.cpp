// SPDX-License-Identifier: Apache-2.0
#include "program/record/recorder.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

namespace firebreak::record {
namespace {

constexpr std::size_t most_parameter_bytes = 32'768;

template <class Handle>
Handle as(const void* handle) {
  return static_cast<Handle>(const_cast<void*>(handle));
}

// While a stream of this thread is captured, questions to the driver must not make the capture void.
class Undisturbed {
 public:
  explicit Undisturbed(const cuda::Backend& driver) : driver_(driver) { exchange(); }
  Undisturbed(const Undisturbed&) = delete;
  Undisturbed& operator=(const Undisturbed&) = delete;
  ~Undisturbed() { exchange(); }

 private:
  void exchange() { (void)driver_.cuThreadExchangeStreamCaptureMode(&mode_); }

  const cuda::Backend& driver_;
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
};

fatbin::TargetGpu current_gpu(const cuda::Backend& driver) {
  CUdevice device{};
  int major = 0;
  int minor = 0;
  const bool is_known = driver.cuCtxGetDevice(&device) == CUDA_SUCCESS &&
                        driver.cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
                                                    device) == CUDA_SUCCESS &&
                        driver.cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
                                                    device) == CUDA_SUCCESS;
  if (!is_known) return {};
  return {static_cast<unsigned>(major), static_cast<unsigned>(minor)};
}

void append(std::string& key, const void* bytes, std::size_t size_bytes) {
  key.append(static_cast<const char*>(bytes), size_bytes);
}

}  // namespace

void Recorder::loaded(const void* code, std::shared_ptr<LoadedImage> image, bool is_library) {
  const std::lock_guard lock(mutex_);
  codes_[code] = std::make_shared<Code>(Code{std::move(image), code, is_library, false, {}, {}, {}});
}

void Recorder::unloaded(const void* code) {
  const std::lock_guard lock(mutex_);
  const auto known = codes_.find(code);
  if (known == codes_.end()) return;
  const std::shared_ptr<Code> gone = known->second;
  std::erase_if(codes_, [&](const auto& each) { return each.second == gone; });
  std::erase_if(functions_, [&](const auto& each) { return each.second.code == gone; });
}

void Recorder::found(const void* function, const void* code, const char* name) {
  const std::lock_guard lock(mutex_);
  const auto known = codes_.find(code);
  Function& entry = functions_[function];
  if (known != codes_.end() && entry.code == known->second) return;
  const bool is_kernel = known != codes_.end() && known->second->is_library;
  entry = {name, known == codes_.end() ? nullptr : known->second, is_kernel, std::nullopt};
}

void Recorder::module_found(const void* module, const void* library) {
  const std::lock_guard lock(mutex_);
  const auto code = codes_.find(library);
  if (code != codes_.end()) codes_[module] = code->second;
}

void Recorder::function_found(const void* function, const void* kernel) {
  const std::lock_guard lock(mutex_);
  const auto known = functions_.find(kernel);
  if (known == functions_.end()) return;
  Function same = known->second;
  same.is_kernel = false;
  functions_[function] = std::move(same);
}

Recorder::Function& Recorder::function_of(const void* handle) {
  Function& function = functions_[handle];
  if (function.name.empty()) ask_name(handle, function);
  if (function.code != nullptr && !function.code->is_chosen) choose(*function.code);
  if (!function.parameters) function.parameters = parameters_of(handle, function.is_kernel);
  return function;
}

// Of one that the program has found in a way that is not followed.
void Recorder::ask_name(const void* handle, Function& function) const {
  const char* name = nullptr;
  const bool is_function = driver_.cuFuncGetName(&name, as<CUfunction>(handle)) == CUDA_SUCCESS;
  function.is_kernel = !is_function && driver_.cuKernelGetName(&name, as<CUkernel>(handle)) == CUDA_SUCCESS;
  function.name = name != nullptr ? name : "?";
  CUmodule module = nullptr;
  CUlibrary library = nullptr;
  const void* code = nullptr;
  if (is_function && driver_.cuFuncGetModule(&module, as<CUfunction>(handle)) == CUDA_SUCCESS) code = module;
  if (function.is_kernel && driver_.cuKernelGetLibrary(&library, as<CUkernel>(handle)) == CUDA_SUCCESS)
    code = library;
  if (const auto known = codes_.find(code); known != codes_.end()) function.code = known->second;
}

void Recorder::choose(Code& code) {
  code.is_chosen = true;
  code.name = code.image->name();
  const LoadedCode chosen = code.image->choose(current_gpu(driver_));
  code.form = chosen.form;
  folder_->write_image(code.name, chosen);
  if (chosen.form == CodeForm::Ptx) find_variables(code, chosen);
}

void Recorder::find_variables(Code& code, const LoadedCode& chosen) const {
  for (const fatbin::Variable& variable : fatbin::code_of_image(chosen.text, {}).variables) {
    CUdeviceptr address = 0;
    std::size_t size_bytes = 0;
    const CUresult asked = code.is_library
                               ? driver_.cuLibraryGetGlobal(&address, &size_bytes, as<CUlibrary>(code.handle),
                                                            variable.name.c_str())
                               : driver_.cuModuleGetGlobal_v2(
                                     &address, &size_bytes, as<CUmodule>(code.handle), variable.name.c_str());
    if (asked == CUDA_SUCCESS) code.variables.push_back({variable.name, address});
  }
}

std::vector<Recorder::Parameter> Recorder::parameters_of(const void* handle, bool is_kernel) const {
  std::vector<Parameter> all;
  while (true) {
    Parameter next;
    const CUresult asked = is_kernel ? driver_.cuKernelGetParamInfo(as<CUkernel>(handle), all.size(),
                                                                    &next.offset_bytes, &next.size_bytes)
                                     : driver_.cuFuncGetParamInfo(as<CUfunction>(handle), all.size(),
                                                                  &next.offset_bytes, &next.size_bytes);
    if (asked != CUDA_SUCCESS || next.offset_bytes + next.size_bytes > most_parameter_bytes) return all;
    all.push_back(next);
  }
}

std::vector<std::byte> Recorder::packed(const RecordedCall& launch,
                                        const std::vector<Parameter>& parameters) const {
  if (launch.extra != nullptr) {
    const void* buffer = nullptr;
    std::size_t size_bytes = 0;
    for (void** at = launch.extra; *at != nullptr; at += 2) {
      const auto key = reinterpret_cast<std::uintptr_t>(*at);
      if (key == CU_LAUNCH_PARAM_BUFFER_POINTER_AS_INT) buffer = at[1];
      if (key == CU_LAUNCH_PARAM_BUFFER_SIZE_AS_INT) size_bytes = *static_cast<std::size_t*>(at[1]);
    }
    if (buffer == nullptr || size_bytes > most_parameter_bytes) return {};
    const auto* const bytes = static_cast<const std::byte*>(buffer);
    return {bytes, bytes + size_bytes};
  }
  if (launch.parameters == nullptr || parameters.empty()) return {};
  std::vector<std::byte> bytes(parameters.back().offset_bytes + parameters.back().size_bytes);
  for (std::size_t i = 0; i < parameters.size(); ++i)
    if (launch.parameters[i] != nullptr)
      std::memcpy(bytes.data() + parameters[i].offset_bytes, launch.parameters[i], parameters[i].size_bytes);
  return bytes;
}

// Whatever looks like an address and is one: structures may have pointers in them.
std::vector<LaunchMemory> Recorder::memory_of(const std::vector<std::byte>& parameters,
                                              const std::vector<VariableAddress>& variables) const {
  std::vector<LaunchMemory> found;
  const auto add = [&](std::uint64_t address) {
    CUdeviceptr begin = 0;
    std::size_t size_bytes = 0;
    const auto is_in = [&](const LaunchMemory& range) { return address - range.address < range.size_bytes; };
    if (address == 0 || std::any_of(found.begin(), found.end(), is_in)) return;
    if (driver_.cuMemGetAddressRange_v2(&begin, &size_bytes, address) == CUDA_SUCCESS && size_bytes > 0)
      found.push_back({begin, size_bytes});
  };
  for (std::size_t at = 0; at + sizeof(std::uint64_t) <= parameters.size(); at += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, parameters.data() + at, sizeof word);
    add(word);
  }
  for (const VariableAddress& variable : variables) add(variable.address);
  std::sort(found.begin(), found.end(),
            [](const LaunchMemory& a, const LaunchMemory& b) { return a.address < b.address; });
  return found;
}

void Recorder::launched(const RecordedCall& launch) {
  const std::lock_guard lock(mutex_);
  const Undisturbed undisturbed(driver_);
  folder_->add_launch();
  const Function& function = function_of(launch.function);
  const std::vector<std::byte> parameters = packed(launch, *function.parameters);
  const Code* const code = function.code.get();
  const std::string image = code == nullptr ? std::string() : code->name;
  std::string key = image + '\0' + function.name + '\0';
  append(key, launch.grid.data(), sizeof launch.grid);
  append(key, launch.block.data(), sizeof launch.block);
  append(key, &launch.shared_bytes, sizeof launch.shared_bytes);
  append(key, parameters.data(), parameters.size());
  if (const auto known = lines_.find(key); known != lines_.end()) return folder_->add_again(known->second);
  if (lines_.size() == most_launches) return folder_->add_unrecorded();
  const std::size_t number = lines_.size();
  lines_.emplace(std::move(key), number);
  LaunchLine line{.kernel = function.name,
                  .image = image,
                  .form = code == nullptr ? CodeForm::Unknown : code->form,
                  .grid = launch.grid,
                  .block = launch.block,
                  .shared_bytes = launch.shared_bytes,
                  .parameters = parameters,
                  .memory = {},
                  .variables = {}};
  if (code != nullptr) line.variables = code->variables;
  line.memory = memory_of(parameters, code == nullptr ? std::vector<VariableAddress>{} : code->variables);
  folder_->write(line);
  folder_->add_again(number);
}

void Recorder::launched_graph() {
  const std::lock_guard lock(mutex_);
  folder_->add_graph_launch();
}

}  // namespace firebreak::record
