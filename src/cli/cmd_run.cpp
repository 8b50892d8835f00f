#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/answer.h"
#include "cli/app.h"
#include "cli/commands.h"
#include "cli/input.h"
#include "cli/model_options.h"
#include "cli/sampling_options.h"
#include "cli/signals.h"
#include "cli/terminal.h"

namespace crest::cli {
namespace {

using Json = nlohmann::ordered_json;

struct RunOptions {
  ModelOptions model;
  SamplingOptions sampling;
  std::optional<std::string> prompt, file, system;
  bool raw = false, no_think = false, print_prompt = false, json = false;
};

Json number(float value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

std::string shown_token(const text::Tokenizer& tokenizer, int32_t id) {
  return text::to_valid_utf8(tokenizer.is_control(id) ? tokenizer.token_name(id) : tokenizer.token_text(id));
}

Json logprobs_json(const text::Tokenizer& tokenizer, const std::vector<engine::TokenLogprobs>& logprobs) {
  Json list = Json::array();
  for (const auto& entry : logprobs) {
    Json top = Json::array();
    for (const auto& other : entry.top) {
      top.push_back({{"id", other.token}, {"token", shown_token(tokenizer, other.token)}, {"logprob", number(other.logprob)}});
    }
    list.push_back({{"id", entry.id}, {"token", shown_token(tokenizer, entry.id)}, {"logprob", number(entry.logprob)}, {"top_logprobs", std::move(top)}});
  }
  return list;
}

Json timings_json(const engine::Engine& engine, const engine::Timings& t) {
  const auto rate = [](int64_t tokens, double seconds) { return seconds > 0 ? Json(static_cast<double>(tokens) / seconds) : Json(nullptr); };
  return {{"load_ms", engine.load_seconds() * 1e3},
          {"prompt_n", t.prompt_tokens},
          {"cached_n", t.cached_tokens},
          {"prompt_ms", t.prompt_seconds * 1e3},
          {"prompt_per_second", rate(t.evaluated_tokens(), t.prompt_seconds)},
          {"predicted_n", t.generated_tokens},
          {"predicted_ms", t.generation_seconds * 1e3},
          {"predicted_per_second", t.generated_tokens > 1 ? Json(t.generated_per_second()) : Json(nullptr)},
          {"first_token_ms", t.first_token_seconds * 1e3},
          {"peak_rss_bytes", peak_memory_bytes()}};
}

void print_json(const engine::Engine& engine, const Answer& answer, const Prompt& prompt, uint64_t seed, bool with_logprobs) {
  const engine::Generation& g = answer.generation;
  Json object = {{"text", answer.content}};
  if (!answer.reasoning.empty()) object["reasoning"] = answer.reasoning;
  object["ids"] = g.ids;
  object["stop_reason"] = engine::name(g.stop_reason);
  if (!g.stop_string.empty()) object["stop_string"] = g.stop_string;
  object["prompt_ids"] = prompt.ids;
  object["seed"] = seed;
  if (with_logprobs) object["logprobs"] = logprobs_json(engine.tokenizer(), g.logprobs);
  object["timings"] = timings_json(engine, g.timings);
  write_stdout(object.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
}

/// Tokens with their alternatives, for people.
void print_logprobs(const text::Tokenizer& tokenizer, const std::vector<engine::TokenLogprobs>& logprobs) {
  for (const auto& entry : logprobs) {
    std::string line = fmt::format("{:>8} {:9.5f} {}", entry.id, entry.logprob, Json(shown_token(tokenizer, entry.id)).dump());
    for (const auto& other : entry.top) line += fmt::format("  {} {} {:.5f}", other.token, Json(shown_token(tokenizer, other.token)).dump(), other.logprob);
    print_stderr(line + "\n");
  }
}

Result<Prompt> build_prompt(const engine::Engine& engine, const std::optional<Conversation>& conversation, const RunOptions& o, const std::string& input) {
  if (!conversation) return raw_prompt(engine, input);
  text::Json messages = text::Json::array();
  if (o.system) messages.push_back({{"role", "system"}, {"content", *o.system}});
  messages.push_back({{"role", "user"}, {"content", input}});
  return conversation->prompt(messages, o.no_think ? std::optional(false) : std::nullopt);
}

Result<int> run(const RunOptions& o) {
  if (o.raw && (o.system || o.no_think)) return usage_error("--raw uses no chat template: --system and --no-think do not go with it");
  const InterruptGuard guard;
  CREST_TRY(engine::GenerateOptions generate, generate_options(o.sampling));
  CREST_TRY(const std::string input, input_text(o.prompt, o.file));
  CREST_TRY(const auto engine, load_engine(o.model));
  std::optional<Conversation> conversation;
  if (!o.raw) {
    CREST_TRY(conversation, Conversation::create(*engine));
  }
  CREST_TRY(const Prompt prompt, build_prompt(*engine, conversation, o, input));
  if (o.print_prompt) print_stderr(text::to_valid_utf8(prompt.text) + "\n");
  ops::KernelLog log;
  if (o.model.explain) engine->set_kernel_log(&log);
  CREST_TRY(const auto session, engine::Session::create(*engine));
  CREST_TRY(const Answer answer, generate_answer(*session, prompt, conversation ? conversation->reasoning_format() : text::ReasoningFormat{}, generate,
                                                 {.print_content = !o.json, .print_reasoning = !o.json}));
  if (o.json) {
    print_json(*engine, answer, prompt, generate.sampling.seed, o.sampling.logprobs.has_value());
  } else {
    if (!answer.content.empty() && answer.content.back() != '\n') write_stdout("\n");
    flush_stdout();
    if (o.sampling.logprobs) print_logprobs(engine->tokenizer(), answer.generation.logprobs);
    if (answer.generation.stop_reason == engine::StopReason::kContext) {
      print_note(fmt::format("the context of {} tokens is used up", engine->options().context_length));
    }
    print_note(timing_line(answer.generation.timings));
  }
  if (o.model.explain) print_kernel_log(log);
  return answer.generation.stop_reason == engine::StopReason::kCancelled ? kExitInterrupted : kExitOk;
}

}  // namespace

void add_run_command(Application& application) {
  auto o = std::make_shared<RunOptions>();
  Command command = application.add_command("run", "Answer one prompt",
                                            {"crest run -m model.gguf -p 'What is a volcano?'", "crest run -m model.gguf -f question.txt -n 200 --temp 0",
                                             "echo 'Summarise: ...' | crest run -m model.gguf --no-think", "crest run -m model.gguf --raw -p 'Once upon a time' --json"},
                                            [o] { return run(*o); });
  add_model_options(command, o->model);
  command.option("-p,--prompt", o->prompt, "TEXT", "The prompt");
  command.option("-f,--file", o->file, "FILE", "Read the prompt from a file; - is standard input, the default");
  command.option("--system", o->system, "TEXT", "System message");
  command.flag("--raw", o->raw, "No chat template: the text as it is; control tokens spelled in it are control tokens");
  command.flag("--no-think", o->no_think, "Ask the template for an answer without reasoning");
  command.flag("--print-prompt", o->print_prompt, "Show the rendered prompt on standard error");
  add_sampling_options(command, o->sampling);
  command.option("--logprobs", o->sampling.logprobs, Range<int64_t>{0, 1000}, "Report log-probabilities of each token and of its N best alternatives");
  command.flag("--json", o->json, "Print one JSON object: text, ids, stop_reason, timings");
}

}  // namespace crest::cli
