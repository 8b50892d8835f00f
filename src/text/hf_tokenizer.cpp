#include <algorithm>
#include <limits>

#include "core/log.h"
#include "text/byte_alphabet.h"
#include "text/hf_pipeline.h"
#include "text/token_map.h"
#include "text/vocab_data.h"

namespace crest::text {
namespace {

constexpr std::string_view kFile = "tokenizer.json";

/// Reads the parts of tokenizer.json in order into one vocabulary.
class VocabReader {
 public:
  explicit VocabReader(json::element root) : root_(root) {}

  Result<VocabData> read() {
    const auto model = member(root_, "model");
    if (!model || !model->is_object()) return make_error(ErrorCode::kInvalidFile, "{}: \"model\" is missing", kFile);
    CREST_TRY(const PipelineFacts facts, read_pipeline(root_, vocab_));
    CREST_RETURN_IF_ERROR(read_model_flags(*model, facts));
    CREST_RETURN_IF_ERROR(read_tokens(*model));
    CREST_RETURN_IF_ERROR(read_added());
    CREST_RETURN_IF_ERROR(read_merges(*model));
    CREST_RETURN_IF_ERROR(read_unknown(*model));
    CREST_RETURN_IF_ERROR(read_template_tokens());
    vocab_.last_merge_wins = true;
    if (vocab_.kind == VocabKind::kSentencePieceBpe) {
      set_scores();
    } else {
      vocab_.pre_name = gguf_pretokenizer_name(vocab_);
    }
    return std::move(vocab_);
  }

 private:
  Status read_model_flags(json::element model, const PipelineFacts& facts) {
    static constexpr std::string_view kPath = "tokenizer.json: model";
    CREST_TRY(const std::string type, string_or(model, "type", kPath, "BPE"));
    if (type != "BPE")
      return make_error(ErrorCode::kUnsupported, "{}: model \"{}\" is not supported (supported: BPE)", kFile, type);
    for (const std::string_view key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
      CREST_TRY(const std::string value, string_or(model, key, kPath, ""));
      if (!value.empty())
        return make_error(ErrorCode::kUnsupported, "{}: model.{} \"{}\" is not supported", kFile, key, value);
    }
    double dropout = 0;
    const auto dropout_member = member(model, "dropout");
    if (dropout_member && (dropout_member->get(dropout) != simdjson::SUCCESS || dropout != 0)) {
      return make_error(ErrorCode::kUnsupported,
                        "{}: model.dropout is not supported: the same text would give other tokens each time", kFile);
    }
    CREST_TRY(vocab_.byte_fallback, bool_or(model, "byte_fallback", kPath, false));
    CREST_TRY(vocab_.fuse_unknown, bool_or(model, "fuse_unk", kPath, false));
    CREST_TRY(vocab_.ignore_merges, bool_or(model, "ignore_merges", kPath, false));
    if (!facts.byte_level && !facts.space_mark && !vocab_.byte_fallback) {
      return make_error(
          ErrorCode::kUnsupported,
          "{}: neither byte-level (pre_tokenizer ByteLevel) nor SentencePiece-like (Metaspace, byte_fallback) BPE",
          kFile);
    }
    vocab_.kind = facts.byte_level ? VocabKind::kByteLevelBpe : VocabKind::kSentencePieceBpe;
    return {};
  }

  /// Checks an id against how many tokens the file has: holes are allowed, vast ones are not.
  static Result<TokenId> read_id(json::element value, size_t entries, std::string_view what) {
    const auto limit = static_cast<int64_t>(std::min<uint64_t>(kMaxVocabEntries, 2 * entries + 65536)) - 1;
    int64_t id = -1;
    if (value.get(id) != simdjson::SUCCESS) {
      return make_error(ErrorCode::kInvalidFile, "{}: the id of \"{}\" is {}, expected an integer", kFile, what,
                        type_name(value));
    }
    if (id < 0 || id > limit) {
      return make_error(ErrorCode::kInvalidFile, "{}: the id of \"{}\" is {}, allowed are 0 to {}", kFile, what, id,
                        limit);
    }
    return static_cast<TokenId>(id);
  }

  Status set_token(TokenId id, std::string_view text, TokenType type) {
    const auto index = static_cast<size_t>(id);
    if (index >= vocab_.tokens.size()) {
      vocab_.tokens.resize(index + 1);
      vocab_.types.resize(index + 1, TokenType::kUnused);
    }
    if (!vocab_.tokens[index].empty() && vocab_.tokens[index] != text) {
      return make_error(ErrorCode::kInvalidFile, "{}: id {} is given to both \"{}\" and \"{}\"", kFile, id,
                        vocab_.tokens[index], text);
    }
    vocab_.tokens[index] = text;
    vocab_.types[index] = type;
    return {};
  }

