#include <algorithm>
#include <unordered_set>

#include "core/checked.h"
#include "format/byte_reader.h"
#include "format/escape.h"
#include "format/file_kind.h"
#include "format/gguf.h"

namespace crest::format {
namespace {

constexpr uint64_t kMaxKeyBytes = 65535;
constexpr uint64_t kMaxNameBytes = 64;
constexpr uint64_t kMinAlignment = 8;
constexpr uint64_t kMaxAlignment = 4096;
// Smallest metadata entry: length, one byte of key, type, one byte of value.
constexpr uint64_t kMinEntryBytes = 8 + 1 + 4 + 1;
// Smallest tensor entry: length, one byte of name, rank, one dimension, type, offset.
constexpr uint64_t kMinTensorBytes = 8 + 1 + 4 + 8 + 4 + 8;

}  // namespace

Shape::Shape(std::initializer_list<int64_t> sizes) {
  for (const int64_t size : sizes) ne[static_cast<size_t>(rank++)] = size;
}

std::string Shape::to_text() const {
  std::string text = "[";
  for (int i = 0; i < rank; ++i) text += fmt::format("{}{}", i == 0 ? "" : ", ", (*this)[i]);
  return text + "]";
}

Result<uint64_t> tensor_bytes(tensor::DType dtype, const Shape& shape) {
  const tensor::DTypeInfo& type = tensor::info(dtype);
  uint64_t elements = 1;
  for (const int64_t size : shape.ne) {
    const auto product = size < 0 ? std::nullopt : core::checked_mul(elements, static_cast<uint64_t>(size));
    if (!product || *product >> 62 != 0)
      return make_error(ErrorCode::kInvalidFile, "shape {} has more elements than 2^62", shape.to_text());
    elements = *product;
  }
  if (shape.ne[0] % type.block_size != 0)
    return make_error(ErrorCode::kInvalidFile, "rows of {} elements, but {} stores blocks of {}", shape.ne[0],
                      type.name, type.block_size);
  const auto bytes =
      core::checked_mul(elements / static_cast<uint64_t>(type.block_size), static_cast<uint64_t>(type.block_bytes));
  if (!bytes || *bytes >> 62 != 0)
    return make_error(ErrorCode::kInvalidFile, "shape {} of {} is more than 2^62 bytes", shape.to_text(), type.name);
  return *bytes;
}

class GgufParser {
 public:
  GgufParser(GgufFile& file, std::span<const std::byte> bytes) : file_(file), reader_(bytes, file.source()) {}

  Status parse(std::span<const std::byte> bytes) {
    CREST_RETURN_IF_ERROR(parse_start(bytes));
    for (uint64_t i = 0; i < n_kv_; ++i) CREST_RETURN_IF_ERROR(parse_entry(i));
    CREST_RETURN_IF_ERROR(parse_alignment());
    if (n_tensors_ > reader_.left() / kMinTensorBytes) return count_error("n_tensors", n_tensors_, kMinTensorBytes);
    file_.tensors_.reserve(n_tensors_);
    std::unordered_set<std::string_view> names;
    for (uint64_t i = 0; i < n_tensors_; ++i) {
      CREST_RETURN_IF_ERROR(parse_tensor(i));
      if (!names.insert(file_.tensors_.back().name).second)
        return error("tensor {}: the name {} is there twice", i, file_.tensors_.back().name);
    }
    return place_tensors(bytes.size());
  }

 private:
  template <typename... Args>
  Error error(fmt::format_string<Args...> format, Args&&... args) const {
    return reader_.error(ErrorCode::kInvalidFile, format, std::forward<Args>(args)...);
  }

  Error count_error(std::string_view field, uint64_t count, uint64_t minimum) const {
    return error("{} is {}, but the {} bytes left hold at most {}", field, count, reader_.left(),
                 reader_.left() / minimum);
  }

  Status parse_start(std::span<const std::byte> bytes) {
    CREST_TRY(const auto magic, reader_.bytes("the magic", std::min<uint64_t>(4, bytes.size())));
    if (magic != "GGUF") return not_a("a GGUF file", file_.source(), bytes);
    CREST_TRY(file_.version_, reader_.number<uint32_t>("version"));
    const uint32_t version = file_.version_;
    if (version != 0 && (version & 0xffff) == 0)
      return reader_.error(ErrorCode::kUnsupported,
                           "version is 0x{:08x}: a big-endian GGUF file; only little-endian ones are read", version);
    if (version != 2 && version != 3)
      return reader_.error(ErrorCode::kUnsupported, "version is {}; GGUF versions 2 and 3 are read", version);
    CREST_TRY(n_tensors_, reader_.number<uint64_t>("n_tensors"));
    CREST_TRY(n_kv_, reader_.number<uint64_t>("n_kv"));
    if (n_tensors_ > reader_.left() / kMinTensorBytes) return count_error("n_tensors", n_tensors_, kMinTensorBytes);
    if (n_kv_ > reader_.left() / kMinEntryBytes) return count_error("n_kv", n_kv_, kMinEntryBytes);
    return {};
  }

