// SPDX-License-Identifier: Apache-2.0
/// What was under way in an instance that has died.
#include "program/virtual/process.h"

namespace firebreak::virtual_driver {

void VirtualProcess::take_up_marks() {
  for (const auto& [work, up_to] : all_queued()) marks_.take_up(*work);
}

/// A part of what has come; the rest the next time.
void VirtualProcess::summarise_code() {
  if (given_ == nullptr || is_never_redone()) return;
  std::vector<std::shared_ptr<CodeImage>> images;
  for (const Family family : {Family::Module, Family::Library})
    objects_.for_each(family, [&](Object& object) {
      if (auto image = objects_.code_of(object)) images.push_back(std::move(image));
    });
  if (!code_summaries_.read_new(images, target_gpu(own_driver_))) wake_keeper();
}

/// What was under way. Empty: it has been done again, to its end; else why not.
std::string VirtualProcess::redo_in(const Instance& to) {
  if (given_ == nullptr) return "nothing is done again here";
  if (is_never_redone()) return "its code has had variables";
  if (!has_one_context()) return "it has several contexts";
  const auto queued = all_queued();
  std::vector<Work*> works;
  for (const auto& [work, up_to] : queued) works.push_back(work);
  const auto under_way = given_->under_way(works);
  if (!under_way) return under_way.error().message;
  if (std::string obstacle = redo_.find_obstacle(*under_way, to); !obstacle.empty()) return obstacle;
  const CUresult given = redo_.give_again(*under_way, to);
  forget_current(to);
  if (given != CUDA_SUCCESS || synchronize(to, settings_.longest_wait) != Waited::AllDone)
    return "it did not end once more";
  end_all(queued);
  page_->redone.fetch_add(static_cast<std::uint32_t>(under_way->entries.size()));
  return {};
}

}  // namespace firebreak::virtual_driver
