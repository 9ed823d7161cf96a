// SPDX-License-Identifier: Apache-2.0
/// Code: what is loaded is kept, so that another instance can load it.
#include <list>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "ground/os/memory.h"
#include "program/virtual/calls.h"
#include "program/virtual/code_image.h"
#include "shared/abi/cuda_launches.h"

namespace firebreak::virtual_driver::own {
namespace {

using Code = std::shared_ptr<CodeImage>;

Code keep(const OwnCall& call, const void* image, bool is_preserved = false) {
  auto kept = CodeImage::of(image, is_preserved);
  if (kept == nullptr) call.all.stand_aside("it loads code whose length is not known");
  return kept;
}

/// Gives the code to a driver, by `load`. Where its length is not known it is the program's own: there is no
/// spare.
template <class Load>
CUresult give(const Code& code, const void* image, const Load& load) {
  if (code == nullptr) return load(image);
  return code->use(load).value_or(CUDA_ERROR_NOT_FOUND);
}

/// Loads code by `load`, here and in what comes. What is in it is read in the background.
template <class Handle, class Load>
CUresult add_code(const OwnCall& call, Handle* handle, const Code& code, Load load) {
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = call.all.call([&](const Turn& turn) {
    Making making{turn.driver, turn.slot, turn.objects};
    const CUresult loaded = load(making);
    if (loaded != CUDA_SUCCESS) return loaded;
    std::vector<Object::Step> steps;
    steps.push_back({{}, load, current_context()});
    const std::uintptr_t context = std::is_same_v<Handle, CUlibrary> ? 0 : current_context();
    Object& object = turn.objects.add(FamilyOf<Handle>::value, making.made, turn.slot, std::move(steps),
                                      {nullptr, context}, code);
    *handle = reinterpret_cast<Handle>(object.seen);
    return loaded;
  });
  if (result == CUDA_SUCCESS) call.all.something_new();
  return result;
}

CUmodule* module_of(Making& making) { return reinterpret_cast<CUmodule*>(&making.made); }

template <class Handle, class Unload>
CUresult unload(const OwnCall& call, Handle code, Unload unload_one) {
  Object* const object = call.all.objects().find(FamilyOf<Handle>::value, number_of(code));
  const Code image = object == nullptr ? nullptr : call.all.objects().code_of(*object);
  const CUresult result = call.all.call([&](const Turn& turn) {
    const CUresult unloaded = unload_one(turn.driver, turn.objects.translate(code, turn.slot));
    if (unloaded == CUDA_SUCCESS) end_object<Handle>(turn, object, unload_one);
    if (unloaded == CUDA_SUCCESS) call.all.gave_back();
    return unloaded;
  });
  if (result == CUDA_SUCCESS && image != nullptr) image->forget();
  return result;
}

/// A file's content, as the program has it now. Null: the driver is to say what is wrong with it.
Code keep_file(const char* path) {
  auto content = path == nullptr ? Result<std::string>(fail(ErrorCode::InvalidArgument, "no path"))
                                 : os::content_at(path);
  return content ? CodeImage::of_content(std::move(*content)) : nullptr;
}

}  // namespace

CUresult cuModuleLoad(const OwnCall& call, CUmodule* module, const char* path) {
  const Code code = keep_file(path);
  if (code == nullptr) {
    const CUresult loaded =
        call.all.call([&](const Turn& turn) { return turn.driver.cuModuleLoad(module, path); });
    if (loaded == CUDA_SUCCESS) call.all.stand_aside("it loads a file that is not to be read here");
    return loaded;
  }
  return add_code(call, module, code, [code](Making& making) {
    return give(code, nullptr,
                [&](const void* image) { return making.driver.cuModuleLoadData(module_of(making), image); });
  });
}

CUresult cuModuleLoadData(const OwnCall& call, CUmodule* module, const void* image) {
  if (image == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Code code = keep(call, image);
  return add_code(call, module, code, [code, image](Making& making) {
    return give(code, image,
                [&](const void* given) { return making.driver.cuModuleLoadData(module_of(making), given); });
  });
}

CUresult cuModuleLoadFatBinary(const OwnCall& call, CUmodule* module, const void* image) {
  if (image == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Code code = keep(call, image);
  return add_code(call, module, code, [code, image](Making& making) {
    return give(code, image, [&](const void* given) {
      return making.driver.cuModuleLoadFatBinary(module_of(making), given);
    });
  });
}

/// The options count when the program loads it: they say where errors are written. What the second instance
/// compiles, it compiles as the driver does by itself, but for what changes the code.
CUresult cuModuleLoadDataEx(const OwnCall& call, CUmodule* module, const void* image, unsigned int count,
                            CUjit_option* options, void** values) {
  if (image == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Code code = keep(call, image);
  std::vector<std::pair<CUjit_option, void*>> lasting;
  for (unsigned int i = 0; i < count; ++i) {
    const bool writes = (options[i] >= CU_JIT_WALL_TIME && options[i] <= CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES);
    if (!writes) lasting.emplace_back(options[i], values[i]);
    if (options[i] >= CU_JIT_GLOBAL_SYMBOL_NAMES && options[i] <= CU_JIT_GLOBAL_SYMBOL_COUNT)
      call.all.stand_aside("it gives its code addresses of its own");
    if (options[i] == CU_JIT_FALLBACK_STRATEGY || options[i] == CU_JIT_TARGET)
      call.all.stand_aside("it says which of its code is taken");
  }
  bool is_first = true;
  const auto load = [=](Making& making) mutable {
    const bool is_again = !std::exchange(is_first, false);
    return give(code, image, [&](const void* given) {
      if (!is_again) {
        return making.driver.cuModuleLoadDataEx(module_of(making), given, count, options, values);
      }
      std::vector<CUjit_option> again;
      std::vector<void*> with;
      for (const auto& [option, value] : lasting) {
        again.push_back(option);
        with.push_back(value);
      }
      const auto size = static_cast<unsigned int>(again.size());
      return making.driver.cuModuleLoadDataEx(module_of(making), given, size, again.data(), with.data());
    });
  };
  return add_code(call, module, code, load);
}

namespace {

/// CU_LIBRARY_BINARY_IS_PRESERVED of cuda.h: the caller keeps the image as long as it has the library.
constexpr auto option_preserved = static_cast<CUlibraryOption>(1);

/// What the caller of a library says of it.
struct LibraryOptions {
  std::vector<CUlibraryOption> options;
  std::vector<void*> values;

  LibraryOptions(CUlibraryOption* given, void** with, unsigned int count) : options(given, given + count) {
    for (unsigned int i = 0; i < count; ++i) values.push_back(with == nullptr ? nullptr : with[i]);
  }
  bool is_preserved() const {
    for (std::size_t i = 0; i < options.size(); ++i) {
      if (options[i] == option_preserved) return values[i] != nullptr;
    }
    return false;
  }
};

CUresult load_library(const OwnCall& call, CUlibrary* library, const Code& code, const void* image,
                      const LibraryOptions& with) {
  return add_code(call, library, code, [=](Making& making) {
    LibraryOptions given = with;
    return give(code, image, [&](const void* bytes) {
      return making.driver.cuLibraryLoadData(reinterpret_cast<CUlibrary*>(&making.made), bytes, nullptr,
                                             nullptr, 0, given.options.data(), given.values.data(),
                                             static_cast<unsigned int>(given.options.size()));
    });
  });
}

}  // namespace

CUresult cuLibraryLoadData(const OwnCall& call, CUlibrary* library, const void* image, CUjit_option* options,
                           void** values, unsigned int count, CUlibraryOption* library_options,
                           void** library_values, unsigned int library_count) {
  if (image == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const LibraryOptions with(library_options, library_values, library_count);
  if (count == 0) return load_library(call, library, keep(call, image, with.is_preserved()), image, with);
  call.all.stand_aside("it loads a library with options of the compiler");
  return add_code(call, library, nullptr, [=](Making& making) {
    return making.driver.cuLibraryLoadData(reinterpret_cast<CUlibrary*>(&making.made), image, options, values,
                                           count, library_options, library_values, library_count);
  });
}

CUresult cuLibraryLoadFromFile(const OwnCall& call, CUlibrary* library, const char* path,
                               CUjit_option* options, void** values, unsigned int count,
                               CUlibraryOption* library_options, void** library_values,
                               unsigned int library_count) {
  const Code code = count == 0 ? keep_file(path) : nullptr;
  if (code != nullptr)
    return load_library(call, library, code, nullptr,
                        LibraryOptions(library_options, library_values, library_count));
  call.all.stand_aside("it loads a library with options of the compiler");
  return call.all.call([&](const Turn& turn) {
    return turn.driver.cuLibraryLoadFromFile(library, path, options, values, count, library_options,
                                             library_values, library_count);
  });
}

namespace {

/// `find`: in one driver, with that driver's handle of the code.
template <class Handle, class Find>
CUresult take_address(const OwnCall& call, CUdeviceptr* address, std::size_t* size_bytes, Handle code,
                      const char* name, Find find) {
  if (call.all.is_plain() || address == nullptr) {
    return call.all.call([&](const Turn& turn) {
      return find(turn.driver, address, size_bytes, turn.objects.translate(code, turn.slot));
    });
  }
  return call.all.call([&](const Turn& turn) {
    std::size_t size = 0;
    const CUresult found = find(turn.driver, address, &size, turn.objects.translate(code, turn.slot));
    if (found != CUDA_SUCCESS) return found;
    if (size_bytes != nullptr) *size_bytes = size;
    Object* const object = turn.objects.find(FamilyOf<Handle>::value, number_of(code));
    const auto seen = call.all.take_variable(object, name, *address, size, turn.slot);
    if (!seen) return CUDA_ERROR_NOT_SUPPORTED;
    *address = *seen;
    return found;
  });
}

}  // namespace

CUresult cuModuleGetGlobal_v2(const OwnCall& call, CUdeviceptr* address, std::size_t* size_bytes,
                              CUmodule module, const char* name) {
  return take_address(call, address, size_bytes, module, name,
                      [&](const cuda::Backend& driver, CUdeviceptr* at, std::size_t* size, CUmodule own) {
                        return driver.cuModuleGetGlobal_v2(at, size, own, name);
                      });
}

CUresult cuLibraryGetGlobal(const OwnCall& call, CUdeviceptr* address, std::size_t* size_bytes,
                            CUlibrary library, const char* name) {
  return take_address(call, address, size_bytes, library, name,
                      [&](const cuda::Backend& driver, CUdeviceptr* at, std::size_t* size, CUlibrary own) {
                        return driver.cuLibraryGetGlobal(at, size, own, name);
                      });
}

/// Each launch has a function and a stream of its own.
CUresult cuLaunchCooperativeKernelMultiDevice(const OwnCall& call, CUDA_LAUNCH_PARAMS* launches,
                                              unsigned int count, unsigned int flags) {
  return call.all.call([&](const Turn& turn) {
    std::vector<CUDA_LAUNCH_PARAMS> here(launches, launches + (launches == nullptr ? 0 : count));
    std::list<Counted> givers;
    for (CUDA_LAUNCH_PARAMS& each : here) {
      const bool may =
          !call.all.taken().any() || call.all.may_launch(turn, each.function, each.kernelParams, nullptr);
      if (!may) return CUDA_ERROR_NOT_SUPPORTED;
      givers.emplace_back(call.all.work_of(each.hStream).givers);
      each.function = turn.objects.translate(each.function, turn.slot);
      each.hStream = turn.objects.translate(each.hStream, turn.slot);
    }
    const CUresult result = turn.driver.cuLaunchCooperativeKernelMultiDevice(
        launches == nullptr ? nullptr : here.data(), count, flags);
    if (result != CUDA_SUCCESS) return result;
    for (const CUDA_LAUNCH_PARAMS& each : std::span(launches, here.size()))
      call.all.give_unknown(call.all.work_of(each.hStream));
    return result;
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
