// SPDX-License-Identifier: Apache-2.0
/// A driver from before CUDA 12, as far as the guard looks at it.
__attribute__((visibility("default"))) int cuInit(unsigned int flags);

int cuInit(unsigned int flags) { return (int)flags + 35; }
