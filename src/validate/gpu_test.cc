#include "validate/gpu_test.h"

#include "base/module_file.h"
#include "validate/figures.h"

namespace falcon::validate {
namespace {

double knownOr(double figure) {
  return figure > 0 ? figure : unknown;
}

class ModuleBenchmark final : public GpuBenchmark {
 public:
  explicit ModuleBenchmark(const FalconGpuModule& module) : module_(module) {}

  Result<int> devices() const override {
    std::array<char, 256> why{};
    int count = 0;
    if (module_.countDevices(&count, why.data(), why.size()) != 0) return Error::system("no GPU: {}", why.data());
    if (count < 1) return Error::system("no GPU: the CUDA driver shows none to this process");
    return count;
  }

  Result<GpuScore> run(int device, Nanoseconds span) const override {
    std::array<char, 256> why{};
    FalconGpuFigures figures{};
    if (module_.measure(device, seconds(span), &figures, why.data(), why.size()) != 0)
      return Error::system("the GPU could not be tested: {}", why.data());
    GpuScore score{.device = figures.device, .bus = figures.bus};
    for (std::size_t i = 0; i < score.operationsPerSecond.size(); ++i)
      score.operationsPerSecond[i] = knownOr(figures.operationsPerSecond[i]);
    score.copyRate = knownOr(figures.copyRate);
    score.toDeviceRate = knownOr(figures.toDeviceRate);
    score.fromDeviceRate = knownOr(figures.fromDeviceRate);
    return score;
  }

 private:
  const FalconGpuModule& module_;
};

}  // namespace

const char* nameOf(FalconGpuProduct product) {
  switch (product) {
    case falconGpuFloat32:
      return "f32";
    case falconGpuTensorFloat32:
      return "tf32";
    case falconGpuFloat16:
      return "f16";
    case falconGpuBfloat16:
      return "bf16";
    case falconGpuFloat8:
      return "f8";
    case falconGpuProducts:
      break;
  }
  return "?";
}

Result<std::unique_ptr<const GpuBenchmark>> openGpuBenchmark(const std::string& path) {
  const auto symbol = symbolOfModule(path.empty() ? modulePath("libnccl_falcon_gpu.so") : path, "falconGpuModule");
  if (!symbol) return symbol.error();
  const FalconGpuModule* module = reinterpret_cast<decltype(&falconGpuModule)>(*symbol)();
  if (!module || module->version != falconGpuModuleVersion)
    return Error::system("libnccl_falcon_gpu.so is of another version; install both libraries from one build");
  return std::unique_ptr<const GpuBenchmark>(std::make_unique<ModuleBenchmark>(*module));
}

}  // namespace falcon::validate
