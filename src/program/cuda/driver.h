// SPDX-License-Identifier: Apache-2.0
/// The CUDA driver, loaded at run time: nothing of the project links against it.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "ground/base/result.h"
#include "program/cuda/entry_points.h"
#include "shared/abi/cuda_driver.h"

namespace firebreak::cuda {

/// A loaded driver library. Loaded once by whoever is on top and passed down by reference; it has to outlive
/// every object made with it. Immutable, hence thread safe. The library is never unloaded: its threads would
/// not survive.
class Driver {
 public:
  /// Loads the library and finds its entry points, and touches no GPU. Which library: `path` unless empty,
  /// else environment FIREBREAK_CUDA_LIBRARY, else libcuda.so.1. NotFound: there is no such library.
  /// Unsupported: it is no CUDA driver or too old a one.
  static Result<std::unique_ptr<const Driver>> load(const std::string& path = {});

  /// load() and cuInit. Unavailable: no GPU, or the MPS server that the environment names does not answer.
  static Result<std::unique_ptr<const Driver>> open(const std::string& path = {});

  /// Another driver stands in front of a library: its entry points are those that `resolver` answers. Errors
  /// are load()'s.
  static Result<std::unique_ptr<const Driver>> in_front_of(const Driver& library,
                                                           PFN_cuGetProcAddress_v2 resolver);

  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  /// The raw entry points, for callers that decide on a CUresult themselves.
  const EntryPoints* operator->() const { return &table_; }

  /// The library as it was asked for.
  const std::string& path() const { return path_; }

  /// A function of the library by its exported name, beyond NVIDIA's own; null where it has none of that
  /// name.
  void* symbol(const char* name) const;

  /// The newest CUDA version that the driver knows: 13000 for 13.0.
  Result<int> version() const;

  /// Success, or an error "cuMemMap: CUDA_ERROR_INVALID_VALUE (1): invalid argument".
  Status check(CUresult result, std::string_view call) const;

  /// "CUDA_ERROR_ILLEGAL_ADDRESS"; "CUDA error 12345" for a number that the driver does not know.
  std::string error_name(CUresult result) const;

 private:
  Driver(std::string path, void* library, const EntryPoints& table)
      : path_(std::move(path)), library_(library), table_(table) {}

  std::string path_;
  void* library_;  ///< never closed
  EntryPoints table_;
};

/// True for errors that end the process's use of the GPU: every later call answers the same.
bool is_fatal(CUresult result);

}  // namespace firebreak::cuda
