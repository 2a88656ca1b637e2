// The vectors that the standards publish.
#include "base/sha256.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

namespace falcon {
namespace {

std::string hex(const Digest& digest) {
  std::string text;
  for (const std::byte byte : digest)
    for (const int digit : {std::to_integer<int>(byte) >> 4, std::to_integer<int>(byte) & 15})
      text += "0123456789abcdef"[digit];
  return text;
}

std::string hashOf(std::string_view text) {
  return hex(Sha256().add(text).finish());
}

// FIPS 180-4's examples, and NIST's of a million letters.
TEST(Sha256, GivesWhatTheStandardSays) {
  EXPECT_EQ(hashOf(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(hashOf("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hashOf("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(hashOf("abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmno"
                   "pqrstnopqrstu"),
            "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1");
  EXPECT_EQ(hashOf(std::string(1'000'000, 'a')), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

// Every length around the padding's corners, in every cut.
TEST(Sha256, DoesNotCareHowTheMessageIsCut) {
  const std::string text(200, 'x');
  for (const std::size_t length : {0, 1, 55, 56, 57, 63, 64, 65, 119, 120, 121, 127, 128, 129, 200}) {
    const std::string_view message = std::string_view(text).substr(0, length);
    const Digest whole = Sha256().add(message).finish();
    for (std::size_t cut = 0; cut <= length; ++cut)
      ASSERT_EQ(Sha256().add(message.substr(0, cut)).add(message.substr(cut)).finish(), whole) << length << " " << cut;
  }
}

struct Vector {
  std::vector<unsigned char> key;
  std::string message;
  const char* hash;
};

std::vector<unsigned char> keyOf(std::size_t length, unsigned char byte) {
  return std::vector<unsigned char>(length, byte);
}

// RFC 4231; its fifth case is cut to 128 bits.
TEST(HmacSha256, GivesWhatTheStandardSays) {
  std::vector<unsigned char> rising;
  for (unsigned char byte = 1; byte <= 25; ++byte) rising.push_back(byte);
  const std::vector<Vector> vectors = {
      {keyOf(20, 0x0b), "Hi There", "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"},
      {{'J', 'e', 'f', 'e'},
       "what do ya want for nothing?",
       "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"},
      {keyOf(20, 0xaa), std::string(50, '\xdd'), "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"},
      {rising, std::string(50, '\xcd'), "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b"},
      {keyOf(20, 0x0c), "Test With Truncation", "a3b6167473100ee06e0c796c2955552b"},
      {keyOf(131, 0xaa), "Test Using Larger Than Block-Size Key - Hash Key First",
       "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"},
      {keyOf(131, 0xaa),
       "This is a test using a larger than block-size key and a larger than block-size data. The key needs to be "
       "hashed "
       "before being used by the HMAC algorithm.",
       "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2"},
  };
  for (const Vector& vector : vectors)
    EXPECT_EQ(hex(hmacSha256(std::as_bytes(std::span(vector.key)), vector.message)).substr(0, strlen(vector.hash)),
              vector.hash)
        << vector.message;
}

TEST(EqualInConstantTime, ComparesEveryByte) {
  const Digest one{};
  for (std::size_t i = 0; i < one.size(); ++i) {
    Digest other = one;
    other[i] = std::byte{1};
    EXPECT_FALSE(equalInConstantTime(one, other)) << i;
  }
  EXPECT_TRUE(equalInConstantTime(one, Digest{}));
  EXPECT_FALSE(equalInConstantTime(one, std::span(one).first(16)));
}

}  // namespace
}  // namespace falcon
