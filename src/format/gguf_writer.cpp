#include "format/gguf_writer.h"

#include <cstring>
#include <unordered_set>

#include "core/checked.h"
#include "core/file_map.h"
#include "format/escape.h"

namespace crest::format {
namespace {

constexpr size_t kMaxNameBytes = 63;  // readers that keep a final zero byte have room for 64
constexpr size_t kMaxKeyBytes = 65535;

template <typename T>
void put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void put_string(std::string& out, std::string_view text) {
  put<uint64_t>(out, text.size());
  out += text;
}

void put_value(std::string& out, const Value& value) {
  if (value.is_array()) {
    put(out, ValueType::kArray);
    put(out, value.type());
    put<uint64_t>(out, value.count());
  } else {
    put(out, value.type());
  }
  if (value.type() != ValueType::kString) {
    out += value.raw_bytes();
  } else if (value.is_array()) {
    for (const std::string& text : value.as_strings()) put_string(out, text);
  } else {
    put_string(out, value.raw_bytes());
  }
}

Status check_identifier(std::string_view what, std::string_view text, size_t max) {
  if (text.empty() || text.size() > max || !is_utf8(text) || text.find('\0') != std::string_view::npos)
    return make_error(ErrorCode::kInvalidArgument, "{} \"{}\": {} bytes; allowed are 1 to {} bytes of UTF-8", what,
                      escaped(text), text.size(), max);
  return {};
}

Result<uint64_t> alignment_of(const Metadata& metadata) {
  CREST_TRY(const int64_t alignment, metadata.integer_or("general.alignment", 32, 8, 4096));
  if ((alignment & (alignment - 1)) != 0)
    return make_error(ErrorCode::kInvalidArgument, "general.alignment is {}, allowed are powers of two", alignment);
  return static_cast<uint64_t>(alignment);
}

}  // namespace

Result<std::string> gguf_header(const Metadata& metadata, std::span<const TensorSpec> tensors) {
  CREST_TRY(const uint64_t alignment, alignment_of(metadata));
  std::string out = "GGUF";
  put<uint32_t>(out, 3);
  put<uint64_t>(out, tensors.size());
  put<uint64_t>(out, metadata.entries().size());
  for (const auto& [key, value] : metadata.entries()) {
    CREST_RETURN_IF_ERROR(check_identifier("metadata key", key, kMaxKeyBytes));
    put_string(out, key);
    put_value(out, value);
  }
  uint64_t offset = 0;
  std::unordered_set<std::string_view> names;
  for (const TensorSpec& tensor : tensors) {
    CREST_RETURN_IF_ERROR(check_identifier("tensor name", tensor.name, kMaxNameBytes));
    if (!names.insert(tensor.name).second)
      return make_error(ErrorCode::kInvalidArgument, "tensor {} is there twice", tensor.name);
    const auto& type = tensor::info(tensor.dtype);
    if (type.ggml_type < 0)
      return make_error(ErrorCode::kUnsupported, "tensor {}: GGUF has no type {}", tensor.name, type.name);
    auto bytes = tensor_bytes(tensor.dtype, tensor.shape);
    if (!bytes.ok()) return std::move(bytes).error().with_context("tensor " + tensor.name);
    put_string(out, tensor.name);
    put<uint32_t>(out, static_cast<uint32_t>(tensor.shape.rank));
    for (int i = 0; i < tensor.shape.rank; ++i) {
      if (tensor.shape[i] < 1)
        return make_error(ErrorCode::kInvalidArgument, "tensor {}: shape {} is empty", tensor.name,
                          tensor.shape.to_text());
      put<int64_t>(out, tensor.shape[i]);
    }
    put<uint32_t>(out, static_cast<uint32_t>(type.ggml_type));
    put<uint64_t>(out, offset);
    const auto end = core::checked_add(offset, *bytes);
    const auto next = end ? core::checked_align_up(*end, alignment) : std::nullopt;
    if (!next) return make_error(ErrorCode::kInvalidArgument, "the tensors together are more than 2^64 bytes");
    offset = *next;
  }
  out.resize(*core::checked_align_up(out.size(), alignment), '\0');
  return out;
}

GgufWriter::GgufWriter(core::AtomicFile file, std::vector<TensorSpec> tensors, uint64_t alignment)
    : file_(std::move(file)), tensors_(std::move(tensors)), alignment_(alignment) {
  if (!tensors_.empty()) left_ = *tensor_bytes(tensors_[0].dtype, tensors_[0].shape);
}

Result<GgufWriter> GgufWriter::create(const std::filesystem::path& path, const Metadata& metadata,
                                      std::vector<TensorSpec> tensors) {
  CREST_TRY(const std::string header, gguf_header(metadata, tensors));
  CREST_TRY(const uint64_t alignment, alignment_of(metadata));
  CREST_TRY(auto file, core::AtomicFile::create(path));
  CREST_RETURN_IF_ERROR(file.write(header));
  return GgufWriter(std::move(file), std::move(tensors), alignment);
}

Status GgufWriter::write(std::span<const std::byte> bytes) {
  CREST_CHECK(current_ < tensors_.size() && bytes.size() <= left_, "{} bytes for tensor {} with {} to come",
              bytes.size(), current_, left_);
  CREST_RETURN_IF_ERROR(file_.write(bytes));
  left_ -= bytes.size();
  if (left_ > 0) return {};
  CREST_RETURN_IF_ERROR(file_.write_zeros(*core::checked_align_up(file_.offset(), alignment_) - file_.offset()));
  if (++current_ < tensors_.size()) left_ = *tensor_bytes(tensors_[current_].dtype, tensors_[current_].shape);
  return {};
}

Status GgufWriter::finish() {
  CREST_CHECK(current_ == tensors_.size(), "{} of {} tensors written", current_, tensors_.size());
  return file_.commit();
}

Status refuse_same_file(const std::filesystem::path& output, std::span<const std::filesystem::path> inputs) {
  const auto target = core::file_identity(output);
  if (!target.ok()) return {};  // no such file yet
  for (const auto& input : inputs) {
    const auto source = core::file_identity(input);
    if (source.ok() && *source == *target)
      return make_error(ErrorCode::kInvalidArgument, "{}: is the same file as the input {}; choose another output",
                        output.string(), input.string());
  }
  return {};
}

}  // namespace crest::format