  Status read_tokens(json::element model) {
    json::object entries;
    const auto list = member(model, "vocab");
    if (!list || list->get(entries) != simdjson::SUCCESS) {
      return make_error(ErrorCode::kInvalidFile, "{}: model.vocab is not an object", kFile);
    }
    // simdjson's own count stops at 2^24 - 1, which is also the most that is allowed.
    const size_t count = entries.size();
    vocab_.tokens.reserve(count);
    vocab_.types.reserve(count);
    for (const auto& [text, value] : entries) {
      CREST_TRY(const TokenId id, read_id(value, count, text));
      if (text.empty()) return make_error(ErrorCode::kInvalidFile, "{}: token {} is empty", kFile, id);
      const bool is_byte =
          vocab_.kind == VocabKind::kSentencePieceBpe && vocab_.byte_fallback && byte_of_hex_token(text);
      CREST_RETURN_IF_ERROR(set_token(id, text, is_byte ? TokenType::kByte : TokenType::kNormal));
    }
    return check_distinct();
  }

  Status check_distinct() {
    names_ = TokenMap(vocab_.tokens.size());
    for (size_t i = 0; i < vocab_.tokens.size(); ++i) {
      const std::string& text = vocab_.tokens[i];
      if (text.empty()) continue;
      const auto id = static_cast<TokenId>(i);
      if (const TokenId other = names_.find(text); other != kNoToken) {
        return make_error(ErrorCode::kInvalidFile, "{}: \"{}\" has two ids, {} and {}", kFile, text, other, id);
      }
      names_.insert(text, id);
    }
    return {};
  }

  Status read_added() {
    json::array list;
    const auto added = member(root_, "added_tokens");
    if (!added) return {};
    if (added->get(list) != simdjson::SUCCESS)
      return make_error(ErrorCode::kInvalidFile, "{}: added_tokens is not an array", kFile);
    const size_t entries = vocab_.tokens.size() + list.size();
    std::vector<std::pair<std::string, TokenType>> found;
    for (const json::element entry : list) {
      static constexpr std::string_view kPath = "tokenizer.json: added_tokens";
      CREST_TRY(const std::string text, string_or(entry, "content", kPath, ""));
      if (text.empty()) return make_error(ErrorCode::kInvalidFile, "{}: an added token has no content", kFile);
      const auto id_member = member(entry, "id");
      if (!id_member) return make_error(ErrorCode::kInvalidFile, "{}: added token \"{}\" has no id", kFile, text);
      AddedToken token;
      CREST_TRY(token.id, read_id(*id_member, entries, text));
      CREST_TRY(const bool special, bool_or(entry, "special", kPath, false));
      CREST_TRY(token.single_word, bool_or(entry, "single_word", kPath, false));
      CREST_TRY(token.lstrip, bool_or(entry, "lstrip", kPath, false));
      CREST_TRY(token.rstrip, bool_or(entry, "rstrip", kPath, false));
      CREST_TRY(token.normalized, bool_or(entry, "normalized", kPath, !special));
      if (const TokenId known = names_.find(text); known != kNoToken && known != token.id) {
        log_warning("{}: added token \"{}\" has id {}, but model.vocab gives it {}, which is used", kFile, text,
                    token.id, known);
        token.id = known;
      }
      vocab_.added.push_back(token);
      found.emplace_back(text, special ? TokenType::kControl : TokenType::kUserDefined);
    }
    // Only now, as names_ views the tokens where they are.
    for (size_t i = 0; i < found.size(); ++i) {
      CREST_RETURN_IF_ERROR(set_token(vocab_.added[i].id, found[i].first, found[i].second));
    }
    return check_distinct();
  }

  Status read_merges(json::element model) {
    json::array list;
    const auto merges = member(model, "merges");
    if (!merges || merges->get(list) != simdjson::SUCCESS) {
      return make_error(ErrorCode::kInvalidFile, "{}: model.merges is not an array", kFile);
    }
    for (const json::element entry : list) {
      if (vocab_.merges.size() == kMaxVocabEntries) {
        return make_error(ErrorCode::kInvalidFile, "{}: more than {} merges", kFile, kMaxVocabEntries);
      }
      CREST_TRY(const auto sides, read_merge(entry, vocab_.merges.size()));
      const Merge merge{names_.find(sides.first), names_.find(sides.second)};
      if (merge.left == kNoToken || merge.right == kNoToken) {
        return make_error(ErrorCode::kInvalidFile, "{}: merge {} is \"{}\" \"{}\", but \"{}\" is not in the vocabulary",
                          kFile, vocab_.merges.size(), sides.first, sides.second,
                          merge.left == kNoToken ? sides.first : sides.second);
      }
      vocab_.merges.push_back(merge);
    }
    return {};
  }

