// SPDX-License-Identifier: Apache-2.0
/// What an agent needs of the one before it, and how it is written down: one document in a memory file that
/// outlives the process, and the descriptors that the service manager keeps beside it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "abi/wire.h"
#include "agent/member.h"
#include "agent/service_manager.h"
#include "base/result.h"
#include "os/memory.h"
#include "pair/pair.h"

namespace firebreak::agent {

struct KeptAllocation {
  std::string name;
  std::uint64_t address = 0;
  std::uint64_t size_bytes = 0;
  abi::Memory memory = abi::Memory::State;
  friend bool operator==(const KeptAllocation&, const KeptAllocation&) = default;
};

struct KeptTenant {
  std::string name;
  std::string token;
  pair::State pair;
  abi::StrayPolicy strays = abi::StrayPolicy::Default;
  bool ended_by_us = false;
  Member active;
  Member standby;
  Member old_active;
  std::vector<KeptAllocation> allocations;
  std::vector<std::uint64_t> connections = {};  ///< of its clients, by their ids
  std::uint64_t last_connection = 0;            ///< the highest id ever given
  friend bool operator==(const KeptTenant&, const KeptTenant&) = default;
};

/// An MPS server that was there: who was its client has no context once it is gone.
struct KeptServer {
  std::string domain;
  pid_t pid = 0;
  std::string start_time;  ///< as /proc/PID/stat tells it (os::start_time)
  friend bool operator==(const KeptServer&, const KeptServer&) = default;
};

struct Kept {
  std::vector<KeptTenant> tenants;
  std::vector<KeptServer> servers;
};

/// Encodes anew only whom something has happened to: the agent writes down what it knows before each answer,
/// and mostly one tenant has changed since, or none (bench/keepsakes_benchmark.cpp).
class KeptText {
 public:
  /// All of them, as the document holds them, until the next call; none: as last time.
  std::optional<std::string_view> update(const std::vector<KeptTenant>& tenants,
                                         const std::vector<KeptServer>& servers = {});

 private:
  struct Part {
    bool update(const KeptTenant& now);  ///< whether it has changed

    KeptTenant tenant;
    std::string allocations;
    std::string text;
  };
  std::vector<Part> parts_;  ///< in the order of the last call
  std::vector<KeptServer> servers_;
  std::string all_;
};

/// Protocol: it is none of ours, or of another version.
Result<Kept> decode_kept(std::string_view text);

/// Two places in one memory file, written in turn: whoever is killed while it writes one leaves the other
/// whole. For one thread.
class KeptDocument {
 public:
  static constexpr std::size_t bytes_max = std::size_t{4} << 20;

  static Result<KeptDocument> create();
  /// One that an earlier process made. Protocol: it is none.
  static Result<KeptDocument> open(os::Fd file);

  int descriptor() const { return file_.get(); }
  /// ResourceExhausted: longer than bytes_max.
  Status write(std::string_view text);
  /// The newest that is whole; empty: none ever was.
  std::string read() const;

 private:
  KeptDocument(os::Fd file, os::Mapping mapping) : file_(std::move(file)), mapping_(std::move(mapping)) {}

  os::Fd file_;
  os::Mapping mapping_;
};

/// Under which the service manager keeps what.
std::string document_name();
std::string page_name(const std::string& tenant);
std::string memory_name(const std::string& tenant, const std::string& allocation);
std::string listener_name(const std::string& tenant);
std::string connection_name(const std::string& tenant, std::uint64_t id);

/// Out of what was kept; none where it was not.
os::Fd take_descriptor(std::map<std::string, os::Fd>& descriptors, const std::string& name);

}  // namespace firebreak::agent
