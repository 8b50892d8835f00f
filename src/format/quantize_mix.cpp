#include "format/quantize_mix.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <numeric>
#include <utility>

namespace crest::format {
namespace {

using tensor::DType;
using enum tensor::DType;

enum FileType : uint32_t {
  kAllF32 = 0,
  kMostlyF16 = 1,
  kMostlyQ4_0 = 2,
  kMostlyQ4_1 = 3,
  kMostlyQ8_0 = 7,
  kMostlyQ5_0 = 8,
  kMostlyQ5_1 = 9,
  kMostlyQ2_K = 10,
  kMostlyQ3_K_S = 11,
  kMostlyQ3_K_M = 12,
  kMostlyQ3_K_L = 13,
  kMostlyQ4_K_S = 14,
  kMostlyQ4_K_M = 15,
  kMostlyQ5_K_S = 16,
  kMostlyQ5_K_M = 17,
  kMostlyQ6_K = 18,
  kMostlyIQ4_NL = 25,
  kMostlyIQ4_XS = 30,
  kMostlyBF16 = 32,
  kMostlyMXFP4 = 38,
};

constexpr QuantMix kMixes[] = {
    {"F32", kF32, kAllF32, "32 bits: dequantises"},
    {"F16", kF16, kMostlyF16, "16 bits"},
    {"BF16", kBF16, kMostlyBF16, "16 bits, the range of F32"},
    {"Q8_0", kQ8_0, kMostlyQ8_0, "8.5 bits, as good as lossless"},
    {"Q6_K", kQ6_K, kMostlyQ6_K, "6.6 bits, very small loss"},
    {"Q5_K_M", kQ5_K, kMostlyQ5_K_M, "5.7 bits, small loss"},
    {"Q5_K_S", kQ5_K, kMostlyQ5_K_S, "5.5 bits, small loss"},
    {"Q5_1", kQ5_1, kMostlyQ5_1, "6 bits, older"},
    {"Q5_0", kQ5_0, kMostlyQ5_0, "5.5 bits, older"},
    {"Q4_K_M", kQ4_K, kMostlyQ4_K_M, "4.8 bits, the usual choice"},
    {"Q4_K_S", kQ4_K, kMostlyQ4_K_S, "4.6 bits"},
    {"Q4_1", kQ4_1, kMostlyQ4_1, "5 bits, older"},
    {"Q4_0", kQ4_0, kMostlyQ4_0, "4.5 bits, older"},
    {"IQ4_NL", kIQ4_NL, kMostlyIQ4_NL, "4.5 bits on an uneven grid"},
    {"IQ4_XS", kIQ4_XS, kMostlyIQ4_XS, "4.3 bits on an uneven grid"},
    {"MXFP4", kMXFP4, kMostlyMXFP4, "4.25-bit floats"},
    {"MXFP4_MOE", kMXFP4, kMostlyMXFP4, "experts in 4.25-bit floats, the rest Q8_0", true},
    {"Q3_K_L", kQ3_K, kMostlyQ3_K_L, "4.3 bits, high loss"},
    {"Q3_K_M", kQ3_K, kMostlyQ3_K_M, "3.9 bits, high loss"},
    {"Q3_K_S", kQ3_K, kMostlyQ3_K_S, "3.5 bits, very high loss"},
    {"Q2_K", kQ2_K, kMostlyQ2_K, "3 bits, very high loss"},
};

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](char x, char y) {
    return std::toupper(static_cast<unsigned char>(x)) == std::toupper(static_cast<unsigned char>(y));
  });
}

bool contains(std::string_view name, std::string_view part) { return name.find(part) != std::string_view::npos; }

bool contains_any(std::string_view name, std::initializer_list<std::string_view> parts) {
  return std::ranges::any_of(parts, [&](std::string_view part) { return contains(name, part); });
}

// What inference multiplies with: matrices, but not the small ones whose precision decides much (routers) or whose rows
// are too short for blocks (convolutions).
bool is_quantisable(const TensorEntry& tensor) {
  const std::string_view name = tensor.name;
  if (!name.ends_with("weight") || tensor.shape.rank < 2) return false;
  if (tensor.dtype == kI8 || tensor.dtype == kI16 || tensor.dtype == kI32 || tensor.dtype == kI64) return false;
  return !contains_any(name, {"_norm.weight", "ffn_gate_inp.weight", "ssm_conv1d", "shortconv.conv.weight",
                              "position_embd.weight", "token_types.weight"});
}

bool is_float(DType dtype) { return dtype != kI8 && dtype != kI16 && dtype != kI32 && dtype != kI64; }

bool is_value_projection(std::string_view name) {
  return contains_any(name, {"attn_v.weight", "attn_qkv.weight", "attn_kv_b.weight"});
}

