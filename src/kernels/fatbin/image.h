// SPDX-License-Identifier: Apache-2.0
/// What a program loads as code: PTX text, a cubin, a fat binary, or the wrapper around one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ground/base/result.h"
#include "kernels/fatbin/code.h"
#include "kernels/fatbin/container.h"

namespace firebreak::fatbin {

enum class ImageKind { Ptx, Cubin, FatBinary, None };
ImageKind kind_of_image(std::string_view image);

/// Where an image lies in this process, whose length nobody has said.
struct Found {
  std::string_view bytes;      ///< without a wrapper around it; empty: its length is not known
  bool was_wrapped = false;    ///< by nvcc: it lies in a program's or a library's file
  bool needs_linking = false;  ///< the wrapper has a list of others
};
/// As the driver does, it believes what the image says of its length.
Found find_image(const void* image);

/// The GPU that is to run it.
struct TargetGpu {
  unsigned major = 0;
  unsigned minor = 0;
  bool may_prefer_ptx =
      false;  ///< CUDA_FORCE_PTX_JIT, or an option of the call: PTX may be taken before machine code
};

/// Whether the driver may take that entry for that GPU.
///
/// It takes machine code of the same major version whose minor one is no higher, else PTX of a version that
/// is no higher (CUDA C++ Programming Guide, "Binary Compatibility", "PTX Compatibility"). Which one of
/// several it takes is not asked here: the code is taken to have what any of them has.
std::vector<const CodeEntry*> candidates(const std::vector<CodeEntry>& entries, const TargetGpu& gpu);

/// What code keeps, whatever kind of image it is: the union of all that the driver may take.
Code code_of_image(std::string_view image, const TargetGpu& gpu);

enum class CodeForm {
  Ptx,          ///< the driver compiles it: the text is known
  MachineCode,  ///< the driver takes it as it is
  Unknown,      ///< it is not certain what the driver takes
};

/// What the driver takes of an image.
struct ChosenCode {
  CodeForm form = CodeForm::Unknown;
  std::string ptx;  ///< empty but for PTX
};
/// Machine code for that GPU if there is some, else the newest PTX that the GPU takes.
ChosenCode choose_code(std::string_view image, const TargetGpu& gpu);

/// The newest PTX in a fat binary that the GPU could take, whether or not it takes machine code; empty: none.
std::string newest_ptx(std::string_view image, const TargetGpu& gpu);

struct PtxText {
  unsigned arch = 0;  ///< 0: the text alone says it
  std::string text;
};
/// The PTX in a fat binary, a cubin's file, a host program or library, or a text: none, one or many.
Result<std::vector<PtxText>> ptx_texts_in(std::string_view file);

/// The images in a file of any of these kinds.
Result<std::vector<std::string_view>> images_in(std::string_view file);

}  // namespace firebreak::fatbin
