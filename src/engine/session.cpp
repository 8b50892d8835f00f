#include "engine/session.h"

#include <algorithm>

namespace crest::engine {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// The answer as it grows: from tokens to text that may be shown.
class Answer {
 public:
  Answer(const text::Tokenizer& tokenizer, StopStrings stop, const GenerateOptions& options, Generation& generation)
      : tokenizer_(tokenizer),
        decoder_(tokenizer, {.skip_special = !options.show_control_tokens, .at_start = false}),
        stop_(std::move(stop)),
        options_(options),
        generation_(generation) {}

  /// Takes the next token; true when it ends the answer.
  bool add(int32_t id) {
    generation_.ids.push_back(id);
    const bool end = tokenizer_.is_end_of_generation(id);
    std::string shown;
    bool stopped = false;
    if (end) {
      stop_reason(StopReason::kEos);
    } else if (stop_.push(decoder_.push(id), shown)) {
      stopped = true;
      stop_reason(StopReason::kStop);
      generation_.stop_string = stop_.matched();
    }
    show(id, shown);
    return end || stopped;
  }

  /// Shows what was held back, unless a stop string ended the answer.
  void finish() {
    if (generation_.stop_reason == StopReason::kStop) return;
    std::string shown;
    if (stop_.push(decoder_.finish(), shown)) {
      stop_reason(StopReason::kStop);
      generation_.stop_string = stop_.matched();
    } else {
      stop_.finish(shown);
    }
    if (!shown.empty()) show(-1, shown);
  }

 private:
  void stop_reason(StopReason reason) { generation_.stop_reason = reason; }
  void show(int32_t id, const std::string& shown) {
    generation_.text += shown;
    if (!options_.on_token) return;
    const bool logprobs = id >= 0 && !generation_.logprobs.empty();
    options_.on_token({.id = id, .text = shown, .logprobs = logprobs ? &generation_.logprobs.back() : nullptr});
  }

  const text::Tokenizer& tokenizer_;
  text::StreamDecoder decoder_;
  StopStrings stop_;
  const GenerateOptions& options_;
  Generation& generation_;
};

Status check_options(const GenerateOptions& options, int64_t vocab) {
  if (options.max_tokens < -1) {
    return make_error(ErrorCode::kInvalidArgument, "max_tokens is {}, allowed are -1 (no limit) and more",
                      options.max_tokens);
  }
  if (options.logprobs < -1 || options.logprobs > vocab) {
    return make_error(ErrorCode::kInvalidArgument, "logprobs is {}, allowed are -1 (none) to {}", options.logprobs,
                      vocab);
  }
  return ops::check(options.sampling, vocab);
}

}  // namespace

std::string_view name(StopReason reason) {
  switch (reason) {
    case StopReason::kEos:
      return "eos";
    case StopReason::kStop:
      return "stop";
    case StopReason::kLength:
      return "length";
    case StopReason::kContext:
      return "context";
    case StopReason::kCancelled:
      return "cancelled";
  }
  return "unknown";
}

Result<std::unique_ptr<Session>> Session::create(Engine& engine) {
  CREST_TRY(auto sequence, engine.create_sequence());
  return std::unique_ptr<Session>(new Session(engine, std::move(sequence)));
}

/// Where a later prompt is likely to leave this one: templates often write the answer of an earlier turn otherwise than
/// they asked for it (the thinking left out), so that only what goes up to the last end of a turn stays.
std::vector<int64_t> Session::snapshot_marks(std::span<const int32_t> prompt) const {
  if (!engine_.model().config().is_recurrent()) return {};
  for (auto i = std::ssize(prompt) - 2; i >= 0; --i) {
    if (engine_.tokenizer().is_end_of_generation(prompt[static_cast<size_t>(i)])) return {i + 1};
  }
  return {};
}

/// Evaluates what is not kept; logits_ then holds those after the prompt. False: cancelled.
Result<bool> Session::prefill(std::span<const int32_t> prompt, const GenerateOptions& options, Timings& timings) {
  const auto start = Clock::now();
  const auto total = std::ssize(prompt);
  const int64_t kept = sequence_->reuse(prompt);
  timings.cached_tokens = kept;
  if (options.on_prompt) options.on_prompt(kept, total);
  if (kept == total) {
    std::copy_n(sequence_->kept_logits().begin(), logits_.size(), logits_.begin());
    return true;
  }
  const bool recurrent = engine_.model().config().is_recurrent();
  int64_t begin = kept;
  for (const int64_t end : chunk_ends(kept, total, engine_.options().chunk_size, snapshot_marks(prompt))) {
    if (is_cancelled(options.cancel)) {
      timings.prompt_tokens = begin;
      return false;
    }
    const StepItem item{.sequence = sequence_.get(),
                        .tokens = prompt.subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin)),
                        .logits = end == total ? logits_.data() : nullptr};
    CREST_RETURN_IF_ERROR(engine_.step({&item, 1}));
    if (end == total) {
      sequence_->take_snapshot(logits_);
    } else if (recurrent) {
      sequence_->take_snapshot();
    }
    timings.prompt_seconds = seconds_since(start);
    if (options.on_prompt) options.on_prompt(end, total);
    begin = end;
  }
  return true;
}