// "blk.12.ffn_down.weight" -> 12
std::optional<int64_t> block_number(std::string_view name) {
  if (!name.starts_with("blk.")) return std::nullopt;
  int64_t number = 0;
  const auto [end, code] = std::from_chars(name.data() + 4, name.data() + name.size(), number);
  if (code != std::errc() || end == name.data() + name.size() || *end != '.') return std::nullopt;
  return number;
}

// The first and the last eighth of the layers and every third one between them.
bool use_more_bits(int64_t i, int64_t n) { return i < n / 8 || i >= 7 * n / 8 || (i - n / 8) % 3 == 2; }

DType fallback(DType dtype) {
  switch (dtype) {
    case kQ2_K:
    case kQ3_K:
      return kQ4_0;
    case kQ4_K:
      return kQ5_0;
    case kQ5_K:
      return kQ5_1;
    case kQ6_K:
      return kQ8_0;
    case kIQ4_XS:
      return kIQ4_NL;
    default:
      return kF16;
  }
}

class Chooser {
 public:
  Chooser(const QuantMix& mix, bool has_imatrix) : mix_(mix), has_imatrix_(has_imatrix) {}

  Status scan(const Metadata& metadata, std::span<const TensorEntry> tensors) {
    constexpr int64_t kMany = int64_t{1} << 20;
    CREST_TRY(const std::string arch, metadata.string_or("general.architecture", ""));
    CREST_TRY(blocks_, metadata.integer_or(arch + ".block_count", 0, 0, kMany));
    CREST_TRY(experts_, metadata.integer_or(arch + ".expert_count", 0, 0, kMany));
    CREST_TRY(const int64_t heads, head_count(metadata, arch + ".attention.head_count"));
    CREST_TRY(const int64_t kv_heads, head_count(metadata, arch + ".attention.head_count_kv"));
    query_per_kv_ = heads > 0 && kv_heads > 0 ? heads / kv_heads : 1;
    tied_ = true;
    for (const TensorEntry& tensor : tensors) {
      if (tensor.name == "output.weight") tied_ = false;
      if (is_value_projection(tensor.name)) ++value_projections_;
    }
    return {};
  }

  QuantChoice choose(const TensorEntry& tensor) {
    QuantChoice choice{tensor.dtype, false, std::nullopt};
    if (mix_.default_dtype == kF32) {
      choice.quantise = is_float(tensor.dtype);
      if (choice.quantise) choice.dtype = kF32;
      return choice;
    }
    const bool value_projection = is_value_projection(tensor.name);
    const bool down = contains(tensor.name, "ffn_down");
    if (is_quantisable(tensor)) {
      choice.quantise = true;
      choice.dtype = mix_.default_dtype == kF16 || mix_.default_dtype == kBF16 ? mix_.default_dtype : rule(tensor);
      apply_fallback(tensor, choice);
    }
    if (value_projection) ++value_index_;
    if (down) ++down_index_;
    return choice;
  }

 private:
  // A number for all layers, or the largest of one per layer (layers without attention say 0).
  static Result<int64_t> head_count(const Metadata& metadata, const std::string& key) {
    const Value* value = metadata.find(key);
    if (value == nullptr || !value->is_array()) return metadata.integer_or(key, 0, 0, 1 << 20);
    CREST_TRY(const auto counts, metadata.integers(key, 0, 1 << 20));
    return counts.empty() ? 0 : *std::ranges::max_element(counts);
  }

  void apply_fallback(const TensorEntry& tensor, QuantChoice& choice) const {
    const DType wanted = choice.dtype;
    while (tensor.shape[0] % tensor::info(choice.dtype).block_size != 0) choice.dtype = fallback(choice.dtype);
    if (choice.dtype != wanted) choice.fell_back_from = wanted;
  }

  DType rule(const TensorEntry& tensor) const {
    const std::string_view name = tensor.name;
    if (name == "output.weight" || (tied_ && name == "token_embd.weight")) return output(tensor);
    if (mix_.experts_only) return contains(name, "_exps") && tensor.shape.rank == 3 ? kMXFP4 : kQ8_0;
    if (name == "token_embd.weight") return mix_.default_dtype;
    if (is_value_projection(name)) return value_projection();
    if (contains(name, "attn_k.weight") && experts_ == 8 && mix_.default_dtype != kQ8_0) return kQ8_0;
    if (contains(name, "ffn_down")) return ffn_down(name);
    if (contains(name, "attn_output.weight")) return attention_output();
    return mix_.default_dtype;
  }

