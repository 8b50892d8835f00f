#include "format/safetensors.h"

#include <simdjson.h>

#include <algorithm>
#include <cstring>
#include <unordered_set>

#include "core/checked.h"
#include "format/escape.h"
#include "format/file_kind.h"

namespace crest::format {
namespace {

namespace dom = simdjson::dom;
constexpr uint64_t kMaxHeaderBytes = 100'000'000;
constexpr size_t kMaxDepth = 4;  // header, tensor, shape; one to spare

struct TypeInfo {
  std::string_view name;
  unsigned bits;
  std::optional<tensor::DType> dtype;
};

using tensor::DType;
constexpr TypeInfo kTypes[] = {{"BOOL", 8, {}},
                               {"F4", 4, {}},
                               {"F6_E2M3", 6, {}},
                               {"F6_E3M2", 6, {}},
                               {"U8", 8, {}},
                               {"I8", 8, DType::kI8},
                               {"F8_E5M2", 8, {}},
                               {"F8_E4M3", 8, DType::kF8_E4M3FN},
                               {"F8_E4M3FNUZ", 8, DType::kF8_E4M3FNUZ},
                               {"F8_E5M2FNUZ", 8, {}},
                               {"F8_E8M0", 8, {}},
                               {"I16", 16, DType::kI16},
                               {"U16", 16, {}},
                               {"F16", 16, DType::kF16},
                               {"BF16", 16, DType::kBF16},
                               {"I32", 32, DType::kI32},
                               {"U32", 32, {}},
                               {"F32", 32, DType::kF32},
                               {"C64", 64, {}},
                               {"F64", 64, DType::kF64},
                               {"I64", 64, DType::kI64},
                               {"U64", 64, {}}};

const TypeInfo* find_type(std::string_view name) {
  for (const TypeInfo& type : kTypes) {
    if (type.name == name) return &type;
  }
  return nullptr;
}

}  // namespace

int64_t SafetensorsTensor::elements() const {
  uint64_t count = 1;  // unsigned: a product on the way to zero may pass 2^63
  for (const int64_t size : shape) count *= static_cast<uint64_t>(size);
  return static_cast<int64_t>(count);
}

std::string SafetensorsTensor::shape_text() const { return fmt::format("[{}]", fmt::join(shape, ", ")); }

class SafetensorsParser {
 public:
  explicit SafetensorsParser(SafetensorsFile& file) : file_(file) {}

  Status parse() {
    const auto bytes = file_.bytes_;
    if (bytes.size() < 8) return not_a("a safetensors file", file_.source_, bytes);
    uint64_t header = 0;
    std::memcpy(&header, bytes.data(), sizeof header);
    if (header > kMaxHeaderBytes || header > bytes.size() - 8) {
      if (file_kind(bytes) != FileKind::kSafetensors) return not_a("a safetensors file", file_.source_, bytes);
      return error("the header length is {}, allowed are {} bytes and what the file of {} bytes holds", header,
                   kMaxHeaderBytes, bytes.size());
    }
    data_offset_ = 8 + header;
    dom::parser parser(kMaxHeaderBytes + 1);
    if (parser.allocate(std::max<size_t>(header, 64), kMaxDepth) != simdjson::SUCCESS)
      return make_error(ErrorCode::kOutOfMemory, "{}: no memory for a header of {} bytes", file_.source_, header);
    dom::element root;
    // The copy has the padding that the parser reads beyond the end.
    const simdjson::padded_string text(reinterpret_cast<const char*>(bytes.data()) + 8, header);
    if (const auto code = parser.parse(text).get(root); code != simdjson::SUCCESS) {
      if (file_kind(bytes) != FileKind::kSafetensors) return not_a("a safetensors file", file_.source_, bytes);
      return error("the header is not valid JSON: {}", simdjson::error_message(code));
    }
    dom::object object;
    if (root.get(object) != simdjson::SUCCESS) return error("the header is not a JSON object");
    CREST_RETURN_IF_ERROR(parse_header(object));
    return place();
  }

 private:
  template <typename... Args>
  Error error(fmt::format_string<Args...> format, Args&&... args) const {
    return make_error(ErrorCode::kInvalidFile, "{}: {}", file_.source_,
                      fmt::format(format, std::forward<Args>(args)...));
  }

  Status parse_header(dom::object object) {
    std::unordered_set<std::string_view> names;
    for (const auto& [key, value] : object) {
      if (!names.insert(key).second) return error("the name {} is there twice", escaped(key));
      if (key == "__metadata__") {
        CREST_RETURN_IF_ERROR(parse_metadata(value));
      } else {
        CREST_RETURN_IF_ERROR(parse_tensor(key, value));
      }
    }
    return {};
  }

  Status parse_metadata(dom::element value) {
    if (value.is_null()) return {};
    dom::object object;
    if (value.get(object) != simdjson::SUCCESS) return error("__metadata__ is not an object");
    std::unordered_set<std::string_view> names;
    for (const auto& [key, text] : object) {
      std::string_view string;
      if (text.get(string) != simdjson::SUCCESS) return error("__metadata__: {} is not a string", escaped(key));
      if (!names.insert(key).second) return error("__metadata__: {} is there twice", escaped(key));
      file_.metadata_.emplace_back(key, string);
    }
    return {};
  }

