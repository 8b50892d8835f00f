#include <algorithm>
#include <cctype>

#include "format/make_model.h"

namespace crest::format {
namespace {

using enum Family;

constexpr int64_t kQwen35Vocab = 248320, kQwen3Vocab = 151936, kLlama3Vocab = 128256, kSmolVocab = 49152;
constexpr int64_t kGemmaVocab = 262144;

constexpr ModelSize qwen35(std::string_view name, int64_t hidden, int64_t layers, int64_t ffn, int64_t heads,
                           int64_t kv_heads, int64_t value_heads, bool tied) {
  ModelSize size{name, kQwen35, layers, hidden, heads, kv_heads, 256, ffn, kQwen35Vocab, 262144, tied, 1e7};
  size.value_heads = value_heads;
  return size;
}

constexpr ModelSize qwen35_moe(std::string_view name, int64_t hidden, int64_t layers, int64_t heads,
                               int64_t value_heads, int64_t experts, int64_t used, int64_t ffn) {
  ModelSize size = qwen35(name, hidden, layers, ffn, heads, 2, value_heads, false);
  size.family = kQwen35Moe;
  size.experts = experts;
  size.experts_used = used;
  size.shared_ffn = ffn;
  return size;
}

constexpr ModelSize qwen3(std::string_view name, int64_t hidden, int64_t layers, int64_t heads, int64_t ffn,
                          bool tied) {
  return {name, kQwen3, layers, hidden, heads, 8, 128, ffn, kQwen3Vocab, 40960, tied, 1e6};
}

constexpr ModelSize qwen3_moe(std::string_view name, int64_t hidden, int64_t layers, int64_t heads, int64_t ffn) {
  ModelSize size{name, kQwen3Moe, layers, hidden, heads, 4, 128, ffn, kQwen3Vocab, 40960, false, 1e6};
  size.experts = 128;
  size.experts_used = 8;
  return size;
}

constexpr ModelSize qwen2(std::string_view name, int64_t hidden, int64_t layers, int64_t heads, int64_t kv_heads,
                          int64_t ffn, int64_t vocab, bool tied) {
  return {name, kQwen2, layers, hidden, heads, kv_heads, hidden / heads, ffn, vocab, 32768, tied, 1e6};
}

constexpr ModelSize llama3(std::string_view name, int64_t hidden, int64_t layers, int64_t heads, int64_t head_dim,
                           int64_t ffn, double factor, bool tied) {
  ModelSize size{name, kLlama, layers, hidden, heads, 8, head_dim, ffn, kLlama3Vocab, 131072, tied, 5e5, 1e-5};
  size.rope_factor = factor;
  return size;
}

constexpr ModelSize smollm2(std::string_view name, int64_t hidden, int64_t layers, int64_t heads, int64_t kv_heads,
                            int64_t ffn, double theta) {
  return {name, kLlama, layers, hidden, heads, kv_heads, 64, ffn, kSmolVocab, 8192, true, theta, 1e-5};
}

constexpr ModelSize gemma3(std::string_view name, int64_t hidden, int64_t layers, int64_t heads, int64_t kv_heads,
                           int64_t ffn, int64_t window, int64_t vocab, int64_t context, double factor) {
  ModelSize size{name, kGemma3, layers, hidden, heads, kv_heads, 256, ffn, vocab, context, true, 1e6};
  size.sliding_window = window;
  size.rope_factor = factor;
  return size;
}

constexpr ModelSize kSizes[] = {
    qwen35("qwen3.5-0.8b", 1024, 24, 3584, 8, 2, 16, true),
    qwen35("qwen3.5-2b", 2048, 24, 6144, 8, 2, 16, true),
    qwen35("qwen3.5-4b", 2560, 32, 9216, 16, 4, 32, true),
    qwen35("qwen3.5-9b", 4096, 32, 12288, 16, 4, 32, false),
    qwen35("qwen3.5-27b", 5120, 64, 17408, 24, 4, 48, false),
    qwen35("qwen3.6-27b", 5120, 64, 17408, 24, 4, 48, false),
    qwen35_moe("qwen3.5-35b-a3b", 2048, 40, 16, 32, 256, 8, 512),
    qwen35_moe("qwen3.6-35b-a3b", 2048, 40, 16, 32, 256, 8, 512),
    qwen35_moe("qwen3.5-122b-a10b", 3072, 48, 32, 64, 256, 8, 1024),
    qwen35_moe("qwen3.5-397b-a17b", 4096, 60, 32, 64, 512, 10, 1024),
    qwen3("qwen3-0.6b", 1024, 28, 16, 3072, true),
    qwen3("qwen3-1.7b", 2048, 28, 16, 6144, true),
    qwen3("qwen3-4b", 2560, 36, 32, 9728, true),
    qwen3("qwen3-8b", 4096, 36, 32, 12288, false),
    qwen3("qwen3-14b", 5120, 40, 40, 17408, false),
    qwen3("qwen3-32b", 5120, 64, 64, 25600, false),
    qwen3_moe("qwen3-30b-a3b", 2048, 48, 32, 768),
    qwen2("qwen2.5-0.5b", 896, 24, 14, 2, 4864, kQwen3Vocab, true),
    qwen2("qwen2.5-1.5b", 1536, 28, 12, 2, 8960, kQwen3Vocab, true),
    qwen2("qwen2.5-3b", 2048, 36, 16, 2, 11008, kQwen3Vocab, true),
    qwen2("qwen2.5-7b", 3584, 28, 28, 4, 18944, 152064, false),
    llama3("llama-3.2-1b", 2048, 16, 32, 64, 8192, 32, true),
    llama3("llama-3.2-3b", 3072, 28, 24, 128, 8192, 32, true),
    llama3("llama-3.1-8b", 4096, 32, 32, 128, 14336, 8, false),
    smollm2("smollm2-135m", 576, 30, 9, 3, 1536, 1e5),
    smollm2("smollm2-360m", 960, 32, 15, 5, 2560, 1e5),
    smollm2("smollm2-1.7b", 2048, 24, 32, 32, 8192, 1.3e5),
    gemma3("gemma3-270m", 640, 18, 4, 1, 2048, 512, kGemmaVocab, 32768, 0),
    gemma3("gemma3-1b", 1152, 26, 4, 1, 6912, 512, kGemmaVocab, 32768, 0),
    gemma3("gemma3-4b", 2560, 34, 8, 4, 10240, 1024, 262208, 131072, 8),
    gemma3("gemma3-12b", 3840, 48, 16, 8, 15360, 1024, 262208, 131072, 8),
};

std::string folded(std::string_view name) {
  std::string result;
  for (const char c : name) {
    if (c != '-' && c != '.' && c != '_')
      result.push_back(static_cast<char>(std::tolower(static_cast<unsigned char>(c))));
  }
  return result;
}

}  // namespace

std::span<const ModelSize> model_sizes() { return kSizes; }

Result<ModelSize> find_model_size(std::string_view name) {
  std::string names;
  for (const ModelSize& size : kSizes) {
    if (folded(size.name) == folded(name)) return size;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", size.name);
  }
  return make_error(ErrorCode::kInvalidArgument, "no public size is called \"{}\"; known are {}", name, names);
}

}  // namespace crest::format
