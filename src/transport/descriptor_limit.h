// The process's limit of open files, which large communicators meet.
#pragma once

#include <sys/resource.h>

#include <cstddef>
#include <functional>
#include <string>

#include "base/result.h"

namespace falcon::transport {

/// Room for `more` descriptors beside those that are open: raises the soft limit where it must, as far as the hard one
/// allows. A system error that says what to do where that is not enough; `what` is who needs them.
Status reserveDescriptors(std::size_t more, const std::string& what);

/// While it lives the soft limit is as high as the hard one: for the last word of who has no descriptor left. What was
/// opened meanwhile stays open.
class DescriptorLimitLifted {
 public:
  DescriptorLimitLifted();
  ~DescriptorLimitLifted();
  DescriptorLimitLifted(const DescriptorLimitLifted&) = delete;

 private:
  rlimit before_{};
  bool isLifted_ = false;
};

/// Runs `work` on a thread whose descriptors are a copy of the process's with `free` free ones among them (fewer where
/// it has not so many): for the last word where even the hard limit is reached. What it opens is its own and goes with
/// it; what the process has open stays so. Nothing where the kernel gives no thread, or no copy.
void withDescriptorsOfItsOwn(int free, const std::function<void()>& work);

}  // namespace falcon::transport
