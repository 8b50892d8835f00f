#include <cstdlib>

#include "format/safetensors.h"

// Any bytes: an error, or tensors that tile the file exactly.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace crest;
  const auto file = format::SafetensorsFile::parse(std::as_bytes(std::span(data, size)), "input");
  if (!file.ok()) {
    if (file.error().message.empty()) std::abort();
    return 0;
  }
  uint64_t end = 0;
  for (const auto& tensor : (*file)->tensors()) {
    if (end != 0 && tensor.offset != end) std::abort();
    end = tensor.offset + tensor.bytes;
    if ((*file)->data(tensor).size() != tensor.bytes) std::abort();
    if (tensor.shape_text().empty()) std::abort();
  }
  if (!(*file)->tensors().empty() && end != size) std::abort();
  return 0;
}
