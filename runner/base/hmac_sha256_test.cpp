// SPDX-License-Identifier: MIT
#include "base/hmac_sha256.h"

#include <gtest/gtest.h>

namespace stepgate {
namespace {

// The test cases 1 to 4, 6 and 7 of RFC 4231; case 5 truncates.
TEST(HmacSha256, IsThatOfItsStandard) {
  const std::string large(131, '\xaa');
  EXPECT_EQ(hmac_sha256(std::string(20, '\x0b'), "Hi There"),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(hmac_sha256("Jefe", "what do ya want for nothing?"),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(hmac_sha256(std::string(20, '\xaa'), std::string(50, '\xdd')),
            "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe");
  std::string counted;
  for (char byte = 1; byte <= 25; ++byte) counted += byte;
  EXPECT_EQ(hmac_sha256(counted, std::string(50, '\xcd')),
            "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b");
  EXPECT_EQ(hmac_sha256(large, "Test Using Larger Than Block-Size Key - Hash Key First"),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
  EXPECT_EQ(hmac_sha256(large,
                        "This is a test using a larger than block-size key and a larger than "
                        "block-size data. The key needs to be hashed before being used by the HMAC "
                        "algorithm."),
            "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2");
}

// Lengths around the end of a block, where the padding begins another (NIST's examples, and
// sha256sum).
TEST(Sha256Test, PadsToWholeBlocks) {
  const auto begins = [](std::string_view text) {
    const Sha256 digest = sha256(text);
    return std::uint32_t{digest[0]} << 24 | std::uint32_t{digest[1]} << 16 |
           std::uint32_t{digest[2]} << 8 | digest[3];
  };
  EXPECT_EQ(begins(""), 0xe3b0c442U);
  EXPECT_EQ(begins("abc"), 0xba7816bfU);
  EXPECT_EQ(begins(std::string(55, 'a')), 0x9f4390f8U);
  EXPECT_EQ(begins(std::string(56, 'a')), 0xb35439a4U);
  EXPECT_EQ(begins(std::string(64, 'a')), 0xffe054feU);
  EXPECT_EQ(begins(std::string(1'000'000, 'a')), 0xcdc76e5cU);
}

TEST(EqualInConstantTime, SeesEveryDifference) {
  EXPECT_TRUE(equal_in_constant_time("abc", "abc"));
  EXPECT_FALSE(equal_in_constant_time("abc", "abd"));
  EXPECT_FALSE(equal_in_constant_time("abc", "xbc"));
  EXPECT_FALSE(equal_in_constant_time("abc", "ab"));
  EXPECT_FALSE(equal_in_constant_time("", "a"));
}

TEST(UnguessableDigits, AreOthersEachTime) {
  const std::string one = unguessable_digits();
  EXPECT_EQ(one.size(), 32U);
  EXPECT_EQ(one.find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_NE(one, unguessable_digits());
}

}  // namespace
}  // namespace stepgate
