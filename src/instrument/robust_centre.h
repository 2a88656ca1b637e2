// Where the middle of some values lies, whatever a few of them do.
#pragma once

#include <vector>

namespace falcon::instrument {

/// The median of fewer than 6 values; of up to 16 the median of all pairwise means (Hodges and Lehmann, 1963), nearly
/// as sharp as the mean and nearly as robust as the median, and not torn between two modes; of more the mean of what is
/// cut to three deviations around the median. 0 of nothing.
double robustCentre(const std::vector<double>& values, double deviation);

/// Sample standard deviation; 0 of fewer than two values.
double plainDeviation(const std::vector<double>& values);

}  // namespace falcon::instrument
