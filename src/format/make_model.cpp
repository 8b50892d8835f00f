#include "format/make_model.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "format/model_file.h"
#include "format/quantize_mix.h"
#include "format/random_weights.h"
#include "format/synthetic_vocab.h"
#include "format/vocab_metadata.h"
#include "tensor/quant.h"

namespace crest::format {
namespace {

namespace fs = std::filesystem;
using tensor::DType;

constexpr size_t kBufferBytes = 32 << 20;
constexpr int64_t kMaxLayers = 4096, kMaxExperts = 1 << 14, kMaxVocab = 1 << 24;
constexpr uint64_t kMaxTokenizerBytes = 256 << 20;

Status set_size(std::string_view name, const std::optional<int64_t>& wanted, int64_t min, int64_t max, int64_t& field) {
  if (!wanted) return {};
  if (*wanted < min || *wanted > max)
    return make_error(ErrorCode::kInvalidArgument, "{} is {}, allowed is {} to {}", name, *wanted, min, max);
  field = *wanted;
  return {};
}

Result<ModelSize> chosen_size(const MakeModelOptions& options) {
  CREST_TRY(ModelSize size, find_model_size(options.like));
  CREST_RETURN_IF_ERROR(set_size("layers", options.layers, 1, kMaxLayers, size.layers));
  CREST_RETURN_IF_ERROR(set_size("vocab", options.vocab, kMinSyntheticVocab, kMaxVocab, size.vocab));
  if (options.experts && size.experts == 0)
    return make_error(ErrorCode::kInvalidArgument, "{} has no experts", size.name);
  CREST_RETURN_IF_ERROR(set_size("experts", options.experts, size.experts_used, kMaxExperts, size.experts));
  return size;
}

Result<text::VocabData> chosen_vocab(const MakeModelOptions& options, const ModelSize& size) {
  if (options.tokenizer.empty()) return synthetic_vocab(size.vocab, size.family);
  text::VocabData vocab;
  if (options.tokenizer.extension() == ".json") {
    CREST_TRY(const std::string json, core::read_file(options.tokenizer, kMaxTokenizerBytes));
    text::HfTokenizerFiles files;
    files.tokenizer_json = json;
    auto read = text::vocab_from_tokenizer_json(files);
    if (!read.ok()) return std::move(read).error().with_context(options.tokenizer.string());
    vocab = *std::move(read);
  } else {
    CREST_TRY(const auto model, ModelFile::open(options.tokenizer));
    CREST_TRY(vocab, model->vocab());
    // Padding of the other model's embedding is not part of its tokenizer.
    while (vocab.tokens.size() > static_cast<size_t>(size.vocab) && vocab.types.back() == text::TokenType::kUnused) {
      vocab.tokens.pop_back();
      vocab.types.pop_back();
      if (!vocab.scores.empty()) vocab.scores.pop_back();
    }
  }
  CREST_RETURN_IF_ERROR(pad_vocab(vocab, size.vocab, options.tokenizer.string()));
  return vocab;
}

Status choose_types(const std::string& type, ModelSkeleton& skeleton) {
  CREST_TRY(const QuantMix* mix, find_quant_mix(type));
  std::vector<TensorEntry> entries;
  for (const TensorSpec& tensor : skeleton.tensors) entries.push_back({tensor.name, tensor.dtype, tensor.shape, 0, 0});
  CREST_TRY(const auto choices, choose_quant_types(skeleton.metadata, entries, *mix, false));
  for (size_t i = 0; i < choices.size(); ++i) {
    if (choices[i].quantise) skeleton.tensors[i].dtype = choices[i].dtype;
  }
  skeleton.metadata.set("general.file_type", Value::u32(mix->file_type));
  return {};
}

// Standard deviation that keeps the output of a matrix near the size of its input.
float deviation_of(const TensorSpec& tensor) {
  if (tensor.name.ends_with("ssm_conv1d.weight")) return 0.5f;
  return 1 / std::sqrt(static_cast<float>(tensor.shape[0]));
}

// Vectors: norms near 1, decays and time steps in the range that gated DeltaNet is initialised with.
std::vector<float> vector_values(const TensorSpec& tensor, const ModelSkeleton& skeleton, uint64_t seed) {
  if (tensor.name == "rope_freqs.weight") {
    const double theta = skeleton.metadata.number_or("llama.rope.freq_base", 1e4).value_or(1e4);
    return llama3_rope_factors(skeleton.config.rope_scaling, theta, skeleton.config.rotary_dim);
  }
  RandomBits random(seed);
  std::vector<float> values(static_cast<size_t>(tensor.shape.elements()));
  for (float& value : values) {
    if (tensor.name.ends_with("norm.weight")) {
      value = 1 + 0.05f * random.normal();
    } else if (tensor.name.ends_with("ssm_a")) {
      value = -(1 + 15 * random.uniform());
    } else if (tensor.name.ends_with("ssm_dt.bias")) {
      const double step = std::exp(std::log(1e-3) + random.uniform() * std::log(100.0));
      value = static_cast<float>(std::log(std::expm1(step)));
    } else {
      value = deviation_of(tensor) * random.normal();
    }
  }
  return values;
}

class Writer {
 public:
  Writer(GgufWriter& file, const ModelSkeleton& skeleton, const MakeModelOptions& options, core::ThreadPool& pool)
      : file_(file), skeleton_(skeleton), options_(options), pool_(pool), buffer_(kBufferBytes) {
    for (const TensorSpec& tensor : file.tensors()) total_ += *tensor_bytes(tensor.dtype, tensor.shape);
  }

