#include "engine/engine.h"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <numeric>

#include "core/log.h"

namespace crest::engine {
namespace {

Status check_options(const EngineOptions& options, int64_t trained_context) {
  const auto refuse = [](const char* name, int64_t value, const char* allowed) {
    return make_error(ErrorCode::kInvalidArgument, "{} is {}, allowed are {}", name, value, allowed);
  };
  if (options.context_length < 1 || options.context_length > int64_t{1} << 30)
    return refuse("context_length", options.context_length, "1 to 2^30");
  if (options.sequences < 1 || options.sequences > 65536) return refuse("sequences", options.sequences, "1 to 65536");
  if (options.chunk_size < 1 || options.chunk_size > 1 << 20)
    return refuse("chunk_size", options.chunk_size, "1 to 1048576");
  if (options.context_length > trained_context) {
    log_warning("a context of {} tokens is more than the {} that the model was trained for", options.context_length,
                trained_context);
  }
  return {};
}

}  // namespace

/// The arrays of a Batch.
struct Engine::BatchData {
  std::vector<int32_t> tokens, positions, cu_seqlens{0}, kv_lens, page_table, slots, logit_rows;
  int64_t page_table_stride = 0;

  void add(const Sequence& sequence, int64_t past, std::span<const int32_t> new_tokens) {
    const auto count = static_cast<int64_t>(new_tokens.size());
    tokens.insert(tokens.end(), new_tokens.begin(), new_tokens.end());
    for (int64_t i = 0; i < count; ++i) positions.push_back(static_cast<int32_t>(past + i));
    cu_seqlens.push_back(static_cast<int32_t>(tokens.size()));
    kv_lens.push_back(static_cast<int32_t>(past + count));
    slots.push_back(sequence.slot());
  }
  void add_pages(std::span<const Sequence* const> sequences) {
    for (const auto* sequence : sequences)
      page_table_stride = std::max<int64_t>(page_table_stride, std::ssize(sequence->pages()));
    page_table.assign(sequences.size() * static_cast<size_t>(page_table_stride), 0);
    for (size_t s = 0; s < sequences.size(); ++s) {
      std::copy(sequences[s]->pages().begin(), sequences[s]->pages().end(),
                page_table.begin() + static_cast<ptrdiff_t>(s) * page_table_stride);
    }
  }
  model::Batch view() const {
    return {.token_ids = tokens,
            .positions = positions,
            .cu_seqlens = cu_seqlens,
            .kv_lens = kv_lens,
            .page_table = page_table,
            .page_table_stride = page_table_stride,
            .state_slots = slots,
            .logit_rows = logit_rows};
  }
};

Result<std::unique_ptr<Engine>> Engine::load(const std::filesystem::path& path, const EngineOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  std::unique_ptr<Engine> engine(new Engine(options));
  CREST_TRY(auto file, format::ModelFile::open(path));
  CREST_TRY(auto vocab, file->vocab());
  auto tokenizer = text::Tokenizer::create(std::move(vocab));
  if (!tokenizer.ok()) return std::move(tokenizer).error().with_context(path.string());
  engine->tokenizer_ = std::make_unique<const text::Tokenizer>(std::move(*tokenizer));
  CREST_TRY(engine->model_,
            model::Model::load(
                file, {.progress = options.progress, .keep_mapping = options.keep_mapping, .pool = &engine->pool_}));
  const model::Model& model = *engine->model_;
  if (engine->tokenizer_->vocab_size() > model.vocab_size()) {
    return make_error(ErrorCode::kInvalidFile, "{}: the tokenizer has {} tokens, the model {}; it cannot have more",
                      path.string(), engine->tokenizer_->vocab_size(), model.vocab_size());
  }
  EngineOptions& chosen = engine->options_;
  if (chosen.context_length == 0)
    chosen.context_length = std::min(model.config().context_length, EngineOptions::kDefaultContext);
  CREST_RETURN_IF_ERROR(check_options(chosen, model.config().context_length));
  const auto layers = chosen.mtp_cache ? model.cache_layers() : model.config().layers;
  const int64_t pages =
      (chosen.context_length + chosen.page_size - 1) / std::max<int64_t>(chosen.page_size, 1) * chosen.sequences;
  if (pages > std::numeric_limits<int32_t>::max()) {
    return make_error(ErrorCode::kInvalidArgument, "{} sequences of {} tokens are more than the KV cache can number",
                      chosen.sequences, chosen.context_length);
  }
  CREST_TRY(engine->storage_, CacheStorage::create(model.config(), layers,
                                                   {.kv_type = chosen.kv_type,
                                                    .page_size = chosen.page_size,
                                                    .pages = static_cast<int32_t>(pages),
                                                    .slots = chosen.sequences}));
  engine->load_seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return Result<std::unique_ptr<Engine>>(std::move(engine));
}

Result<std::unique_ptr<Sequence>> Engine::create_sequence() {
  std::lock_guard lock(step_mutex_);
  return Sequence::create(*storage_, options_.context_length, options_.snapshot_bytes);
}

Status Engine::check_tokens(std::span<const int32_t> tokens) const {
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] < 0 || tokens[i] >= model_->vocab_size()) {
      return make_error(ErrorCode::kInvalidArgument, "token {} of the input is {}, allowed are 0 to {}", i, tokens[i],
                        model_->vocab_size() - 1);
    }
  }
  return {};
}

