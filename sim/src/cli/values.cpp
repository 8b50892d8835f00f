#include "cli/values.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

namespace crest_sim::cli {
namespace {

struct TypeInfo {
  Type type;
  std::string_view name;
  size_t bytes;
};
constexpr std::array<TypeInfo, 14> kTypes{{{Type::kF64, "f64", 8},
                                           {Type::kF32, "f32", 4},
                                           {Type::kF16, "f16", 2},
                                           {Type::kBf16, "bf16", 2},
                                           {Type::kFp8, "fp8", 1},
                                           {Type::kBf8, "bf8", 1},
                                           {Type::kI8, "i8", 1},
                                           {Type::kU8, "u8", 1},
                                           {Type::kI16, "i16", 2},
                                           {Type::kU16, "u16", 2},
                                           {Type::kI32, "i32", 4},
                                           {Type::kU32, "u32", 4},
                                           {Type::kI64, "i64", 8},
                                           {Type::kU64, "u64", 8}}};

/// A small format of 8 bits: value of each code.
std::array<double, 256> small_table(int exponent_bits, bool fnuz) {
  std::array<double, 256> out{};
  int mantissa_bits = 7 - exponent_bits, bias = (1 << (exponent_bits - 1)) - (fnuz ? 0 : 1);
  for (int code = 0; code < 256; ++code) {
    int e = code >> mantissa_bits & ((1 << exponent_bits) - 1), m = code & ((1 << mantissa_bits) - 1);
    double v = e ? std::ldexp(1.0 + std::ldexp(m, -mantissa_bits), e - bias) : std::ldexp(m, 1 - bias - mantissa_bits);
    bool last = e == (1 << exponent_bits) - 1;
    if (!fnuz && exponent_bits == 4 && last && m == 7) v = std::numeric_limits<double>::quiet_NaN();
    if (!fnuz && exponent_bits == 5 && last)
      v = m ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity();
    if (fnuz && code == 0x80) v = std::numeric_limits<double>::quiet_NaN();
    out[static_cast<size_t>(code)] = code & 0x80 && !(fnuz && code == 0x80) ? -v : v;
  }
  return out;
}

const std::array<double, 256>& table_of(Format f) {
  static const std::array<double, 256> tables[4] = {small_table(4, false), small_table(4, true), small_table(5, false),
                                                    small_table(5, true)};
  return tables[(f.type == Type::kBf8 ? 2 : 0) + (f.fnuz ? 1 : 0)];
}

/// The nearest code; ties go to the even one. Beyond the largest finite value it saturates.
uint8_t nearest_code(Format f, double value) {
  const auto& table = table_of(f);
  if (std::isnan(value)) return f.fnuz ? 0x80 : 0x7f;
  uint8_t best = 0;
  double best_distance = std::numeric_limits<double>::infinity();
  for (int code = 0; code < 256; ++code) {
    double x = table[static_cast<size_t>(code)];
    if (!std::isfinite(x) || (code == 0x80 && !std::signbit(value))) continue;
    double distance = std::fabs(x - value);
    if (distance < best_distance || (distance == best_distance && code % 2 == 0 && best % 2 == 1))
      best = static_cast<uint8_t>(code), best_distance = distance;
  }
  return best;
}

uint16_t to_bf16(double value) {
  // Through float with round-to-odd, so that rounding twice is rounding once.
  float f = static_cast<float>(value);
  if (std::isnan(f)) return 0x7fc0;
  uint32_t bits = std::bit_cast<uint32_t>(f);
  double back = f;
  if (back != value && std::isfinite(f)) {
    if ((value > 0 && back > value) || (value < 0 && back < value)) --bits;
    bits |= 1;
  }
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

template <class T>
Status store_integer(double value, uint8_t* out, Type type) {
  double low = static_cast<double>(std::numeric_limits<T>::min()),
         high = std::ldexp(1.0, std::numeric_limits<T>::digits);
  if (!(value >= low && value < high) || value != std::floor(value))
    return Error{fmt::format("{} is not a value of {}", value, type_name(type))};
  T x = static_cast<T>(value);
  std::memcpy(out, &x, sizeof x);
  return Unit{};
}

template <class T>
void put(uint8_t* out, T value) {
  std::memcpy(out, &value, sizeof value);
}
template <class T>
T get(const uint8_t* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <class T>
Result<std::vector<uint8_t>> parse_integer(std::string_view text, Type type) {
  bool negative = text.starts_with('-');
  std::string_view digits = text.substr(negative ? 1 : 0);
  int base = digits.starts_with("0x") || digits.starts_with("0X") ? 16 : 10;
  if (base == 16) digits.remove_prefix(2);
  uint64_t magnitude = 0;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), magnitude, base);
  bool fits = error == std::errc() && end == digits.data() + digits.size() && !digits.empty();
  uint64_t most = negative ? (std::numeric_limits<T>::is_signed ? uint64_t(std::numeric_limits<T>::max()) + 1 : 0)
                           : uint64_t(std::numeric_limits<T>::max());
  if (!fits || magnitude > most)
    return Error{fmt::format("\"{}\" is not a value of {} ({} to {})", text, type_name(type),
                             +std::numeric_limits<T>::min(), +std::numeric_limits<T>::max())};
  T value = static_cast<T>(negative ? 0 - magnitude : magnitude);
  std::vector<uint8_t> out(sizeof value);
  put(out.data(), value);
  return out;
}

/// Splits "random:0:1" and reads its numbers.
Result<std::vector<double>> numbers_of(std::string_view how, size_t most) {
  std::vector<double> out;
  size_t at = how.find(':');
  while (at != std::string_view::npos) {
    size_t next = how.find(':', at + 1);
    std::string text(how.substr(at + 1, next == std::string_view::npos ? next : next - at - 1));
    char* end = nullptr;
    double value = std::strtod(text.c_str(), &end);
    if (text.empty() || *end) return Error{fmt::format("\"{}\" in \"{}\" is not a number", text, how)};
    out.push_back(value);
    at = next;
  }
  if (out.size() > most) return Error{fmt::format("\"{}\" has {} numbers; at most {}", how, out.size(), most)};
  return out;
}

}  // namespace

std::optional<Type> parse_type(std::string_view name) {
  for (const TypeInfo& t : kTypes)
    if (t.name == name) return t.type;
  return std::nullopt;
}
std::string_view type_name(Type type) { return kTypes[static_cast<size_t>(type)].name; }
size_t type_bytes(Type type) { return kTypes[static_cast<size_t>(type)].bytes; }
bool is_floating(Type type) { return type <= Type::kBf8; }
std::string type_names() {
  std::string out;
  for (const TypeInfo& t : kTypes) out += (out.empty() ? "" : ", ") + std::string(t.name);
  return out;
}

Status store_value(Format f, double value, uint8_t* out) {
  switch (f.type) {
    case Type::kF64:
      return put(out, value), Unit{};
    case Type::kF32:
      return put(out, static_cast<float>(value)), Unit{};
    case Type::kF16:
      return put(out, static_cast<_Float16>(value)), Unit{};
    case Type::kBf16:
      return put(out, to_bf16(value)), Unit{};
    case Type::kFp8:
    case Type::kBf8:
      return *out = nearest_code(f, value), Unit{};
    case Type::kI8:
      return store_integer<int8_t>(value, out, f.type);
    case Type::kU8:
      return store_integer<uint8_t>(value, out, f.type);
    case Type::kI16:
      return store_integer<int16_t>(value, out, f.type);
    case Type::kU16:
      return store_integer<uint16_t>(value, out, f.type);
    case Type::kI32:
      return store_integer<int32_t>(value, out, f.type);
    case Type::kU32:
      return store_integer<uint32_t>(value, out, f.type);
    case Type::kI64:
      return store_integer<int64_t>(value, out, f.type);
    case Type::kU64:
      return store_integer<uint64_t>(value, out, f.type);
  }
  return Error{"unknown type"};
}

double load_value(Format f, const uint8_t* p) {
  switch (f.type) {
    case Type::kF64:
      return get<double>(p);
    case Type::kF32:
      return get<float>(p);
    case Type::kF16:
      return static_cast<double>(get<_Float16>(p));
    case Type::kBf16:
      return std::bit_cast<float>(uint32_t(get<uint16_t>(p)) << 16);
    case Type::kFp8:
    case Type::kBf8:
      return table_of(f)[*p];
    case Type::kI8:
      return get<int8_t>(p);
    case Type::kU8:
      return get<uint8_t>(p);
    case Type::kI16:
      return get<int16_t>(p);
    case Type::kU16:
      return get<uint16_t>(p);
    case Type::kI32:
      return get<int32_t>(p);
    case Type::kU32:
      return get<uint32_t>(p);
    case Type::kI64:
      return static_cast<double>(get<int64_t>(p));
    case Type::kU64:
      return static_cast<double>(get<uint64_t>(p));
  }
  return 0;
}

std::string value_text(Format f, const uint8_t* p) {
  if (f.type == Type::kI64) return fmt::format("{}", get<int64_t>(p));
  if (f.type == Type::kU64) return fmt::format("{}", get<uint64_t>(p));
  if (f.type == Type::kF64) return fmt::format("{}", get<double>(p));
  return fmt::format("{}", static_cast<float>(load_value(f, p)));
}

Result<std::vector<uint8_t>> parse_value(Format f, std::string_view text) {
  switch (f.type) {
    case Type::kI8:
      return parse_integer<int8_t>(text, f.type);
    case Type::kU8:
      return parse_integer<uint8_t>(text, f.type);
    case Type::kI16:
      return parse_integer<int16_t>(text, f.type);
    case Type::kU16:
      return parse_integer<uint16_t>(text, f.type);
    case Type::kI32:
      return parse_integer<int32_t>(text, f.type);
    case Type::kU32:
      return parse_integer<uint32_t>(text, f.type);
    case Type::kI64:
      return parse_integer<int64_t>(text, f.type);
    case Type::kU64:
      return parse_integer<uint64_t>(text, f.type);
    default:
      break;
  }
  std::string copy(text);
  char* end = nullptr;
  double value = std::strtod(copy.c_str(), &end);
  if (copy.empty() || *end) return Error{fmt::format("\"{}\" is not a value of {}", text, type_name(f.type))};
  std::vector<uint8_t> out(type_bytes(f.type));
  if (auto s = store_value(f, value, out.data()); !s) return Error{s.error()};
  return out;
}

Result<std::vector<uint8_t>> fill(Format f, size_t count, std::string_view how, uint64_t seed) {
  size_t bytes = type_bytes(f.type);
  if (count > (size_t(1) << 40) / bytes) return Error{fmt::format("{} elements are too many", count)};
  std::vector<uint8_t> out(count * bytes);
  std::string_view kind = how.substr(0, how.find(':'));
  size_t most = kind == "iota" || kind == "random" || kind == "normal" ? 2 : kind == "const" ? 1 : 0;
  auto numbers = numbers_of(how, most);
  if (!numbers) return Error{numbers.error()};
  auto number = [&](size_t n, double otherwise) { return n < numbers->size() ? (*numbers)[n] : otherwise; };
  std::mt19937_64 random(seed);
  auto unit = [&] { return static_cast<double>(random() >> 11) * 0x1p-53; };
  bool floating = is_floating(f.type);
  bool has_sign = floating || type_name(f.type)[0] == 'i';
  for (size_t n = 0; n < count; ++n) {
    double value = 0;
    if (kind == "zeros") {
      break;
    } else if (kind == "ones") {
      value = 1;
    } else if (kind == "const" && numbers->size() == 1) {
      value = number(0, 0);
    } else if (kind == "iota") {
      value = number(0, 0) + static_cast<double>(n) * number(1, 1);
    } else if (kind == "random") {
      double low = number(0, floating ? -1 : has_sign ? -100 : 0), high = number(1, floating ? 1 : 100);
      value = low + (high - low) * unit();
      if (!floating) value = std::floor(value);
    } else if (kind == "normal") {
      double angle = 6.283185307179586 * unit(), radius = std::sqrt(-2 * std::log(1 - unit()));
      value = number(0, 0) + number(1, floating ? 1 : 10) * radius * std::cos(angle);
      if (!floating) value = std::nearbyint(has_sign ? value : std::fabs(value));
    } else {
      return Error{fmt::format(
          "\"{}\": a fill is zeros, ones, const:V, iota[:START[:STEP]], random[:LOW:HIGH] or normal[:MEAN:SD]", how)};
    }
    if (auto s = store_value(f, value, out.data() + n * bytes); !s) return Error{fmt::format("{}: {}", how, s.error())};
  }
  return out;
}

Difference compare(Format f, std::span<const uint8_t> got, std::span<const uint8_t> expected, double atol,
                   double rtol) {
  Difference d;
  size_t bytes = type_bytes(f.type), count = std::min(got.size(), expected.size()) / bytes;
  for (size_t n = 0; n < count; ++n) {
    if (std::memcmp(got.data() + n * bytes, expected.data() + n * bytes, bytes) == 0) continue;
    double a = load_value(f, got.data() + n * bytes), b = load_value(f, expected.data() + n * bytes);
    if (std::isnan(a) && std::isnan(b)) continue;
    ++d.different;
    double absolute = std::fabs(a - b);
    if (a == b) absolute = 0;  // also infinities, and zeros of both signs
    bool inside = absolute <= atol + rtol * std::fabs(b);
    if (!inside && d.beyond++ == 0) d.first = n;
    if (std::isnan(absolute)) absolute = std::numeric_limits<double>::infinity();
    d.max_absolute = std::max(d.max_absolute, absolute);
    if (b != 0) d.max_relative = std::max(d.max_relative, absolute / std::fabs(b));
  }
  return d;
}

}  // namespace crest_sim::cli
