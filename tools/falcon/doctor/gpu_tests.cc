#include "doctor/gpu_tests.h"

#include "base/clock.h"
#include "base/wire.h"
#include "gpu/cuda_driver.h"

namespace falcon::doctor {

std::optional<GpuMeasurement> measureGpu(Rank rank, int localRank, Nanoseconds span) {
  const auto driver = gpu::loadCudaDriver();
  if (!driver || driver->deviceCount() <= localRank) return {};
  GpuMeasurement measured{.rank = rank};
  auto sample = validate::makeGpuTester(SystemClock::instance())->run(localRank, span);
  if (sample)
    measured.sample = std::move(*sample);
  else
    measured.problem = sample.error().message();
  return measured;
}

std::string encode(const std::optional<GpuMeasurement>& measured) {
  if (!measured) return "";
  WireWriter out;
  return out.put(measured->rank)
      .put(std::string_view(measured->problem))
      .put(std::string_view(encode(measured->sample)))
      .take();
}

Result<std::optional<GpuMeasurement>> decodeGpu(std::string_view bytes) {
  if (bytes.empty()) return std::optional<GpuMeasurement>();
  WireReader in(bytes);
  GpuMeasurement measured{.rank = in.get<Rank>()};
  measured.problem = in.getString();
  auto sample = validate::decodeGpuSample(in.getString());
  if (!sample) return sample.error();
  if (!in.finished()) return Error::remote("{} bytes are no measurement of a GPU", bytes.size());
  measured.sample = std::move(*sample);
  return std::optional(std::move(measured));
}

}  // namespace falcon::doctor
