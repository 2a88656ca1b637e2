#include "base/data_type.h"

namespace falcon {

const char* nameOf(DataType type) {
  constexpr const char* names[dataTypeCount] = {"int8", "uint8", "int32",  "uint32",   "int64",  "uint64",
                                                "half", "float", "double", "bfloat16", "f8e4m3", "f8e5m2"};
  return names[static_cast<int>(type)];
}

const char* nameOf(ReduceOp op) {
  constexpr const char* names[reduceKindCount] = {"sum",       "prod", "max", "min", "avg",
                                                  "premulsum", "band", "bor", "bxor"};
  return names[static_cast<int>(op)];
}

}  // namespace falcon
