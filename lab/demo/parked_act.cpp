// SPDX-License-Identifier: Apache-2.0
#include "demo/parked_act.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>

#include "shared/link/agent_link.h"
#include "shared/link/status_view.h"

namespace firebreak::demo {
namespace {

constexpr Milliseconds between_questions{20};

/// An unmodified tenant, and what it has said.
struct Checker {
  Actor* actor = nullptr;
  bool works = false;
  Neighbour told;
};

/// One fault's processes. Their actors speak into it, so it outlives the stage.
struct Scene {
  std::string fault;
  Checker one;
  Checker two;
  Checker newcomer;
  Checker mover;
  Rogue rogue;

  std::string name_of(const std::string& who) const { return who + "-" + fault; }
  std::vector<Actor*> neighbours() const { return {one.actor, two.actor}; }
  /// Tells that a neighbour which was to go on has not.
  bool is_lost() const {
    return rogue.actor->ended() || one.actor->ended() || two.actor->ended() || mover.actor->ended();
  }
};

class ParkedAct {
 public:
  ParkedAct(const Theatre& theatre, Company& company) : theatre_(theatre), company_(company) {}

  Status play(Scene& scene, ParkedFault& seen) {
    Status status = await_parking("domains that can be parked", [](const auto& domains) {
      return !domains.empty() &&
             std::ranges::all_of(domains, [](const auto& domain) { return domain.second.state == "ready"; });
    });
    const std::string until = fmt::format("{}/end-of-{}", theatre_.settings.directory, scene.fault);
    const std::string movers_until = until + "-mover";
    for (const auto& [checker, who] : {std::pair(&scene.one, "one"), std::pair(&scene.two, "two")}) {
      if (status) status = enter_checker(scene, *checker, who, {"--until", until});
    }
    if (status) status = enter_checker(scene, scene.mover, "mover", {"--until", movers_until}, true);
    if (status) status = await_spare(scene);
    if (status) status = prepare_rogue(scene);
    if (status) status = raise(scene, seen);
    // On a busy machine a domain is held before the culprit's dump is whole, and only that names it.
    if (status) status = await_name(scene, seen);
    if (status) status = wait("the mover's move", [&] { return moved(scene) != nullptr || scene.is_lost(); });
    if (status) status = enter_checker(scene, scene.newcomer, "newcomer", {"--seconds", "0.1"});
    if (status) status = wait("the newcomer's end", [&] { return scene.newcomer.actor->ended(); });
    seen.told_to_end_at_ns = to_ns(theatre_.clock.now());
    std::ofstream(until) << "now\n";
    if (status) status = wait("the neighbours' end", [&] { return all_ended(scene.neighbours()); });
    if (status) status = wait("the rogue's end", [&] { return scene.rogue.actor->ended(); });
    if (status) status = await_spare(scene);
    seen.mover.is_protected_again = status.has_value() && has_spare_;
    seen.mover.outlived_domain = scene.mover.actor != nullptr && !scene.mover.actor->ended();
    std::ofstream(movers_until) << "now\n";
    if (status) status = wait("the mover's end", [&] { return scene.mover.actor->ended(); });
    report(scene, seen);
    return status;
  }

 private:
  using Domains = std::map<std::string, link::ParkingView>;

