#include "daemon/base/hash.h"

#include "daemon/base/base64.h"
#include "gtest/gtest.h"

namespace kernelwright {
namespace {

TEST(HashTest, KnownDigests) {
  EXPECT_EQ(Sha256Hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(Sha256Hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(Sha256().Update("a").Update("bc").Hex(), Sha256Hex("abc"));
}

TEST(HashTest, FieldsDoNotRunTogether) {
  EXPECT_NE(Sha256().Field("ab").Field("c").Hex(), Sha256().Field("a").Field("bc").Hex());
}

TEST(HashTest, TokensDifferAndHave256Bits) {
  const std::string a = *RandomToken();
  EXPECT_EQ(a.size(), 64U);
  EXPECT_NE(a, *RandomToken());
  EXPECT_TRUE(EqualInConstantTime(a, a));
  EXPECT_FALSE(EqualInConstantTime(a, a.substr(1)));
}

TEST(Base64Test, KnownTextsAndRoundTrip) {
  EXPECT_EQ(Base64Encode(""), "");
  EXPECT_EQ(Base64Encode("f"), "Zg==");
  EXPECT_EQ(Base64Encode("fo"), "Zm8=");
  EXPECT_EQ(Base64Encode("foobar"), "Zm9vYmFy");
  for (size_t size = 0; size < 70; ++size) {
    const std::string bytes = *RandomBytes(size);
    EXPECT_EQ(*Base64Decode(Base64Encode(bytes)), bytes);
  }
}

TEST(Base64Test, RefusesWhatIsNotBase64) {
  for (const char* text : {"Zg=", "Zg", "Z===", "====", "Zg==Zg==", "Zm9v!A==", "Zh=="}) {
    EXPECT_FALSE(Base64Decode(text).has_value()) << text;
  }
}

}  // namespace
}  // namespace kernelwright
