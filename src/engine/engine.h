#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "core/result.h"
#include "core/thread_pool.h"
#include "engine/cache_storage.h"
#include "engine/sequence.h"
#include "engine/session_file.h"
#include "model/model.h"
#include "ops/sampling/sampling.h"
#include "text/tokenizer.h"

namespace crest::engine {

struct EngineOptions {
  static constexpr int64_t kDefaultContext = 32768;

  int threads = 0;             // 0: one per processor
  int64_t context_length = 0;  // tokens of one sequence; 0: what the model was trained for, at most kDefaultContext
  int sequences = 1;           // that can exist at one time
  KvType kv_type = KvType::kF16;
  int64_t page_size = 64;
  int64_t chunk_size = 512;                     // most tokens of a prompt in one forward
  uint64_t snapshot_bytes = uint64_t{1} << 30;  // of one sequence
  bool mtp_cache = false;                       // memory for the multi-token prediction head too
  bool keep_mapping = false;                    // do not repack weights
  std::function<bool(uint64_t done, uint64_t total)> progress = nullptr;  // bytes of weights; false stops the loading
};

/// Tokens that one sequence gets in a step, and where the results go.
struct StepItem {
  Sequence* sequence = nullptr;
  std::span<const int32_t> tokens;  // at least one
  bool all_logits = false;          // of every token; otherwise of the last one
  float* logits = nullptr;          // [1 or tokens, vocab]; null: none
};

/// A loaded model with its tokenizer and the memory of its sequences. One step runs at a time; calls from several
/// threads wait for each other.
class Engine {
 public:
  /// A GGUF file (any file of a split set) or a Hugging Face folder.
  static Result<std::unique_ptr<Engine>> load(const std::filesystem::path& path, const EngineOptions& options);

  const model::Model& model() const { return *model_; }
  const text::Tokenizer& tokenizer() const { return *tokenizer_; }
  const EngineOptions& options() const { return options_; }  // with the values that 0 stood for
  int threads() const { return pool_.size(); }
  double load_seconds() const { return load_seconds_; }

  Result<std::unique_ptr<Sequence>> create_sequence();
  /// Evaluates the tokens of all items in one forward and appends them to their sequences. What a sequence gets does
  /// not depend on the others. After an error the sequences of the items are empty. Errors: a token id outside the
  /// vocabulary, a context or pool that is used up (then nothing was evaluated and nothing is lost).
  Status step(std::span<const StepItem> items);
  /// As step() for one sequence, with every output of the forward: rows of `outputs` are those of `tokens`.
  Status step(Sequence& sequence, std::span<const int32_t> tokens, std::span<const int32_t> logit_rows,
              const model::Outputs& outputs);
  /// Evaluates the multi-token prediction head on rows [first, first + tokens) of the sequence (Model::forward_mtp).
  /// The pages of these rows must exist: the main model ran over them. Needs EngineOptions::mtp_cache.
  Status step_mtp(const Sequence& sequence, int64_t first, std::span<const int32_t> next_tokens, const float* hidden,
                  float* logits);

  /// The next token after `input.logits`.
  Result<ops::SampleResult> sample(const ops::SamplingParams& params, const ops::SampleInput& input);

  Status check_tokens(std::span<const int32_t> tokens) const;
  /// Identifies model and cache format: sessions of another one cannot be restored.
  Result<Digest> fingerprint() const;

  /// Counts kernels from now on; null stops it. Sees the inputs of all linear layers; null stops it.
  void set_kernel_log(ops::KernelLog* log) { log_ = log; }
  void set_observer(model::ActivationObserver* observer) { observer_ = observer; }

 private:
  struct BatchData;
  explicit Engine(const EngineOptions& options) : options_(options), pool_(options.threads) {}
  Status forward(const BatchData& batch, const model::Outputs& outputs);

  EngineOptions options_;
  core::ThreadPool pool_;
  ops::Workspace workspace_;
  ops::KernelLog* log_ = nullptr;
  model::ActivationObserver* observer_ = nullptr;
  std::unique_ptr<model::Model> model_;
  std::unique_ptr<const text::Tokenizer> tokenizer_;
  std::unique_ptr<CacheStorage> storage_;
  std::vector<float> logits_;
  std::mutex step_mutex_;
  double load_seconds_ = 0;
};

}  // namespace crest::engine
