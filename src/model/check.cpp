#include "model/check.h"

namespace crest::model {
namespace {

constexpr int64_t kMaxVocab = 1 << 24;
constexpr int64_t kNoToken = 0xffffffff;

}  // namespace

Result<int64_t> check_vocabulary(const format::ModelFile& file) {
  const auto& metadata = file.metadata();
  if (file.tensors().empty()) {
    return make_error(ErrorCode::kUnsupported,
                      "{}: holds a vocabulary but no weights; it can be inspected and used to tokenize, not run",
                      file.path().string());
  }
  CREST_TRY(const format::TensorEntry* embedding, file.require("token_embd.weight"));
  const int64_t vocab = embedding->shape[1];
  if (vocab < 1 || vocab > kMaxVocab) {
    return make_error(ErrorCode::kInvalidFile, "{}: tensor token_embd.weight has {} rows, allowed are 1 to {}",
                      file.path().string(), vocab, kMaxVocab);
  }
  if (const auto* tokens = metadata.find("tokenizer.ggml.tokens");
      tokens != nullptr && tokens->count() != static_cast<size_t>(vocab)) {
    return metadata.error(ErrorCode::kInvalidFile,
                          "tokenizer.ggml.tokens has {} entries, token_embd.weight {} rows; they must be equal",
                          tokens->count(), vocab);
  }
  for (const auto& [key, value] : metadata.entries()) {
    if (!key.starts_with("tokenizer.ggml.") || !key.ends_with("_token_id")) continue;
    const auto id = value.as_integer();
    if (value.is_array() || !id)
      return metadata.error(ErrorCode::kInvalidFile, "{} is {}, expected a token id", key, value.type_name());
    if (*id == -1 || *id == kNoToken) continue;
    if (*id < 0 || *id >= vocab) {
      return metadata.error(ErrorCode::kInvalidFile, "{} is {}, allowed are 0 to {}", key, *id, vocab - 1);
    }
  }
  return vocab;
}

}  // namespace crest::model
