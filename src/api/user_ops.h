// Reductions made at run time (PreMulSum, bitwise): the numbers an application has for them, and what they stand for.
#pragma once

#include <map>
#include <mutex>
#include <optional>

#include "api/exports.h"
#include "base/call.h"
#include "base/result.h"

namespace falcon::api {

struct UserOp {
  DataType type = DataType::f32;
  ReduceOp reduction = ReduceOp::preMulSum;
  PreMultiplier multiplier;  ///< of preMulSum
};

/// The user ops of one communicator. Thread-safe. Numbers are never given twice in a process, so that an op of another
/// communicator or a destroyed one is known for what it is.
class UserOps {
 public:
  ncclRedOp_t add(const UserOp& op);
  /// Errors (invalidArgument): not an op of this communicator; an op for another type.
  Result<UserOp> find(const char* function, ncclRedOp_t number, DataType type) const;
  /// Forgets the op and gives it back. Errors (invalidArgument): a built-in op, or not one of this communicator.
  Result<UserOp> remove(const char* function, ncclRedOp_t number);

 private:
  mutable std::mutex mutex_;
  std::map<int, UserOp> ops_;
};

}  // namespace falcon::api
