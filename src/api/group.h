// Between GroupStart and GroupEnd a thread's calls are collected; the outermost End runs them together.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "api/communicator.h"
#include "api/dispatch.h"
#include "api/one_sided.h"
#include "gpu/vendor_library.h"

namespace falcon::api {

/// The making of one communicator (init or split). The group owns the communicator until `work` is done.
struct SetupJob {
  ncclComm* communicator = nullptr;
  ncclComm_t* output = nullptr;
  /// Blocking. Calls start() on the communicator, unless the rank takes no part.
  std::function<Status()> work;
  /// False: the rank is in no part of a split; it only helps the others, and its output stays null.
  bool takesPart = true;
  /// What the communicator is made of; null: it is made anew.
  std::shared_ptr<ParentUse> parent{};
};

/// One thread's group. Every call outside of a group is a group of its own.
class Group {
 public:
  static Group& ofThisThread() {
    if (mine) [[likely]]
      return *mine;
    return make();
  }

  /// Whether the calling thread has one open.
  static bool isOpenHere() { return mine && mine->open(); }

  bool open() const { return depth_ > 0; }
  void start() { ++depth_; }
  /// An inner end only counts down. Errors (invalidUsage): no group is open. Else the first error of the group.
  Status end();
  /// The same, but nothing runs: the group is forgotten, and the microseconds that it would have taken are told (by an
  /// inner end nothing is). Errors also (invalidUsage): the group makes communicators, which has to happen.
  Result<std::optional<float>> simulateEnd();

  /// `settings`: of this call alone; null: none.
  Status submit(const char* function, CommunicatorUse communicator, const Call& call, void* stream,
                CallSettings settings = nullptr);
  /// The same in an open group for a call on no stream of a plain communicator: it is kept as its engine takes it.
  /// False: the group is no plain one, nothing has happened.
  bool collectPlain(ncclComm& communicator, const Call& call);
  /// The same for a one-sided message. Those of a group go before its calls, and what waits for some comes last.
  Status submit(OneSidedWork work);
  Status setUp(const char* function, SetupJob job);
  /// Runs `work` once the calls collected so far have been handed to their engines: now, where no group is open.
  Status afterwards(std::function<Status()> work);
  /// What is passed on to the vendor as it comes has to be inside of a group of the vendor's, too, or it waits there
  /// for what this thread has yet to say: one is open from the first such call on, until the outermost end of this one.
  /// Outside of a group nothing happens.
  Status openVendors(std::shared_ptr<const gpu::VendorLibrary> library);
  /// A call of an open group failed before it was collected: the group will not run.
  Status noted(Status status);

 private:
  static Group& make();

  /// All members of a group wait for their work, or none does.
  Status agreeOnBlocking(const char* function, bool blocking);
  Status run();
  bool isPlain() const;
  Status runPlainly();
  void makeOrdinary();
  void takeMemoryOf(Group& ended);
  Status runCollected();
  Status runWithOneSided();

  static constinit thread_local Group* mine;

  int depth_ = 0;
  std::optional<bool> blocking_;
  std::optional<Error> firstError_;
  std::shared_ptr<const gpu::VendorLibrary> vendors_;  ///< whose group is open; null: there is none
  std::vector<SetupJob> jobs_;
  std::vector<CommunicatorUse> inUse_;
  std::vector<PendingCall> calls_;
  // The calls as long as all are plain; else empty. Behind each stands in `owners_` whose it is.
  std::vector<Submission> plain_;
  std::vector<ncclComm*> owners_;
  std::vector<std::function<Status()>> afterwards_;
  std::vector<OneSidedWork> oneSided_;
};

}  // namespace falcon::api