  /// "a b" or ["a", "b"].
  static Result<std::pair<std::string_view, std::string_view>> read_merge(json::element entry, size_t rank) {
    std::string_view line, left, right;
    json::array pair;
    if (entry.get(line) == simdjson::SUCCESS) {
      const size_t space = line.find(' ');
      if (space != std::string_view::npos && line.find(' ', space + 1) == std::string_view::npos) {
        return std::pair(line.substr(0, space), line.substr(space + 1));
      }
    } else if (entry.get(pair) == simdjson::SUCCESS && pair.size() == 2 && pair.at(0).get(left) == simdjson::SUCCESS &&
               pair.at(1).get(right) == simdjson::SUCCESS) {
      return std::pair(left, right);
    }
    return make_error(ErrorCode::kInvalidFile, "{}: merge {} is neither \"a b\" nor [\"a\", \"b\"]", kFile, rank);
  }

  Status read_unknown(json::element model) {
    CREST_TRY(const std::string name, string_or(model, "unk_token", "tokenizer.json: model", ""));
    if (name.empty()) return {};
    vocab_.unk_id = names_.find(name);
    if (vocab_.unk_id == kNoToken) {
      return make_error(ErrorCode::kInvalidFile, "{}: model.unk_token \"{}\" is not in the vocabulary", kFile, name);
    }
    if (vocab_.kind == VocabKind::kSentencePieceBpe)
      vocab_.types[static_cast<size_t>(vocab_.unk_id)] = TokenType::kUnknown;
    return {};
  }

  Status read_template_tokens() {
    CREST_TRY(const TemplateTokens tokens, read_post_processor(root_));
    const auto resolve = [&](const std::string& name, TokenId& id, bool& adds) -> Status {
      if (name.empty()) return {};
      id = names_.find(name);
      adds = true;
      if (id != kNoToken) return {};
      return make_error(ErrorCode::kInvalidFile, "{}: post_processor names \"{}\", which is not in the vocabulary",
                        kFile, name);
    };
    CREST_RETURN_IF_ERROR(resolve(tokens.first, vocab_.bos_id, vocab_.add_bos));
    return resolve(tokens.last, vocab_.eos_id, vocab_.add_eos);
  }

  /// Scores that give the merges' order, for GGUF: a token is as good as its first merge.
  void set_scores() {
    if (vocab_.merges.empty()) return;  // Tokenizer::create says that there is nothing to merge by
    vocab_.scores.assign(vocab_.tokens.size(), kUnmergedScore);
    std::string text;
    for (size_t rank = 0; rank < vocab_.merges.size(); ++rank) {
      const auto [left, right] = vocab_.merges[rank];
      text.assign(vocab_.tokens[static_cast<size_t>(left)]).append(vocab_.tokens[static_cast<size_t>(right)]);
      const TokenId id = names_.find(text);
      if (id == kNoToken) continue;  // Tokenizer::create says so
      float& score = vocab_.scores[static_cast<size_t>(id)];
      if (score == kUnmergedScore) score = -static_cast<float>(rank);
    }
    for (size_t i = 0; i < vocab_.types.size(); ++i) {
      if (vocab_.types[i] != TokenType::kNormal && vocab_.types[i] != TokenType::kUserDefined) vocab_.scores[i] = 0;
    }
  }

  json::element root_;
  VocabData vocab_;
  TokenMap names_;
};

/// A token named as "x" or {"content": "x"}.
std::optional<std::string_view> token_member(const std::optional<json::element>& object, std::string_view key) {
  const auto value = member(object, key);
  if (!value) return std::nullopt;
  if (const auto content = string_member(*value, "content")) return content;
  std::string_view text;
  if (value->get(text) == simdjson::SUCCESS) return text;
  return std::nullopt;
}

/// The files beside tokenizer.json.
class SettingsReader {
 public:
  SettingsReader(const HfTokenizerFiles& files, VocabData& vocab) : files_(files), vocab_(vocab) {}

