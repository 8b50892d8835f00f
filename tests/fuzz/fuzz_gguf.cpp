#include <cstdlib>

#include "format/gguf.h"
#include "format/vocab_metadata.h"
#include "tensor/quant.h"

// Any bytes: an error, or a file whose tensors lie inside it, whose rows can be read and whose metadata can be shown.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace crest;
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto file = format::GgufFile::parse(bytes, "input");
  if (!file.ok()) {
    if (file.error().message.empty()) std::abort();
    return 0;
  }
  for (const auto& tensor : (*file)->tensors()) {
    if (tensor.offset > size || tensor.bytes > size - tensor.offset) std::abort();
    if (tensor.shape[0] > 1 << 16) continue;
    std::vector<float> row(static_cast<size_t>(tensor.shape[0]));
    tensor::dequantize_row(tensor.dtype, (*file)->data(tensor).data(), row.data(), tensor.shape[0]);
  }
  const format::Metadata& metadata = (*file)->metadata();
  for (const auto& [key, value] : metadata.entries()) {
    (void)value.to_text();
    (void)metadata.integer(key, 0, 100);
    (void)metadata.number(key);
    (void)metadata.integer_per_layer(key, 4, 0, 100);
    (void)metadata.strings(key);
    (void)metadata.numbers(key);
  }
  (void)format::vocab_from_metadata(metadata);
  return 0;
}
