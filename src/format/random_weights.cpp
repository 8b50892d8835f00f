#include "format/random_weights.h"

#include <algorithm>
#include <cstring>

#include "core/result.h"
#include "tensor/quant.h"

namespace crest::format {
namespace {

constexpr int64_t kUnitValues = 256;  // a multiple of every block size
constexpr int64_t kUnits = 1024;

}  // namespace

float RandomBits::normal() {
  float sum = -6;
  for (int i = 0; i < 12; ++i) sum += uniform();
  return sum;
}

BlockPool::BlockPool(tensor::DType dtype, float deviation)
    : unit_bytes_(static_cast<size_t>(tensor::row_bytes(dtype, kUnitValues))),
      units_(kUnits),
      data_(unit_bytes_ * kUnits) {
  RandomBits random(0x5eed ^ static_cast<uint64_t>(dtype));
  std::vector<float> values(kUnitValues);
  for (size_t unit = 0; unit < units_; ++unit) {
    for (float& value : values) value = deviation * random.normal();
    const auto status =
        tensor::quantize_row(dtype, values.data(), data_.data() + unit * unit_bytes_, kUnitValues, nullptr);
    CREST_CHECK(status.ok(), "{}", status.error().message);
  }
}

void BlockPool::fill(std::span<std::byte> out, uint64_t seed) const {
  RandomBits random(seed);
  while (!out.empty()) {
    const size_t part = std::min(unit_bytes_, out.size());
    const size_t unit = static_cast<size_t>(random.next() >> 32) % units_;
    std::memcpy(out.data(), data_.data() + unit * unit_bytes_, part);
    out = out.subspan(part);
  }
}

}  // namespace crest::format