Result<ops::SampleResult> Engine::sample(const ops::SamplingParams& params, const ops::SampleInput& input) {
  std::lock_guard lock(step_mutex_);
  ops::Context context{.pool = pool_, .workspace = workspace_, .log = log_};
  return ops::sample(params, input, context);
}

Status Engine::forward(const BatchData& data, const model::Outputs& outputs) {
  ops::Context context{.pool = pool_, .workspace = workspace_, .log = log_};
  model::ForwardContext forward_context{.ops = context, .caches = storage_->caches(), .observer = observer_};
  return model_->forward(data.view(), outputs, forward_context);
}

Status Engine::step(std::span<const StepItem> items) {
  std::lock_guard lock(step_mutex_);
  for (const auto& item : items) {
    CREST_CHECK(!item.tokens.empty());
    CREST_RETURN_IF_ERROR(check_tokens(item.tokens));
    CREST_RETURN_IF_ERROR(item.sequence->reserve(std::ssize(item.tokens)));
  }
  BatchData data;
  std::vector<const Sequence*> sequences;
  for (const auto& item : items) {
    const auto first = static_cast<int32_t>(data.tokens.size());
    data.add(*item.sequence, item.sequence->length(), item.tokens);
    sequences.push_back(item.sequence);
    if (item.logits == nullptr) continue;
    const auto end = static_cast<int32_t>(data.tokens.size());
    for (int32_t row = item.all_logits ? first : end - 1; row < end; ++row) data.logit_rows.push_back(row);
  }
  data.add_pages(sequences);
  const auto vocab = static_cast<size_t>(model_->vocab_size());
  // One item's logits can be written where they are wanted; those of several come apart afterwards.
  const bool direct = items.size() == 1;
  if (!direct) logits_.resize(data.logit_rows.size() * vocab);
  const auto status = forward(data, {.logits = direct ? items.front().logits : logits_.data()});
  if (!status.ok()) {
    for (const auto& item : items) item.sequence->clear();
    return status;
  }
  const float* next = logits_.data();
  for (const auto& item : items) {
    item.sequence->append(item.tokens);
    if (direct || item.logits == nullptr) continue;
    const size_t count = (item.all_logits ? item.tokens.size() : 1) * vocab;
    std::copy_n(next, count, item.logits);
    next += count;
  }
  return {};
}

Status Engine::step(Sequence& sequence, std::span<const int32_t> tokens, std::span<const int32_t> logit_rows,
                    const model::Outputs& outputs) {
  std::lock_guard lock(step_mutex_);
  CREST_RETURN_IF_ERROR(check_tokens(tokens));
  CREST_RETURN_IF_ERROR(sequence.reserve(std::ssize(tokens)));
  BatchData data;
  data.add(sequence, sequence.length(), tokens);
  const Sequence* const only = &sequence;
  data.add_pages({&only, 1});
  data.logit_rows.assign(logit_rows.begin(), logit_rows.end());
  auto status = forward(data, outputs);
  if (!status.ok()) {
    sequence.clear();
    return status;
  }
  sequence.append(tokens);
  return {};
}

Status Engine::step_mtp(const Sequence& sequence, int64_t first, std::span<const int32_t> next_tokens,
                        const float* hidden, float* logits) {
  std::lock_guard lock(step_mutex_);
  CREST_CHECK(options_.mtp_cache && model_->has_mtp() && first + std::ssize(next_tokens) <= sequence.length());
  CREST_RETURN_IF_ERROR(check_tokens(next_tokens));
  BatchData data;
  data.add(sequence, first, next_tokens);
  const Sequence* const only = &sequence;
  data.add_pages({&only, 1});
  data.logit_rows.resize(next_tokens.size());
  std::iota(data.logit_rows.begin(), data.logit_rows.end(), 0);
  ops::Context context{.pool = pool_, .workspace = workspace_, .log = log_};
  model::ForwardContext forward_context{.ops = context, .caches = storage_->caches(), .observer = observer_};
  return model_->forward_mtp(data.view(), hidden, {.logits = logits}, forward_context);
}

Result<Digest> Engine::fingerprint() const {
  constexpr std::streamoff kSample = 64 << 10;
  core::Sha256 hash;
  const auto add = [&](std::string_view text) { hash.update(std::as_bytes(std::span(text))); };
  const auto& config = model_->config();
  add(fmt::format("{} {} {} {} {} {}\n", model::name(config.architecture), config.layers.size(), config.hidden,
                  model_->vocab_size(), model_->parameters(), model_->weight_bytes()));
  add(fmt::format("{} {} {} {}\n", name(options_.kv_type), options_.page_size, storage_->page_bytes(),
                  storage_->state_size()));
  // Both ends of every file tell models of one shape apart without reading all of them.
  std::string sample(static_cast<size_t>(kSample), '\0');
  for (const auto& path : model_->file().files()) {
    std::ifstream file(path, std::ios::binary | std::ios::ate);
    const std::streamoff size = file.tellg();
    add(fmt::format("{}\n", static_cast<int64_t>(size)));
    for (const std::streamoff offset : {std::streamoff{0}, std::max<std::streamoff>(0, size - kSample)}) {
      file.seekg(offset);
      file.read(sample.data(), std::min(kSample, size - offset));
      if (!file) return make_error(ErrorCode::kIo, "{}: cannot be read", path.string());
      add(std::string_view(sample).substr(0, static_cast<size_t>(file.gcount())));
    }
  }
  return hash.digest();
}

}  // namespace crest::engine
