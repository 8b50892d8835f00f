#include "model/attention.h"
#include "model/decoder.h"
#include "model/feed_forward.h"

namespace crest::model {
namespace {

/// Qwen 3 with a mixture of experts in every layer.
class Qwen3Moe final : public Decoder {
 public:
  static LoadedDecoder load(const ModelConfig& config, WeightLoader& loader) {
    auto decoder = std::make_unique<Qwen3Moe>();
    for (size_t i = 0; i < config.layers.size(); ++i) {
      Layer layer;
      CREST_TRY(layer.attention_norm, loader.values(fmt::format("blk.{}.attn_norm.weight", i), {config.hidden}));
      CREST_TRY(layer.attention, Attention::load(loader, config, config.layers[i], i, true));
      CREST_TRY(layer.ffn_norm, loader.values(fmt::format("blk.{}.ffn_norm.weight", i), {config.hidden}));
      CREST_TRY(layer.experts, MixtureOfExperts::load(loader, config, i));
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
    return layer.experts.run(pass, normed, x);
  }

 private:
  struct Layer {
    std::vector<float> attention_norm, ffn_norm;
    Attention attention;
    MixtureOfExperts experts;
  };
  std::vector<Layer> layers_;
};

}  // namespace

LoadedDecoder load_qwen3_moe(const ModelConfig& config, WeightLoader& loader) { return Qwen3Moe::load(config, loader); }

}  // namespace crest::model
