#include "tensor/npy.h"

#include <charconv>
#include <cstring>
#include <string_view>

#include "core/checked.h"
#include "core/file_map.h"
#include "tensor/quant.h"

namespace crest::tensor {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kMaxDimensions = 32;

struct Descr {
  std::string_view text;
  DType dtype;
};
constexpr Descr kDescrs[] = {{"<f4", DType::kF32}, {"<f2", DType::kF16}, {"<f8", DType::kF64}, {"|i1", DType::kI8},
                             {"<i2", DType::kI16}, {"<i4", DType::kI32}, {"<i8", DType::kI64}};

Error broken(std::string_view what) { return make_error(ErrorCode::kInvalidFile, "npy: {}", what); }

// The header is a Python dictionary literal with exactly the keys descr, fortran_order and shape.
class HeaderParser {
 public:
  explicit HeaderParser(std::string_view text) : text_(text) {}

  Result<NpyArray> parse() {
    NpyArray array;
    bool seen[3] = {};
    if (!take('{')) return broken("the header is no dictionary");
    while (!take('}')) {
      CREST_TRY(const std::string_view key, string());
      if (!take(':')) return broken("':' is missing after a key of the header");
      const int index = key == "descr" ? 0 : key == "fortran_order" ? 1 : key == "shape" ? 2 : -1;
      if (index < 0 || seen[index]) {
        return make_error(ErrorCode::kInvalidFile, "npy: header key '{}' is unknown or repeated", key);
      }
      seen[index] = true;
      if (index == 0) CREST_RETURN_IF_ERROR(descr(array.dtype));
      if (index == 1) CREST_RETURN_IF_ERROR(order());
      if (index == 2) CREST_RETURN_IF_ERROR(shape(array.shape));
      if (take(',')) continue;
      if (!peek('}')) return broken("',' or '}' is missing in the header");
    }
    skip_space();
    if (position_ != text_.size()) return broken("there is text after the header's dictionary");
    if (!seen[0] || !seen[1] || !seen[2]) return broken("descr, fortran_order or shape is missing");
    if (fortran_ && array.shape.size() > 1) {
      return make_error(ErrorCode::kUnsupported, "npy: the array is in Fortran order; only C order is supported");
    }
    return array;
  }

 private:
  void skip_space() {
    while (position_ < text_.size() && (text_[position_] == ' ' || text_[position_] == '\n')) ++position_;
  }
  bool peek(char c) {
    skip_space();
    return position_ < text_.size() && text_[position_] == c;
  }
  bool take(char c) {
    if (!peek(c)) return false;
    ++position_;
    return true;
  }
  bool take_word(std::string_view word) {
    skip_space();
    if (!text_.substr(position_).starts_with(word)) return false;
    position_ += word.size();
    return true;
  }
  Result<std::string_view> string() {
    const char quote = peek('"') ? '"' : '\'';
    if (!take(quote)) return broken("a string is missing in the header");
    const size_t end = text_.find(quote, position_);
    if (end == std::string_view::npos) return broken("a string of the header does not end");
    const std::string_view value = text_.substr(position_, end - position_);
    position_ = end + 1;
    return value;
  }
  Status descr(DType& dtype) {
    CREST_TRY(const std::string_view text, string());
    for (const Descr& d : kDescrs) {
      if (d.text == text) {
        dtype = d.dtype;
        return {};
      }
    }
    return make_error(ErrorCode::kUnsupported, "npy: dtype '{}' is not one of <f2 <f4 <f8 |i1 <i2 <i4 <i8", text);
  }
  Status order() {
    fortran_ = take_word("True");
    if (!fortran_ && !take_word("False")) return broken("fortran_order is neither True nor False");
    return {};
  }
  Status shape(std::vector<int64_t>& shape) {
    if (!take('(')) return broken("shape is no tuple");
    while (!take(')')) {
      skip_space();
      int64_t value = -1;
      const char* end = text_.data() + text_.size();
      const auto [next, code] = std::from_chars(text_.data() + position_, end, value);
      if (code != std::errc() || value < 0) return broken("shape holds something that is no size");
      position_ = static_cast<size_t>(next - text_.data());
      if (shape.size() == kMaxDimensions) return broken("shape has more than 32 dimensions");
      shape.push_back(value);
      if (!take(',') && !peek(')')) return broken("',' or ')' is missing in shape");
    }
    return {};
  }

  std::string_view text_;
  size_t position_ = 0;
  bool fortran_ = false;
};

// Bytes of an array, or nothing when they do not fit 63 bits.
std::optional<uint64_t> array_bytes(DType dtype, std::span<const int64_t> shape) {
  uint64_t bytes = static_cast<uint64_t>(info(dtype).block_bytes);
  for (const int64_t size : shape) {
    if (size == 0) return 0;
  }
  for (const int64_t size : shape) {
    const auto product = size < 0 ? std::nullopt : core::checked_mul(bytes, static_cast<uint64_t>(size));
    if (!product || *product > INT64_MAX) return std::nullopt;
    bytes = *product;
  }
  return bytes;
}

}  // namespace