  Status wait(const std::string& what, const std::function<bool()>& done) {
    return company_.stage->wait(what, theatre_.settings.patience, done);
  }
  /// Asks the agent again and again.
  Status await_status(const std::string& what, const std::function<bool(const std::string&)>& is_so) {
    bool done = false;
    auto asking = company_.stage->loop().every(between_questions, [&] {
      const auto link = link::AgentLink::connect(company_.socket_path);
      const auto status = link ? (*link)->status() : propagate(link);
      done = status && is_so(*status);
    });
    if (!asking) return propagate(asking);
    return wait(what, [&] { return done; });
  }
  Status await_parking(const std::string& what, const std::function<bool(const Domains&)>& is_so) {
    return await_status(what,
                        [&](const std::string& status) { return is_so(link::parse_status(status).parking); });
  }
  /// Returns when the mover has a spare, or has ended.
  Status await_spare(const Scene& scene) {
    has_spare_ = false;
    return await_status("the mover's spare", [&](const std::string& status) {
      const auto mover = link::parse_status(status).tenant(scene.name_of("mover"));
      has_spare_ = mover && mover->spare == "protected";
      return has_spare_ || scene.mover.actor->ended();
    });
  }
  const abi::Event* moved(const Scene& scene) const {
    return company_.stage->first(abi::EventKind::Moved, scene.name_of("mover"));
  }
  const abi::Event* adopted(const std::string& tenant) const {
    return company_.stage->first(abi::EventKind::Adopted, tenant);
  }
  /// Returns when its first kernel is done, and the agent knows it.
  Status enter_checker(const Scene& scene, Checker& checker, const std::string& who,
                       const std::vector<std::string>& arguments, bool with_spare = false) {
    checker.told.name = who;
    std::vector<std::string> command = {theatre_.settings.programs + "/firebreak-checker"};
    command.insert(command.end(), arguments.begin(), arguments.end());
    const std::string tenant = scene.name_of(who);
    std::vector<std::string> whole = under_the_agent(theatre_, company_, tenant, false, command);
    // The default parts hold where no environment says otherwise.
    if (with_spare) *std::ranges::find(whole, without_parts) = "--spare";
    auto actor =
        company_.stage->enter({tenant, "unmodified", whole, {}}, [&checker](const std::string& line) {
          checker.works |= line == "working";
          hear_count(line, checker.told);
        });
    if (!actor) return propagate(actor);
    checker.actor = *actor;
    return wait(tenant + "'s first kernel",
                [&] { return checker.actor->ended() || (checker.works && adopted(tenant) != nullptr); });
  }
  Status prepare_rogue(Scene& scene) {
    const std::string tenant = scene.name_of("rogue");
    const auto command =
        under_the_agent(theatre_, company_, tenant, false, theatre_.rogue_command(scene.fault));
    auto entered = enter_rogue(*company_.stage, scene.rogue, {tenant, "rogue", command, {}});
    if (!entered) return propagate(entered);
    return wait("the rogue's preparation", [&] {
      return scene.rogue.actor->ended() || (scene.rogue.told.prepared && adopted(tenant) != nullptr);
    });
  }
  /// Returns when the agent holds the domain, or somebody has ended.
  Status raise(Scene& scene, ParkedFault& seen) {
    const abi::Event* rogue = adopted(scene.name_of("rogue"));
    if (rogue == nullptr) return fail(ErrorCode::Unavailable, "the rogue did not start");
    seen.domain = rogue->domain;
    seen.rogue = static_cast<pid_t>(rogue->pid);
    scene.rogue.actor->tell("go");
    return await_parking("a parked domain", [&](const Domains& domains) {
      const auto domain = domains.find(seen.domain);
      if (domain == domains.end()) return scene.is_lost();
      if (seen.culprits.empty()) seen.culprits = domain->second.culprits;
      return domain->second.state == "held" || scene.is_lost();
    });
  }
  /// Returns when the agent names somebody in the held domain, or there is nobody left there to be named.
  Status await_name(const Scene& scene, ParkedFault& seen) {
    return await_parking("the culprit's name", [&](const Domains& domains) {
      const auto domain = domains.find(seen.domain);
      const bool is_parked = domain != domains.end() && domain->second.state != "ready";
      if (is_parked && seen.culprits.empty()) seen.culprits = domain->second.culprits;
      return !seen.culprits.empty() || !is_parked || all_ended(scene.neighbours());
    });
  }
  Neighbour neighbour_of(const Scene& scene, const Checker& checker) const {
    Neighbour seen = checker.told;
    const abi::Event* event = adopted(scene.name_of(seen.name));
    if (event != nullptr) seen.domain = event->domain;
    if (checker.actor != nullptr) seen.exit = checker.actor->record().exit;
    return seen;
  }
  void report(const Scene& scene, ParkedFault& seen) const {
    seen.neighbours = {neighbour_of(scene, scene.one), neighbour_of(scene, scene.two)};
    seen.newcomer = neighbour_of(scene, scene.newcomer);
    seen.mover.program = neighbour_of(scene, scene.mover);
    if (const abi::Event* const move = moved(scene); move != nullptr) {
      seen.mover.moved_to = move->domain;
      seen.mover.moved_at_ns = move->at_ns;
    }
    if (scene.rogue.actor != nullptr) seen.exit = scene.rogue.actor->record().exit;
    seen.report = scene.rogue.told.report;
    const abi::Event* named = company_.stage->first(abi::EventKind::Parking, scene.name_of("rogue"));
    if (named != nullptr) seen.named_at_ns = named->at_ns;
  }

  const Theatre& theatre_;
  Company& company_;
  bool has_spare_ = false;  ///< the mover, when that was awaited last
};

}  // namespace

bool hear_count(const std::string& line, Neighbour& neighbour) {
  const auto said = nlohmann::json::parse(line, nullptr, false);
  if (!said.is_object()) return false;
  try {
    neighbour.launches = said.at("launches");
    neighbour.wrong_words = said.at("wrong_words");
    neighbour.longest_ms = said.at("longest_ms");
    neighbour.error = said.at("error");
  } catch (const nlohmann::json::exception&) {
    return false;
  }
  return neighbour.has_counted = true;
}

Status play_parked(const Theatre& theatre, ActRecord& record) {
  std::deque<Scene> scenes;
  Company company;
  auto stage = Stage::create(*theatre.platform.kernel, theatre.clock);
  if (!stage) return propagate(stage);
  company.stage = std::move(*stage);
  // Whoever goes on there is not to be cut off while we wait for what follows.
  const auto park_s = std::chrono::duration_cast<std::chrono::seconds>(theatre.settings.patience).count();
  Status status = raise_the_agent(theatre, company, "pk", {"--park-s", std::to_string(park_s), "--spares"});
  ParkedAct act(theatre, company);
  for (const std::string& fault : theatre.settings.parked_faults) {
    if (!status) break;
    scenes.emplace_back().fault = fault;
    record.parked.emplace_back().fault = fault;
    status = act.play(scenes.back(), record.parked.back());
  }
  const Status ended = let_the_agent_end(theatre, company);
  if (status) status = ended;
  company.stage->report(record, company.agent);
  return status;
}

}  // namespace firebreak::demo
