#include "runtime/pod/quantity.h"

#include <gtest/gtest.h>

namespace wherry::pod {
namespace {

TEST(Quantity, Forms) {
  struct Row {
    const char* text;
    std::uint64_t milli, units;
  };
  const Row rows[] = {{"0", 0, 0},
                      {"1", 1000, 1},
                      {"100m", 100, 1},
                      {"0.5", 500, 1},
                      {".5", 500, 1},
                      {"5.", 5000, 5},
                      {"+2", 2000, 2},
                      {"1e3", 1'000'000, 1000},
                      {"1E3", 1'000'000, 1000},
                      {"1e+3", 1'000'000, 1000},
                      {"12e-1", 1200, 2},
                      {"1k", 1'000'000, 1000},
                      {"1Ki", 1'024'000, 1024},
                      {"1.5Ki", 1'536'000, 1536},
                      {"128M", 128'000'000'000, 128'000'000},
                      {"1Gi", 1'073'741'824'000, 1'073'741'824},
                      {"1n", 1, 1},
                      {"1u", 1, 1},
                      {"1500u", 2, 1},
                      {"0.0000000001", 1, 1},
                      {"1E", 1'000'000'000'000'000'000ULL * 18 + 446'744'073'709'551'615ULL,
                       1'000'000'000'000'000'000},
                      {"15Ei", UINT64_MAX, 15ULL << 60}};
  for (const auto& row : rows) {
    const auto got = parse_quantity(row.text);
    ASSERT_TRUE(got.ok()) << row.text << ": " << got.error().message();
    EXPECT_EQ(got.value().milli(), row.milli) << row.text;
    EXPECT_EQ(got.value().units(), row.units) << row.text;
  }
}

TEST(Quantity, Refused) {
  for (const auto* bad : {"",
                          "-1",
                          "-100m",
                          "m",
                          "Gi",
                          ".",
                          "1.2.3",
                          "1 Gi",
                          " 1",
                          "1 ",
                          "1gi",
                          "1KI",
                          "1K",
                          "0x10",
                          "1e",
                          "1e3m",
                          "1e1.5",
                          "1e+-3",
                          "1e99",
                          "16Ei",
                          "100000000000E",
                          "1234567890123456789012345678901",
                          "inf",
                          "NaN",
                          "1_000",
                          "1,5"})
    EXPECT_FALSE(parse_quantity(bad).ok()) << bad;
}

TEST(Quantity, DivideUp) {
  const auto q = [](const char* text) { return parse_quantity(text).value(); };
  EXPECT_EQ(divide_up(q("250m"), q("1m")), 250U);
  EXPECT_EQ(divide_up(q("250m"), q("1")), 1U);
  EXPECT_EQ(divide_up(q("64Mi"), q("1Mi")), 64U);
  EXPECT_EQ(divide_up(q("64Mi"), q("0")), 67108864U);
}

}  // namespace
}  // namespace wherry::pod
