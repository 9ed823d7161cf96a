// SPDX-License-Identifier: Apache-2.0
#include "ground/os/pipe_room.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>
#include <type_traits>
#include <utility>

#include "ground/os/file.h"
#include "ground/os/socket.h"

namespace firebreak::os {
namespace {

class PipeRoom : public testing::TestWithParam<std::size_t> {
 protected:
  PipeRoom() {
    resize_pipe(pipe_.writing, 16'384);
    ::fcntl(pipe_.writing.get(), F_SETFL, O_NONBLOCK);
  }
  bool write() { return ::write(pipe_.writing.get(), text_.data(), text_.size()) > 0; }

  std::string text_ = std::string(GetParam(), 'd');
  std::remove_cvref_t<decltype(*make_pipe())> pipe_ = std::move(*make_pipe());
};

TEST_P(PipeRoom, ItIsFullOnceItsWriterStandsStill) {
  EXPECT_FALSE(is_pipe_full(pipe_.reading)) << "it is empty";
  while (true) {
    const bool is_full = is_pipe_full(pipe_.reading);
    const bool is_taken = write();
    EXPECT_NE(is_full, is_taken);
    if (is_full || !is_taken) break;
  }
  std::array<char, 4096> page;
  EXPECT_GT(::read(pipe_.reading.get(), page.data(), page.size()), 0) << "it stays there";
  EXPECT_FALSE(is_pipe_full(pipe_.reading));
}

// Of the last size each takes a page of which it leaves almost a half.
INSTANTIATE_TEST_SUITE_P(OfBytesAtOnce, PipeRoom, testing::Values(4096, 2100));

}  // namespace
}  // namespace firebreak::os
