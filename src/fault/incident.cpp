// SPDX-License-Identifier: Apache-2.0
#include "fault/incident.h"

namespace firebreak::fault {

const char* to_string(Confidence confidence) {
  switch (confidence) {
    case Confidence::Unknown:
      return "unknown";
    case Confidence::Probable:
      return "probable";
    case Confidence::Certain:
      return "certain";
  }
  return "unknown";
}

}  // namespace firebreak::fault
