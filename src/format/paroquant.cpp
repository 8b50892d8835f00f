#include "format/paroquant.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "format/escape.h"
#include "tensor/half.h"

namespace crest::format {
namespace {

constexpr int64_t kGroup = ParoParts::kGroup;

template <typename T>
T load(const TensorData& data, int64_t index) {
  T value;
  std::memcpy(&value, data.bytes.data() + static_cast<size_t>(index) * sizeof(T), sizeof(T));
  return value;
}

template <typename T>
TensorData own(std::vector<T> values) {
  auto owner = std::make_shared<std::vector<T>>(std::move(values));
  return {std::as_bytes(std::span(*owner)), owner, false};
}

Result<std::vector<float>> floats(const SafetensorsSet& weights, const SafetensorsTensor& tensor) {
  CREST_TRY(const TensorData data, tensor_view(weights, tensor, 2));
  std::vector<float> values(data.bytes.size() / 2);
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = tensor::f16_to_f32(load<uint16_t>(data, static_cast<int64_t>(i)));
    if (!std::isfinite(values[i]))
      return make_error(ErrorCode::kInvalidFile, "tensor {}: element {} is {}, expected a finite number",
                        escaped(tensor.name), i, values[i]);
  }
  return values;
}

Result<std::vector<int16_t>> read_pairs(const SafetensorsSet& weights, const SafetensorsTensor& tensor) {
  CREST_TRY(const TensorData data, tensor_view(weights, tensor, 2));
  std::vector<int16_t> pairs(data.bytes.size() / 2);
  std::memcpy(pairs.data(), data.bytes.data(), data.bytes.size());
  for (size_t start = 0; start < pairs.size(); start += kGroup) {
    bool seen[kGroup] = {};
    for (size_t i = start; i < start + kGroup; ++i) {
      if (pairs[i] < 0 || pairs[i] >= kGroup || std::exchange(seen[pairs[i]], true))
        return make_error(ErrorCode::kInvalidFile,
                          "tensor {}: element {} is {}; each round uses every channel 0 to {} of a group once",
                          escaped(tensor.name), i, pairs[i], kGroup - 1);
    }
  }
  return pairs;
}

void set_nibble(std::vector<uint32_t>& words, int64_t row, int64_t columns, int64_t column, uint32_t value) {
  words[static_cast<size_t>(row * (columns / 8) + column / 8)] |= value << paro_nibble_shift(column);
}

uint32_t nibble(const TensorData& words, int64_t row, int64_t columns, int64_t column) {
  return load<uint32_t>(words, row * (columns / 8) + column / 8) >> paro_nibble_shift(column) & 15;
}

// Early files: word [r, i] of int16 holds outputs 4r..4r+3 of input i, and zeros come multiplied by their scale.
Result<ParoMatrix> repack_legacy(const SafetensorsSet& weights, const PlannedParo::Matrix& planned, int64_t out,
                                 int64_t in) {
  CREST_TRY(const TensorData words, tensor_view(weights, *planned.qweight, 2));
  CREST_TRY(const TensorData scaled_zeros, tensor_view(weights, *planned.qzeros, 2));
  ParoMatrix matrix;
  CREST_TRY(matrix.scales, tensor_view(weights, *planned.scales, 2));
  std::vector<uint32_t> qweight(static_cast<size_t>(in * out / 8)), qzeros(static_cast<size_t>(in / kGroup * out / 8));
  for (int64_t o = 0; o < out; ++o) {
    for (int64_t i = 0; i < in; ++i) {
      const auto word = load<uint16_t>(words, o / 4 * in + i);
      set_nibble(qweight, i, out, o, static_cast<uint32_t>(word) >> (4 * (o % 4)) & 15);
    }
    for (int64_t g = 0; g < in / kGroup; ++g) {
      const float scale = tensor::f16_to_f32(load<uint16_t>(matrix.scales, g * out + o));
      const float product = tensor::f16_to_f32(load<uint16_t>(scaled_zeros, g * out + o));
      const float zero = scale == 0 ? 0 : product / scale;
      const float rounded = std::nearbyint(zero);
      if (!(std::fabs(zero - rounded) < 0.05f && rounded >= 0 && rounded <= 15))
        return make_error(ErrorCode::kInvalidFile,
                          "tensor {}: element {} is {} times its scale, expected a whole number "
                          "from 0 to 15",
                          escaped(planned.qzeros->name), g * out + o, zero);
      set_nibble(qzeros, g, out, o, static_cast<uint32_t>(rounded));
    }
  }
  matrix.qweight = own(std::move(qweight));
  matrix.qzeros = own(std::move(qzeros));
  return matrix;
}

ParoMatrix reorder_outputs(const ParoMatrix& source, const BlockOrder& order, int64_t out, int64_t in) {
  std::vector<uint32_t> qweight(static_cast<size_t>(in * out / 8)), qzeros(static_cast<size_t>(in / kGroup * out / 8));
  std::vector<uint16_t> scales(static_cast<size_t>(in / kGroup * out));
  for (int64_t i = 0; i < in; ++i) {
    for (int64_t o = 0; o < out; ++o) set_nibble(qweight, i, out, o, nibble(source.qweight, i, out, order.source(o)));
  }
  for (int64_t g = 0; g < in / kGroup; ++g) {
    for (int64_t o = 0; o < out; ++o) {
      set_nibble(qzeros, g, out, o, nibble(source.qzeros, g, out, order.source(o)));
      scales[static_cast<size_t>(g * out + o)] = load<uint16_t>(source.scales, g * out + order.source(o));
    }
  }
  return {own(std::move(qweight)), own(std::move(qzeros)), own(std::move(scales))};
}

}  // namespace

