#include "cli/answer.h"

#include "cli/model_options.h"
#include "cli/signals.h"
#include "cli/terminal.h"

namespace crest::cli {
namespace {

/// Where the pieces of an answer go.
class Printer {
 public:
  Printer(const AnswerOptions& options, Answer& answer) : options_(options), answer_(answer), colour_(colour_on_stderr()) {}

  void show(const text::ReasoningParser::Delta& delta) {
    if (!delta.reasoning.empty()) {
      answer_.reasoning += delta.reasoning;
      if (options_.print_reasoning) print_stderr(colour_ ? "\x1b[2m" + delta.reasoning + "\x1b[0m" : delta.reasoning);
    }
    for (const auto& piece : delta.content) show_content(piece.text);
  }

 private:
  void show_content(const std::string& text) {
    if (text.empty()) return;
    if (answer_.content.empty() && !answer_.reasoning.empty() && options_.print_reasoning) print_stderr("\n\n");
    answer_.content += text;
    if (options_.print_content) {
      write_stdout(text);
      flush_stdout();
    }
  }

  const AnswerOptions& options_;
  Answer& answer_;
  bool colour_;
};

}  // namespace

Result<Answer> generate_answer(engine::Session& session, const Prompt& prompt, const text::ReasoningFormat& format,
                               engine::GenerateOptions options, const AnswerOptions& shown) {
  Answer answer;
  Printer printer(shown, answer);
  text::ReasoningParser parser(format, prompt.start);
  ProgressBar bar("Reading the prompt", ProgressBar::Unit::kItems);
  options.cancel = &InterruptGuard::token();
  options.on_prompt = [&bar](int64_t done, int64_t total) {
    bar.update(static_cast<uint64_t>(done), static_cast<uint64_t>(total));
    if (done >= total) bar.finish();
  };
  options.on_token = [&](const engine::TokenEvent& event) {
    bar.finish();
    printer.show(parser.push({std::string(event.text), event.id}));
  };
  CREST_TRY(answer.generation, session.generate(prompt.ids, options));
  printer.show(parser.finish());
  return answer;
}

std::string timing_line(const engine::Timings& t) {
  const auto rate = [](int64_t tokens, double seconds) { return seconds > 0 ? static_cast<double>(tokens) / seconds : 0.0; };
  const std::string kept = t.cached_tokens > 0 ? fmt::format(" ({} kept)", t.cached_tokens) : "";
  const std::string speed = t.generated_tokens > 1 ? fmt::format(" at {:.1f} t/s", t.generated_per_second()) : "";
  return fmt::format("prompt {} tokens{} at {:.1f} t/s, answer {} tokens{}, first token after {:.2f} s, {}", t.prompt_tokens, kept,
                     rate(t.evaluated_tokens(), t.prompt_seconds), t.generated_tokens, speed, t.first_token_seconds,
                     human_bytes(peak_memory_bytes()));
}

}  // namespace crest::cli
