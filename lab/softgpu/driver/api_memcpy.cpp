// SPDX-License-Identifier: Apache-2.0
/// Entry points: copies and fills.
#include "softgpu/driver/boxes.h"
#include "softgpu/driver/copy.h"
#include "softgpu/driver/entry.h"

using namespace firebreak::softgpu::driver;

namespace {

constexpr bool and_wait = true;

CopyPointer gpu(CUdeviceptr address) { return {address, PointerRole::Gpu}; }
CopyPointer host(const void* address) {
  return {reinterpret_cast<std::uint64_t>(address), PointerRole::Host};
}
CopyPointer either(CUdeviceptr address) { return {address, PointerRole::Either}; }

/// Captures into a graph, where the copy is checked and not done. A copy that waits cannot be captured.
CUresult capture(Process& process, const std::shared_ptr<Stream>& target, const CUDA_MEMCPY3D& box,
                 bool wait) {
  if (wait) return process.captures().allow_waiting_for(*target);
  const auto layers = layers_of(process, box);
  if (!layers) return layers.error();
  for (const CopyRequest& layer : *layers) {
    if (const auto work = work_of_copy(process, layer); !work) return work.error();
  }
  Work work;
  work.node = std::make_shared<NodeContent>(NodeContent{MemcpyNode{box}});
  target->record(work);
  return CUDA_SUCCESS;
}

CUresult copy(const CopyPointer& destination, const CopyPointer& source, std::size_t size_bytes,
              CUstream stream, bool wait) {
  return with_stream(stream, [&](Process& process, Context& context, const std::shared_ptr<Stream>& target) {
    if (target->is_captured()) return capture(process, target, box_of(destination, source, size_bytes), wait);
    return submit_copy(process, context, target, {destination, source, {size_bytes}, wait});
  });
}

CUresult fill(const FillRequest& request, CUstream stream) {
  return with_stream(stream, [&](Process& process, Context& context, const std::shared_ptr<Stream>& target) {
    if (!target->is_captured()) return submit_fill(process, context, target, request);
    if (request.wait) return process.captures().allow_waiting_for(*target);
    auto work = work_of_fill(process, request);
    if (!work) return work.error();
    work->node = std::make_shared<NodeContent>(NodeContent{
        MemsetNode{{request.address, request.pitch_bytes, static_cast<unsigned int>(request.pattern),
                    request.pattern_bytes, request.width, request.height}}});
    target->record(*work);
    return CUDA_SUCCESS;
  });
}

CUresult copy_box(const CUDA_MEMCPY3D& box, CUstream stream, bool wait) {
  return with_stream(stream, [&](Process& process, Context& context, const std::shared_ptr<Stream>& target) {
    if (target->is_captured()) return capture(process, target, box, wait);
    const auto layers = layers_of(process, box);
    if (!layers) return layers.error();
    CUresult result = CUDA_SUCCESS;
    for (CopyRequest layer : *layers) {
      layer.wait = wait;
      if (result == CUDA_SUCCESS) result = submit_copy(process, context, target, layer);
    }
    return result;
  });
}

CUresult copy_2d(const CUDA_MEMCPY2D* request, CUstream stream, bool wait) {
  return request == nullptr ? CUDA_ERROR_INVALID_VALUE : copy_box(box_of(*request), stream, wait);
}

CUresult copy_3d(const CUDA_MEMCPY3D* request, CUstream stream, bool wait) {
  return request == nullptr ? CUDA_ERROR_INVALID_VALUE : copy_box(*request, stream, wait);
}

/// There is one device, so each of the two contexts has to be one of it.
CUresult copy_between(const CUDA_MEMCPY3D_PEER* request, CUstream stream, bool wait) {
  if (request == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto is_context = [](CUcontext context) {
    return with_process([&](Process& process) {
             return process.contexts().find(context) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
           }) == CUDA_SUCCESS;
  };
  if (!is_context(request->srcContext) || !is_context(request->dstContext)) return CUDA_ERROR_INVALID_CONTEXT;
  const CUDA_MEMCPY3D box{request->srcXInBytes,
                          request->srcY,
                          request->srcZ,
                          request->srcLOD,
                          request->srcMemoryType,
                          request->srcHost,
                          request->srcDevice,
                          request->srcArray,
                          nullptr,
                          request->srcPitch,
                          request->srcHeight,
                          request->dstXInBytes,
                          request->dstY,
                          request->dstZ,
                          request->dstLOD,
                          request->dstMemoryType,
                          request->dstHost,
                          request->dstDevice,
                          request->dstArray,
                          nullptr,
                          request->dstPitch,
                          request->dstHeight,
                          request->WidthInBytes,
                          request->Height,
                          request->Depth};
  return copy_3d(&box, stream, wait);
}

}  // namespace

extern "C" {

CUresult cuMemcpy(CUdeviceptr destination, CUdeviceptr source, std::size_t size_bytes) {
  return copy(either(destination), either(source), size_bytes, nullptr, and_wait);
}
CUresult cuMemcpyAsync(CUdeviceptr destination, CUdeviceptr source, std::size_t size_bytes, CUstream stream) {
  return copy(either(destination), either(source), size_bytes, stream, false);
}
CUresult cuMemcpyHtoD_v2(CUdeviceptr destination, const void* source, std::size_t size_bytes) {
  return copy(gpu(destination), host(source), size_bytes, nullptr, and_wait);
}
CUresult cuMemcpyDtoH_v2(void* destination, CUdeviceptr source, std::size_t size_bytes) {
  return copy(host(destination), gpu(source), size_bytes, nullptr, and_wait);
}
CUresult cuMemcpyDtoD_v2(CUdeviceptr destination, CUdeviceptr source, std::size_t size_bytes) {
  return copy(gpu(destination), gpu(source), size_bytes, nullptr, and_wait);
}
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr destination, const void* source, std::size_t size_bytes,
                              CUstream stream) {
  return copy(gpu(destination), host(source), size_bytes, stream, false);
}
CUresult cuMemcpyDtoHAsync_v2(void* destination, CUdeviceptr source, std::size_t size_bytes,
                              CUstream stream) {
  return copy(host(destination), gpu(source), size_bytes, stream, false);
}
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr destination, CUdeviceptr source, std::size_t size_bytes,
                              CUstream stream) {
  return copy(gpu(destination), gpu(source), size_bytes, stream, false);
}

CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D* request) { return copy_2d(request, nullptr, and_wait); }
CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D* request) { return copy_2d(request, nullptr, and_wait); }
CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* request, CUstream stream) {
  return copy_2d(request, stream, false);
}

CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D* request) { return copy_3d(request, nullptr, and_wait); }
CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D* request, CUstream stream) {
  return copy_3d(request, stream, false);
}

CUresult cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER* request) {
  return copy_between(request, nullptr, and_wait);
}
CUresult cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER* request, CUstream stream) {
  return copy_between(request, stream, false);
}

CUresult cuMemsetD8_v2(CUdeviceptr destination, unsigned char value, std::size_t count) {
  return fill({destination, value, 1, count, 1, 0, and_wait}, nullptr);
}
CUresult cuMemsetD16_v2(CUdeviceptr destination, unsigned short value, std::size_t count) {
  return fill({destination, value, 2, count, 1, 0, and_wait}, nullptr);
}
CUresult cuMemsetD32_v2(CUdeviceptr destination, unsigned int value, std::size_t count) {
  return fill({destination, value, 4, count, 1, 0, and_wait}, nullptr);
}
CUresult cuMemsetD8Async(CUdeviceptr destination, unsigned char value, std::size_t count, CUstream stream) {
  return fill({destination, value, 1, count, 1, 0, false}, stream);
}
CUresult cuMemsetD16Async(CUdeviceptr destination, unsigned short value, std::size_t count, CUstream stream) {
  return fill({destination, value, 2, count, 1, 0, false}, stream);
}
CUresult cuMemsetD32Async(CUdeviceptr destination, unsigned int value, std::size_t count, CUstream stream) {
  return fill({destination, value, 4, count, 1, 0, false}, stream);
}

CUresult cuMemsetD2D8_v2(CUdeviceptr destination, std::size_t pitch_bytes, unsigned char value,
                         std::size_t width, std::size_t height) {
  return fill({destination, value, 1, width, height, pitch_bytes, and_wait}, nullptr);
}
CUresult cuMemsetD2D16_v2(CUdeviceptr destination, std::size_t pitch_bytes, unsigned short value,
                          std::size_t width, std::size_t height) {
  return fill({destination, value, 2, width, height, pitch_bytes, and_wait}, nullptr);
}
CUresult cuMemsetD2D32_v2(CUdeviceptr destination, std::size_t pitch_bytes, unsigned int value,
                          std::size_t width, std::size_t height) {
  return fill({destination, value, 4, width, height, pitch_bytes, and_wait}, nullptr);
}
CUresult cuMemsetD2D8Async(CUdeviceptr destination, std::size_t pitch_bytes, unsigned char value,
                           std::size_t width, std::size_t height, CUstream stream) {
  return fill({destination, value, 1, width, height, pitch_bytes, false}, stream);
}
CUresult cuMemsetD2D16Async(CUdeviceptr destination, std::size_t pitch_bytes, unsigned short value,
                            std::size_t width, std::size_t height, CUstream stream) {
  return fill({destination, value, 2, width, height, pitch_bytes, false}, stream);
}
CUresult cuMemsetD2D32Async(CUdeviceptr destination, std::size_t pitch_bytes, unsigned int value,
                            std::size_t width, std::size_t height, CUstream stream) {
  return fill({destination, value, 4, width, height, pitch_bytes, false}, stream);
}

}  // extern "C"
