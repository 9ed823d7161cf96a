// SPDX-License-Identifier: Apache-2.0
#include "program/rest/copy_lanes.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <vector>

#include "ground/os/memory.h"
#include "ground/os/memory_left.h"

namespace firebreak::rest {
namespace {

constexpr std::size_t chunk_bytes = std::size_t{16} << 20U;
constexpr std::size_t lanes_max = 4;
/// What a lane has to copy at least: to pin its memory takes some milliseconds.
constexpr std::size_t chunks_of_lane_min = 4;
/// The host is asked what it has left each time that so much has been written.
constexpr std::size_t chunks_between_looks = 16;

/// What all lanes of one copy share. A lane that is ended with its driver leaves it to the others.
struct Shared {
  const cuda::Backend& driver;
  CUcontext context;
  const std::atomic<bool>& is_to_stop;
  Direction direction;
  std::vector<Chunk> chunks;
  std::atomic<std::size_t> next{0};
  std::atomic<CUresult> result{CUDA_SUCCESS};
  std::atomic<std::uint32_t> lanes_under_way{0};

  void fail(CUresult with) {
    CUresult none = CUDA_SUCCESS;
    result.compare_exchange_strong(none, with);
  }
  /// Null: there is none left, or it has failed.
  const Chunk* take() {
    if (is_to_stop.load()) fail(CUDA_ERROR_DEINITIALIZED);
    const std::size_t taken = next.fetch_add(1);
    if (taken >= chunks.size() || result.load() != CUDA_SUCCESS) return nullptr;
    const bool is_to_look = direction == Direction::ToHost && taken % chunks_between_looks == 0;
    const std::size_t before_next_look = std::min(chunks_between_looks, chunks.size() - taken);
    if (is_to_look && !check_room(before_next_look * chunk_bytes, os::memory_left_bytes()))
      fail(CUDA_ERROR_OUT_OF_MEMORY);
    return result.load() == CUDA_SUCCESS ? &chunks[taken] : nullptr;
  }
};

/// Pinned memory of a lane with a stream: the one is filled while the other is emptied.
struct Side {
  void* pinned = nullptr;
  CUstream stream = nullptr;
  const Chunk* chunk = nullptr;  ///< that is on its way
};

CUresult make(const cuda::Backend& driver, Side& side) {
  const CUresult made = driver.cuMemHostAlloc(&side.pinned, chunk_bytes, 0);
  return made == CUDA_SUCCESS ? driver.cuStreamCreate(&side.stream, CU_STREAM_NON_BLOCKING) : made;
}

void end(const cuda::Backend& driver, const Side& side) {
  if (side.stream != nullptr) driver.cuStreamDestroy_v2(side.stream);
  if (side.pinned != nullptr) driver.cuMemFreeHost(side.pinned);
}

/// Waits for what is on its way.
CUresult finish(Shared& shared, Side& side) {
  const Chunk* const chunk = std::exchange(side.chunk, nullptr);
  if (chunk == nullptr) return CUDA_SUCCESS;
  const CUresult done = shared.driver.cuStreamSynchronize(side.stream);
  if (done == CUDA_SUCCESS && shared.direction == Direction::ToHost)
    std::memcpy(chunk->on_host, side.pinned, chunk->size_bytes);
  return done;
}

CUresult begin(Shared& shared, Side& side, const Chunk& chunk) {
  side.chunk = &chunk;
  if (shared.direction == Direction::ToHost)
    return shared.driver.cuMemcpyDtoHAsync_v2(side.pinned, chunk.on_gpu, chunk.size_bytes, side.stream);
  std::memcpy(side.pinned, chunk.on_host, chunk.size_bytes);
  return shared.driver.cuMemcpyHtoDAsync_v2(chunk.on_gpu, side.pinned, chunk.size_bytes, side.stream);
}

CUresult run_sides(Shared& shared, std::array<Side, 2>& sides) {
  CUresult done = CUDA_SUCCESS;
  for (Side& side : sides)
    if (done == CUDA_SUCCESS) done = make(shared.driver, side);
  std::size_t turn = 0;
  while (done == CUDA_SUCCESS) {
    const Chunk* const chunk = shared.take();
    if (chunk == nullptr) break;
    Side& side = sides[turn++ % sides.size()];
    done = finish(shared, side);
    if (done == CUDA_SUCCESS) done = begin(shared, side, *chunk);
  }
  for (Side& side : sides)
    if (done == CUDA_SUCCESS) done = finish(shared, side);
  return done;
}

void run_lane(Shared& shared) {
  std::array<Side, 2> sides;
  CUresult done = shared.driver.cuCtxSetCurrent(shared.context);
  if (done == CUDA_SUCCESS) done = run_sides(shared, sides);
  if (done != CUDA_SUCCESS) shared.fail(done);
  for (const Side& side : sides) end(shared.driver, side);
  shared.driver.cuCtxSetCurrent(nullptr);
}

/// Little memory is not worth pinned memory of its own.
CUresult copy_directly(Shared& shared) {
  CUresult done = shared.driver.cuCtxSetCurrent(shared.context);
  while (done == CUDA_SUCCESS) {
    const Chunk* const chunk = shared.take();
    if (chunk == nullptr) break;
    done = shared.direction == Direction::ToHost
               ? shared.driver.cuMemcpyDtoH_v2(chunk->on_host, chunk->on_gpu, chunk->size_bytes)
               : shared.driver.cuMemcpyHtoD_v2(chunk->on_gpu, chunk->on_host, chunk->size_bytes);
  }
  shared.driver.cuCtxSetCurrent(nullptr);
  return done == CUDA_SUCCESS ? shared.result.load() : done;
}

}  // namespace

CUresult copy_all(const CopyBy& by, const HostContent& content, Direction direction) {
  const auto shared = std::make_shared<Shared>(by.driver, by.context, by.is_to_stop, direction);
  shared->chunks = content.chunks(chunk_bytes);
  if (shared->chunks.size() < chunks_of_lane_min) return copy_directly(*shared);
  const std::size_t lanes = std::min(lanes_max, shared->chunks.size() / chunks_of_lane_min);
  for (std::size_t more = 1; more < lanes; ++more) {
    shared->lanes_under_way.fetch_add(1);
    const Status started = by.start_thread([shared] {
      run_lane(*shared);
      shared->lanes_under_way.fetch_sub(1);
      os::futex_wake(shared->lanes_under_way);
    });
    if (started) continue;
    shared->lanes_under_way.fetch_sub(1);
    break;
  }
  run_lane(*shared);
  for (std::uint32_t left = 0; (left = shared->lanes_under_way.load()) != 0;)
    os::futex_wait(shared->lanes_under_way, left, std::nullopt);
  return shared->result.load();
}

}  // namespace firebreak::rest
