// Growth by design: a schedule lets iterations become longer steadily. A slowness comes in steps.
#pragma once

#include <vector>

namespace falcon::instrument {

/// Whether a rising line fits the values clearly better than two levels do, wherever the step between them lies: both
/// have their best fit, and what is left over of the line is less than three quarters of what is left over of the step.
/// Of fewer than 24 values nothing is known: false.
/// @param values  in order
/// @param most    what a value counts at most of its distance, so that spikes count little; above 0
bool growsSteadily(const std::vector<double>& values, double most);

}  // namespace falcon::instrument
