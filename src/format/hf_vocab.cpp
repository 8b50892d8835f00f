#include <nlohmann/json.hpp>

#include "format/hf_model.h"
#include "format/json.h"
#include "format/vocab_metadata.h"

namespace crest::format {
namespace {

constexpr uint64_t kMaxTokenizerBytes = 256 << 20;
constexpr uint64_t kMaxOtherBytes = 64 << 20;

Result<std::string> optional_file(const std::filesystem::path& path) {
  std::error_code code;
  if (!std::filesystem::exists(path, code)) return std::string();
  return core::read_file(path, kMaxOtherBytes);
}

}  // namespace

// generation_config.json's advice on sampling, under GGUF's keys. A file that cannot be read is reported by vocab().
void HfModel::read_sampling() {
  const auto path = path_ / "generation_config.json";
  const auto text = optional_file(path);
  if (!text.ok() || text->empty()) return;
  const auto json = parse_json(*text, path.string());
  if (!json.ok()) return;
  const auto view = ConfigView::create(*json, path.string());
  if (!view.ok()) return;
  constexpr double kMax = 1e6;
  if (const auto k = view->integer("top_k", 0, 1 << 24); k.ok())
    metadata_.set("general.sampling.top_k", Value::i32(static_cast<int32_t>(*k)));
  for (const auto& [field, key] : {std::pair{"top_p", "top_p"},
                                   {"min_p", "min_p"},
                                   {"temperature", "temp"},
                                   {"repetition_penalty", "penalty_repeat"}}) {
    if (const auto value = view->number(field, 0, kMax); value.ok())
      metadata_.set(fmt::format("general.sampling.{}", key), Value::f32(static_cast<float>(*value)));
  }
}

Result<text::VocabData> HfModel::vocab() const {
  std::error_code code;
  const auto main = path_ / "tokenizer.json";
  if (!std::filesystem::exists(main, code))
    return make_error(ErrorCode::kNotFound, "{}: is missing{}", main.string(),
                      std::filesystem::exists(path_ / "tokenizer.model", code)
                          ? " (tokenizer.model alone is not read: save the tokenizer as tokenizer.json)"
                          : "");
  CREST_TRY(const std::string tokenizer, core::read_file(main, kMaxTokenizerBytes));
  CREST_TRY(const std::string tokenizer_config, optional_file(path_ / "tokenizer_config.json"));
  CREST_TRY(const std::string special, optional_file(path_ / "special_tokens_map.json"));
  CREST_TRY(const std::string generation, optional_file(path_ / "generation_config.json"));
  CREST_TRY(const std::string config, optional_file(path_ / "config.json"));
  CREST_TRY(const std::string jinja, optional_file(path_ / "chat_template.jinja"));
  CREST_TRY(const std::string template_json, optional_file(path_ / "chat_template.json"));
  auto vocab = text::vocab_from_tokenizer_json({.tokenizer_json = tokenizer,
                                                .tokenizer_config_json = tokenizer_config,
                                                .special_tokens_map_json = special,
                                                .generation_config_json = generation,
                                                .config_json = config,
                                                .chat_template_jinja = jinja,
                                                .chat_template_json = template_json});
  if (!vocab.ok()) return std::move(vocab).error().with_context(path_.string());
  const TensorEntry* embedding = find("token_embd.weight");
  CREST_CHECK(embedding != nullptr, "a plan without an embedding");
  CREST_RETURN_IF_ERROR(pad_vocab(*vocab, embedding->shape[1], path_.string()));
  return vocab;
}

}  // namespace crest::format
