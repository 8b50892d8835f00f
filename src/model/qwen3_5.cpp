#include <optional>

#include "model/attention.h"
#include "model/decoder.h"
#include "model/feed_forward.h"
#include "model/gated_delta_net.h"

namespace crest::model {
namespace {

/// Qwen 3.5 and 3.6: gated DeltaNet with a gated attention layer now and then; dense SwiGLU or a mixture of experts
/// with a shared expert. The layers of the MTP head have the same form. (The file's norms hold 1 + w.)
class Qwen35 final : public Decoder {
 public:
  static LoadedDecoder load(const ModelConfig& config, WeightLoader& loader) {
    auto decoder = std::make_unique<Qwen35>();
    const size_t main_layers = config.layers.size();
    for (size_t i = 0; i < main_layers + config.mtp_layers.size(); ++i) {
      const LayerConfig& shape = i < main_layers ? config.layers[i] : config.mtp_layers[i - main_layers];
      Layer layer;
      layer.shape = shape;
      const auto name = [&](std::string_view part) { return fmt::format("blk.{}.{}", i, part); };
      CREST_TRY(layer.mixer_norm, loader.values(name("attn_norm.weight"), {config.hidden}));
      if (shape.mixer == Mixer::kAttention) {
        CREST_TRY(layer.attention, Attention::load(loader, config, shape, i, true));
      } else {
        CREST_TRY(layer.delta_net, GatedDeltaNet::load(loader, config, i));
      }
      CREST_TRY(layer.ffn_norm, loader.values(name("post_attention_norm.weight"), {config.hidden}));
      if (config.moe.experts > 0) {
        CREST_TRY(layer.experts, MixtureOfExperts::load(loader, config, i));
      } else {
        CREST_TRY(layer.ffn, FeedForward::load(loader, name("ffn"), "", config.hidden, shape.ffn));
      }
      decoder->layers_.push_back(std::move(layer));
    }
    return LoadedDecoder(std::move(decoder));
  }

  Status run_layer(size_t index, float* x, Pass& pass) const override {
    const Layer& layer = layers_[index];
    const LayerCache& cache = pass.context.caches.layers[index];
    ops::Workspace::Scope scope(pass.ops().workspace);
    CREST_TRY(float* const normed, pass.floats(pass.tokens * pass.config.hidden));
    CREST_RETURN_IF_ERROR(norm(pass, x, layer.mixer_norm, normed));
    if (layer.attention) {
      CREST_RETURN_IF_ERROR(layer.attention->run(pass, layer.shape, cache, normed, x, true));
    } else {
      CREST_RETURN_IF_ERROR(layer.delta_net->run(pass, cache, normed, x));
    }
    CREST_RETURN_IF_ERROR(norm(pass, x, layer.ffn_norm, normed));
    return layer.experts ? layer.experts->run(pass, normed, x) : layer.ffn->run(pass, normed, x, true);
  }

 private:
  struct Layer {
    LayerConfig shape;
    std::vector<float> mixer_norm, ffn_norm;
    std::optional<Attention> attention;
    std::optional<GatedDeltaNet> delta_net;
    std::optional<FeedForward> ffn;
    std::optional<MixtureOfExperts> experts;
  };
  std::vector<Layer> layers_;
};

}  // namespace

LoadedDecoder load_qwen3_5(const ModelConfig& config, WeightLoader& loader) { return Qwen35::load(config, loader); }

}  // namespace crest::model
