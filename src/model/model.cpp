#include "model/model.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "core/log.h"
#include "model/check.h"
#include "ops/embedding/embedding.h"
#include "ops/gemm/linear.h"
#include "ops/norm/norm.h"

namespace crest::model {
namespace {

ops::RopeConfig to_ops(const RopeConfig& rope, std::span<const float> factors) {
  ops::RopeConfig result;
  result.rotary_dim = rope.dims;
  result.theta = rope.theta;
  result.factor = rope.factor;
  result.factors = factors;
  if (rope.scaling == RopeScaling::kLinear) result.scaling = ops::RopeScaling::kLinear;
  if (rope.scaling == RopeScaling::kYarn) {
    result.scaling = ops::RopeScaling::kYarn;
    result.original_context = static_cast<double>(rope.original_context);
    result.beta_fast = rope.beta_fast;
    result.beta_slow = rope.beta_slow;
    result.attention_factor = rope.attention_factor;
  }
  return result;
}

Result<RopeTable> make_rope_table(Pass& pass, const RopeConfig& rope, const ops::RopeFrequencies& frequencies) {
  const int64_t half = rope.dims / 2;
  CREST_TRY(float* const cosines, pass.floats(pass.tokens * half));
  CREST_TRY(float* const sines, pass.floats(pass.tokens * half));
  CREST_RETURN_IF_ERROR(ops::rope_table(
      {.tokens = pass.tokens, .rotary_dim = rope.dims},
      {.frequencies = &frequencies, .positions = pass.batch.positions.data(), .cosines = cosines, .sines = sines},
      pass.ops()));
  return RopeTable{rope.dims, rope.neox ? ops::RopeStyle::kNeox : ops::RopeStyle::kNormal, cosines, sines};
}

LoadedDecoder load_decoder(const ModelConfig& config, WeightLoader& loader) {
  switch (config.architecture) {
    case Architecture::kLlama:
    case Architecture::kQwen2:
    case Architecture::kQwen3:
      return load_llama(config, loader);
    case Architecture::kQwen3Moe:
      return load_qwen3_moe(config, loader);
    case Architecture::kGemma3:
      return load_gemma3(config, loader);
    case Architecture::kQwen35:
    case Architecture::kQwen35Moe:
      return load_qwen3_5(config, loader);
  }
  return make_error(ErrorCode::kInternal, "no decoder for architecture {}", name(config.architecture));
}

void soft_cap(float cap, std::span<float> logits, core::ThreadPool& pool) {
  pool.parallel_for(static_cast<int64_t>(logits.size()), 1024, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) logits[i] = cap * std::tanh(logits[i] / cap);
  });
}

}  // namespace

Result<std::unique_ptr<Model>> Model::load(std::shared_ptr<const format::ModelFile> file, const LoadOptions& options) {
  std::unique_ptr<Model> model(new Model);
  CREST_TRY(model->config_, parse_config(file->metadata()));
  model->file_ = std::move(file);
  CREST_RETURN_IF_ERROR(model->load_weights(options));
  return Result<std::unique_ptr<Model>>(std::move(model));
}

