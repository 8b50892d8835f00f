#pragma once

#include <string>

#include "cli/conversation.h"
#include "engine/session.h"

namespace crest::cli {

struct Answer {
  engine::Generation generation;
  std::string content;
  std::string reasoning;
};

struct AnswerOptions {
  bool print_content = true;    // on standard output, as it comes
  bool print_reasoning = true;  // on standard error, dimmed on a terminal
};

/// Generates the answer to a prompt, shown as it comes, with a bar while a long prompt is read.
Result<Answer> generate_answer(engine::Session& session, const Prompt& prompt, const text::ReasoningFormat& format,
                               engine::GenerateOptions options, const AnswerOptions& shown);

/// "prompt 12 tokens at 340.1 t/s, answer 64 tokens at 31.0 t/s, first token after 0.21 s, 512.0 MiB".
std::string timing_line(const engine::Timings& timings);

}  // namespace crest::cli
