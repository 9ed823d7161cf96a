// SPDX-License-Identifier: Apache-2.0
/// Questions to the shelves (agent/service/shelves.h), one after another, on a thread of their own: a shelf
/// that does not answer keeps nobody but those who wait for what it has.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "agent/service/shelves.h"
#include "ground/os/event_loop.h"

namespace firebreak::agent {

/// Belongs to the loop's thread, on which all callbacks are called, never inside of the call that asks. What
/// a shelf cannot say now is asked again until it can; each change is told in the log.
class ShelfQueue {
 public:
  /// Called once a shelf has not answered, and once it does again.
  using OnSilence = std::function<void(const std::string& shelf, bool is_silent)>;

  ShelfQueue(os::EventLoop& loop, os::Kernel& kernel, ServiceManager& manager,
             std::vector<std::string> command, OnSilence on_silence);
  ShelfQueue(const ShelfQueue&) = delete;
  ShelfQueue& operator=(const ShelfQueue&) = delete;
  /// Asks what has not been asked yet, and answers nobody.
  ~ShelfQueue();

  /// Takes up shelves as Shelves does; called before anything is asked.
  void take_up(std::map<std::string, os::Fd>& descriptors) { shelves_.take_up(descriptors); }
  /// Says whether the service manager keeps a shelf's socket; at first it does not.
  void be_kept(bool is_kept = true) { is_kept_ = is_kept; }

  /// The descriptor stays the caller's.
  void put(const std::string& name, int descriptor, std::function<void(const Status&)> done);
  void get(std::vector<std::string> names, std::function<void(std::vector<os::Fd>)> done);
  void have(std::vector<std::string> names, std::function<void(const std::vector<bool>&)> done);
  /// `done`: all shelves have; one that does not answer is told again until it does.
  void drop(
      const std::string& name, std::function<void()> done = [] {});
  /// Ends all shelves after all that was asked before: none is left, nor kept. `done` is called after the
  /// service manager was told.
  void end_all(std::function<void()> done);

  /// Nothing is on its way, neither to a shelf nor to who asked.
  bool is_idle() const { return under_way_ == 0; }

 private:
  /// Words for the service manager, told by the loop's thread, before who asked is answered.
  class Manager final : public ServiceManager {
   public:
    explicit Manager(ShelfQueue& queue) : queue_(queue) {}
    std::map<std::string, os::Fd> take_descriptors() override { return {}; }
    const std::map<std::string, os::Fd>& descriptors() override { return queue_.manager_.descriptors(); }
    Status keep(const std::string& name, int descriptor) override;
    void drop(const std::string& name) override;
    Status give_own_unit(const std::string& name, const std::string& description, pid_t pid) override {
      return queue_.manager_.give_own_unit(name, description, pid);
    }
    bool can_start_apart() override { return queue_.manager_.can_start_apart(); }
    Result<pid_t> start_apart(const ApartService& service) override {
      return queue_.manager_.start_apart(service);
    }
    void tell_ready() override {}
    void tell_status(const std::string&) override {}

   private:
    ShelfQueue& queue_;
  };
  /// The act to do once it is known; empty: it is not yet.
  using Answer = std::function<void()>;
  using Question = std::function<Answer(Shelves&)>;

  void ask(Question question);
  void serve();
  void tell_silence();
  void post(std::function<void()> callback);

  os::EventLoop& loop_;
  ServiceManager& manager_;
  OnSilence on_silence_;
  std::shared_ptr<bool> is_there_ = std::make_shared<bool>(true);  ///< posted acts look whether we are there
  std::size_t under_way_ = 0;
  std::atomic<bool> is_kept_ = false;  ///< alone, in no order with anything else
  Manager between_{*this};
  Shelves shelves_;                  ///< the thread's, once it runs
  std::vector<std::string> silent_;  ///< the thread's
  std::mutex mutex_;                 ///< guards the next two
  std::deque<Question> questions_;
  bool ending_ = false;
  std::condition_variable changed_;
  std::thread thread_;  ///< last: it uses all others
};

}  // namespace firebreak::agent
