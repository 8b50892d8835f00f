#include "model/attention.h"
#include "model/decoder.h"
#include "model/feed_forward.h"

namespace crest::model {
namespace {

/// Llama, SmolLM2, Qwen 2 (biases on q, k, v) and Qwen 3 (norms on the heads of q and k): pre-norm attention and
/// SwiGLU.
class Llama final : public Decoder {
 public:
  static LoadedDecoder load(const ModelConfig& config, WeightLoader& loader) {
    auto decoder = std::make_unique<Llama>();
    for (size_t i = 0; i < config.layers.size(); ++i) {
      Layer layer;
      const auto name = [&](std::string_view part) { return fmt::format("blk.{}.{}", i, part); };
      CREST_TRY(layer.attention_norm, loader.values(name("attn_norm.weight"), {config.hidden}));
      const bool head_norms = config.architecture == Architecture::kQwen3;
      CREST_TRY(layer.attention, Attention::load(loader, config, config.layers[i], i, head_norms));
      CREST_TRY(layer.ffn_norm, loader.values(name("ffn_norm.weight"), {config.hidden}));
      CREST_TRY(layer.ffn, FeedForward::load(loader, name("ffn"), "", config.hidden, config.layers[i].ffn));
      decoder->layers_.push_back(std::move(layer));
    }
    return LoadedDecoder(std::move(decoder));
  }

  Status run_layer(size_t index, float* x, Pass& pass) const override {
    const Layer& layer = layers_[index];
    ops::Workspace::Scope scope(pass.ops().workspace);
    CREST_TRY(float* const normed, pass.floats(pass.tokens * pass.config.hidden));
    CREST_RETURN_IF_ERROR(norm(pass, x, layer.attention_norm, normed));
    CREST_RETURN_IF_ERROR(
        layer.attention.run(pass, pass.config.layers[index], pass.context.caches.layers[index], normed, x, true));
    CREST_RETURN_IF_ERROR(norm(pass, x, layer.ffn_norm, normed));
    return layer.ffn.run(pass, normed, x, true);
  }

 private:
  struct Layer {
    std::vector<float> attention_norm, ffn_norm;
    Attention attention;
    FeedForward ffn;
  };
  std::vector<Layer> layers_;
};

}  // namespace

LoadedDecoder load_llama(const ModelConfig& config, WeightLoader& loader) { return Llama::load(config, loader); }

}  // namespace crest::model
