// Times that no measurement tells apart are one.
#pragma once

#include <span>
#include <vector>

namespace falcon::rebalance {

/// The mean of each one's measurements, but one mean of all whose difference their scatter explains: a difference that
/// is chance would move work between two that are equally fast. Alike are those from a fastest to a slowest that lie
/// within three standard errors of a difference; within more where more lie between them, or where few measurements
/// tell the scatter. It is a share of the time, the same of all; where nobody was measured twice, it is not known, and
/// all are alike.
///
/// @param measured  of each at least one measurement, all positive; in any unit
/// Source: the pairwise comparison of sorted means of Newman (1939) and Keuls (1952).
std::vector<double> pooledTimes(std::span<const std::vector<double>> measured);

}  // namespace falcon::rebalance
