#include "plugin/result_text.h"

#include <iterator>

#include "base/format.h"

namespace falcon::plugin {

std::string resultText(ResultCode result) {
  constexpr const char* names[] = {"success",          "CUDA error",    "system error", "internal error",
                                   "invalid argument", "invalid usage", "remote error", "in progress"};
  const bool known = result >= 0 && static_cast<std::size_t>(result) < std::size(names);
  return fmt::format("{} ({})", result, known ? names[result] : "no code of NCCL's");
}

}  // namespace falcon::plugin
