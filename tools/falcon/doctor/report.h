// What the doctor says, for people and for programs. Pure.
#pragma once

#include <string>

#include "doctor/findings.h"

namespace falcon::doctor {

std::string table(const Measurements& measured, const Findings& findings);
/// One JSON object; what is not known is null.
std::string json(const Measurements& measured, const Findings& findings);

}  // namespace falcon::doctor