  DType output(const TensorEntry& tensor) const {
    const bool whole_blocks = tensor.shape[0] % tensor::info(kQ6_K).block_size == 0;
    return whole_blocks && mix_.default_dtype != kQ8_0 && !mix_.experts_only ? kQ6_K : kQ8_0;
  }

  DType value_projection() const {
    if (experts_ == 8 && mix_.default_dtype != kQ8_0) return kQ8_0;
    switch (mix_.file_type) {
      case kMostlyQ4_K_M:
      case kMostlyQ5_K_M:
        return use_more_bits(value_index_, value_projections_) ? kQ6_K : mix_.default_dtype;
      case kMostlyQ4_K_S:
        return value_index_ < 4 ? kQ5_K : kQ4_K;
      case kMostlyQ3_K_M:
        return value_index_ < 2 ? kQ5_K : kQ4_K;
      case kMostlyQ3_K_L:
        return kQ5_K;
      case kMostlyQ2_K:
        return query_per_kv_ >= 4 ? kQ4_K : kQ3_K;
      case kMostlyIQ4_NL:
      case kMostlyIQ4_XS:
        return query_per_kv_ >= 4 ? kQ5_K : mix_.default_dtype;
      default:
        return mix_.default_dtype;
    }
  }

  DType ffn_down(std::string_view name) const {
    const int64_t n = blocks_;
    const int64_t i = experts_ > 1 ? block_number(name).value_or(down_index_) : down_index_;
    const bool early = i < n / 8;
    switch (mix_.file_type) {
      case kMostlyQ4_K_M:
      case kMostlyQ5_K_M:
        return use_more_bits(i, n) ? kQ6_K : mix_.default_dtype;
      case kMostlyQ4_K_S:
        return early ? kQ5_K : kQ4_K;
      case kMostlyQ3_K_M:
        return i < n / 16 ? kQ5_K : kQ4_K;
      case kMostlyQ3_K_L:
        return kQ5_K;
      case kMostlyQ2_K:
        return kQ3_K;
      case kMostlyIQ4_NL:
      case kMostlyIQ4_XS:
        return early && !has_imatrix_ ? kQ5_K : mix_.default_dtype;
      case kMostlyQ4_0:
        return early && has_imatrix_ ? kQ4_1 : kQ4_0;
      case kMostlyQ5_0:
        return early && has_imatrix_ ? kQ5_1 : kQ5_0;
      default:
        return mix_.default_dtype;
    }
  }

  DType attention_output() const {
    switch (mix_.file_type) {
      case kMostlyQ2_K: return experts_ == 8 ? kQ5_K : kQ3_K;
      case kMostlyQ3_K_M: return experts_ == 8 ? kQ5_K : kQ4_K;
      case kMostlyQ3_K_L: return experts_ == 8 ? kQ3_K : kQ5_K;
      case kMostlyQ3_K_S:
      case kMostlyQ4_K_S:
      case kMostlyQ4_K_M:
      case kMostlyIQ4_NL:
      case kMostlyIQ4_XS: return experts_ == 8 ? kQ5_K : mix_.default_dtype;
      default: return mix_.default_dtype;
    }
  }

  const QuantMix& mix_;
  bool has_imatrix_;
  int64_t blocks_ = 0;
  int64_t experts_ = 0;
  int64_t query_per_kv_ = 1;
  bool tied_ = true;
  int64_t value_projections_ = 0;
  int64_t value_index_ = 0;
  int64_t down_index_ = 0;
};

}  // namespace

std::span<const QuantMix> quant_mixes() { return kMixes; }

Result<const QuantMix*> find_quant_mix(std::string_view name) {
  for (const QuantMix& mix : kMixes) {
    const bool medium = mix.name.ends_with("_K_M") && equal_ignoring_case(mix.name.substr(0, 4), name);
    if (medium || equal_ignoring_case(mix.name, name)) return &mix;
  }
  std::string all;
  for (const QuantMix& mix : kMixes) all += fmt::format("{}{}", all.empty() ? "" : " ", mix.name);
  return make_error(ErrorCode::kInvalidArgument, "type '{}' is not one of {}", name, all);
}

Result<std::vector<QuantChoice>> choose_quant_types(const Metadata& metadata, std::span<const TensorEntry> tensors,
                                                    const QuantMix& mix, bool has_imatrix) {
  Chooser chooser(mix, has_imatrix);
  CREST_RETURN_IF_ERROR(chooser.scan(metadata, tensors));
  // Tensors are counted block after block, whatever their order in the file.
  std::vector<size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, {}, [&](size_t i) { return std::pair(block_number(tensors[i].name).value_or(-1), i); });
  std::vector<QuantChoice> choices(tensors.size());
  for (const size_t i : order) choices[i] = chooser.choose(tensors[i]);
  return choices;
}

}  // namespace crest::format
