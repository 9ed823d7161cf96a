// SPDX-License-Identifier: Apache-2.0
/// Whom the limits of a parked domain are for, and what shows that it goes on there.
#include <cstdint>

#include "agent/parking/parking.h"

namespace firebreak::agent {

/// Those who can have a dump of that domain's exception, and have not begun it. MPS's servers tell them to.
RunLimit::For Parking::of_beginners(const std::string& domain) const {
  return {[this, domain] {
            std::vector<pid_t> all = servers_of(domain);
            for (const auto& [who, dumper] : dumpers_) {
              if (who.second == domain && !dumper.has_begun() && is_there(who, dumper))
                all.push_back(who.first);
            }
            return all;
          },
          {}};
}

/// All who have to do with its exception. As long as somebody's dump becomes longer it goes on.
RunLimit::For Parking::of_all(const std::string& domain) const {
  return {[this, domain] {
            std::vector<pid_t> all = servers_of(domain);
            const auto place = places_.find(domain);
            if (place != places_.end() && place->second.client != nullptr)
              all.push_back(place->second.client->pid());
            for (const auto& [who, dumper] : dumpers_) {
              if (who.second == domain) all.push_back(who.first);
            }
            return all;
          },
          [this, domain] {
            std::uint64_t came_bytes = 0;
            for (const auto& [who, dumper] : dumpers_) {
              if (who.second == domain && dumper.pipe)
                came_bytes += dumper.pipe->came_bytes() + dumper.pipe->bytes().size();
            }
            return came_bytes;
          }};
}

std::vector<pid_t> Parking::servers_of(const std::string& domain) const {
  for (const mps::DomainReport& report : at_.domains.reports()) {
    if (report.name == domain) return report.servers;
  }
  return {};
}

}  // namespace firebreak::agent
