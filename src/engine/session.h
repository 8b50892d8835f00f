#pragma once

#include <chrono>
#include <deque>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/result.h"
#include "engine/engine.h"
#include "engine/generation.h"
#include "engine/stop_strings.h"

namespace crest::engine {

/// A conversation with one sequence: answers prompts, and evaluates of each only what earlier ones do not share.
class Session {
 public:
  /// The engine must outlive the session.
  static Result<std::unique_ptr<Session>> create(Engine& engine);

  /// Answers `prompt` (the whole conversation so far, as token ids). Errors: an empty prompt, one longer than the
  /// context, ids or parameters out of range, broken logits.
  Result<Generation> generate(std::span<const int32_t> prompt, const GenerateOptions& options);

  const Sequence& sequence() const { return *sequence_; }
  void clear() { sequence_->clear(); }

  /// Everything that continuing needs (keys, values, recurrent state, snapshots), and a text of the caller's own. After
  /// load() the session goes on bit for bit as the saved one would have.
  Status save(const std::filesystem::path& path, std::string_view attachment = {}) const;
  /// Returns the attachment. After an error the session is empty.
  Result<std::string> load(const std::filesystem::path& path);

 private:
  explicit Session(Engine& engine, std::unique_ptr<Sequence> sequence)
      : engine_(engine), sequence_(std::move(sequence)), logits_(static_cast<size_t>(engine.model().vocab_size())) {}
  Result<bool> prefill(std::span<const int32_t> prompt, const GenerateOptions& options, Timings& timings);
  Status answer(std::span<const int32_t> prompt, const GenerateOptions& options, StopStrings stop,
                std::chrono::steady_clock::time_point start, Generation& generation);
  Result<TokenLogprobs> next_token(std::span<const int32_t> prompt, const GenerateOptions& options,
                                   const Generation& generation, std::deque<int32_t>& forced);
  std::vector<int64_t> snapshot_marks(std::span<const int32_t> prompt) const;

  Engine& engine_;
  std::unique_ptr<Sequence> sequence_;
  std::vector<float> logits_;
};

}  // namespace crest::engine
