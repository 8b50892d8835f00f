#include "model/attention.h"
#include "model/decoder.h"
#include "model/feed_forward.h"

namespace crest::model {
namespace {

/// Gemma 3: norms before and after attention and feed-forward, GeGLU, sliding windows with their own RoPE on most
/// layers. (Embedding scale and attention scale are in the configuration; the file's norms hold 1 + w.)
class Gemma3 final : public Decoder {
 public:
  static LoadedDecoder load(const ModelConfig& config, WeightLoader& loader) {
    auto decoder = std::make_unique<Gemma3>();
    for (size_t i = 0; i < config.layers.size(); ++i) {
      Layer layer;
      const auto name = [&](std::string_view part) { return fmt::format("blk.{}.{}", i, part); };
      CREST_TRY(layer.attention_norm, loader.values(name("attn_norm.weight"), {config.hidden}));
      CREST_TRY(layer.attention, Attention::load(loader, config, config.layers[i], i, true));
      CREST_TRY(layer.post_attention_norm, loader.values(name("post_attention_norm.weight"), {config.hidden}));
      CREST_TRY(layer.ffn_norm, loader.values(name("ffn_norm.weight"), {config.hidden}));
      CREST_TRY(layer.ffn, FeedForward::load(loader, name("ffn"), "", config.hidden, config.layers[i].ffn));
      layer.ffn.activation = ops::GatedActivation::kGeGluTanh;
      CREST_TRY(layer.post_ffn_norm, loader.values(name("post_ffw_norm.weight"), {config.hidden}));
      decoder->layers_.push_back(std::move(layer));
    }
    return LoadedDecoder(std::move(decoder));
  }

  Status run_layer(size_t index, float* x, Pass& pass) const override {
    const Layer& layer = layers_[index];
    ops::Workspace::Scope scope(pass.ops().workspace);
    CREST_TRY(float* const normed, pass.floats(pass.tokens * pass.config.hidden));
    CREST_TRY(float* const change, pass.floats(pass.tokens * pass.config.hidden));
    CREST_RETURN_IF_ERROR(norm(pass, x, layer.attention_norm, normed));
    CREST_RETURN_IF_ERROR(
        layer.attention.run(pass, pass.config.layers[index], pass.context.caches.layers[index], normed, change, false));
    CREST_RETURN_IF_ERROR(norm(pass, change, layer.post_attention_norm, change));
    CREST_RETURN_IF_ERROR(add(pass, change, x));
    CREST_RETURN_IF_ERROR(norm(pass, x, layer.ffn_norm, normed));
    CREST_RETURN_IF_ERROR(layer.ffn.run(pass, normed, change, false));
    CREST_RETURN_IF_ERROR(norm(pass, change, layer.post_ffn_norm, change));
    return add(pass, change, x);
  }

 private:
  struct Layer {
    std::vector<float> attention_norm, post_attention_norm, ffn_norm, post_ffn_norm;
    Attention attention;
    FeedForward ffn;
  };
  std::vector<Layer> layers_;
};

}  // namespace

LoadedDecoder load_gemma3(const ModelConfig& config, WeightLoader& loader) { return Gemma3::load(config, loader); }

}  // namespace crest::model
