#include "validate/examination.h"

#include <algorithm>

#include "base/wire.h"

namespace falcon::validate {
namespace {

constexpr std::uint32_t magic = 0x46455831;
constexpr std::size_t leastBytesOfRank = 80;

// In the order they travel.
constexpr double CauseEvidence::*evidenceFigures[] = {
    &CauseEvidence::throttled,  &CauseEvidence::waited,           &CauseEvidence::stolen, &CauseEvidence::ran,
    &CauseEvidence::processors, &CauseEvidence::thermalThrottles, &CauseEvidence::power};

}  // namespace

std::string encode(const Examination& examination) {
  WireWriter out;
  out.put(magic).put(examination.heldSeconds).put(static_cast<std::uint32_t>(examination.ranks.size()));
  for (const ExaminedRank& rank : examination.ranks) {
    out.put(rank.rank).put(rank.gigaflops).put(rank.memoryRate);
    for (const auto figure : evidenceFigures) out.put(rank.evidence.*figure);
    for (const std::string* text : {&rank.site.node, &rank.site.address, &rank.site.host})
      out.put(std::string_view(*text));
  }
  out.put(std::string_view(encode(examination.links)));
  return out.take();
}

Result<Examination> decodeExamination(std::string_view bytes) {
  WireReader in(bytes);
  Examination examination;
  bool sane = in.get<std::uint32_t>() == magic;
  examination.heldSeconds = in.get<double>();
  const auto count = in.getCount(leastBytesOfRank);
  for (std::uint32_t i = 0; i < count; ++i) {
    ExaminedRank rank;
    rank.rank = in.get<Rank>();
    rank.gigaflops = in.get<double>();
    rank.memoryRate = in.get<double>();
    for (const auto figure : evidenceFigures) rank.evidence.*figure = in.get<double>();
    for (std::string* text : {&rank.site.node, &rank.site.address, &rank.site.host}) *text = in.getString();
    sane = sane && rank.rank >= 0 && (examination.ranks.empty() || examination.ranks.back().rank < rank.rank);
    examination.ranks.push_back(std::move(rank));
  }
  const auto links = decodeMeasurements(in.getString());
  if (!sane || !in.finished() || !links) return Error::remote("{} bytes are no examination", bytes.size());
  const auto isThere = [&](Rank rank) {
    return std::any_of(examination.ranks.begin(), examination.ranks.end(),
                       [&](const ExaminedRank& each) { return each.rank == rank; });
  };
  for (const LinkMeasurement& link : *links)
    if (!isThere(link.link.from) || !isThere(link.link.to))
      return Error::remote("an examination has links of ranks that are not in it");
  examination.links = *links;
  return examination;
}

}  // namespace falcon::validate
