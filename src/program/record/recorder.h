// SPDX-License-Identifier: Apache-2.0
/// What a process launches on its GPU, written down for developers (program/record/launch_folder.h).
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "program/cuda/backend.h"
#include "program/record/launch_folder.h"
#include "program/record/loaded_image.h"

namespace firebreak::record {

/// How a kernel is launched, whichever function of the driver's does it.
struct RecordedCall {
  CUfunction function = nullptr;  ///< or a CUkernel
  std::array<unsigned int, 3> grid{};
  std::array<unsigned int, 3> block{};
  unsigned int shared_bytes = 0;
  void** parameters = nullptr;  ///< one pointer for each
  void** extra = nullptr;       ///< or one buffer
};

/// Thread safe. Never fails: what cannot be found out is not written.
class Recorder {
 public:
  Recorder(const cuda::Backend& driver, std::unique_ptr<LaunchFolder> folder)
      : driver_(driver), folder_(std::move(folder)) {}

  /// `code`: a CUmodule or a CUlibrary that has just been made of it.
  void loaded(const void* code, std::shared_ptr<LoadedImage> image, bool is_library);
  void unloaded(const void* code);
  /// `function`: a CUfunction of that module, or a CUkernel of that library.
  void found(const void* function, const void* code, const char* name);
  /// The module of a library, or the function of a kernel.
  void module_found(const void* module, const void* library);
  void function_found(const void* function, const void* kernel);

  void launched(const RecordedCall& launch);
  void launched_graph();

 private:
  struct Code {
    std::shared_ptr<LoadedImage> image;
    const void* handle = nullptr;
    bool is_library = false;
    bool is_chosen = false;  ///< what follows is known
    std::string name;
    CodeForm form = CodeForm::Unknown;
    std::vector<VariableAddress> variables;
  };
  struct Parameter {
    std::size_t offset_bytes = 0;
    std::size_t size_bytes = 0;
  };
  struct Function {
    std::string name;
    std::shared_ptr<Code> code;
    bool is_kernel = false;                            ///< a CUkernel, which only functions for those take
    std::optional<std::vector<Parameter>> parameters;  ///< nothing: nobody has asked
  };

  Function& function_of(const void* handle);
  void ask_name(const void* handle, Function& function) const;
  void choose(Code& code);
  void find_variables(Code& code, const LoadedCode& chosen) const;
  std::vector<Parameter> parameters_of(const void* handle, bool is_kernel) const;
  std::vector<std::byte> packed(const RecordedCall& launch, const std::vector<Parameter>& parameters) const;
  std::vector<LaunchMemory> memory_of(const std::vector<std::byte>& parameters,
                                      const std::vector<VariableAddress>& variables) const;

  const cuda::Backend driver_;
  std::mutex mutex_;  ///< guards what follows
  std::unique_ptr<LaunchFolder> folder_;
  std::map<const void*, std::shared_ptr<Code>> codes_;
  std::unordered_map<const void*, Function> functions_;
  std::unordered_map<std::string, std::size_t> lines_;  ///< by all that makes a launch distinct
};

}  // namespace firebreak::record
