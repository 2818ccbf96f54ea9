#include "weir/core/io/crc32c.h"

#include <numeric>
#include <random>
#include <string>

#include "gtest/gtest.h"

namespace weir {
namespace {

// The definition: one bit at a time.
uint32_t Reference(absl::string_view data) {
  uint32_t crc = 0xffffffffu;
  for (const char c : data) {
    crc ^= static_cast<uint8_t>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) ? 0x82f63b78u : 0);
  }
  return ~crc;
}

// RFC 3720, appendix B.4.
TEST(Crc32c, PublishedVectors) {
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(Crc32c(std::string(32, '\xff')), 0x62a8ab43u);
  std::string ascending, descending;
  for (int i = 0; i < 32; ++i) ascending.push_back(static_cast<char>(i));
  for (int i = 31; i >= 0; --i) descending.push_back(static_cast<char>(i));
  EXPECT_EQ(Crc32c(ascending), 0x46dd794eu);
  EXPECT_EQ(Crc32c(descending), 0x113fdb5cu);
  EXPECT_EQ(Crc32c("123456789"), 0xe3069283u);
}

TEST(Crc32c, AllImplementationsAgreeAtEveryLengthAndAlignment) {
  std::mt19937 random(7);
  std::string bytes(40000, '\0');
  for (char& c : bytes) c = static_cast<char>(random());
  std::vector<size_t> lengths;
  for (size_t n = 0; n < 100; ++n) lengths.push_back(n);
  for (const size_t n : {767, 768, 769, 1023, 1024, 1025, 1279, 1280, 1281, 1536, 3000, 12287,
                         12288, 12289, 13056, 24576, 39990})
    lengths.push_back(n);
  for (const size_t n : lengths) {
    const size_t start = n % 9;
    const uint32_t expected = Reference(absl::string_view(bytes).substr(start, n));
    EXPECT_EQ(internal::ExtendCrc32cTables(0, bytes.data() + start, n), expected) << n;
    if (internal::HasHardwareCrc32c()) {
      EXPECT_EQ(internal::ExtendCrc32cHardware(0, bytes.data() + start, n), expected) << n;
    }
    if (internal::HasFoldingCrc32c()) {
      EXPECT_EQ(internal::ExtendCrc32cFolding(0, bytes.data() + start, n), expected) << n;
    }
  }
}

TEST(Crc32c, ExtendsIncrementally) {
  std::string text(30000, 'x');
  std::iota(text.begin(), text.end(), 'x');
  for (const size_t cut : {0, 1, 7, 8, 12288, 29999, 30000}) {
    EXPECT_EQ(ExtendCrc32c(Crc32c(text.substr(0, cut)), text.substr(cut)), Crc32c(text)) << cut;
  }
}

TEST(Crc32c, MaskRoundTrips) {
  EXPECT_EQ(MaskCrc32c(0), 0xa282ead8u);
  for (const uint32_t crc : {0u, 1u, 0x8a9136aau, 0xffffffffu}) {
    EXPECT_EQ(UnmaskCrc32c(MaskCrc32c(crc)), crc);
    EXPECT_NE(MaskCrc32c(crc), crc);
  }
}

}  // namespace
}  // namespace weir
