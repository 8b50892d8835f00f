// Element types of buffers: names, conversion to and from double, fills.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "crest_sim/result.h"
#include "crest_sim/target.h"

namespace crest_sim::cli {

enum class Type : uint8_t { kF64, kF32, kF16, kBf16, kFp8, kBf8, kI8, kU8, kI16, kU16, kI32, kU32, kI64, kU64 };

std::optional<Type> parse_type(std::string_view name);
std::string_view type_name(Type type);
std::string type_names();
size_t type_bytes(Type type);
bool is_floating(Type type);

/// fp8 and bf8 are FNUZ on gfx942 and OCP elsewhere.
struct Format {
  Type type;
  bool fnuz;
};

/// Rounds to nearest even; integers that do not fit are an error.
Status store_value(Format format, double value, uint8_t* out);
double load_value(Format format, const uint8_t* from);
/// As text: integers exactly (64-bit ones too), floats shortest.
std::string value_text(Format format, const uint8_t* from);
/// A scalar as the user writes it: decimal, 0x…, or a floating-point number.
Result<std::vector<uint8_t>> parse_value(Format format, std::string_view text);

/// "zeros", "ones", "const:V", "iota[:START[:STEP]]", "random[:LOW:HIGH]", "normal[:MEAN:SD]". The same seed gives the
/// same values on every machine.
Result<std::vector<uint8_t>> fill(Format format, size_t count, std::string_view how, uint64_t seed);

/// How two buffers differ.
struct Difference {
  size_t different = 0, beyond = 0, first = 0;
  double max_absolute = 0, max_relative = 0;
};
Difference compare(Format format, std::span<const uint8_t> got, std::span<const uint8_t> expected, double atol,
                   double rtol);

}  // namespace crest_sim::cli
