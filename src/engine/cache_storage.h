#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "engine/page_allocator.h"
#include "model/batch.h"
#include "model/config.h"

namespace crest::engine {

/// How keys and values are stored; q8: int8 with one fp32 scale for each token and head.
enum class KvType : uint8_t { kF32, kF16, kBF16, kQ8 };
std::string_view name(KvType type);
/// "f32", "f16", "bf16", "q8" (or "q8_0"); the error lists them.
Result<KvType> parse_kv_type(std::string_view text);

struct CacheSizes {
  KvType kv_type = KvType::kF16;
  int64_t page_size = 64;  // tokens, a multiple of 16
  int32_t pages = 0;
  int32_t slots = 1;  // recurrent states
};

/// Memory of the KV cache and of the recurrent states of all sequences. It is reserved at once and taken from the
/// system page by page, as it is written.
class CacheStorage {
 public:
  static Result<std::unique_ptr<CacheStorage>> create(const model::ModelConfig& config,
                                                      std::span<const model::LayerConfig> layers,
                                                      const CacheSizes& sizes);
  ~CacheStorage();
  CacheStorage(const CacheStorage&) = delete;
  CacheStorage& operator=(const CacheStorage&) = delete;

  const model::Caches& caches() const { return caches_; }
  const CacheSizes& sizes() const { return sizes_; }
  PageAllocator& pages() { return pages_; }
  PageAllocator& slots() { return slots_; }

  /// Bytes of one page in all layers, as copy_page moves them.
  int64_t page_bytes() const { return page_bytes_; }
  void read_page(int32_t page, std::byte* out) const;
  void write_page(int32_t page, const std::byte* in);
  /// Floats of one recurrent state in all layers; 0 for models without.
  int64_t state_size() const { return state_size_; }
  void read_state(int32_t slot, float* out) const;
  void write_state(int32_t slot, const float* in);

 private:
  struct Unmap {
    size_t size;
    void operator()(std::byte* memory) const;
  };
  struct Part {  // one array that has an element for each page or slot
    std::byte* data;
    int64_t bytes;  // of an element
  };
  explicit CacheStorage(const CacheSizes& sizes) : sizes_(sizes), pages_(sizes.pages), slots_(sizes.slots) {}
  Status reserve(const model::ModelConfig& config, std::span<const model::LayerConfig> layers);

  CacheSizes sizes_;
  PageAllocator pages_;
  PageAllocator slots_;
  std::unique_ptr<std::byte, Unmap> memory_;
  model::Caches caches_;
  std::vector<Part> page_parts_, state_parts_;
  int64_t page_bytes_ = 0;
  int64_t state_size_ = 0;
};

}  // namespace crest::engine
