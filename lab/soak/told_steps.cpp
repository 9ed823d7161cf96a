// SPDX-License-Identifier: Apache-2.0
#include "soak/told_steps.h"

#include <algorithm>

namespace firebreak::soak {

void ToldSteps::hear(const stage::StepMark& mark) {
  if (mark.step >= seen_.size()) seen_.resize(mark.step + 1);
  if (seen_[mark.step]) repeated_.push_back(mark.step);
  seen_[mark.step] = true;
  if (told_++ > 0) longest_pause_ns_ = std::max(longest_pause_ns_, mark.at_ns - last_at_ns_);
  last_at_ns_ = std::max(last_at_ns_, mark.at_ns);
}

}  // namespace firebreak::soak
