// SPDX-License-Identifier: Apache-2.0
#include "program/cuda/address_reservation.h"

#include <cstdio>

namespace firebreak::cuda {
namespace {

std::string hexadecimal(CUdeviceptr address) {
  char text[32];
  std::snprintf(text, sizeof text, "0x%llx", address);
  return text;
}

}  // namespace

Result<AddressReservation> AddressReservation::reserve(const Driver& driver, Range wanted,
                                                       std::size_t alignment_bytes) {
  CUdeviceptr address = 0;
  const auto status = driver.check(
      driver->cuMemAddressReserve(&address, wanted.size_bytes, alignment_bytes, wanted.address, 0),
      "cuMemAddressReserve");
  if (!status) return propagate(status);
  return AddressReservation(driver, Range{address, wanted.size_bytes});
}

Result<AddressReservation> AddressReservation::reserve(const Driver& driver, std::size_t size_bytes,
                                                       std::size_t alignment_bytes) {
  return reserve(driver, Range{0, size_bytes}, alignment_bytes);
}

Result<AddressReservation> AddressReservation::reserve_at(const Driver& driver, CUdeviceptr address,
                                                          std::size_t size_bytes) {
  auto reservation = reserve(driver, Range{address, size_bytes}, 0);
  if (!reservation) return reservation;
  // The address is a hint to the driver; memory elsewhere is no success here.
  if (reservation->address() != address) {
    return fail(ErrorCode::Unavailable, "GPU addresses at " + hexadecimal(address) +
                                            " are in use; the driver offered " +
                                            hexadecimal(reservation->address()));
  }
  return reservation;
}

}  // namespace firebreak::cuda
