#include "shim/worker/cri_format.h"

#include <gtest/gtest.h>

#include <random>

#include "base/text.h"

namespace wherry::shim {
namespace {

CriText format(std::string_view raw, StreamEnd end = StreamEnd::kOpen, bool open = false) {
  return format_cri(raw, "stdout", "T", open, end);
}

TEST(CriFormat, WholeLinesAreF) {
  const auto cri = format("a\n\nb c\n");
  EXPECT_EQ(cri.text, "T stdout F a\nT stdout F \nT stdout F b c\n");
  EXPECT_EQ(cri.consumed, 7U);
}

TEST(CriFormat, ALineThatHasNotEndedWaits) {
  const auto cri = format("a\nb");
  EXPECT_EQ(cri.text, "T stdout F a\n");
  EXPECT_EQ(cri.consumed, 2U);
  EXPECT_EQ(format("b", StreamEnd::kEnded).text, "T stdout F b\n");
}

TEST(CriFormat, ALongLineIsCutAndItsLastPieceIsF) {
  const std::string piece(kLongestLogPiece, 'x');
  EXPECT_EQ(format(piece + "\n").text, "T stdout F " + piece + "\n");
  EXPECT_EQ(format(piece).text, "");
  const auto cut = format(piece + "y\n");
  EXPECT_EQ(cut.text, "T stdout P " + piece + "\nT stdout F y\n");
  EXPECT_FALSE(cut.open_line);
}

TEST(CriFormat, NoPIsTheLast) {
  const std::string piece(kLongestLogPiece, 'x');
  EXPECT_EQ(format("", StreamEnd::kEnded, true).text, "T stdout F \n");
  EXPECT_EQ(format(piece + "y", StreamEnd::kEnded).text,
            "T stdout P " + piece + "\nT stdout F y\n");
  EXPECT_EQ(format("", StreamEnd::kEnded, false).text, "");
}

std::string reassemble(std::string_view log) {
  std::string raw;
  for (const auto line : split(log, '\n')) {
    if (line.empty()) continue;
    raw.append(line.substr(std::string_view{"T stdout F "}.size()));
    if (line[9] == 'F') raw += '\n';
  }
  return raw;
}

TEST(CriFormat, WhateverTheChunksTheInputComesBack) {
  std::mt19937 random{7};
  for (int round = 0; round < 200; ++round) {
    std::string input;
    const auto size = random() % 100'000;
    const auto line = 1 + random() % 40'000;
    while (input.size() < size)
      input += random() % line == 0 ? '\n' : static_cast<char>('a' + random() % 26);
    std::string log, pending;
    bool open = false;
    for (std::size_t at = 0; at < input.size();) {
      const auto step = 1 + random() % 30'000;
      pending += input.substr(at, step);
      at += step;
      const auto cri = format_cri(pending, "stdout", "T", open, StreamEnd::kOpen);
      log += cri.text;
      open = cri.open_line;
      pending.erase(0, cri.consumed);
    }
    log += format_cri(pending, "stdout", "T", open, StreamEnd::kEnded).text;
    if (!input.empty() && input.back() != '\n') input += '\n';
    ASSERT_EQ(reassemble(log), input) << "round " << round;
  }
}

}  // namespace
}  // namespace wherry::shim
