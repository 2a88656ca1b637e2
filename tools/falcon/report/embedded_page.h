// share/report/page.html, compiled in (cmake/embed_text.cmake): the tool is one file that works anywhere.
#pragma once

namespace falcon::report_page {

extern const char* const embeddedPage;

}  // namespace falcon::report_page
