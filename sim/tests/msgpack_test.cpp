// The MessagePack reader: every form of the specification, and bytes that are none.
#include "loader/msgpack.h"

#include <gtest/gtest.h>

#include <random>

namespace crest_sim::test {
namespace {

using Kind = MsgPackValue::Kind;
using Bytes = std::vector<uint8_t>;

TEST(MsgPack, Integers) {
  auto expect = [](const Bytes& bytes, Kind kind, uint64_t value) {
    auto v = read_msgpack(bytes);
    ASSERT_TRUE(v.has_value());
    EXPECT_EQ(v->kind, kind);
    EXPECT_EQ(v->bits, value);
  };
  expect({0x00}, Kind::kUnsigned, 0);
  expect({0x7f}, Kind::kUnsigned, 127);
  expect({0xff}, Kind::kSigned, ~uint64_t(0));
  expect({0xe0}, Kind::kSigned, static_cast<uint64_t>(-32));
  expect({0xcc, 0xfe}, Kind::kUnsigned, 254);
  expect({0xcd, 0x12, 0x34}, Kind::kUnsigned, 0x1234);
  expect({0xce, 0x80, 0, 0, 1}, Kind::kUnsigned, 0x80000001);
  expect({0xcf, 0x80, 0, 0, 0, 0, 0, 0, 2}, Kind::kUnsigned, 0x8000000000000002);
  expect({0xd0, 0x80}, Kind::kSigned, static_cast<uint64_t>(-128));
  expect({0xd1, 0xff, 0x00}, Kind::kSigned, static_cast<uint64_t>(-256));
  expect({0xd2, 0x7f, 0xff, 0xff, 0xff}, Kind::kSigned, 0x7fffffff);
  expect({0xd3, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfd}, Kind::kSigned, static_cast<uint64_t>(-3));
}

TEST(MsgPack, StringsArraysMaps) {
  const Bytes bytes{0x83, 0xa1, 'a', 0x92, 0x01, 0xc0, 0xd9, 2, 'b', 'c', 0xde, 0, 1, 0xda,
                    0,    1,    'x', 0xc3, 0xdb, 0,    0,    0, 1,   'd', 0xdc, 0, 2, 0xca,
                    1,    2,    3,   4,    0xcb, 1,    2,    3, 4,   5,   6,    7, 8};
  auto v = read_msgpack(bytes);
  ASSERT_TRUE(v.has_value());
  ASSERT_EQ(v->kind, Kind::kMap);
  ASSERT_NE(v->find("a"), nullptr);
  ASSERT_EQ(v->find("a")->items.size(), 2u);
  EXPECT_EQ(v->find("a")->items[0].bits, 1u);
  EXPECT_EQ(v->find("a")->items[1].kind, Kind::kOther);
  ASSERT_NE(v->find("bc"), nullptr);
  EXPECT_NE(v->find("bc")->find("x"), nullptr);
  ASSERT_NE(v->find("d"), nullptr);
  EXPECT_EQ(v->find("d")->items.size(), 2u);
  EXPECT_EQ(v->find("e"), nullptr);
}

TEST(MsgPack, BadBytesAreRefused) {
  const Bytes bad[] = {
      {},
      {0xc1},                                     // never used
      {0x81, 0x90, 0x01},                         // key is an array
      {0x81, 0x01, 0x01},                         // key is a number
      {0xc4, 0x01, 0x00},                         // binary
      {0xd4, 0x01, 0x00},                         // extension
      {0xdd, 0xff, 0xff, 0xff, 0xff, 0x01},       // four thousand million elements in one byte
      {0xdf, 0xff, 0xff, 0xff, 0xff, 0xa1, 'a'},  //
      {0xdb, 0xff, 0xff, 0xff, 0xff, 'a'},        //
      {0xa5, 'a'},                                // cut
      {0xce, 1, 2, 3},                            // cut
      {0x01, 0x01},                               // something behind the value
  };
  for (const Bytes& b : bad) EXPECT_FALSE(read_msgpack(b).has_value());
  EXPECT_FALSE(read_msgpack(Bytes(1 << 20, 0x91)).has_value());  // deep nesting
}

TEST(MsgPack, RandomBytes) {
  std::mt19937 random{7};
  size_t valid = 0;
  for (int round = 0; round < 20000; ++round) {
    Bytes b(1 + random() % 64);
    for (auto& x : b) x = static_cast<uint8_t>(random() % 3 ? 0x80 + random() % 96 : random());
    valid += read_msgpack(b).has_value();
  }
  EXPECT_GT(valid, 0u);
}

}  // namespace
}  // namespace crest_sim::test
