#include "cli/files.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>

namespace crest_sim::cli {
namespace {

constexpr std::string_view kNpyMagic = "\x93NUMPY";

struct NpyType {
  Type type;
  std::string_view text;
};
constexpr NpyType kNpyTypes[] = {{Type::kF64, "<f8"}, {Type::kF32, "<f4"}, {Type::kF16, "<f2"}, {Type::kI8, "|i1"},
                                 {Type::kU8, "|u1"},  {Type::kI16, "<i2"}, {Type::kU16, "<u2"}, {Type::kI32, "<i4"},
                                 {Type::kU32, "<u4"}, {Type::kI64, "<i8"}, {Type::kU64, "<u8"}};

/// The text behind 'key': in the header's dictionary, up to the next comma outside brackets or the closing brace.
std::string header_field(const std::string& header, std::string_view key) {
  size_t at = header.find(fmt::format("'{}'", key));
  if (at == std::string::npos) return {};
  at = header.find(':', at);
  if (at == std::string::npos) return {};
  int depth = 0;
  std::string out;
  for (size_t n = at + 1; n < header.size(); ++n) {
    char c = header[n];
    if (depth == 0 && (c == ',' || c == '}')) break;
    depth += c == '(' ? 1 : c == ')' ? -1 : 0;
    if (c != ' ' && c != '\'') out += c;
  }
  return out;
}

/// Product of "(2,3,)"; empty if it is no such list or too large.
std::optional<uint64_t> shape_product(const std::string& text) {
  if (text.size() < 2 || text.front() != '(' || text.back() != ')') return std::nullopt;
  uint64_t product = 1, number = 0;
  bool digits = false;
  for (char c : text.substr(1)) {
    if (c >= '0' && c <= '9') {
      number = number * 10 + static_cast<uint64_t>(c - '0');
      digits = true;
      if (number > uint64_t(1) << 40) return std::nullopt;
    } else if (c == ',' || c == ')') {
      if (digits && number && product > (uint64_t(1) << 40) / number) return std::nullopt;
      if (digits) product *= number;
      number = 0, digits = false;
    } else {
      return std::nullopt;
    }
  }
  return product;
}

Result<Array> parse_npy(const std::string& path, std::vector<uint8_t> bytes) {
  auto bad = [&](std::string_view what) { return Error{fmt::format("{}: {}", path, what)}; };
  size_t major = bytes.size() > 7 ? bytes[6] : 0, start = major >= 2 ? 12 : 10;
  if (bytes.size() < start) return bad("the .npy header is cut off");
  size_t length = bytes[8] | size_t(bytes[9]) << 8;
  if (major >= 2) length |= size_t(bytes[10]) << 16 | size_t(bytes[11]) << 24;
  if (length > bytes.size() - start) return bad("the .npy header is cut off");
  std::string header(reinterpret_cast<const char*>(bytes.data()) + start, length);
  std::string descr = header_field(header, "descr");
  auto count = shape_product(header_field(header, "shape"));
  if (header_field(header, "fortran_order") != "False") return bad("only arrays in C order are read");
  for (const NpyType& t : kNpyTypes) {
    if (t.text != descr) continue;
    size_t data = start + length;
    if (!count || *count > (bytes.size() - data) / type_bytes(t.type)) return bad("its data is shorter than its shape");
    Array out;
    out.type = t.type;
    out.bytes.assign(bytes.begin() + static_cast<ptrdiff_t>(data),
                     bytes.begin() + static_cast<ptrdiff_t>(data + *count * type_bytes(t.type)));
    return out;
  }
  return bad(fmt::format("elements of type \"{}\" are not read", descr));
}

}  // namespace

Result<std::vector<uint8_t>> read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return Error{fmt::format("{}: cannot be read ({})", path, std::strerror(errno))};
  std::vector<uint8_t> bytes{std::istreambuf_iterator<char>(in), {}};
  if (in.bad()) return Error{fmt::format("{}: cannot be read", path)};
  return bytes;
}

Result<Array> read_array(const std::string& path) {
  auto bytes = read_file(path);
  if (!bytes) return Error{bytes.error()};
  if (bytes->size() >= kNpyMagic.size() && std::memcmp(bytes->data(), kNpyMagic.data(), kNpyMagic.size()) == 0)
    return parse_npy(path, std::move(*bytes));
  return Array{std::move(*bytes), std::nullopt};
}

Status write_array(const std::string& path, Format f, std::span<const uint8_t> bytes) {
  if (!path.ends_with(".npy")) return write_file(path, bytes);
  Type written = f.type == Type::kBf16 ? Type::kU16 : f.type == Type::kFp8 || f.type == Type::kBf8 ? Type::kU8 : f.type;
  std::string_view descr;
  for (const NpyType& t : kNpyTypes)
    if (t.type == written) descr = t.text;
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({},), }}", descr,
                                   bytes.size() / type_bytes(f.type));
  while ((10 + header.size() + 1) % 64) header += ' ';
  header += '\n';
  std::vector<uint8_t> out(kNpyMagic.begin(), kNpyMagic.end());
  for (size_t b : {size_t(1), size_t(0), header.size() & 255, header.size() >> 8})
    out.push_back(static_cast<uint8_t>(b));
  out.insert(out.end(), header.begin(), header.end());
  out.insert(out.end(), bytes.begin(), bytes.end());
  return write_file(path, out);
}

}  // namespace crest_sim::cli
