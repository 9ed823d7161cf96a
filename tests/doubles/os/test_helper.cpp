// SPDX-License-Identifier: Apache-2.0
/// A process that answers what tests ask: "quick …" at once, "slow …" by a child.
#include <unistd.h>

#include "ground/os/helper_process.h"
#include "ground/os/memory.h"

int main() {
  using namespace firebreak;
  os::Socket socket{os::Fd(os::HelperProcess::socket_descriptor)};
  os::HelperDuties duties;
  duties.is_quick = [](std::string_view question, const auto&) -> Result<bool> {
    if (question.starts_with("quick ")) return true;
    if (question.starts_with("slow ")) return false;
    return fail(ErrorCode::InvalidArgument, "that is no question");
  };
  duties.answer = [](std::string_view question, const auto& attached) -> Result<os::HelperAnswer> {
    if (question.ends_with(" refusal")) return fail(ErrorCode::NotFound, "there is none");
    os::HelperAnswer answer{std::string(question)};
    char byte = 0;
    if (question.ends_with(" wait")) (void)!::read(attached.front().get(), &byte, 1);
    if (question.ends_with(" afterwards"))
      answer.afterwards = [&attached] { (void)!::write(attached.front().get(), "x", 1); };
    if (question.ends_with(" echo") && !attached.empty())
      answer.descriptors.push_back(os::memory_file_with("theirs").value());
    return answer;
  };
  os::serve_as_helper(socket, duties);
}
