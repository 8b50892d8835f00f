#include "format/imatrix.h"

#include <cmath>
#include <cstring>

#include "format/gguf.h"
#include "format/gguf_writer.h"

namespace crest::format {
namespace {

constexpr std::string_view kSums = ".in_sum2";
constexpr std::string_view kCounts = ".counts";

Status check_numbers(std::string_view tensor, std::string_view what, std::span<const float> values) {
  for (const float value : values) {
    if (!std::isfinite(value) || value < 0) {
      return make_error(ErrorCode::kInvalidFile, "importance of tensor {}: {} holds {}; allowed are finite values >= 0",
                        tensor, what, value);
    }
  }
  return {};
}

std::vector<float> floats(std::span<const std::byte> bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

}  // namespace

class ImatrixReader {
 public:
  static Result<Imatrix> gguf(const GgufFile& file) {
    CREST_TRY(const std::string type, file.metadata().string_or("general.type", "model"));
    if (type != "imatrix") {
      return make_error(ErrorCode::kInvalidFile, "general.type is \"{}\", expected \"imatrix\"", type);
    }
    Imatrix result;
    CREST_TRY(result.chunks_, file.metadata().integer_or("imatrix.chunk_count", 0, 0, INT64_MAX));
    CREST_TRY(result.chunk_tokens_, file.metadata().integer_or("imatrix.chunk_size", 0, 0, INT64_MAX));
    if (file.metadata().contains("imatrix.datasets")) {
      CREST_TRY(const auto names, file.metadata().strings("imatrix.datasets"));
      if (!names.empty()) result.dataset_ = names.front();
    }
    for (const GgufTensor& tensor : file.tensors()) {
      if (!tensor.name.ends_with(kSums)) continue;
      const std::string name = tensor.name.substr(0, tensor.name.size() - kSums.size());
      CREST_TRY(Imatrix::Entry entry, gguf_entry(file, tensor, name));
      result.entries_.emplace(name, std::move(entry));
    }
    return result;
  }

  // i32 entries; each: i32 name length, name, i32 calls, i32 values, f32 values[]; then i32 chunks, i32 length, text.
  static Result<Imatrix> dat(std::span<const std::byte> bytes) {
    ImatrixReader reader{bytes};
    Imatrix result;
    CREST_TRY(const int32_t entries, reader.number("number of entries"));
    for (int32_t i = 0; i < entries; ++i) {
      CREST_TRY(const std::string name, reader.text("name of an entry"));
      CREST_TRY(const int32_t calls, reader.number("number of calls"));
      CREST_TRY(const int32_t count, reader.number("number of values"));
      if (name.empty() || calls < 0 || count <= 0) {
        return make_error(ErrorCode::kInvalidFile, "entry {} has {} calls and {} values", i, calls, count);
      }
      CREST_TRY(const auto values, reader.take(static_cast<size_t>(count) * sizeof(float), "values of an entry"));
      Imatrix::Entry entry{count, 1, floats(values), {static_cast<float>(calls)}};
      CREST_RETURN_IF_ERROR(check_numbers(name, "its sums", entry.in_sum2));
      if (!result.entries_.emplace(name, std::move(entry)).second) {
        return make_error(ErrorCode::kInvalidFile, "tensor {} is there twice", name);
      }
    }
    if (!reader.left_.empty()) {
      CREST_TRY(const int32_t chunks, reader.number("number of chunks"));
      result.chunks_ = chunks;
      if (!reader.left_.empty()) {
        CREST_TRY(result.dataset_, reader.text("name of the text"));
      }
    }
    return result;
  }

 private:
  static Result<Imatrix::Entry> gguf_entry(const GgufFile& file, const GgufTensor& sums, const std::string& name) {
    const GgufTensor* counts = nullptr;
    for (const GgufTensor& tensor : file.tensors()) {
      if (tensor.name.size() == name.size() + kCounts.size() && tensor.name.starts_with(name) &&
          tensor.name.ends_with(kCounts)) {
        counts = &tensor;
      }
    }
    if (counts == nullptr)
      return make_error(ErrorCode::kInvalidFile, "{} has no tensor {}{}", sums.name, name, kCounts);
    const int64_t experts = sums.shape.rows();
    if (sums.dtype != tensor::DType::kF32 || counts->dtype != tensor::DType::kF32 ||
        counts->shape.elements() != experts) {
      return make_error(ErrorCode::kInvalidFile,
                        "{} is {} {} and {} is {} {}; expected F32 and one count for each of {}", sums.name,
                        tensor::name(sums.dtype), sums.shape.to_text(), counts->name, tensor::name(counts->dtype),
                        counts->shape.to_text(), experts);
    }
    Imatrix::Entry entry{sums.shape[0], experts, floats(file.data(sums)), floats(file.data(*counts))};
    CREST_RETURN_IF_ERROR(check_numbers(name, "in_sum2", entry.in_sum2));
    CREST_RETURN_IF_ERROR(check_numbers(name, "counts", entry.counts));
    return entry;
  }

