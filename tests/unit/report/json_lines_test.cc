#include "report/json_lines.h"

#include <gtest/gtest.h>

namespace falcon::report {
namespace {

std::string textOf(const std::string& text) {
  Event event;
  event.text = text;
  const std::string line = toJson(event);
  const std::string key = "\"text\":";
  const auto at = line.find(key);
  return at == std::string::npos ? "" : line.substr(at + key.size(), line.size() - at - key.size() - 1);
}

TEST(JsonLines, QuoteWhatJsonDoesNotTake) {
  EXPECT_EQ(textOf("plain"), "\"plain\"");
  EXPECT_EQ(textOf("a \"b\" \\ c"), R"("a \"b\" \\ c")");
  EXPECT_EQ(textOf("line\nfeed\t"), R"("line\u000afeed\u0009")");
  EXPECT_EQ(textOf(std::string(1, '\0')), R"("\u0000")");
}

TEST(JsonLines, KeepUtf8AndReplaceWhatIsNone) {
  for (const std::string text : {"caf\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\xed\x9f\xbf", "\xf4\x8f\xbf\xbf"})
    EXPECT_EQ(textOf(text), '"' + text + '"');
  // A lone continuation, a cut character, a detour, a surrogate, beyond the last character, no beginning at all.
  EXPECT_EQ(textOf("a\x80z"), R"("a\ufffdz")");
  EXPECT_EQ(textOf("\xe2\x82"), R"("\ufffd\ufffd")");
  EXPECT_EQ(textOf("\xc0\xaf"), R"("\ufffd\ufffd")");
  EXPECT_EQ(textOf("\xe0\x80\x80"), R"("\ufffd\ufffd\ufffd")");
  EXPECT_EQ(textOf("\xed\xa0\x80"), R"("\ufffd\ufffd\ufffd")");
  EXPECT_EQ(textOf("\xf4\x90\x80\x80"), R"("\ufffd\ufffd\ufffd\ufffd")");
  EXPECT_EQ(textOf("\xff"), R"("\ufffd")");
}

}  // namespace
}  // namespace falcon::report
