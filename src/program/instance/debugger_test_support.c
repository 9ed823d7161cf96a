// SPDX-License-Identifier: Apache-2.0
/// A library with the function by which NVIDIA's debugger library is known.
int GetCUDADebuggerAPI(void) { return 0; }
