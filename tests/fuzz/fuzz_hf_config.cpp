#include <cstdlib>
#include <string>

#include "format/hf_config.h"

// Any text as config.json: an error with a message, or sizes within their limits.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace crest;
  const auto config =
      format::parse_hf_config(std::string_view(reinterpret_cast<const char*>(data), size), "config.json");
  if (!config.ok()) {
    if (config.error().message.empty()) std::abort();
    return 0;
  }
  if (config->layers < 1 || config->hidden < 1 || config->heads % config->kv_heads != 0) std::abort();
  if (config->rotary_dim < 2 || config->rotary_dim > config->head_dim) std::abort();
  if (config->rope_scaling.kind == format::RopeScaling::Kind::kLlama3)
    (void)format::llama3_rope_factors(config->rope_scaling, 1e4, config->rotary_dim);
  return 0;
}
