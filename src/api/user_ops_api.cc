// nccl.h, nccl_falcon.h: reductions made at run time.
#include "api/exports.h"

#include <cstring>

#include "api/communicator.h"
#include "api/group.h"
#include "api/guard.h"
#include "base/log.h"

using namespace falcon;
using namespace falcon::api;

namespace {

Status createPreMulSum(ncclRedOp_t* output, void* scalar, ncclDataType_t type, ncclScalarResidence_t residence,
                       ncclComm_t comm) {
  constexpr const char* function = "ncclRedOpCreatePreMulSum";
  auto use = requireReady(function, comm);
  if (!use) return use.error();
  if (const Status given = requireOutput(function, "op", output); !given) return given;
  if (const Status given = requireOutput(function, "scalar", scalar); !given) return given;
  if (static_cast<unsigned>(type) >= dataTypeCount)
    return log::decided(Error::invalidArgument("{}: {} is no data type", function, static_cast<int>(type)));
  if (residence != ncclScalarDevice && residence != ncclScalarHostImmediate)
    return log::decided(Error::invalidArgument("{}: {} is no residence", function, static_cast<int>(residence)));

  UserOp op{static_cast<DataType>(type), ReduceOp::preMulSum, {}};
  if (residence == ncclScalarHostImmediate)
    std::memcpy(op.multiplier.value.data(), scalar, sizeOf(op.type));
  else
    op.multiplier.address = scalar;
  if (const Status made = (*use)->engine->makeOp(op.type, op.multiplier); !made) return made;
  *output = (*use)->userOps.add(op);
  return {};
}

Result<ReduceOp> reductionOf(const char* function, ncclFalconBitwise_t which) {
  switch (which) {
    case ncclFalconBitwiseAnd:
      return ReduceOp::bitAnd;
    case ncclFalconBitwiseOr:
      return ReduceOp::bitOr;
    case ncclFalconBitwiseXor:
      return ReduceOp::bitXor;
  }
  return log::decided(Error::invalidArgument("{}: {} is no bitwise reduction", function, static_cast<int>(which)));
}

Status createBitwise(ncclRedOp_t* output, ncclFalconBitwise_t which, ncclDataType_t type, ncclComm_t comm) {
  constexpr const char* function = "ncclFalconRedOpCreateBitwise";
  auto use = requireReady(function, comm);
  if (!use) return use.error();
  if (const Status given = requireOutput(function, "op", output); !given) return given;
  const auto reduction = reductionOf(function, which);
  if (!reduction) return reduction.error();
  if (static_cast<unsigned>(type) >= dataTypeCount)
    return log::decided(Error::invalidArgument("{}: {} is no data type", function, static_cast<int>(type)));
  const auto known = static_cast<DataType>(type);
  if (!isInteger(known))
    return log::decided(
        Error::invalidArgument("{}: {} is no integer: pass an integer type of the same size to combine "
                               "the bits of floats",
                               function, nameOf(known)));
  if ((*use)->vendors)
    return log::decided(Error::invalidUsage(
        "{}: the vendor's library has no bitwise reductions; host memory has them (NCCL_FALCON_ENGINE=host)",
        function));
  *output = (*use)->userOps.add({known, *reduction, {}});
  return {};
}

Status destroy(ncclRedOp_t number, ncclComm_t comm) {
  constexpr const char* function = "ncclRedOpDestroy";
  auto use = requireReady(function, comm);
  if (!use) return use.error();
  const auto op = (*use)->userOps.remove(function, number);
  if (!op) return op.error();
  if (op->multiplier.engineOp < 0) return {};
  // Calls of an open group still need it: the engine sees them only at the group's end.
  auto held = std::make_shared<CommunicatorUse>(std::move(*use));
  return Group::ofThisThread().afterwards(
      [held, multiplier = op->multiplier] { return (*held)->engine->destroyOp(multiplier); });
}

}  // namespace

extern "C" {

ncclResult_t pncclRedOpCreatePreMulSum(ncclRedOp_t* op, void* scalar, ncclDataType_t datatype,
                                       ncclScalarResidence_t residence, ncclComm_t comm) {
  return guarded("ncclRedOpCreatePreMulSum", [&] { return createPreMulSum(op, scalar, datatype, residence, comm); });
}

ncclResult_t ncclFalconRedOpCreateBitwise(ncclRedOp_t* op, ncclFalconBitwise_t which, ncclDataType_t datatype,
                                          ncclComm_t comm) {
  return guarded("ncclFalconRedOpCreateBitwise", [&] { return createBitwise(op, which, datatype, comm); });
}

ncclResult_t pncclRedOpDestroy(ncclRedOp_t op, ncclComm_t comm) {
  return guarded("ncclRedOpDestroy", [&] { return destroy(op, comm); });
}

}  // extern "C"

FALCON_WEAK_TWIN(ncclRedOpCreatePreMulSum);
FALCON_WEAK_TWIN(ncclRedOpDestroy);
