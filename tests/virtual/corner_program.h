// SPDX-License-Identifier: Apache-2.0
/// What programs do that a move, or the virtual driver itself, may come in the way of: several threads, calls
/// that the GPU waits for, calls that are wrong.
#pragma once

#include <atomic>
#include <cstdint>
#include <istream>
#include <string>
#include <thread>
#include <utility>

#include "program/cuda/backend.h"

namespace firebreak::test {

/// All but the initialisations and what is asked for by name needs the calling thread's current context.
class CornerProgram {
 public:
  explicit CornerProgram(const cuda::Backend& driver) : driver_(driver) {}
  CornerProgram(const CornerProgram&) = delete;
  CornerProgram& operator=(const CornerProgram&) = delete;
  ~CornerProgram();

  /// Does what the first word says, and answers a value where something is asked.
  ///   init                    Makes nothing besides.
  ///   init_limited            The same in 4 GB of addresses.
  ///   before_init             ILLEGAL_STATE where a function answers before; init.
  ///   ask_for_newer           1: there is such a function, with parameters that no header of ours has.
  ///   use_newer               How many devices that says.
  ///   ask_for_unknown         1: there is a function of a name that no header of ours has.
  ///   allocate_too_much       More than the library between allows, where there is one.
  ///   capture_and_free TIMES  A thread captures so often, and this one allocates and frees meanwhile.
  ///   buffer_ids              The different identities of three allocations that it has had.
  ///   free_twice              Frees in the order of a stream, and answers what the second time does.
  ///   feed_after CALLS        Has the GPU wait for a word. A thread stores it after so many calls.
  ///   green                   Works in a green context, and answers what it has stored there.
  ///   old_names               Uses the first versions of functions, whose names have no number.
  ///   set_attributes          Sets some of a context and of a stream.
  ///   attributes              What these are now, as one number.
  ///   set_flags               Sets some of the primary context.
  ///   flags                   What these are now.
  ///   set_synchronous         Has copies of some memory wait for their end.
  ///   detach                  Makes a context, and detaches, which ends it.
  ///   launch_on_each_device   Launches in a structure, and answers what that has stored.
  ///   launch_as_before        The same with parameters that are set one by one.
  ///   give_symbols            Loads code, and gives it an address of the host's.
  ///   copy_between_contexts   Copies a word within the current context, and answers it.
  ///   cancel                  Cancels a thread that is in a call; 1: it has ended of that.
  ///   pop_all                 Makes two contexts, pops both, and answers what making a stream does then.
  ///   end_one_of_two          Ends a context that had work while another one's goes on.
  ///   use_ended               What functions answer whose current context has ended, as one number.
  ///   misuse                  What functions answer that are used wrongly, as one number.
  ///   record_nowhere          Makes an event, and records it in a stream that has ended.
  ///   time_nowhere            What is answered to who asks for its time.
  ///   fork                    Makes a child that stays as long as the program.
  ///   retain_release TIMES    Has a primary context so often, and leaves a stream and memory in it.
  std::pair<CUresult, unsigned long long> run(const std::string& what, std::istream& words);

 private:
  CUresult prepare();
  CUresult init_limited();
  CUresult before_init();
  std::pair<CUresult, unsigned long long> ask_for_newer();
  std::pair<CUresult, unsigned long long> use_newer();
  std::pair<CUresult, unsigned long long> ask_for_unknown();
  std::pair<CUresult, unsigned long long> flags();
  CUresult set_synchronous();
  CUresult detach();
  std::pair<CUresult, unsigned long long> launch_on_each_device();
  std::pair<CUresult, unsigned long long> launch_as_before();
  CUresult give_symbols();
  CUresult pop_all();
  CUresult end_one_of_two();
  std::pair<CUresult, unsigned long long> use_ended();
  std::pair<CUresult, unsigned long long> misuse();
  CUresult record_nowhere();
  CUresult time_nowhere();
  static CUresult fork();
  std::pair<CUresult, CUstream> ended_stream();
  CUresult allocate_too_much();
  CUresult capture_and_free(unsigned int times);
  CUresult free_twice();
  std::pair<CUresult, unsigned long long> buffer_ids();
  CUresult feed_after(unsigned int calls);
  CUresult retain_release(unsigned int times);
  std::pair<CUresult, unsigned long long> green();
  std::pair<CUresult, unsigned long long> cancel();
  CUresult old_names();
  CUresult set_attributes();
  std::pair<CUresult, unsigned long long> attributes();
  std::pair<CUresult, unsigned long long> copy_between_contexts();
  CUresult start_waiting(CUstream stream);
  std::atomic<std::uint32_t>& word() { return *static_cast<std::atomic<std::uint32_t>*>(host_); }

  const cuda::Backend driver_;
  CUcontext context_ = nullptr;
  using NewerMemoryInfo = CUresult (*)(std::size_t*, std::size_t*, int*);
  NewerMemoryInfo newer_ = nullptr;
  CUfunction wait_ = nullptr;
  CUfunction put_ = nullptr;
  CUevent nowhere_ = nullptr;
  CUstream stream_ = nullptr;  ///< whoever needs it first makes it
  void* host_ = nullptr;
  std::thread feeding_;
};

}  // namespace firebreak::test