  Status write_all() {
    for (size_t i = 0; i < file_.tensors().size(); ++i) {
      const TensorSpec& tensor = file_.tensors()[i];
      const uint64_t seed = RandomBits(options_.seed + 0x100000001b3 * i).next();
      if (tensor.shape.rank == 1) {
        const auto values = vector_values(tensor, skeleton_, seed);
        CREST_RETURN_IF_ERROR(put(std::as_bytes(std::span(values))));
      } else {
        CREST_RETURN_IF_ERROR(write_matrix(tensor, seed));
      }
    }
    return {};
  }

 private:
  Status put(std::span<const std::byte> bytes) {
    CREST_RETURN_IF_ERROR(file_.write(bytes));
    done_ += bytes.size();
    if (options_.progress && !options_.progress(done_, total_))
      return make_error(ErrorCode::kCancelled, "the making of the model was stopped");
    return {};
  }

  const BlockPool& blocks(DType dtype, float deviation) {
    const auto key = std::pair{dtype, deviation};
    auto at = pools_.find(key);
    if (at == pools_.end()) at = pools_.emplace(key, BlockPool(dtype, deviation)).first;
    return at->second;
  }

  Status write_matrix(const TensorSpec& tensor, uint64_t seed) {
    const BlockPool& pool = blocks(tensor.dtype, deviation_of(tensor));
    // Pieces are whole blocks of every type and do not depend on the number of threads.
    const uint64_t piece = static_cast<uint64_t>(tensor::row_bytes(tensor.dtype, 256)) * 4096;
    const uint64_t bytes = *tensor_bytes(tensor.dtype, tensor.shape);
    const uint64_t chunk = std::max<uint64_t>(1, kBufferBytes / piece) * piece;
    for (uint64_t start = 0; start < bytes; start += chunk) {
      const uint64_t size = std::min(chunk, bytes - start);
      const auto pieces = static_cast<int64_t>((size + piece - 1) / piece);
      pool_.parallel_for(pieces, 1, [&](int64_t begin, int64_t end) {
        for (auto i = static_cast<uint64_t>(begin); i < static_cast<uint64_t>(end); ++i) {
          const auto out = std::span(buffer_).subspan(i * piece, std::min(piece, size - i * piece));
          pool.fill(out, seed ^ RandomBits(start / piece + i).next());
        }
      });
      CREST_RETURN_IF_ERROR(put(std::span(buffer_).first(size)));
    }
    return {};
  }

  GgufWriter& file_;
  const ModelSkeleton& skeleton_;
  const MakeModelOptions& options_;
  core::ThreadPool& pool_;
  std::vector<std::byte> buffer_;
  std::map<std::pair<DType, float>, BlockPool> pools_;
  uint64_t total_ = 0;
  uint64_t done_ = 0;
};

}  // namespace

Result<MakeModelReport> make_model(const fs::path& output, const MakeModelOptions& options, core::ThreadPool& pool) {
  CREST_TRY(const ModelSize size, chosen_size(options));
  if (!options.tokenizer.empty()) CREST_RETURN_IF_ERROR(refuse_same_file(output, std::span(&options.tokenizer, 1)));
  CREST_TRY(const text::VocabData vocab, chosen_vocab(options, size));
  CREST_TRY(ModelSkeleton skeleton, make_skeleton(size, options.mtp));
  CREST_RETURN_IF_ERROR(choose_types(options.type, skeleton));
  Metadata& metadata = skeleton.metadata;
  metadata.set("general.name", Value::string(fmt::format("{} (random weights)", size.name)));
  metadata.set("general.description",
               Value::string("Random weights in the shape of a public model: for timing, not for text."));
  metadata.set("general.quantization_version", Value::u32(2));
  CREST_RETURN_IF_ERROR(vocab_to_metadata(vocab, {}, metadata));
  CREST_TRY(GgufWriter file, GgufWriter::create(output, metadata, skeleton.tensors));
  CREST_RETURN_IF_ERROR(Writer(file, skeleton, options, pool).write_all());
  CREST_RETURN_IF_ERROR(file.finish());
  MakeModelReport report;
  report.tensors = skeleton.tensors.size();
  for (const TensorSpec& tensor : skeleton.tensors) {
    if (tensor.name != "rope_freqs.weight") report.parameters += tensor.shape.elements();
  }
  std::error_code code;
  report.bytes = fs::file_size(output, code);
  return report;
}

}  // namespace crest::format
