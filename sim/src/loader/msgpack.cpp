#include "loader/msgpack.h"

namespace crest_sim {
namespace {

using Kind = MsgPackValue::Kind;
constexpr int kMaxDepth = 16;

class Reader {
 public:
  explicit Reader(std::span<const uint8_t> bytes) : left_(bytes) {}

  bool at_end() const { return left_.empty(); }

  bool value(MsgPackValue& out, int depth) {
    uint64_t tag = 0;
    if (depth > kMaxDepth || !number(1, tag)) return false;
    if (tag < 0x80) return integer(out, Kind::kUnsigned, tag);
    if (tag < 0x90) return map(out, tag & 15, depth);
    if (tag < 0xa0) return array(out, tag & 15, depth);
    if (tag < 0xc0) return string(out, tag & 31);
    if (tag >= 0xe0) return integer(out, Kind::kSigned, tag | ~uint64_t(0xff));
    return tagged(out, tag, depth);
  }

 private:
  /// Big-endian.
  bool number(size_t bytes, uint64_t& out) {
    if (left_.size() < bytes) return false;
    out = 0;
    for (size_t i = 0; i < bytes; ++i) out = out << 8 | left_[i];
    left_ = left_.subspan(bytes);
    return true;
  }

  static bool integer(MsgPackValue& out, Kind kind, uint64_t bits) {
    out.kind = kind;
    out.bits = bits;
    return true;
  }

  bool string(MsgPackValue& out, uint64_t bytes) {
    if (left_.size() < bytes) return false;
    out.kind = Kind::kString;
    out.text = {reinterpret_cast<const char*>(left_.data()), static_cast<size_t>(bytes)};
    left_ = left_.subspan(bytes);
    return true;
  }

  // Counts are not trusted with an allocation: every element takes a byte at least, so a wrong count runs out of bytes.
  bool array(MsgPackValue& out, uint64_t count, int depth) {
    out.kind = Kind::kArray;
    for (uint64_t i = 0; i < count; ++i)
      if (!value(out.items.emplace_back(), depth + 1)) return false;
    return true;
  }

  bool map(MsgPackValue& out, uint64_t count, int depth) {
    out.kind = Kind::kMap;
    for (uint64_t i = 0; i < count; ++i) {
      MsgPackValue key;
      if (!value(key, depth + 1) || key.kind != Kind::kString) return false;
      out.keys.push_back(key.text);
      if (!value(out.items.emplace_back(), depth + 1)) return false;
    }
    return true;
  }

  bool tagged(MsgPackValue& out, uint64_t tag, int depth) {
    uint64_t n = 0;
    switch (tag) {
      case 0xc0:  // nil, false, true
      case 0xc2:
      case 0xc3:
        return true;
      case 0xca:
      case 0xcb:
        return number(tag == 0xca ? 4 : 8, n);
      case 0xcc:
      case 0xcd:
      case 0xce:
      case 0xcf:
        return number(size_t(1) << (tag - 0xcc), n) && integer(out, Kind::kUnsigned, n);
      case 0xd0:
      case 0xd1:
      case 0xd2:
      case 0xd3: {
        size_t bytes = size_t(1) << (tag - 0xd0);
        if (!number(bytes, n)) return false;
        int unused = static_cast<int>(64 - bytes * 8);
        return integer(out, Kind::kSigned, static_cast<uint64_t>(static_cast<int64_t>(n << unused) >> unused));
      }
      case 0xd9:
      case 0xda:
      case 0xdb:
        return number(size_t(1) << (tag - 0xd9), n) && string(out, n);
      case 0xdc:
      case 0xdd:
        return number(tag == 0xdc ? 2 : 4, n) && array(out, n, depth);
      case 0xde:
      case 0xdf:
        return number(tag == 0xde ? 2 : 4, n) && map(out, n, depth);
      default:
        return false;
    }
  }

  std::span<const uint8_t> left_;
};

}  // namespace

const MsgPackValue* MsgPackValue::find(std::string_view key) const {
  for (size_t i = 0; i < keys.size(); ++i)
    if (keys[i] == key) return &items[i];
  return nullptr;
}

std::optional<MsgPackValue> read_msgpack(std::span<const uint8_t> bytes) {
  Reader reader(bytes);
  MsgPackValue root;
  if (!reader.value(root, 0) || !reader.at_end()) return std::nullopt;
  return root;
}

}  // namespace crest_sim
