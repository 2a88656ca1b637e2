// A real browser that opens a page from disk, without any network.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <thread>

namespace falcon::tests {

inline bool haveBrowser() {
  return std::system("command -v chromium >/dev/null 2>&1") == 0;
}

/// The document after its scripts have run, as the browser has it; "" and a failure where it did not open.
inline std::string openedByBrowser(const std::string& html, int width = 1280) {
  const auto folder = std::filesystem::temp_directory_path() / ("falcon-page-" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "page.html") << html;
  const std::string command =
      "HOME=" + folder.string() +
      " timeout 60 chromium --headless --no-sandbox --disable-gpu --window-size=" + std::to_string(width) +
      ",900 --virtual-time-budget=5000 --dump-dom file://" + (folder / "page.html").string() + " 2>/dev/null";
  std::string dom;
  FILE* pipe = popen(command.c_str(), "r");
  if (!pipe) {
    ADD_FAILURE() << "chromium cannot be started";
    return "";
  }
  char buffer[4096];
  for (size_t got; (got = fread(buffer, 1, sizeof buffer, pipe)) > 0;) dom.append(buffer, got);
  EXPECT_EQ(pclose(pipe), 0);
  // Its helpers may end a moment after it, and write there until then.
  std::error_code problem;
  for (int i = 0; i < 3000; ++i) {
    std::filesystem::remove_all(folder, problem);
    if (!problem) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_FALSE(problem) << folder << ": " << problem.message();
  return dom;
}

/// The same, with a script at the end of the page whose value, as text, is what is returned.
inline std::string valueInBrowser(std::string html, const std::string& script, int width = 1280) {
  const std::string probe =
      "<script>{ const made = document.createElement('output'); made.id = 'probe'; "
      "made.textContent = 'value:' + (() => {" +
      script + "})() + ':value'; document.body.append(made); }</script>";
  html.insert(html.rfind("</body>"), probe);
  const std::string dom = openedByBrowser(html, width), begin = "<output id=\"probe\">value:";
  const size_t from = dom.find(begin);
  if (from == std::string::npos) {
    ADD_FAILURE() << "the script did not run";
    return "";
  }
  return dom.substr(from + begin.size(), dom.find(":value", from + begin.size()) - from - begin.size());
}

}  // namespace falcon::tests
