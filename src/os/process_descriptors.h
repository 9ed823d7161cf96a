// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>

#include "os/kernel.h"

namespace firebreak::os {

/// One descriptor of a process: its number there, and what /proc shows it to be. False: enough was seen.
using DescriptorVisitor = std::function<bool(int number, const std::string& target)>;

/// Shows a process's descriptors in no order. They come and go meanwhile; what cannot be read is passed over.
/// NotFound: there is no such process; PermissionDenied: it is not ours to look into.
Status visit_descriptors(Kernel& kernel, pid_t pid, const DescriptorVisitor& visit);

/// The same of such a folder in /proc: that of a thread.
Status visit_descriptors_in(Kernel& kernel, const std::string& directory, const DescriptorVisitor& visit);

/// How many a process has, without a look at each. Empty: Linux does not say so before 6.2, the process is
/// gone, or it is not ours to look into.
std::optional<std::size_t> count_descriptors(Kernel& kernel, pid_t pid);

}  // namespace firebreak::os
