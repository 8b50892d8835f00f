// A reader of MessagePack (https://github.com/msgpack/msgpack/blob/master/spec.md) for the metadata notes of code
// objects. Whatever the bytes are, reading ends with a value or with false.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace crest_sim {

struct MsgPackValue {
  enum class Kind : uint8_t { kOther, kUnsigned, kSigned, kString, kArray, kMap };  // kOther: nil, booleans, floats

  Kind kind = Kind::kOther;
  uint64_t bits = 0;                   ///< integers
  std::string_view text;               ///< strings; points into the bytes that were read
  std::vector<MsgPackValue> items;     ///< elements of arrays, values of maps
  std::vector<std::string_view> keys;  ///< of maps, in the order of `items`

  /// The entry of a map; null if this is no map or has no such key.
  const MsgPackValue* find(std::string_view key) const;
};

/// One value that fills `bytes`; nothing if they are cut short, nested deeper than 16, have a map key that is no
/// string, or hold binary or extension values (which have no place in the notes).
std::optional<MsgPackValue> read_msgpack(std::span<const uint8_t> bytes);

}  // namespace crest_sim