Result<TensorData> tensor_view(const SafetensorsSet& weights, const SafetensorsTensor& tensor, size_t alignment) {
  const SafetensorsFile& file = weights.file(tensor);
  CREST_RETURN_IF_ERROR(file.map()->verify_size());
  const auto bytes = file.data(tensor);
  if (reinterpret_cast<uintptr_t>(bytes.data()) % alignment == 0) return TensorData{bytes, file.map(), true};
  return own(std::vector<std::byte>(bytes.begin(), bytes.end()));
}

Result<ParoParts> load_paro(const PlannedTensor& planned, const SafetensorsSet& weights) {
  const PlannedParo& paro = *planned.paro;
  ParoParts parts;
  parts.in_features = planned.entry.shape[0];
  parts.out_features = planned.entry.shape[1];
  parts.rotations = paro.theta->shape[0];
  CREST_TRY(parts.theta, floats(weights, *paro.theta));
  CREST_TRY(parts.channel_scales, floats(weights, *paro.channel_scales));
  CREST_TRY(parts.pairs, read_pairs(weights, *paro.pairs));
  for (const auto& source : paro.matrices) {
    ParoMatrix matrix;
    if (paro.legacy) {
      CREST_TRY(matrix, repack_legacy(weights, source, parts.out_features, parts.in_features));
    } else {
      CREST_TRY(matrix.qweight, tensor_view(weights, *source.qweight, 4));
      CREST_TRY(matrix.qzeros, tensor_view(weights, *source.qzeros, 4));
      CREST_TRY(matrix.scales, tensor_view(weights, *source.scales, 2));
    }
    if (!planned.rows.identity()) matrix = reorder_outputs(matrix, planned.rows, parts.out_features, parts.in_features);
    parts.matrices.push_back(std::move(matrix));
  }
  return parts;
}

ParoRows::ParoRows(const ParoParts& parts) : parts_(parts) {
  for (const float angle : parts.theta) {
    cos_.push_back(std::cos(angle));
    sin_.push_back(std::sin(angle));
  }
  block_.resize(static_cast<size_t>(8 * parts.in_features));
}

void ParoRows::unpack(size_t matrix, int64_t word) {
  const ParoMatrix& m = parts_.matrices[matrix];
  const int64_t out = parts_.out_features, in = parts_.in_features;
  for (int64_t i = 0; i < in; ++i) {
    const auto values = load<uint32_t>(m.qweight, i * (out / 8) + word);
    const auto zeros = load<uint32_t>(m.qzeros, i / kGroup * (out / 8) + word);
    for (int64_t c = 0; c < 8; ++c) {
      const int shift = paro_nibble_shift(c);
      const auto difference = static_cast<int>(values >> shift & 15) - static_cast<int>(zeros >> shift & 15);
      const float scale = tensor::f16_to_f32(load<uint16_t>(m.scales, i / kGroup * out + word * 8 + c));
      block_[static_cast<size_t>(c * in + i)] = static_cast<float>(difference) * scale;
    }
  }
  block_matrix_ = matrix;
  block_word_ = word;
}

void ParoRows::read(size_t matrix, int64_t row, float* out) {
  if (block_word_ != row / 8 || block_matrix_ != matrix) unpack(matrix, row / 8);
  const int64_t in = parts_.in_features;
  std::memcpy(out, block_.data() + row % 8 * in, static_cast<size_t>(in) * sizeof(float));
  for (int64_t round = parts_.rotations; round-- > 0;) {
    const int16_t* pairs = parts_.pairs.data() + round * in;
    for (int64_t t = 0; t < in / 2; ++t) {
      float* group = out + t / (kGroup / 2) * kGroup;
      float& x = group[pairs[2 * t]];
      float& y = group[pairs[2 * t + 1]];
      const auto angle = static_cast<size_t>(round * (in / 2) + t);
      const float turned = x * cos_[angle] - y * sin_[angle];
      y = x * sin_[angle] + y * cos_[angle];
      x = turned;
    }
  }
  for (int64_t i = 0; i < in; ++i) out[i] *= parts_.channel_scales[static_cast<size_t>(i)];
}

}  // namespace crest::format