  Status read() {
    CREST_TRY(const auto tokenizer_config, parse(files_.tokenizer_config_json, "tokenizer_config.json"));
    CREST_TRY(const auto special_map, parse(files_.special_tokens_map_json, "special_tokens_map.json"));
    CREST_TRY(const auto generation, parse(files_.generation_config_json, "generation_config.json"));
    CREST_TRY(const auto config, parse(files_.config_json, "config.json"));
    CREST_TRY(const auto template_file, parse(files_.chat_template_json, "chat_template.json"));
    set_named("bos_token", {tokenizer_config, special_map}, vocab_.bos_id);
    set_named("eos_token", {tokenizer_config, special_map}, vocab_.eos_id);
    set_named("unk_token", {tokenizer_config, special_map}, vocab_.unk_id);
    set_named("pad_token", {tokenizer_config, special_map}, vocab_.pad_id);
    if (tokenizer_config) {
      vocab_.add_bos = bool_member(*tokenizer_config, "add_bos_token").value_or(vocab_.add_bos);
      vocab_.add_eos = bool_member(*tokenizer_config, "add_eos_token").value_or(vocab_.add_eos);
    }
    set_numbered(generation, "generation_config.json");
    set_numbered(config, "config.json");
    set_numbered(member(config, "text_config"), "config.json: text_config");
    read_templates(member(tokenizer_config, "chat_template"));
    read_templates(member(template_file, "chat_template"));
    if (!files_.chat_template_jinja.empty()) vocab_.chat_template = files_.chat_template_jinja;
    return {};
  }

 private:
  Result<std::optional<json::element>> parse(std::string_view text, std::string_view name) {
    if (text.empty()) return std::optional<json::element>();
    parsers_.push_back(std::make_unique<json::parser>());
    CREST_TRY(const json::element root, parse_json(*parsers_.back(), text, name));
    return std::optional(root);
  }

  void set_named(std::string_view key, std::initializer_list<std::optional<json::element>> files, TokenId& id) {
    for (const auto& file : files) {
      const auto name = token_member(file, key);
      if (!name) continue;
      if (!names_) names_ = map_of_names(vocab_.tokens);
      if (const TokenId found = names_->find(*name); found != kNoToken) {
        id = found;
        return;
      }
      log_warning("{} is \"{}\", which is not in the vocabulary: ignored", key, *name);
    }
  }

  /// bos_token_id and eos_token_id (a number or a list) of a configuration; all ends count.
  void set_numbered(const std::optional<json::element>& file, std::string_view name) {
    const auto usable = [&](json::element value, std::string_view key) -> TokenId {
      int64_t id = -1;
      if (value.get(id) == simdjson::SUCCESS && id >= 0 && id < static_cast<int64_t>(vocab_.tokens.size()))
        return static_cast<TokenId>(id);
      log_warning("{}: {} holds {}, allowed are 0 to {}: ignored", name, key, simdjson::to_string(value),
                  vocab_.tokens.size() - 1);
      return kNoToken;
    };
    if (const auto bos = member(file, "bos_token_id"); bos && vocab_.bos_id == kNoToken)
      vocab_.bos_id = usable(*bos, "bos_token_id");
    const auto eos = member(file, "eos_token_id");
    if (!eos) return;
    const auto add = [&](json::element value) {
      const TokenId id = usable(value, "eos_token_id");
      if (id == kNoToken) return;
      if (vocab_.eos_id == kNoToken) vocab_.eos_id = id;
      vocab_.end_of_generation_ids.push_back(id);
    };
    json::array list;
    if (eos->get(list) != simdjson::SUCCESS) return add(*eos);
    for (const json::element value : list) add(value);
  }

  /// A template, or a list of {"name", "template"} of which "default" is the default.
  void read_templates(const std::optional<json::element>& value) {
    std::string_view text;
    json::array list;
    if (!value) return;
    if (value->get(text) == simdjson::SUCCESS) {
      vocab_.chat_template = text;
    } else if (value->get(list) == simdjson::SUCCESS) {
      for (const json::element entry : list) {
        const auto name = string_member(entry, "name"), body = string_member(entry, "template");
        if (!name || !body) continue;
        if (*name == "default") {
          vocab_.chat_template = *body;
        } else {
          vocab_.named_chat_templates.emplace_back(*name, *body);
        }
      }
    }
  }

  const HfTokenizerFiles& files_;
  VocabData& vocab_;
  std::optional<TokenMap> names_;
  std::vector<std::unique_ptr<json::parser>> parsers_;
};

}  // namespace

Result<VocabData> vocab_from_tokenizer_json(const HfTokenizerFiles& files) {
  json::parser parser;
  CREST_TRY(const json::element root, parse_json(parser, files.tokenizer_json, kFile));
  CREST_TRY(VocabData vocab, VocabReader(root).read());
  CREST_RETURN_IF_ERROR(SettingsReader(files, vocab).read());
  return vocab;
}

}  // namespace crest::text
