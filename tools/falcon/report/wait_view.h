// Who waits for whom, drawn over the places that ranks have in data, pipeline and tensor parallelism.
#pragma once

#include <string>
#include <vector>

namespace falcon::report_page {

struct WaitView {
  struct Place {
    int rank = -1;
    int data = 0, pipeline = 0, tensor = 0;
  };
  /// `from` spent `share` of the time waiting for `to`.
  struct Arrow {
    int from = -1, to = -1;
    double share = 0;
  };
  std::vector<Place> places;
  std::vector<Arrow> arrows;
};

/// Replicas from left to right; in each the pipeline's stages from left to right and the tensor shards downwards. An
/// arrow is as thick as its share; the more others wait for a rank, the redder it is.
std::string waitViewSvg(const WaitView& view);

}  // namespace falcon::report_page
