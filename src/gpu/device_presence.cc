#include "gpu/device_presence.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <string_view>

#include "base/folder_names.h"

namespace falcon::gpu {
namespace {

namespace fs = std::filesystem;

/// CUDA shows the devices before the first entry that names none.
bool namesADevice(std::string_view visible) {
  return !visible.empty() && (std::isdigit(static_cast<unsigned char>(visible.front())) ||
                              visible.starts_with("GPU-") || visible.starts_with("MIG-"));
}

bool isDeviceNode(const std::string& name) {
  constexpr std::string_view prefix = "nvidia";
  return name.starts_with(prefix) && name.size() > prefix.size() &&
         std::isdigit(static_cast<unsigned char>(name[prefix.size()]));
}

}  // namespace

bool devicesSeemPresent(const std::string& root, const char* visible) {
  if (visible && !namesADevice(visible)) return false;
  const auto boards = namesIn(root + "/proc/driver/nvidia/gpus");
  if (boards && !boards->empty()) return true;
  std::error_code error;
  for (const char* node : {"/dev/dxg", "/dev/nvhost-gpu", "/dev/nvgpu"})  // in Windows's Linux; of boards with one chip
    if (fs::exists(root + node, error)) return true;
  const auto nodes = namesIn(root + "/dev");
  return nodes && std::any_of(nodes->begin(), nodes->end(), isDeviceNode);
}

}  // namespace falcon::gpu
