#include "api/user_ops.h"

#include <atomic>

#include "base/log.h"

namespace falcon::api {
namespace {

Error unknown(const char* function, ncclRedOp_t number) {
  return log::decided(
      Error::invalidArgument("{}: {} is no reduction of this communicator (destroyed, or another one's?)", function,
                             static_cast<int>(number)));
}

}  // namespace

ncclRedOp_t UserOps::add(const UserOp& op) {
  static std::atomic<int> next{ncclNumOps};
  const int number = next.fetch_add(1, std::memory_order_relaxed);
  const std::lock_guard lock(mutex_);
  ops_.emplace(number, op);
  return static_cast<ncclRedOp_t>(number);
}

Result<UserOp> UserOps::find(const char* function, ncclRedOp_t number, DataType type) const {
  const std::lock_guard lock(mutex_);
  const auto found = ops_.find(static_cast<int>(number));
  if (found == ops_.end()) return unknown(function, number);
  if (found->second.type != type)
    return log::decided(Error::invalidArgument("{}: the reduction was made for {}, not for {}", function,
                                               nameOf(found->second.type), nameOf(type)));
  return found->second;
}

Result<UserOp> UserOps::remove(const char* function, ncclRedOp_t number) {
  if (static_cast<unsigned>(number) < reduceOpCount)
    return log::decided(Error::invalidArgument("{}: {} is built in and cannot be destroyed", function,
                                               nameOf(static_cast<ReduceOp>(number))));
  const std::lock_guard lock(mutex_);
  const auto found = ops_.find(static_cast<int>(number));
  if (found == ops_.end()) return unknown(function, number);
  const UserOp op = found->second;
  ops_.erase(found);
  return op;
}

}  // namespace falcon::api
