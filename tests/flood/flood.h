// SPDX-License-Identifier: Apache-2.0
/// Pairs of one user at work on a software GPU while another user floods the agent (flooder.cpp), whose own
/// faults are on a GPU beside it: how long steps take meanwhile, how soon after the driver's word standbys
/// are promoted, and when an agent that hangs is replaced. Each figure also without the flood, in the same
/// run; and steps beside somebody who computes as much as the flood did, and leaves the agent alone.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "ground/base/clock.h"
#include "ground/os/file.h"
#include "ground/platform/platform.h"
#include "shared/link/status_view.h"
#include "soak/told_steps.h"
#include "softgpu/machine/shared_gpu.h"
#include "stage/stage.h"

namespace firebreak::flood {

struct Settings {
  std::string programs;
  std::string directory;  ///< private, short, empty
  std::uint32_t pairs = 3;
  std::uint32_t rounds = 10;  ///< This counts each of the three beside which steps are timed.
  Milliseconds lasts{6'000};  ///< each of them
  std::uint32_t faults = 40;  ///< This counts those without a flood, and as many run beside it.
  std::uint32_t hangs = 5;    ///< The agent's is the same.
  /// A pause comes before each: the supervisor waits twice as long for an agent whose predecessor hung
  /// lately.
  Milliseconds between_hangs{0};
  Milliseconds patience{60'000};
};

/// The pairs have these beside them.
enum class Beside { Nobody, Flood, Computing };
const char* to_string(Beside beside);

/// This was seen beside each.
struct Seen {
  std::vector<double> step_ms;
  std::vector<double> step_ms_means;  ///< one a round
  std::vector<double> promotion_ms;   ///< The time runs from the line in the kernel's log that counts to each
                                      ///< promotion.
  std::vector<double> first_kernel_ms;
  std::vector<double> replaced_ms;  ///< The time runs from an agent's hang until the next one has all pairs.
  double agent_cpu_ms = 0;          ///< while steps were timed, with its helpers
  double lasted_ms = 0;
};

struct Figures {
  std::map<Beside, Seen> beside;
  std::map<std::string, double> flood;  ///< This was done in all.
  double flood_lasted_ms = 0;
  std::uint64_t steps = 0;
  std::uint64_t agents_replaced_unasked = 0;  ///< beside a flood
};

class Flood {
 public:
  Flood(const Settings& settings, platform::Platform& platform, const Clock& clock,
        std::function<void(const std::string&)> tell)
      : settings_(settings), platform_(platform), clock_(clock), tell_(std::move(tell)) {}

  /// A claim that did not hold is an error.
  Result<Figures> run();

 private:
  struct Tenant {
    std::string name;
    stage::Actor* pair = nullptr;
    soak::ToldSteps steps;
    std::vector<std::int64_t> step_at_ns;
    std::vector<std::int64_t> promoted_at_ns;
    std::vector<std::int64_t> resumed_at_ns;
  };
  struct LogLine {
    std::int64_t at_ns = 0;
    std::string text;
  };

  Status play();
  Status prepare();
  Status start_agent();
  Status start_pairs();
  Status time_steps();
  Status time_steps_beside(Beside beside);
  Status pause(Milliseconds time);
  Status raise_faults();
  Status raise_faults_beside(Beside beside);
  Status raise_fault(Seen& seen);
  Status hang_agent();
  Status hang_agent_beside(Beside beside);
  Status finish();
  Status end();

  Status begin(Beside beside);
  Status end_beside();
  Result<stage::Actor*> enter_as(unsigned int user, const std::string& name, std::vector<std::string> command,
                                 stage::Actor::OnLine on_line);
  void hear(Tenant& tenant, const std::string& line);
  void read_log();
  /// The driver's last word on that server before then; 0: none.
  std::int64_t word_on_server(pid_t server, std::int64_t before_ns) const;
  Status wait_until_protected(const std::string& why);
  /// Looks from time to time: whoever asks the agent is a load as well.
  Status wait(const std::string& why, const std::function<bool()>& done);
  bool is_protected();
  std::optional<std::string> status() const;
  std::vector<std::string> pair_command(std::size_t number) const;
  std::string operators_socket() const { return settings_.directory + "/fb/agent.sock"; }
  std::string tenants_socket() const { return settings_.directory + "/fb/tenants.sock"; }
  pid_t agent() const;
  double agent_cpu_ms() const;
  std::string last_words() const;
  double ms_since(Monotonic begin) const;

  const Settings& settings_;
  platform::Platform& platform_;
  const Clock& clock_;
  std::function<void(const std::string&)> tell_;
  std::unique_ptr<stage::Stage> stage_;
  os::Watch tick_;
  std::shared_ptr<softgpu::SharedGpu> gpu_;
  std::uint64_t next_line_ = 0;
  std::vector<LogLine> log_;
  stage::Actor* supervisor_ = nullptr;
  pid_t known_agent_ = 0;  ///< nobody but we had it replaced
  std::vector<std::unique_ptr<Tenant>> tenants_;
  link::StatusView view_;
  stage::Actor* beside_ = nullptr;
  Monotonic beside_since_{};
  bool has_begun_ = false;
  double flood_cores_ = 1;  ///< The last flood took this.
  Figures figures_;
};

}  // namespace firebreak::flood