  Status parse_tensor(std::string_view name, dom::element value) {
    const std::string shown = "tensor " + escaped(name);
    dom::object object;
    if (value.get(object) != simdjson::SUCCESS) return error("{} is not described by an object", shown);
    SafetensorsTensor tensor;
    tensor.name = name;
    bool dtype = false, shape = false, offsets = false;
    for (const auto& [key, field] : object) {
      bool* seen = key == "dtype" ? &dtype : key == "shape" ? &shape : key == "data_offsets" ? &offsets : nullptr;
      if (seen == nullptr) continue;
      if (std::exchange(*seen, true)) return error("{}: {} is there twice", shown, key);
      std::string_view text;
      if (seen == &dtype) {
        if (field.get(text) != simdjson::SUCCESS) return error("{}: dtype is not a string", shown);
        tensor.dtype_name = text;
      } else if (seen == &shape) {
        CREST_TRY(tensor.shape, integers<int64_t>(shown + ": shape", field));
      } else {
        CREST_TRY(const auto range, integers<uint64_t>(shown + ": data_offsets", field));
        if (range.size() != 2) return error("{}: data_offsets has {} numbers, expected 2", shown, range.size());
        if (range[0] > range[1]) return error("{}: data_offsets [{}, {}] run backwards", shown, range[0], range[1]);
        tensor.offset = range[0];
        tensor.bytes = range[1] - range[0];
      }
    }
    if (!dtype || !shape || !offsets)
      return error("{}: {} is missing", shown, !dtype ? "dtype" : !shape ? "shape" : "data_offsets");
    CREST_RETURN_IF_ERROR(check_size(shown, tensor));
    file_.tensors_.push_back(std::move(tensor));
    return {};
  }

  template <typename T>
  Result<std::vector<T>> integers(const std::string& field, dom::element value) const {
    dom::array array;
    if (value.get(array) != simdjson::SUCCESS) return error("{} is not a list", field);
    std::vector<T> numbers;
    for (const dom::element item : array) {
      uint64_t number = 0;
      if (item.get(number) != simdjson::SUCCESS || number >> 63 != 0)
        return error("{}[{}] is not an integer from 0 to 2^63-1", field, numbers.size());
      numbers.push_back(static_cast<T>(number));
    }
    return numbers;
  }

  Status check_size(const std::string& shown, SafetensorsTensor& tensor) const {
    const TypeInfo* type = find_type(tensor.dtype_name);
    if (type == nullptr) return error("{}: dtype \"{}\" is unknown", shown, escaped(tensor.dtype_name));
    tensor.dtype = type->dtype;
    uint64_t elements = 1;
    for (const int64_t size : tensor.shape) {
      const auto product = core::checked_mul(elements, static_cast<uint64_t>(size));
      if (!product) return error("{}: shape {} is too large", shown, tensor.shape_text());
      elements = *product;
    }
    const auto bit_count = core::checked_mul(elements, type->bits);
    if (!bit_count) return error("{}: shape {} is too large", shown, tensor.shape_text());
    const uint64_t bits = *bit_count;
    if (bits % 8 != 0)
      return error("{}: shape {} of {} does not fill whole bytes", shown, tensor.shape_text(), type->name);
    if (bits / 8 != tensor.bytes)
      return error("{}: shape {} of {} is {} bytes, but data_offsets span {}", shown, tensor.shape_text(), type->name,
                   bits / 8, tensor.bytes);
    return {};
  }

  // Ranges must tile the data exactly.
  Status place() {
    std::ranges::sort(file_.tensors_, [](const SafetensorsTensor& a, const SafetensorsTensor& b) {
      return std::tie(a.offset, a.bytes, a.name) < std::tie(b.offset, b.bytes, b.name);
    });
    uint64_t expected = 0;
    for (SafetensorsTensor& tensor : file_.tensors_) {
      if (tensor.offset != expected)
        return error(
            "tensor {}: data_offsets start at {}, expected {} (tensors follow one another without overlap or hole)",
            escaped(tensor.name), tensor.offset, expected);
      expected += tensor.bytes;  // both are below 2^63
      tensor.offset += data_offset_;
    }
    const uint64_t data = file_.bytes_.size() - data_offset_;
    if (expected != data)
      return error("the tensors end at byte {} of the data, but the file has {} bytes of it ({})", expected, data,
                   expected > data ? "a file cut short?" : "bytes behind the last tensor");
    return {};
  }

  SafetensorsFile& file_;
  uint64_t data_offset_ = 0;
};

Result<std::shared_ptr<const SafetensorsFile>> SafetensorsFile::parse(std::span<const std::byte> bytes,
                                                                      std::string source) {
  auto file = std::make_shared<SafetensorsFile>();
  file->bytes_ = bytes;
  file->source_ = std::move(source);
  CREST_RETURN_IF_ERROR(SafetensorsParser(*file).parse());
  return std::shared_ptr<const SafetensorsFile>(std::move(file));
}

Result<std::shared_ptr<const SafetensorsFile>> SafetensorsFile::open(const std::filesystem::path& path) {
  CREST_TRY(auto map, core::FileMap::open(path));
  auto file = std::make_shared<SafetensorsFile>();
  file->bytes_ = map->bytes();
  file->map_ = std::move(map);
  file->source_ = path.string();
  CREST_RETURN_IF_ERROR(SafetensorsParser(*file).parse());
  return std::shared_ptr<const SafetensorsFile>(std::move(file));
}

}  // namespace crest::format
