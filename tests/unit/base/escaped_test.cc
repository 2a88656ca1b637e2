#include "base/escaped.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <regex>

namespace falcon {
namespace {

/// Every byte alone and between letters, cut and forbidden characters, and what each exit treats in its own way.
std::vector<std::string> nastyTexts() {
  std::vector<std::string> texts{"",
                                 "caf\xc3\xa9",
                                 "\xf0\x9f\x98\x80",
                                 "\xe2\x82",
                                 "\xc0\xaf",
                                 "\xed\xa0\x80",
                                 "\xf4\x90\x80\x80",
                                 "\xc2\x9b"
                                 "2J",
                                 "\x1b[2J\x07",
                                 "a\"b\\c\nd\r\te",
                                 "</script><b a='x'>&amp;",
                                 "\xef\xbf\xbd"};
  for (int byte = 0; byte < 256; ++byte)
    for (const std::string around : {"", "a"}) texts.push_back(around + static_cast<char>(byte) + around);
  return texts;
}

bool isUtf8(const std::string& text) {
  return nlohmann::json::accept(
             nlohmann::json(std::string(text)).dump(-1, ' ', false, nlohmann::json::error_handler_t::ignore)) &&
         nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::ignore) ==
             nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

TEST(Escaped, IsValidUtf8AtEveryExit) {
  EXPECT_FALSE(isUtf8("\xff"));
  for (const std::string& text : nastyTexts())
    for (const auto exit : {validUtf8, jsonString, labelValue, htmlText, terminalText})
      EXPECT_TRUE(isUtf8(exit(text))) << testing::PrintToString(text);
}

TEST(Escaped, KeepsWhatIsValid) {
  for (const std::string& text : nastyTexts())
    if (isUtf8(text)) {
      EXPECT_EQ(validUtf8(text), text);
    }
  EXPECT_EQ(validUtf8("a\xe2\x82z"), "a\xef\xbf\xbd\xef\xbf\xbdz");
}

TEST(Escaped, ComesBackFromJson) {
  for (const std::string& text : nastyTexts()) EXPECT_EQ(nlohmann::json::parse(jsonString(text)), validUtf8(text));
}

TEST(Escaped, CommandsNoTerminalAsJson) {
  for (const std::string& text : nastyTexts()) EXPECT_EQ(terminalText(jsonString(text)), jsonString(text));
}

TEST(Escaped, EndsNoLabelNoTagAndNoAttribute) {
  const std::regex label(R"re(([^"\\\n]|\\["\\n])*)re");
  const std::regex html("([^<>\"'&]|&(amp|lt|gt|quot|#39);)*");
  for (const std::string& text : nastyTexts()) {
    EXPECT_TRUE(std::regex_match(labelValue(text), label)) << testing::PrintToString(text);
    EXPECT_TRUE(std::regex_match(htmlText(text), html)) << testing::PrintToString(text);
  }
}

TEST(Escaped, CommandsNoTerminal) {
  EXPECT_EQ(terminalText("\x1b[2J\x7f"), "\\x1b[2J\\x7f");
  EXPECT_EQ(terminalText("\xc2\x9b"
                         "2J caf\xc3\xa9"),
            "\\x9b2J caf\xc3\xa9");
  for (const std::string& text : nastyTexts())
    for (const char c : terminalText(text)) EXPECT_FALSE(static_cast<unsigned char>(c) < 0x20 || c == 0x7f);
}

}  // namespace
}  // namespace falcon
