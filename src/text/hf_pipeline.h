#pragma once

#include "core/result.h"
#include "text/hf_json.h"
#include "text/vocab_data.h"

namespace crest::text {

/// What tokenizer.json's pre-tokeniser says beside its steps.
struct PipelineFacts {
  bool byte_level = false;  ///< there is a ByteLevel step
  bool space_mark = false;  ///< spaces become U+2581
};

/// "normalizer" and "pre_tokenizer" of tokenizer.json to the steps of a vocabulary; sets add_space_prefix.
Result<PipelineFacts> read_pipeline(json::element root, VocabData& vocab);

/// "post_processor": the single special tokens that a template puts in front and behind (names; "" for none).
struct TemplateTokens {
  std::string first;
  std::string last;
};
Result<TemplateTokens> read_post_processor(json::element root);

}  // namespace crest::text
