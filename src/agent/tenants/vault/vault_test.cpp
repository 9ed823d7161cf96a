// SPDX-License-Identifier: Apache-2.0
#include "agent/tenants/vault/vault.h"

#include <gtest/gtest.h>

#include "ground/base/units.h"
#include "ground/os/memory.h"

namespace firebreak::vault {
namespace {

constexpr std::uint64_t base = 0x500000000000;

Entry entry(const std::string& name, std::uint64_t address, std::uint64_t size_bytes) {
  return {name, address, size_bytes, abi::Memory::State,
          std::move(os::create_memory_file("vault-test", 4096).value())};
}

TEST(Vault, KeepsWhatItIsGiven) {
  Vault vault;
  ASSERT_TRUE(vault.add(entry("weights", base, 4 * mib)).has_value());
  ASSERT_TRUE(vault.add(entry("state", base + 4 * mib, 2 * mib)).has_value());
  EXPECT_EQ(vault.entries().size(), 2u);
  EXPECT_EQ(vault.total_bytes(), 6 * mib);
  EXPECT_TRUE(static_cast<bool>(vault.entries()[0].descriptor));
}

TEST(Vault, TakesNoMoreThanItsQuota) {
  Vault vault(6 * mib);
  ASSERT_TRUE(vault.add(entry("weights", base, 4 * mib)).has_value());
  const Status refused = vault.add(entry("state", base + 4 * mib, 4 * mib));
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::ResourceExhausted);
  EXPECT_EQ(refused.error().message,
            "allocation 'state' of 4 MiB would go beyond the tenant's quota: 4 of 6 MiB are used");
  EXPECT_TRUE(vault.add(entry("state", base + 4 * mib, 2 * mib)).has_value());
}

TEST(Vault, RefusesANameTwice) {
  Vault vault;
  ASSERT_TRUE(vault.add(entry("weights", base, 2 * mib)).has_value());
  EXPECT_EQ(vault.add(entry("weights", base + 4 * mib, 2 * mib)).error().message,
            "the tenant already has an allocation 'weights'");
}

TEST(Vault, RefusesOverlapsOnBothSides) {
  Vault vault;
  ASSERT_TRUE(vault.add(entry("middle", base + 4 * mib, 4 * mib)).has_value());
  EXPECT_FALSE(vault.add(entry("before", base + 2 * mib, 4 * mib)).has_value());
  EXPECT_FALSE(vault.add(entry("inside", base + 6 * mib, 2 * mib)).has_value());
  EXPECT_TRUE(vault.add(entry("beside", base + 8 * mib, 2 * mib)).has_value());
}

TEST(Vault, RefusesWhatNoGpuCouldMap) {
  Vault vault;
  EXPECT_FALSE(vault.add(entry("empty", base, 0)).has_value());
  EXPECT_FALSE(vault.add(entry("crooked", base + 1, 2 * mib)).has_value());
  EXPECT_FALSE(vault.add(entry("huge", base, ~std::uint64_t{0})).has_value());
  EXPECT_FALSE(vault.add(Entry{"bodiless", base, 2 * mib, abi::Memory::State, os::Fd()}).has_value());
  EXPECT_TRUE(vault.entries().empty());
}

}  // namespace
}  // namespace firebreak::vault