  Result<std::string_view> text(const std::string& field, uint64_t max) {
    CREST_TRY(const uint64_t length, reader_.number<uint64_t>(field + " length"));
    if (length > reader_.left()) return error("{} length is {}, and {} bytes are left", field, length, reader_.left());
    if (length > max) return error("{} length is {}, at most {} is allowed", field, length, max);
    return reader_.bytes(field, length);
  }

  Result<std::string> identifier(const std::string& field, uint64_t max) {
    CREST_TRY(const std::string_view name, text(field, max));
    if (name.empty()) return error("{} is empty", field);
    if (!is_utf8(name)) return error("{} \"{}\" is not UTF-8", field, escaped(name));
    if (name.find('\0') != std::string_view::npos) return error("{} \"{}\" contains a zero byte", field, escaped(name));
    return std::string(name);
  }

  Result<ValueType> value_type(const std::string& field, bool element) {
    CREST_TRY(const uint32_t type, reader_.number<uint32_t>(field));
    if (type > static_cast<uint32_t>(ValueType::kF64)) return error("{} is {}, allowed is 0 to 12", field, type);
    if (element && type == static_cast<uint32_t>(ValueType::kArray))
      return error("{} is an array: arrays of arrays are not allowed", field);
    return static_cast<ValueType>(type);
  }

  Status parse_entry(uint64_t index) {
    CREST_TRY(std::string key, identifier(fmt::format("metadata entry {}: key", index), kMaxKeyBytes));
    const std::string shown = escaped(key);
    CREST_TRY(const ValueType type, value_type(fmt::format("{}: value type", shown), false));
    Value value;
    if (type == ValueType::kArray) {
      CREST_TRY(const ValueType element, value_type(fmt::format("{}: element type", shown), true));
      CREST_TRY(const uint64_t count, reader_.number<uint64_t>(fmt::format("{}: element count", shown)));
      CREST_TRY(value, parse_values(shown, element, count, true));
    } else {
      CREST_TRY(value, parse_values(shown, type, 1, false));
    }
    if (!file_.metadata_.add(std::move(key), std::move(value))) return error("the key {} is there twice", shown);
    return {};
  }

  Result<Value> parse_values(const std::string& key, ValueType type, uint64_t count, bool array) {
    const uint64_t size = type == ValueType::kString ? 8 : value_bytes(type);
    if (count > reader_.left() / size)
      return error("{}: {} elements of {}, but the {} bytes left hold at most {}", key, count, name(type),
                   reader_.left(), reader_.left() / size);
    if (type != ValueType::kString) {
      CREST_TRY(const std::string_view bytes, reader_.bytes(key, count * size));
      if (type == ValueType::kBool && !std::ranges::all_of(bytes, [](char c) { return c == 0 || c == 1; }))
        return error("{}: a boolean is neither 0 nor 1", key);
      return Value::raw(type, std::string(bytes), array);
    }
    if (!array) {
      CREST_TRY(const std::string_view string, text(key + ": string", reader_.left()));
      return Value::string(std::string(string));
    }
    std::vector<std::string> strings;
    strings.reserve(count);
    const std::string field = key + ": string";
    for (uint64_t i = 0; i < count; ++i) {
      CREST_TRY(const std::string_view string, text(field, reader_.left()));
      strings.emplace_back(string);
    }
    return Value::strings(std::move(strings));
  }

  Status parse_alignment() {
    CREST_TRY(const int64_t alignment,
              file_.metadata_.integer_or("general.alignment", 32, kMinAlignment, kMaxAlignment));
    file_.alignment_ = static_cast<uint64_t>(alignment);
    if ((file_.alignment_ & (file_.alignment_ - 1)) != 0)
      return error("general.alignment is {}, allowed are powers of two from {} to {}", alignment, kMinAlignment,
                   kMaxAlignment);
    return {};
  }