Status Model::load_weights(const LoadOptions& options) {
  WeightLoader loader(*file_, options);
  CREST_TRY(const int64_t vocab, check_vocabulary(*file_));
  CREST_TRY(embedding_, loader.table("token_embd", config_.hidden, vocab));
  CREST_TRY(final_norm_, loader.values("output_norm.weight", {config_.hidden}));
  if (loader.has("output.weight")) {
    CREST_TRY(output_, loader.linear("output", config_.hidden, vocab));
  } else {
    CREST_TRY(output_, loader.from_table(embedding_));
  }
  std::vector<float> factors;
  if (loader.has("rope_freqs.weight")) {
    CREST_TRY(factors, loader.values("rope_freqs.weight", {config_.rope.dims / 2}));
  }
  auto frequencies = ops::RopeFrequencies::create(to_ops(config_.rope, factors));
  if (!frequencies.ok()) return std::move(frequencies).error().with_context(file_->path().string());
  rope_ = std::move(*frequencies);
  if (config_.local_rope.dims > 0) {
    CREST_TRY(local_rope_, ops::RopeFrequencies::create(to_ops(config_.local_rope, {})));
  }
  CREST_RETURN_IF_ERROR(load_mtp(loader));
  CREST_TRY(decoder_, load_decoder(config_, loader));
  parameters_ = loader.parameters();
  weight_bytes_ = loader.bytes();
  if (const auto unused = loader.unused(); !unused.empty()) {
    log_warning("{}: {} tensors are not used by architecture {}: {}{}", file_->path().string(), unused.size(),
                name(config_.architecture),
                fmt::join(unused.begin(), unused.begin() + std::min<size_t>(unused.size(), 3), ", "),
                unused.size() > 3 ? ", ..." : "");
  }
  return {};
}

Status Model::load_mtp(WeightLoader& loader) {
  if (config_.mtp_layers.empty()) return {};
  const size_t block = config_.layers.size();
  const auto name = [&](std::string_view part) { return fmt::format("blk.{}.nextn.{}", block, part); };
  if (!loader.has(name("eh_proj.weight"))) {
    log_warning("{}: announces a multi-token prediction head but has no tensor {}; running without it",
                file_->path().string(), name("eh_proj.weight"));
    config_.mtp_layers.clear();
    return {};
  }
  if (config_.mtp_layers.size() > 1) {
    log_warning("{}: has {} multi-token prediction blocks; only the first is used", file_->path().string(),
                config_.mtp_layers.size());
    for (size_t i = 1; i < config_.mtp_layers.size(); ++i) loader.skip(fmt::format("blk.{}.", block + i));
    config_.mtp_layers.resize(1);
  }
  const int64_t hidden = config_.hidden;
  MtpHead head;
  CREST_TRY(head.projection, loader.linear(name("eh_proj"), 2 * hidden, hidden));
  CREST_TRY(head.embedding_norm, loader.values(name("enorm.weight"), {hidden}));
  CREST_TRY(head.hidden_norm, loader.values(name("hnorm.weight"), {hidden}));
  CREST_TRY(head.final_norm, loader.values(name("shared_head_norm.weight"), {hidden}));
  if (loader.has(name("embed_tokens.weight"))) {
    CREST_TRY(head.embedding, loader.table(name("embed_tokens"), hidden, vocab_size()));
  }
  if (loader.has(name("shared_head_head.weight"))) {
    CREST_TRY(head.output, loader.linear(name("shared_head_head"), hidden, vocab_size()));
  }
  mtp_ = std::move(head);
  return {};
}

std::vector<LayerConfig> Model::cache_layers() const {
  auto layers = config_.layers;
  layers.insert(layers.end(), config_.mtp_layers.begin(), config_.mtp_layers.end());
  return layers;
}

Status Model::begin(Pass& pass) const {
  CREST_RETURN_IF_ERROR(begin_pass(pass));
  CREST_TRY(pass.rope, make_rope_table(pass, config_.rope, rope_));
  if (config_.local_rope.dims > 0) {
    CREST_TRY(pass.local_rope, make_rope_table(pass, config_.local_rope, local_rope_));
  }
  return {};
}