  explicit ImatrixReader(std::span<const std::byte> bytes) : left_(bytes) {}
  Result<std::span<const std::byte>> take(size_t count, std::string_view what) {
    if (count > left_.size()) {
      return make_error(ErrorCode::kInvalidFile, "{}: needs {} bytes, {} are left", what, count, left_.size());
    }
    const auto taken = left_.first(count);
    left_ = left_.subspan(count);
    return taken;
  }
  Result<int32_t> number(std::string_view what) {
    CREST_TRY(const auto bytes, take(sizeof(int32_t), what));
    int32_t value;
    std::memcpy(&value, bytes.data(), sizeof(value));
    if (value < 0) return make_error(ErrorCode::kInvalidFile, "{} is {}; allowed are values >= 0", what, value);
    return value;
  }
  Result<std::string> text(std::string_view what) {
    CREST_TRY(const int32_t length, number(what));
    CREST_TRY(const auto bytes, take(static_cast<size_t>(length), what));
    return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  std::span<const std::byte> left_;
};

Result<Imatrix> Imatrix::read(const std::filesystem::path& path) {
  CREST_TRY(const auto map, core::FileMap::open(path));
  const auto bytes = map->bytes();
  const bool is_gguf = bytes.size() >= 4 && std::memcmp(bytes.data(), "GGUF", 4) == 0;
  const auto parse = [&]() -> Result<Imatrix> {
    if (!is_gguf) return ImatrixReader::dat(bytes);
    CREST_TRY(const auto file, GgufFile::open(path));
    return ImatrixReader::gguf(*file);
  };
  auto result = parse();
  if (!result.ok()) return std::move(result).error().with_context("importance matrix " + path.string());
  return result;
}

Status Imatrix::write(const std::filesystem::path& path, std::span<const std::filesystem::path> inputs) const {
  CREST_RETURN_IF_ERROR(refuse_same_file(path, inputs));
  Metadata metadata(path.string());
  metadata.set("general.type", Value::string("imatrix"));
  metadata.set("imatrix.datasets", Value::strings({dataset_}));
  metadata.set("imatrix.chunk_count", Value::u32(static_cast<uint32_t>(chunks_)));
  metadata.set("imatrix.chunk_size", Value::u32(static_cast<uint32_t>(chunk_tokens_)));
  std::vector<TensorSpec> specs;
  for (const auto& [name, entry] : entries_) {
    specs.push_back({name + std::string(kSums), tensor::DType::kF32, {entry.columns, entry.experts}});
    specs.push_back({name + std::string(kCounts), tensor::DType::kF32, {1, entry.experts}});
  }
  CREST_TRY(GgufWriter writer, GgufWriter::create(path, metadata, std::move(specs)));
  for (const auto& [name, entry] : entries_) {
    CREST_RETURN_IF_ERROR(writer.write(std::as_bytes(std::span(entry.in_sum2))));
    CREST_RETURN_IF_ERROR(writer.write(std::as_bytes(std::span(entry.counts))));
  }
  return writer.finish();
}

Status Imatrix::add(std::string_view name, int64_t columns, int64_t experts, int64_t expert, const float* x,
                    int64_t rows) {
  CREST_CHECK(expert >= 0 && expert < experts, "expert {} of {}", expert, experts);
  auto at = entries_.find(name);
  if (at == entries_.end()) {
    Entry fresh{columns, experts, std::vector<float>(static_cast<size_t>(columns * experts)),
                std::vector<float>(static_cast<size_t>(experts))};
    at = entries_.emplace(std::string(name), std::move(fresh)).first;
  }
  Entry& entry = at->second;
  if (entry.columns != columns || entry.experts != experts) {
    return make_error(ErrorCode::kInvalidArgument,
                      "importance of tensor {}: was {} columns and {} experts, now {} columns and {} experts", name,
                      entry.columns, entry.experts, columns, experts);
  }
  float* sums = entry.in_sum2.data() + expert * columns;
  for (int64_t r = 0; r < rows; ++r) {
    const float* row = x + r * columns;
    for (int64_t c = 0; c < columns; ++c) sums[c] += row[c] * row[c];
  }
  entry.counts[static_cast<size_t>(expert)] += static_cast<float>(rows);
  return {};
}

void Imatrix::add_chunks(int64_t chunks, int64_t tokens) {
  chunks_ += chunks;
  chunk_tokens_ = tokens;
}

const Imatrix::Entry* Imatrix::find(std::string_view name) const {
  const auto at = entries_.find(name);
  return at == entries_.end() ? nullptr : &at->second;
}

std::vector<float> mean_importance(const Imatrix::Entry& entry, int64_t expert) {
  const float count = entry.counts[static_cast<size_t>(expert)];
  if (!(count > 0)) return {};
  const float* sums = entry.in_sum2.data() + expert * entry.columns;
  std::vector<float> means(sums, sums + entry.columns);
  for (float& mean : means) mean /= count;
  return means;
}

}  // namespace crest::format
