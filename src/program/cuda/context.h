// SPDX-License-Identifier: Apache-2.0
/// Contexts: one of our own, the primary one, or a view of whatever is current.
#pragma once

#include <cstddef>
#include <optional>

#include "program/cuda/device.h"
#include "program/cuda/owned.h"

namespace firebreak::cuda {

/// Uses a context without owning it. Copyable; valid as long as the context is.
class ContextView {
 public:
  /// The context of the calling thread. NotFound when it has none.
  static Result<ContextView> current(const Driver& driver);

  CUcontext handle() const { return context_; }
  const Driver& driver() const { return *driver_; }

  /// Most calls of the driver act on the calling thread's current context: this makes it this one.
  Status make_current() const;

  // These act on the current context, so make_current() comes first.

  Result<Device> device() const;
  /// Waits for all work of the context.
  Status synchronize() const;
  Status set_limit(CUlimit limit, std::size_t value) const;
  Result<std::size_t> limit(CUlimit limit) const;

 private:
  friend class Context;
  ContextView(const Driver& driver, CUcontext context) : driver_(&driver), context_(context) {}

  const Driver* driver_;
  CUcontext context_;
};

struct ContextOptions {
  unsigned int flags = CU_CTX_SCHED_AUTO;       ///< CUctx_flags
  std::optional<unsigned int> multiprocessors;  ///< MPS limits how many it may use; the driver rounds up.
};

/// Owns a context, or one reference to a device's primary context.
class Context {
 public:
  /// A new context, current on the calling thread.
  static Result<Context> create(const Device& device, const ContextOptions& options = {});
  /// The context that runtime API programs of this process share, made current on the calling thread.
  static Result<Context> retain_primary(const Device& device);

  const ContextView& view() const { return view_; }
  const ContextView* operator->() const { return &view_; }
  /// It is the caller's to destroy from now on.
  CUcontext release() && { return handle_.release().context; }

 private:
  struct Handle {
    CUcontext context = nullptr;
    std::optional<CUdevice> primary_of;
  };
  struct Destroy {
    void operator()(const Driver& driver, const Handle& handle) const;
  };
  Context(const Driver& driver, Handle handle) : view_(driver, handle.context), handle_(driver, handle) {}

  ContextView view_;
  Owned<Handle, Destroy> handle_;
};

}  // namespace firebreak::cuda