Result<Generation> Session::generate(std::span<const int32_t> prompt, const GenerateOptions& options) {
  const auto start = Clock::now();
  const int64_t vocab = engine_.model().vocab_size();
  const int64_t context = engine_.options().context_length;
  if (prompt.empty())
    return make_error(ErrorCode::kInvalidArgument, "the prompt is empty: there is nothing to continue");
  if (std::ssize(prompt) > context) {
    return make_error(ErrorCode::kResourceExhausted, "the prompt has {} tokens, the context has room for {}",
                      prompt.size(), context);
  }
  CREST_RETURN_IF_ERROR(engine_.check_tokens(prompt));
  CREST_RETURN_IF_ERROR(check_options(options, vocab));
  CREST_TRY(auto stop, StopStrings::create(options.stop));

  Generation generation;
  generation.timings.prompt_tokens = std::ssize(prompt);
  CREST_TRY(const bool complete, prefill(prompt, options, generation.timings));
  if (!complete) {
    generation.stop_reason = StopReason::kCancelled;
    return generation;
  }
  if (options.max_tokens == 0) {
    generation.stop_reason = StopReason::kLength;
    return generation;
  }
  CREST_RETURN_IF_ERROR(answer(prompt, options, std::move(stop), start, generation));
  return generation;
}

/// The token after logits_: chosen, or the next one that the caller forces.
Result<TokenLogprobs> Session::next_token(std::span<const int32_t> prompt, const GenerateOptions& options,
                                          const Generation& generation, std::deque<int32_t>& forced) {
  CREST_TRY(auto sample, engine_.sample(options.sampling, {.logits = logits_,
                                                           .prompt = prompt,
                                                           .generated = generation.ids,
                                                           .draw = generation.ids.size(),
                                                           .logprobs = options.logprobs}));
  TokenLogprobs token{sample.token, sample.logprob, std::move(sample.top)};
  if (forced.empty()) return token;
  token.id = forced.front();
  forced.pop_front();
  CREST_RETURN_IF_ERROR(engine_.check_tokens({&token.id, 1}));
  token.logprob = static_cast<float>(logits_[static_cast<size_t>(token.id)] - ops::log_sum_exp(logits_));
  return token;
}

Status Session::answer(std::span<const int32_t> prompt, const GenerateOptions& options, StopStrings stop,
                       Clock::time_point start, Generation& generation) {
  const auto begin = Clock::now();
  Answer answer(engine_.tokenizer(), std::move(stop), options, generation);
  std::deque<int32_t> forced;
  generation.stop_reason = StopReason::kCancelled;
  while (!is_cancelled(options.cancel)) {
    CREST_TRY(auto token, next_token(prompt, options, generation, forced));
    const int32_t id = token.id;
    if (options.logprobs >= 0) generation.logprobs.push_back(std::move(token));
    if (generation.ids.empty()) generation.timings.first_token_seconds = seconds_since(start);
    if (answer.add(id)) break;
    if (options.force_after) {
      const auto more = options.force_after(id);
      forced.insert(forced.end(), more.begin(), more.end());
    }
    if (std::ssize(generation.ids) == options.max_tokens) {
      generation.stop_reason = StopReason::kLength;
      break;
    }
    if (sequence_->length() == sequence_->max_tokens()) {
      generation.stop_reason = StopReason::kContext;
      break;
    }
    const StepItem item{.sequence = sequence_.get(), .tokens = {&id, 1}, .logits = logits_.data()};
    CREST_RETURN_IF_ERROR(engine_.step({&item, 1}));
  }
  answer.finish();
  generation.timings.generated_tokens = std::ssize(generation.ids);
  generation.timings.generation_seconds = seconds_since(begin);
  return {};
}

Status Session::save(const std::filesystem::path& path, std::string_view attachment) const {
  CREST_TRY(const Digest fingerprint, engine_.fingerprint());
  CREST_TRY(auto writer, SessionWriter::create(path, fingerprint));
  CREST_RETURN_IF_ERROR(writer.values<char>(attachment));
  CREST_RETURN_IF_ERROR(sequence_->save(writer));
  return writer.commit();
}

Result<std::string> Session::load(const std::filesystem::path& path) {
  sequence_->clear();
  CREST_TRY(const Digest fingerprint, engine_.fingerprint());
  CREST_TRY(auto reader, SessionReader::open(path, fingerprint));
  CREST_TRY(const auto attachment, reader.values<char>("attachment"));
  CREST_RETURN_IF_ERROR(sequence_->restore(reader, engine_.model().vocab_size()));
  return std::string(attachment.begin(), attachment.end());
}

}  // namespace crest::engine
