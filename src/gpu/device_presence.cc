#include "gpu/device_presence.h"

#include <cctype>
#include <filesystem>
#include <string_view>

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
  std::error_code error;
  if (fs::directory_iterator(root + "/proc/driver/nvidia/gpus", error) != fs::directory_iterator()) return true;
  for (const char* node : {"/dev/dxg", "/dev/nvhost-gpu", "/dev/nvgpu"})  // in Windows's Linux; of boards with one chip
    if (fs::exists(root + node, error)) return true;
  for (const fs::directory_entry& each : fs::directory_iterator(root + "/dev", error))
    if (isDeviceNode(each.path().filename().string())) return true;
  return false;
}

}  // namespace falcon::gpu
