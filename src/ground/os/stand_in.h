// SPDX-License-Identifier: Apache-2.0
/// Something harmless in the place of a descriptor or of mapped memory of this process, for who uses it on:
/// nothing comes from there, and nothing that goes there reaches anybody.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ground/base/result.h"
#include "ground/os/addresses.h"
#include "ground/os/fd.h"

namespace firebreak::os {

/// A socket from which nothing comes. For as long as its other end is there nobody finds it hung up.
struct QuietSocket {
  Fd quiet;
  Fd other_end;
};
Result<QuietSocket> make_quiet_socket();
/// What was behind the number is closed, and the socket is behind it.
Status stand_in_for_descriptor(const QuietSocket& socket, int number);

/// Memory of zeros, of this process alone, lies there instead of what was mapped.
Status stand_in_for_region(AddressRange range);

/// The path of the Unix socket's own name, or of the one that it is connected to, as `name` and `peer`. An
/// abstract name begins with '@'. Empty: it has none, or is no such socket.
struct SocketNames {
  std::string name;
  std::string peer;
};
SocketNames socket_names(int number);

/// This process's descriptors, as numbers with what /proc says that they are.
std::vector<std::pair<int, std::string>> named_descriptors();

}  // namespace firebreak::os
