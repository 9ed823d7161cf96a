// SPDX-License-Identifier: Apache-2.0
/// xxHash, compiled into whoever includes this: no library of it is needed in a tenant's process.
#pragma once

#define XXH_INLINE_ALL
#include <xxhash.h>
