#include "plugin/profiler/event_names.h"

namespace falcon::plugin {
namespace {

// By value.
constexpr const char* types[dataTypeCount] = {"ncclInt8",    "ncclUint8",    "ncclInt32",      "ncclUint32",
                                              "ncclInt64",   "ncclUint64",   "ncclFloat16",    "ncclFloat32",
                                              "ncclFloat64", "ncclBfloat16", "ncclFloat8e4m3", "ncclFloat8e5m2"};

}  // namespace

const char* profilerNameOf(DataType type) {
  return types[static_cast<int>(type)];
}

std::optional<Operation> operationOf(std::string_view name) {
  for (int i = 0; i < operationCount; ++i)
    if (name == nameOf(static_cast<Operation>(i))) return static_cast<Operation>(i);
  return std::nullopt;
}

std::optional<DataType> dataTypeOf(std::string_view name) {
  for (int i = 0; i < dataTypeCount; ++i)
    if (name == types[i]) return static_cast<DataType>(i);
  return std::nullopt;
}

}  // namespace falcon::plugin