int64_t NpyArray::elements() const { return static_cast<int64_t>(data.size()) / info(dtype).block_bytes; }

std::vector<float> NpyArray::to_f32() const {
  std::vector<float> values(static_cast<size_t>(elements()));
  dequantize_row(dtype, data.data(), values.data(), elements());
  return values;
}

Result<std::vector<int64_t>> NpyArray::to_i64() const {
  if (dtype != DType::kI8 && dtype != DType::kI16 && dtype != DType::kI32 && dtype != DType::kI64) {
    return make_error(ErrorCode::kInvalidArgument, "npy: integers are needed, the array is {}", name(dtype));
  }
  const auto size = static_cast<size_t>(info(dtype).block_bytes);
  std::vector<int64_t> values(static_cast<size_t>(elements()));
  for (size_t i = 0; i < values.size(); ++i) {
    uint64_t bits = 0;
    std::memcpy(&bits, data.data() + i * size, size);
    const int shift = 64 - 8 * static_cast<int>(size);
    values[i] = static_cast<int64_t>(bits << shift) >> shift;  // extends the sign
  }
  return values;
}

Result<NpyArray> parse_npy(std::span<const std::byte> file) {
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  if (!text.starts_with(kMagic) || text.size() < 10) return broken("the file does not start as a .npy file does");
  const auto byte = [&](size_t i) { return static_cast<uint32_t>(static_cast<uint8_t>(text[i])); };
  const uint32_t major = byte(6);
  if (major < 1 || major > 3) {
    return make_error(ErrorCode::kUnsupported, "npy: version {}.{} is not one of 1, 2, 3", major, byte(7));
  }
  const size_t start = major == 1 ? 10 : 12;
  if (text.size() < start) return broken("the file is cut off in its header");
  const size_t length = byte(8) | byte(9) << 8 | (major == 1 ? 0 : byte(10) << 16 | byte(11) << 24);
  if (text.size() - start < length) return broken("the file is cut off in its header");
  CREST_TRY(NpyArray array, HeaderParser(text.substr(start, length)).parse());
  const auto needed = array_bytes(array.dtype, array.shape);
  const size_t available = text.size() - start - length;
  if (!needed || *needed != available) {
    return make_error(ErrorCode::kInvalidFile, "npy: the shape needs {} bytes of data, the file holds {}",
                      needed ? fmt::to_string(*needed) : "more than 2^63", available);
  }
  const auto data = file.subspan(start + length);
  array.data.assign(data.begin(), data.end());
  return array;
}

Result<NpyArray> read_npy(const std::filesystem::path& path) {
  CREST_TRY(const auto map, core::FileMap::open(path));
  auto array = parse_npy(map->bytes());
  if (!array.ok()) return std::move(array).error().with_context(path.string());
  return array;
}

Result<NpyWriter> NpyWriter::create(const std::filesystem::path& path, DType dtype, std::span<const int64_t> shape) {
  std::string_view descr;
  for (const Descr& d : kDescrs) {
    if (d.dtype == dtype) descr = d.text;
  }
  const auto bytes = array_bytes(dtype, shape);
  if (descr.empty() || !bytes) {
    return make_error(ErrorCode::kInvalidArgument,
                      "{}: cannot write an array of {} this large, or of this type, as npy", path.string(),
                      name(dtype));
  }
  std::string sizes;
  for (const int64_t size : shape) sizes += fmt::format("{}, ", size);
  if (shape.size() > 1) sizes.resize(sizes.size() - 2);
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", descr, sizes);
  header.append(63 - (header.size() + 10) % 64, ' ');
  header += '\n';
  CREST_TRY(core::AtomicFile file, core::AtomicFile::create(path));
  std::string start(kMagic);
  start += {1, 0, static_cast<char>(header.size() & 255), static_cast<char>(header.size() >> 8)};
  CREST_RETURN_IF_ERROR(file.write(start + header));
  return NpyWriter(std::move(file), *bytes);
}

Status NpyWriter::write(std::span<const std::byte> bytes) {
  if (bytes.size() > bytes_left_) {
    return make_error(ErrorCode::kInvalidArgument, "npy: {} bytes more than the shape holds",
                      bytes.size() - bytes_left_);
  }
  bytes_left_ -= bytes.size();
  return file_.write(bytes);
}

Status NpyWriter::commit() {
  if (bytes_left_ != 0) {
    return make_error(ErrorCode::kInvalidArgument, "npy: {} bytes of the array were not written", bytes_left_);
  }
  return file_.commit();
}

Status write_npy(const std::filesystem::path& path, DType dtype, std::span<const int64_t> shape,
                 std::span<const std::byte> data) {
  CREST_TRY(NpyWriter writer, NpyWriter::create(path, dtype, shape));
  CREST_RETURN_IF_ERROR(writer.write(data));
  return writer.commit();
}

}  // namespace crest::tensor
