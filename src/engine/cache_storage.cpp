#include "engine/cache_storage.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "core/checked.h"

namespace crest::engine {
namespace {

constexpr uint64_t kAlignment = 4096;

tensor::DType storage_type(KvType type) {
  switch (type) {
    case KvType::kF32:
      return tensor::DType::kF32;
    case KvType::kF16:
      return tensor::DType::kF16;
    case KvType::kBF16:
      return tensor::DType::kBF16;
    case KvType::kQ8:
      return tensor::DType::kI8;
  }
  return tensor::DType::kF32;
}

/// Adds arrays one behind the other; the sum is checked.
class Layout {
 public:
  /// Offset of `count` elements of `bytes` each.
  uint64_t add(int64_t count, int64_t bytes) {
    const uint64_t offset = total_;
    const auto size = core::checked_mul(static_cast<uint64_t>(count), static_cast<uint64_t>(bytes));
    const auto padded = size ? core::checked_align_up(*size, kAlignment) : std::nullopt;
    const auto sum = padded ? core::checked_add(total_, *padded) : std::nullopt;
    overflow_ = overflow_ || !sum;
    total_ = sum.value_or(total_);
    return offset;
  }
  uint64_t total() const { return total_; }
  bool overflow() const { return overflow_; }

 private:
  uint64_t total_ = 0;
  bool overflow_ = false;
};

}  // namespace

std::string_view name(KvType type) {
  switch (type) {
    case KvType::kF32:
      return "f32";
    case KvType::kF16:
      return "f16";
    case KvType::kBF16:
      return "bf16";
    case KvType::kQ8:
      return "q8";
  }
  return "unknown";
}

Result<KvType> parse_kv_type(std::string_view text) {
  for (const KvType type : {KvType::kF32, KvType::kF16, KvType::kBF16, KvType::kQ8}) {
    if (text == name(type)) return type;
  }
  if (text == "q8_0") return KvType::kQ8;
  return make_error(ErrorCode::kInvalidArgument, "KV cache type '{}', allowed are f32, f16, bf16 and q8", text);
}

void CacheStorage::Unmap::operator()(std::byte* memory) const { ::munmap(memory, size); }

CacheStorage::~CacheStorage() = default;

Result<std::unique_ptr<CacheStorage>> CacheStorage::create(const model::ModelConfig& config,
                                                           std::span<const model::LayerConfig> layers,
                                                           const CacheSizes& sizes) {
  if (sizes.page_size < 16 || sizes.page_size % 16 != 0 || sizes.page_size > 1 << 20) {
    return make_error(ErrorCode::kInvalidArgument, "KV page size is {}, allowed are multiples of 16 up to {}",
                      sizes.page_size, 1 << 20);
  }
  std::unique_ptr<CacheStorage> storage(new CacheStorage(sizes));
  CREST_RETURN_IF_ERROR(storage->reserve(config, layers));
  return Result<std::unique_ptr<CacheStorage>>(std::move(storage));
}

Status CacheStorage::reserve(const model::ModelConfig& config, std::span<const model::LayerConfig> layers) {
  struct Place {
    uint64_t k, v, k_scales, v_scales, conv, state;
  };
  const auto& net = config.delta_net;
  const int64_t conv_floats = int64_t{net.conv_kernel - 1} * net.conv_dim();
  const int64_t state_floats = int64_t{net.value_heads} * net.key_dim * net.value_dim;
  caches_.page_size = sizes_.page_size;
  caches_.slots = sizes_.slots;
  Layout layout;
  std::vector<Place> places;
  for (const auto& layer : layers) {
    Place place{};
    model::LayerCache cache;
    if (layer.mixer == model::Mixer::kAttention) {
      cache.k = {.dtype = storage_type(sizes_.kv_type),
                 .pages = sizes_.pages,
                 .page_size = sizes_.page_size,
                 .kv_heads = layer.kv_heads,
                 .head_dim = config.head_dim};
      const int64_t vectors = layer.kv_heads * sizes_.page_size;
      const int64_t bytes = vectors * config.head_dim * cache.k.element_bytes();
      place.k = layout.add(sizes_.pages, bytes);
      place.v = layout.add(sizes_.pages, bytes);
      if (sizes_.kv_type == KvType::kQ8) {
        place.k_scales = layout.add(sizes_.pages, vectors * int64_t{sizeof(float)});
        place.v_scales = layout.add(sizes_.pages, vectors * int64_t{sizeof(float)});
      }
      cache.v = cache.k;
    } else {
      place.conv = layout.add(sizes_.slots, conv_floats * int64_t{sizeof(float)});
      place.state = layout.add(sizes_.slots, state_floats * int64_t{sizeof(float)});
    }
    places.push_back(place);
    caches_.layers.push_back(cache);
  }
  if (layout.overflow() || layout.total() > uint64_t{1} << 62) {
    return make_error(ErrorCode::kInvalidArgument, "a KV cache of {} pages of {} tokens does not fit the address space",
                      sizes_.pages, sizes_.page_size);
  }
  const size_t size = std::max<size_t>(layout.total(), kAlignment);
  void* const memory =
      ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    return make_error(ErrorCode::kOutOfMemory, "cannot reserve {} MiB for a KV cache of {} tokens: {}", size >> 20,
                      sizes_.pages * sizes_.page_size, std::strerror(errno));
  }
  auto* const base = static_cast<std::byte*>(memory);
  memory_ = {base, Unmap{size}};
  const auto floats = [&](uint64_t offset) { return reinterpret_cast<float*>(base + offset); };
  for (size_t i = 0; i < places.size(); ++i) {
    auto& cache = caches_.layers[i];
    const Place& place = places[i];
    if (layers[i].mixer == model::Mixer::kAttention) {
      const int64_t vectors = cache.k.kv_heads * sizes_.page_size;
      for (auto [pool, data, scales] :
           {std::tuple{&cache.k, place.k, place.k_scales}, {&cache.v, place.v, place.v_scales}}) {
        pool->data = base + data;
        page_parts_.push_back({pool->data, vectors * config.head_dim * pool->element_bytes()});
        if (sizes_.kv_type != KvType::kQ8) continue;
        pool->scales = floats(scales);
        page_parts_.push_back({base + scales, vectors * int64_t{sizeof(float)}});
      }
    } else {
      cache.conv = floats(place.conv);
      cache.state = floats(place.state);
      state_parts_.push_back({base + place.conv, conv_floats * int64_t{sizeof(float)}});
      state_parts_.push_back({base + place.state, state_floats * int64_t{sizeof(float)}});
    }
  }
  for (const auto& part : page_parts_) page_bytes_ += part.bytes;
  for (const auto& part : state_parts_) state_size_ += part.bytes / int64_t{sizeof(float)};
  return {};
}

void CacheStorage::read_page(int32_t page, std::byte* out) const {
  for (const auto& part : page_parts_) {
    std::memcpy(out, part.data + page * part.bytes, static_cast<size_t>(part.bytes));
    out += part.bytes;
  }
}

void CacheStorage::write_page(int32_t page, const std::byte* in) {
  for (const auto& part : page_parts_) {
    std::memcpy(part.data + page * part.bytes, in, static_cast<size_t>(part.bytes));
    in += part.bytes;
  }
}

void CacheStorage::read_state(int32_t slot, float* out) const {
  for (const auto& part : state_parts_) {
    std::memcpy(out, part.data + slot * part.bytes, static_cast<size_t>(part.bytes));
    out += part.bytes / int64_t{sizeof(float)};
  }
}

void CacheStorage::write_state(int32_t slot, const float* in) {
  for (const auto& part : state_parts_) {
    std::memcpy(part.data + slot * part.bytes, in, static_cast<size_t>(part.bytes));
    in += part.bytes / int64_t{sizeof(float)};
  }
}

}  // namespace crest::engine