Status Model::forward(const Batch& batch, const Outputs& outputs, ForwardContext& context) const {
  ops::Workspace::Scope scope(context.ops.workspace);
  Pass pass{.config = config_, .batch = batch, .context = context};
  CREST_RETURN_IF_ERROR(begin(pass));
  const int64_t count = pass.tokens * config_.hidden;
  CREST_TRY(float* const x, pass.floats(count));
  CREST_RETURN_IF_ERROR(ops::embedding(embedding_.weight, batch.token_ids, config_.embedding_scale, x, context.ops));
  const int64_t stride = outputs.hidden_stride != 0 ? outputs.hidden_stride : count;
  for (size_t i = 0; i < config_.layers.size(); ++i) {
    if (outputs.hidden != nullptr) std::copy_n(x, count, outputs.hidden + static_cast<int64_t>(i) * stride);
    CREST_RETURN_IF_ERROR(decoder_->run_layer(i, x, pass));
  }
  if (outputs.hidden == nullptr) return finish(pass, x, final_norm_, output_, outputs);
  Outputs with_hidden = outputs;
  float* const last = outputs.hidden + static_cast<int64_t>(config_.layers.size()) * stride;
  if (with_hidden.final_hidden == nullptr) with_hidden.final_hidden = last;
  CREST_RETURN_IF_ERROR(finish(pass, x, final_norm_, output_, with_hidden));
  if (with_hidden.final_hidden != last) std::copy_n(with_hidden.final_hidden, count, last);
  return {};
}

Status Model::forward_mtp(const Batch& batch, const float* hidden, const Outputs& outputs,
                          ForwardContext& context) const {
  CREST_CHECK(mtp_.has_value());
  ops::Workspace::Scope scope(context.ops.workspace);
  Pass pass{.config = config_, .batch = batch, .context = context};
  CREST_RETURN_IF_ERROR(begin(pass));
  const int64_t width = config_.hidden;
  CREST_TRY(float* const x, pass.floats(pass.tokens * width));
  CREST_TRY(float* const both, pass.floats(pass.tokens * 2 * width));
  const Linear& table = mtp_->embedding.empty() ? embedding_ : mtp_->embedding;
  CREST_RETURN_IF_ERROR(ops::embedding(table.weight, batch.token_ids, config_.embedding_scale, x, context.ops));
  const ops::RmsNormProblem problem{.tokens = pass.tokens, .dim = width, .eps = config_.norm_eps};
  CREST_RETURN_IF_ERROR(ops::rms_norm(
      problem, {.x = {x}, .weight = mtp_->embedding_norm.data(), .gate = {}, .out = {both, 2 * width}}, context.ops));
  CREST_RETURN_IF_ERROR(ops::rms_norm(
      problem, {.x = {hidden}, .weight = mtp_->hidden_norm.data(), .gate = {}, .out = {both + width, 2 * width}},
      context.ops));
  CREST_RETURN_IF_ERROR(apply(pass, both, {{mtp_->projection, x}}));
  CREST_RETURN_IF_ERROR(decoder_->run_layer(config_.layers.size(), x, pass));
  return finish(pass, x, mtp_->final_norm, mtp_->output.empty() ? output_ : mtp_->output, outputs);
}

Status Model::finish(Pass& pass, const float* x, const std::vector<float>& norm_weight, const Linear& output,
                     const Outputs& outputs) const {
  const auto rows = pass.batch.logit_rows;
  const bool wants_logits = outputs.logits != nullptr && !rows.empty();
  if (!wants_logits && outputs.final_hidden == nullptr) return {};
  float* normed = outputs.final_hidden;
  if (normed == nullptr) {
    CREST_TRY(normed, pass.floats(pass.tokens * config_.hidden));
  }
  CREST_RETURN_IF_ERROR(norm(pass, x, norm_weight, normed));
  if (!wants_logits) return {};
  const auto count = static_cast<int64_t>(rows.size());
  if (pass.context.observer != nullptr) {
    for (const int32_t row : rows) {
      pass.context.observer->linear_input(output.name, 1, 0, normed + row * config_.hidden, 1, config_.hidden);
    }
  }
  CREST_RETURN_IF_ERROR(ops::linear(
      {.x = normed, .tokens = count, .in_features = config_.hidden, .x_rows = pass.tokens, .rows = rows.data()},
      {.weight = &output.weight, .out = outputs.logits}, pass.ops()));
  if (config_.final_soft_cap > 0) {
    soft_cap(config_.final_soft_cap, {outputs.logits, static_cast<size_t>(count * output.weight.rows)},
             pass.ops().pool);
  }
  return {};
}

}  // namespace crest::model
