// SPDX-License-Identifier: Apache-2.0
/// Code: what is loaded is kept, so that another instance can load it.
#include <memory>

#include "virtual/calls.h"
#include "virtual/code_image.h"

namespace firebreak::virtual_driver::own {
namespace {

/// What was loaded, for as long as somebody may load it again.
struct Image {
  const void* program = nullptr;  ///< the program's, which it keeps itself; null: `copy` is it
  std::vector<char> copy;
  const void* data() const { return program == nullptr ? copy.data() : program; }
};

/// What the program may change or free after the call is copied.
std::shared_ptr<const Image> keep(const OwnCall& call, const void* image) {
  auto kept = std::make_shared<Image>();
  const std::size_t size_bytes = code_image_bytes(image);
  if (size_bytes == 0) {
    call.all.stand_aside("it loads code whose length is not known");
    kept->program = image;
    return kept;
  }
  const auto* const bytes = static_cast<const char*>(image);
  kept->copy.assign(bytes, bytes + size_bytes);
  return kept;
}

std::vector<std::string> known_variables(const OwnCall& call, const Image& image) {
  auto names = image.copy.empty() ? std::nullopt : variables_of({image.copy.data(), image.copy.size()});
  if (!names) call.all.stand_aside("it loads code whose variables are not known");
  return names.value_or(std::vector<std::string>{});
}

/// Loads code by `load`, here and in what comes.
template <class Handle, class Load>
CUresult add_code(const OwnCall& call, Handle* code, std::vector<std::string> variables, Load load) {
  if (code == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = call.all.call([&](const Turn& turn) {
    Making making{turn.driver, turn.slot, turn.objects};
    const CUresult loaded = load(making);
    if (loaded != CUDA_SUCCESS) return loaded;
    std::vector<Object::Step> steps;
    steps.push_back({{}, load});
    Object& object = turn.objects.add(FamilyOf<Handle>::value, making.made, turn.slot, std::move(steps));
    object.variables = variables;
    *code = reinterpret_cast<Handle>(object.seen);
    return loaded;
  });
  if (result == CUDA_SUCCESS) call.all.something_new();
  return result;
}

CUmodule* module_of(Making& making) { return reinterpret_cast<CUmodule*>(&making.made); }

template <class Handle, class Unload>
CUresult unload(const OwnCall& call, Handle code, Unload unload_one) {
  Object* const object = call.all.objects().find(FamilyOf<Handle>::value, number_of(code));
  const CUresult result = call.all.call([&](const Turn& turn) {
    const CUresult unloaded = unload_one(turn.driver, turn.objects.translate(code, turn.slot));
    const Instance* const spare = call.all.spare();
    if (unloaded != CUDA_SUCCESS || spare == nullptr || object == nullptr) return unloaded;
    const std::uintptr_t there = object->in[spare->slot()].load();
    if (there == 0) return unloaded;
    call.all.make_current(*spare);
    unload_one(spare->driver(), reinterpret_cast<Handle>(there));
    return unloaded;
  });
  if (result == CUDA_SUCCESS && object != nullptr) call.all.objects().remove(*object);
  return result;
}

}  // namespace

CUresult cuModuleLoad(const OwnCall& call, CUmodule* module, const char* path) {
  call.all.stand_aside("it loads code whose variables are not known");
  return add_code(call, module, {}, [name = std::string(path == nullptr ? "" : path)](Making& making) {
    return making.driver.cuModuleLoad(module_of(making), name.c_str());
  });
}

CUresult cuModuleLoadData(const OwnCall& call, CUmodule* module, const void* image) {
  if (image == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto kept = keep(call, image);
  return add_code(call, module, known_variables(call, *kept), [kept](Making& making) {
    return making.driver.cuModuleLoadData(module_of(making), kept->data());
  });
}

CUresult cuModuleLoadFatBinary(const OwnCall& call, CUmodule* module, const void* image) {
  if (image == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto kept = keep(call, image);
  return add_code(call, module, known_variables(call, *kept), [kept](Making& making) {
    return making.driver.cuModuleLoadFatBinary(module_of(making), kept->data());
  });
}

/// The options count when the program loads it: they say where errors are written. What the second instance
/// compiles, it compiles as the driver does by itself, but for what changes the code.
CUresult cuModuleLoadDataEx(const OwnCall& call, CUmodule* module, const void* image, unsigned int count,
                            CUjit_option* options, void** values) {
  if (image == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto kept = keep(call, image);
  std::vector<std::pair<CUjit_option, void*>> lasting;
  for (unsigned int i = 0; i < count; ++i) {
    const bool writes = (options[i] >= CU_JIT_WALL_TIME && options[i] <= CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES);
    if (!writes) lasting.emplace_back(options[i], values[i]);
  }
  bool is_first = true;
  const auto load = [=](Making& making) mutable {
    if (is_first) {
      is_first = false;
      return making.driver.cuModuleLoadDataEx(module_of(making), kept->data(), count, options, values);
    }
    std::vector<CUjit_option> again;
    std::vector<void*> with;
    for (const auto& [option, value] : lasting) {
      again.push_back(option);
      with.push_back(value);
    }
    return making.driver.cuModuleLoadDataEx(
        module_of(making), kept->data(), static_cast<unsigned int>(again.size()), again.data(), with.data());
  };
  return add_code(call, module, known_variables(call, *kept), load);
}

CUresult cuLibraryLoadData(const OwnCall& call, CUlibrary* library, const void* image, CUjit_option* options,
                           void** values, unsigned int count, CUlibraryOption* library_options,
                           void** library_values, unsigned int library_count) {
  if (image == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (count != 0) call.all.stand_aside("it loads a library with options of the compiler");
  const auto kept = keep(call, image);
  if (!known_variables(call, *kept).empty()) call.all.stand_aside("it loads a library that has variables");
  const std::vector<CUlibraryOption> given(library_options, library_options + library_count);
  std::vector<void*> with;
  for (unsigned int i = 0; i < library_count; ++i)
    with.push_back(library_values == nullptr ? nullptr : library_values[i]);
  return add_code(call, library, {}, [=](Making& making) {
    std::vector<CUlibraryOption> what = given;
    std::vector<void*> values_given = with;
    return making.driver.cuLibraryLoadData(reinterpret_cast<CUlibrary*>(&making.made), kept->data(), options,
                                           values, count, what.data(), values_given.data(), library_count);
  });
}

CUresult cuModuleUnload(const OwnCall& call, CUmodule module) {
  return unload(call, module,
                [](const cuda::Backend& driver, CUmodule own) { return driver.cuModuleUnload(own); });
}

CUresult cuLibraryUnload(const OwnCall& call, CUlibrary library) {
  return unload(call, library,
                [](const cuda::Backend& driver, CUlibrary own) { return driver.cuLibraryUnload(own); });
}

}  // namespace firebreak::virtual_driver::own
