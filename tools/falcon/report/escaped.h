// Text as HTML and SVG take it.
#pragma once

#include <string>

namespace falcon::report_page {
std::string escaped(const std::string& text);
}  // namespace falcon::report_page