  Status parse_tensor(uint64_t index) {
    GgufTensor tensor;
    CREST_TRY(tensor.name, identifier(fmt::format("tensor {}: name", index), kMaxNameBytes));
    const std::string shown = "tensor " + escaped(tensor.name);
    CREST_TRY(const uint32_t rank, reader_.number<uint32_t>(shown + ": n_dims"));
    if (rank < 1 || rank > 4) return error("{}: n_dims is {}, allowed is 1 to 4", shown, rank);
    tensor.shape.rank = static_cast<int>(rank);
    for (uint32_t i = 0; i < rank; ++i) {
      CREST_TRY(tensor.shape.ne[i], reader_.number<int64_t>(shown + ": dimension"));
      if (tensor.shape.ne[i] < 1)
        return error("{}: dimension {} is {}, at least 1 is allowed", shown, i, tensor.shape.ne[i]);
    }
    CREST_TRY(const uint32_t type, reader_.number<uint32_t>(shown + ": type"));
    const auto dtype = tensor::dtype_from_ggml(type);
    if (!dtype) {
      const std::string_view known = tensor::unsupported_ggml_name(type);
      return reader_.error(ErrorCode::kUnsupported, "{}: type {} {}; supported are {}", shown, type,
                           known.empty() ? "is unknown" : fmt::format("({}) cannot be read", known), supported());
    }
    tensor.dtype = *dtype;
    if (auto bytes = tensor_bytes(tensor.dtype, tensor.shape); bytes.ok()) {
      tensor.bytes = *bytes;
    } else {
      return error("{}: {}", shown, bytes.error().message);
    }
    CREST_TRY(tensor.offset, reader_.number<uint64_t>(shown + ": offset"));
    file_.tensors_.push_back(std::move(tensor));
    return {};
  }

  static std::string supported() {
    std::string names;
    for (int i = 0; i < tensor::kDTypeCount; ++i) {
      const auto& type = tensor::info(static_cast<tensor::DType>(i));
      if (type.ggml_type >= 0) names += fmt::format("{}{}", names.empty() ? "" : ", ", type.name);
    }
    return names;
  }

  Status place_tensors(uint64_t file_bytes) {
    const auto start = core::checked_align_up(reader_.offset(), file_.alignment_);
    if (!start) return error("the data start does not fit 64 bits");
    file_.data_offset_ = *start;
    uint64_t expected = 0;
    for (GgufTensor& tensor : file_.tensors_) {
      const std::string shown = escaped(tensor.name);
      if (tensor.offset % file_.alignment_ != 0)
        return error("tensor {}: offset {} is no multiple of the alignment {}", shown, tensor.offset, file_.alignment_);
      if (tensor.offset != expected)
        return error("tensor {}: offset is {}, expected {} (tensors follow one another without overlap or hole)", shown,
                     tensor.offset, expected);
      const auto end = core::checked_add(tensor.offset, tensor.bytes);
      const auto last = end ? core::checked_add(*end, *start) : std::nullopt;
      if (!last || *last > file_bytes)
        return error("tensor {}: {} bytes at offset {} of the data end behind the file's {} bytes (a file cut short?)",
                     shown, tensor.bytes, tensor.offset, file_bytes);
      const auto next = core::checked_align_up(*end, file_.alignment_);
      if (!next) return error("tensor {}: end does not fit 64 bits", shown);
      tensor.offset += *start;
      expected = *next;
    }
    // Too small a count would go unnoticed otherwise.
    if (file_bytes > *start && file_bytes - *start > expected)
      return error("n_tensors is {} and their data ends at byte {}, but the file has {} bytes", n_tensors_,
                   *start + expected, file_bytes);
    return {};
  }

  GgufFile& file_;
  ByteReader reader_;
  uint64_t n_tensors_ = 0;
  uint64_t n_kv_ = 0;
};

Result<std::shared_ptr<const GgufFile>> GgufFile::make(std::span<const std::byte> bytes, std::string source,
                                                       std::shared_ptr<const core::FileMap> map) {
  auto file = std::make_shared<GgufFile>();
  file->metadata_ = Metadata(std::move(source));
  file->bytes_ = bytes;
  file->map_ = std::move(map);
  CREST_RETURN_IF_ERROR(GgufParser(*file, bytes).parse(bytes));
  return std::shared_ptr<const GgufFile>(std::move(file));
}

Result<std::shared_ptr<const GgufFile>> GgufFile::parse(std::span<const std::byte> bytes, std::string source) {
  return make(bytes, std::move(source), nullptr);
}

Result<std::shared_ptr<const GgufFile>> GgufFile::open(const std::filesystem::path& path) {
  CREST_TRY(auto map, core::FileMap::open(path));
  const auto bytes = map->bytes();
  return make(bytes, path.string(), std::move(map));
}

}  // namespace crest::format
