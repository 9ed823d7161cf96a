// SPDX-License-Identifier: Apache-2.0
/// The forms of code that a program loads: PTX text, a cubin, a fat binary, or the wrapper around one.
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

/// The place of an image in this process, whose length nobody has said.
struct Found {
  std::string_view bytes;      ///< bytes without a wrapper around them; empty: the length is not known
  bool was_wrapped = false;    ///< nvcc has wrapped it: it lies in a program's or a library's file
  bool needs_linking = false;  ///< the wrapper has a list of others
};
/// Finds an image. It believes what the image says of its length, as the driver does.
Found find_image(const void* image);

/// The GPU that is to run it.
struct TargetGpu {
  unsigned major = 0;
  unsigned minor = 0;
  bool may_prefer_ptx =
      false;  ///< CUDA_FORCE_PTX_JIT, or an option of the call: PTX may be taken before machine code
};

/// Returns the entries that the driver may take for that GPU. It takes machine code of the same major version
/// whose minor one is no higher, else PTX of a version that is no higher (CUDA C++ Programming Guide, "Binary
/// Compatibility", "PTX Compatibility"). Which one of several it takes is not asked here: the code is taken
/// to have what any of them has.
std::vector<const CodeEntry*> candidates(const std::vector<CodeEntry>& entries, const TargetGpu& gpu);

/// Returns what code keeps, whatever kind of image it is: the union of all that the driver may take.
Code code_of_image(std::string_view image, const TargetGpu& gpu);

enum class CodeForm {
  Ptx,          ///< the driver compiles it: the text is known
  MachineCode,  ///< the driver takes it as it is
  Unknown,      ///< the driver's choice is not certain
};

/// The driver's choice of an image.
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
