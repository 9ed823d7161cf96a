// SPDX-License-Identifier: Apache-2.0
/// Objects of this library live until the process is gone. Its threads use them to the very end, and an
/// object that came late would be destroyed before these threads are told that the program ends.

extern "C" {

int __wrap___cxa_atexit(void (*destroy)(void*), void* object, void* library);

/// Takes the place of the C library's function for all code in this library. Whoever wants something done at
/// the end says so by os::run_at_exit().
int __wrap___cxa_atexit(void (* /*destroy*/)(void*), void* /*object*/, void* /*library*/) { return 0; }
}
