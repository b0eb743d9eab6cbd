#include "harness.h"
#include "operations/data_table.h"

using namespace commtune;

// Expected by hand: the 64 bits of index * 0x9E3779B97F4A7C15, of which the upper 12 count.
TEST(entries_are_the_top_bits_of_a_multiple_of_the_golden_ratio) {
  EXPECT(entry_of(0) == 0);
  EXPECT(entry_of(1) == 0x9E3);
  EXPECT(entry_of(2) == 0x3C6);
  EXPECT(entry_of(3) == 0xDAA);
  EXPECT(entry_of(16) == 0xE37);
  EXPECT(entry_of(std::size_t{1} << 32) == 0x7F4);
  EXPECT(entry_of(std::size_t{1} << 52) == 0xC15);
}

TEST(entries_are_known_when_compiling) {
  static_assert(entry_of(1) == 0x9E3);
  static_assert(kTableSize == 4096);
  EXPECT(true);
}

TEST(all_entries_are_in_the_table) {
  for (std::size_t i = 0; i < 100000; ++i) EXPECT(entry_of(i) < kTableSize);
}
