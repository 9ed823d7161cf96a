// SPDX-License-Identifier: Apache-2.0
// Compiled only where a CUDA toolkit is installed: every constant and layout of shared/abi/cuda_arrays.h and
// shared/abi/cuda_green_contexts.h must be the toolkit's. Ours come first and inside a namespace, because the
// toolkit defines macros with the names of some of our constants.
#include <cstddef>
#include <cstdint>

namespace ours {
#include "shared/abi/cuda_arrays.h"
#include "shared/abi/cuda_green_contexts.h"

// What the toolkit has as macros can be compared only by another name.
constexpr unsigned int own_layered = CUDA_ARRAY3D_LAYERED;
constexpr unsigned int own_surface_ldst = CUDA_ARRAY3D_SURFACE_LDST;
constexpr unsigned int own_texture_gather = CUDA_ARRAY3D_TEXTURE_GATHER;
}  // namespace ours

#include <cuda.h>

#include "tests/toolkit/toolkit_comparison.h"

namespace {

using firebreak::cuda::same;
using firebreak::cuda::same_size;

static_assert(same(ours::own_layered, CUDA_ARRAY3D_LAYERED));
static_assert(same(ours::own_surface_ldst, CUDA_ARRAY3D_SURFACE_LDST));
static_assert(same(ours::own_texture_gather, CUDA_ARRAY3D_TEXTURE_GATHER));
static_assert(same(ours::CU_GREEN_CTX_DEFAULT_STREAM, CU_GREEN_CTX_DEFAULT_STREAM));

static_assert(same_size<ours::CUarray_format, CUarray_format>());
static_assert(same(ours::CU_AD_FORMAT_UNSIGNED_INT8, CU_AD_FORMAT_UNSIGNED_INT8));
static_assert(same(ours::CU_AD_FORMAT_UNSIGNED_INT16, CU_AD_FORMAT_UNSIGNED_INT16));
static_assert(same(ours::CU_AD_FORMAT_UNSIGNED_INT32, CU_AD_FORMAT_UNSIGNED_INT32));
static_assert(same(ours::CU_AD_FORMAT_SIGNED_INT8, CU_AD_FORMAT_SIGNED_INT8));
static_assert(same(ours::CU_AD_FORMAT_SIGNED_INT16, CU_AD_FORMAT_SIGNED_INT16));
static_assert(same(ours::CU_AD_FORMAT_SIGNED_INT32, CU_AD_FORMAT_SIGNED_INT32));
static_assert(same(ours::CU_AD_FORMAT_HALF, CU_AD_FORMAT_HALF));
static_assert(same(ours::CU_AD_FORMAT_FLOAT, CU_AD_FORMAT_FLOAT));

static_assert(same_size<ours::CUDA_ARRAY_DESCRIPTOR, CUDA_ARRAY_DESCRIPTOR>());
static_assert(offsetof(ours::CUDA_ARRAY_DESCRIPTOR, Width) == offsetof(CUDA_ARRAY_DESCRIPTOR, Width));
static_assert(sizeof(ours::CUDA_ARRAY_DESCRIPTOR::Width) == sizeof(CUDA_ARRAY_DESCRIPTOR::Width));
static_assert(offsetof(ours::CUDA_ARRAY_DESCRIPTOR, Height) == offsetof(CUDA_ARRAY_DESCRIPTOR, Height));
static_assert(sizeof(ours::CUDA_ARRAY_DESCRIPTOR::Height) == sizeof(CUDA_ARRAY_DESCRIPTOR::Height));
static_assert(offsetof(ours::CUDA_ARRAY_DESCRIPTOR, Format) == offsetof(CUDA_ARRAY_DESCRIPTOR, Format));
static_assert(sizeof(ours::CUDA_ARRAY_DESCRIPTOR::Format) == sizeof(CUDA_ARRAY_DESCRIPTOR::Format));
static_assert(offsetof(ours::CUDA_ARRAY_DESCRIPTOR, NumChannels) ==
              offsetof(CUDA_ARRAY_DESCRIPTOR, NumChannels));
static_assert(sizeof(ours::CUDA_ARRAY_DESCRIPTOR::NumChannels) == sizeof(CUDA_ARRAY_DESCRIPTOR::NumChannels));

static_assert(same_size<ours::CUDA_ARRAY3D_DESCRIPTOR, CUDA_ARRAY3D_DESCRIPTOR>());
static_assert(offsetof(ours::CUDA_ARRAY3D_DESCRIPTOR, Width) == offsetof(CUDA_ARRAY3D_DESCRIPTOR, Width));
static_assert(sizeof(ours::CUDA_ARRAY3D_DESCRIPTOR::Width) == sizeof(CUDA_ARRAY3D_DESCRIPTOR::Width));
static_assert(offsetof(ours::CUDA_ARRAY3D_DESCRIPTOR, Height) == offsetof(CUDA_ARRAY3D_DESCRIPTOR, Height));
static_assert(sizeof(ours::CUDA_ARRAY3D_DESCRIPTOR::Height) == sizeof(CUDA_ARRAY3D_DESCRIPTOR::Height));
static_assert(offsetof(ours::CUDA_ARRAY3D_DESCRIPTOR, Depth) == offsetof(CUDA_ARRAY3D_DESCRIPTOR, Depth));
static_assert(sizeof(ours::CUDA_ARRAY3D_DESCRIPTOR::Depth) == sizeof(CUDA_ARRAY3D_DESCRIPTOR::Depth));
static_assert(offsetof(ours::CUDA_ARRAY3D_DESCRIPTOR, Format) == offsetof(CUDA_ARRAY3D_DESCRIPTOR, Format));
static_assert(sizeof(ours::CUDA_ARRAY3D_DESCRIPTOR::Format) == sizeof(CUDA_ARRAY3D_DESCRIPTOR::Format));
static_assert(offsetof(ours::CUDA_ARRAY3D_DESCRIPTOR, NumChannels) ==
              offsetof(CUDA_ARRAY3D_DESCRIPTOR, NumChannels));
static_assert(sizeof(ours::CUDA_ARRAY3D_DESCRIPTOR::NumChannels) ==
              sizeof(CUDA_ARRAY3D_DESCRIPTOR::NumChannels));
static_assert(offsetof(ours::CUDA_ARRAY3D_DESCRIPTOR, Flags) == offsetof(CUDA_ARRAY3D_DESCRIPTOR, Flags));
static_assert(sizeof(ours::CUDA_ARRAY3D_DESCRIPTOR::Flags) == sizeof(CUDA_ARRAY3D_DESCRIPTOR::Flags));

static_assert(same_size<ours::CUDA_MEMCPY3D, CUDA_MEMCPY3D>());
static_assert(offsetof(ours::CUDA_MEMCPY3D, srcXInBytes) == offsetof(CUDA_MEMCPY3D, srcXInBytes));
static_assert(sizeof(ours::CUDA_MEMCPY3D::srcXInBytes) == sizeof(CUDA_MEMCPY3D::srcXInBytes));
static_assert(offsetof(ours::CUDA_MEMCPY3D, srcY) == offsetof(CUDA_MEMCPY3D, srcY));
static_assert(sizeof(ours::CUDA_MEMCPY3D::srcY) == sizeof(CUDA_MEMCPY3D::srcY));
static_assert(offsetof(ours::CUDA_MEMCPY3D, srcZ) == offsetof(CUDA_MEMCPY3D, srcZ));
static_assert(sizeof(ours::CUDA_MEMCPY3D::srcZ) == sizeof(CUDA_MEMCPY3D::srcZ));
static_assert(offsetof(ours::CUDA_MEMCPY3D, srcLOD) == offsetof(CUDA_MEMCPY3D, srcLOD));
static_assert(sizeof(ours::CUDA_MEMCPY3D::srcLOD) == sizeof(CUDA_MEMCPY3D::srcLOD));
static_assert(offsetof(ours::CUDA_MEMCPY3D, srcMemoryType) == offsetof(CUDA_MEMCPY3D, srcMemoryType));
static_assert(sizeof(ours::CUDA_MEMCPY3D::srcMemoryType) == sizeof(CUDA_MEMCPY3D::srcMemoryType));
static_assert(offsetof(ours::CUDA_MEMCPY3D, srcHost) == offsetof(CUDA_MEMCPY3D, srcHost));
static_assert(sizeof(ours::CUDA_MEMCPY3D::srcHost) == sizeof(CUDA_MEMCPY3D::srcHost));
static_assert(offsetof(ours::CUDA_MEMCPY3D, srcDevice) == offsetof(CUDA_MEMCPY3D, srcDevice));
static_assert(sizeof(ours::CUDA_MEMCPY3D::srcDevice) == sizeof(CUDA_MEMCPY3D::srcDevice));
static_assert(offsetof(ours::CUDA_MEMCPY3D, srcArray) == offsetof(CUDA_MEMCPY3D, srcArray));
static_assert(sizeof(ours::CUDA_MEMCPY3D::srcArray) == sizeof(CUDA_MEMCPY3D::srcArray));
static_assert(offsetof(ours::CUDA_MEMCPY3D, reserved0) == offsetof(CUDA_MEMCPY3D, reserved0));
static_assert(sizeof(ours::CUDA_MEMCPY3D::reserved0) == sizeof(CUDA_MEMCPY3D::reserved0));
static_assert(offsetof(ours::CUDA_MEMCPY3D, srcPitch) == offsetof(CUDA_MEMCPY3D, srcPitch));
static_assert(sizeof(ours::CUDA_MEMCPY3D::srcPitch) == sizeof(CUDA_MEMCPY3D::srcPitch));
static_assert(offsetof(ours::CUDA_MEMCPY3D, srcHeight) == offsetof(CUDA_MEMCPY3D, srcHeight));
static_assert(sizeof(ours::CUDA_MEMCPY3D::srcHeight) == sizeof(CUDA_MEMCPY3D::srcHeight));
static_assert(offsetof(ours::CUDA_MEMCPY3D, dstXInBytes) == offsetof(CUDA_MEMCPY3D, dstXInBytes));
static_assert(sizeof(ours::CUDA_MEMCPY3D::dstXInBytes) == sizeof(CUDA_MEMCPY3D::dstXInBytes));
static_assert(offsetof(ours::CUDA_MEMCPY3D, dstY) == offsetof(CUDA_MEMCPY3D, dstY));
static_assert(sizeof(ours::CUDA_MEMCPY3D::dstY) == sizeof(CUDA_MEMCPY3D::dstY));
static_assert(offsetof(ours::CUDA_MEMCPY3D, dstZ) == offsetof(CUDA_MEMCPY3D, dstZ));
static_assert(sizeof(ours::CUDA_MEMCPY3D::dstZ) == sizeof(CUDA_MEMCPY3D::dstZ));
static_assert(offsetof(ours::CUDA_MEMCPY3D, dstLOD) == offsetof(CUDA_MEMCPY3D, dstLOD));
static_assert(sizeof(ours::CUDA_MEMCPY3D::dstLOD) == sizeof(CUDA_MEMCPY3D::dstLOD));
static_assert(offsetof(ours::CUDA_MEMCPY3D, dstMemoryType) == offsetof(CUDA_MEMCPY3D, dstMemoryType));
static_assert(sizeof(ours::CUDA_MEMCPY3D::dstMemoryType) == sizeof(CUDA_MEMCPY3D::dstMemoryType));
static_assert(offsetof(ours::CUDA_MEMCPY3D, dstHost) == offsetof(CUDA_MEMCPY3D, dstHost));
static_assert(sizeof(ours::CUDA_MEMCPY3D::dstHost) == sizeof(CUDA_MEMCPY3D::dstHost));
static_assert(offsetof(ours::CUDA_MEMCPY3D, dstDevice) == offsetof(CUDA_MEMCPY3D, dstDevice));
static_assert(sizeof(ours::CUDA_MEMCPY3D::dstDevice) == sizeof(CUDA_MEMCPY3D::dstDevice));
static_assert(offsetof(ours::CUDA_MEMCPY3D, dstArray) == offsetof(CUDA_MEMCPY3D, dstArray));
static_assert(sizeof(ours::CUDA_MEMCPY3D::dstArray) == sizeof(CUDA_MEMCPY3D::dstArray));
static_assert(offsetof(ours::CUDA_MEMCPY3D, reserved1) == offsetof(CUDA_MEMCPY3D, reserved1));
static_assert(sizeof(ours::CUDA_MEMCPY3D::reserved1) == sizeof(CUDA_MEMCPY3D::reserved1));
static_assert(offsetof(ours::CUDA_MEMCPY3D, dstPitch) == offsetof(CUDA_MEMCPY3D, dstPitch));
static_assert(sizeof(ours::CUDA_MEMCPY3D::dstPitch) == sizeof(CUDA_MEMCPY3D::dstPitch));
static_assert(offsetof(ours::CUDA_MEMCPY3D, dstHeight) == offsetof(CUDA_MEMCPY3D, dstHeight));
static_assert(sizeof(ours::CUDA_MEMCPY3D::dstHeight) == sizeof(CUDA_MEMCPY3D::dstHeight));
static_assert(offsetof(ours::CUDA_MEMCPY3D, WidthInBytes) == offsetof(CUDA_MEMCPY3D, WidthInBytes));
static_assert(sizeof(ours::CUDA_MEMCPY3D::WidthInBytes) == sizeof(CUDA_MEMCPY3D::WidthInBytes));
static_assert(offsetof(ours::CUDA_MEMCPY3D, Height) == offsetof(CUDA_MEMCPY3D, Height));
static_assert(sizeof(ours::CUDA_MEMCPY3D::Height) == sizeof(CUDA_MEMCPY3D::Height));
static_assert(offsetof(ours::CUDA_MEMCPY3D, Depth) == offsetof(CUDA_MEMCPY3D, Depth));
static_assert(sizeof(ours::CUDA_MEMCPY3D::Depth) == sizeof(CUDA_MEMCPY3D::Depth));

static_assert(same_size<ours::CUdevResourceType, CUdevResourceType>());
static_assert(same(ours::CU_DEV_RESOURCE_TYPE_INVALID, CU_DEV_RESOURCE_TYPE_INVALID));
static_assert(same(ours::CU_DEV_RESOURCE_TYPE_SM, CU_DEV_RESOURCE_TYPE_SM));

static_assert(same_size<ours::CUdevSmResource, CUdevSmResource>());
static_assert(offsetof(ours::CUdevSmResource, smCount) == offsetof(CUdevSmResource, smCount));
static_assert(sizeof(ours::CUdevSmResource::smCount) == sizeof(CUdevSmResource::smCount));
static_assert(offsetof(ours::CUdevSmResource, minSmPartitionSize) ==
              offsetof(CUdevSmResource, minSmPartitionSize));
static_assert(sizeof(ours::CUdevSmResource::minSmPartitionSize) ==
              sizeof(CUdevSmResource::minSmPartitionSize));
static_assert(offsetof(ours::CUdevSmResource, smCoscheduledAlignment) ==
              offsetof(CUdevSmResource, smCoscheduledAlignment));
static_assert(sizeof(ours::CUdevSmResource::smCoscheduledAlignment) ==
              sizeof(CUdevSmResource::smCoscheduledAlignment));

static_assert(same_size<ours::CUdevResource, CUdevResource>());
static_assert(offsetof(ours::CUdevResource, type) == offsetof(CUdevResource, type));
static_assert(sizeof(ours::CUdevResource::type) == sizeof(CUdevResource::type));
static_assert(offsetof(ours::CUdevResource, _internal_padding) == offsetof(CUdevResource, _internal_padding));
static_assert(sizeof(ours::CUdevResource::_internal_padding) == sizeof(CUdevResource::_internal_padding));
static_assert(offsetof(ours::CUdevResource, sm) == offsetof(CUdevResource, sm));
static_assert(sizeof(ours::CUdevResource::sm) == sizeof(CUdevResource::sm));

}  // namespace
