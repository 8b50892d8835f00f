#include "cli/chat_session.h"

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/input.h"
#include "cli/model_options.h"
#include "cli/signals.h"
#include "cli/terminal.h"

namespace crest::cli {
namespace {

bool has_system(const text::Json& messages) { return !messages.empty() && messages[0]["role"] == "system"; }

struct Setting {
  const char* name;
  double SamplingOptions::*number;
  int64_t SamplingOptions::*integer;
  double low, high;
};
constexpr Setting kSettings[] = {
    {"temp", &SamplingOptions::temperature, nullptr, 0, 1e6},
    {"top-k", nullptr, &SamplingOptions::top_k, 0, 2147483647},
    {"top-p", &SamplingOptions::top_p, nullptr, 0, 1},
    {"min-p", &SamplingOptions::min_p, nullptr, 0, 1},
    {"repeat-penalty", &SamplingOptions::repeat_penalty, nullptr, 1e-3, 1e3},
    {"presence-penalty", &SamplingOptions::presence_penalty, nullptr, -1e3, 1e3},
    {"frequency-penalty", &SamplingOptions::frequency_penalty, nullptr, -1e3, 1e3},
    {"n", nullptr, &SamplingOptions::max_tokens, -1, 2147483647},
};

}  // namespace

Result<std::unique_ptr<ChatSession>> ChatSession::create(engine::Engine& engine, const SamplingOptions& sampling, std::optional<std::string> system,
                                                         bool no_think) {
  CREST_TRY(Conversation conversation, Conversation::create(engine));
  CREST_TRY(auto session, engine::Session::create(engine));
  std::unique_ptr<ChatSession> chat(new ChatSession(engine, std::move(conversation), std::move(session), sampling, no_think));
  if (system) chat->set_system(*system);
  return chat;
}

Status ChatSession::say(const std::string& text) {
  messages_.push_back({{"role", "user"}, {"content", text}});
  Status status = answer();
  if (!status.ok()) messages_.erase(messages_.size() - 1);
  return status;
}

Status ChatSession::regenerate() {
  if (messages_.empty() || messages_.back()["role"] != "assistant") return make_error(ErrorCode::kInvalidArgument, "there is no answer to generate again");
  const text::Json old = messages_.back();
  messages_.erase(messages_.size() - 1);
  Status status = answer();
  if (!status.ok()) messages_.push_back(old);
  return status;
}

Status ChatSession::answer() {
  CREST_TRY(const engine::GenerateOptions options, generate_options(sampling_));
  CREST_TRY(const Prompt prompt, conversation_.prompt(messages_, no_think_ ? std::optional(false) : std::nullopt));
  CREST_TRY(const Answer result, generate_answer(*session_, prompt, conversation_.reasoning_format(), options, {}));
  write_stdout("\n");
  flush_stdout();
  text::Json message = {{"role", "assistant"}, {"content", result.content}};
  if (!result.reasoning.empty()) message["reasoning_content"] = result.reasoning;
  messages_.push_back(std::move(message));
  last_ = result.generation.timings;
  ++answers_;
  if (result.generation.stop_reason == engine::StopReason::kCancelled) print_stderr("[stopped]\n");
  if (result.generation.stop_reason == engine::StopReason::kContext) {
    print_note(fmt::format("the context of {} tokens is used up; /clear starts anew", engine_.options().context_length));
  }
  return {};
}

void ChatSession::clear() {
  const std::optional<text::Json> system = has_system(messages_) ? std::optional(messages_[0]) : std::nullopt;
  messages_ = text::Json::array();
  if (system) messages_.push_back(*system);
}

void ChatSession::set_system(const std::string& text) {
  if (has_system(messages_)) messages_.erase(size_t{0});
  if (!text.empty()) messages_.insert(messages_.begin(), text::Json{{"role", "system"}, {"content", text}});
}

std::string ChatSession::settings() const {
  std::string text = fmt::format("think {}\n", no_think_ ? "off" : "on");
  for (const Setting& s : kSettings) text += s.number ? fmt::format("{} {}\n", s.name, sampling_.*s.number) : fmt::format("{} {}\n", s.name, sampling_.*s.integer);
  return text;
}

Result<std::string> ChatSession::set(const std::string& name, const std::string& value) {
  if (name.empty()) return settings();
  if (name == "think") {
    if (value != "on" && value != "off") return make_error(ErrorCode::kInvalidArgument, "think is '{}'; allowed are on, off", value);
    no_think_ = value == "off";
    return fmt::format("think {}\n", value);
  }
  std::string known = "think";
  for (const Setting& s : kSettings) {
    known += fmt::format(", {}", s.name);
    if (name != s.name) continue;
    double number = 0;
    const auto [stop, code] = std::from_chars(value.data(), value.data() + value.size(), number);
    const bool whole = s.number != nullptr || number == std::floor(number);
    if (code != std::errc() || stop != value.data() + value.size() || !whole || !(number >= s.low && number <= s.high)) {
      return make_error(ErrorCode::kInvalidArgument, "{} is '{}'; allowed: {} from {} to {}", name, value, s.number ? "a number" : "a whole number", s.low, s.high);
    }
    if (s.number) {
      sampling_.*s.number = number;
    } else {
      sampling_.*s.integer = static_cast<int64_t>(number);
    }
    return fmt::format("{} {}\n", name, value);
  }
  return make_error(ErrorCode::kInvalidArgument, "there is no setting '{}'; there are {}", name, known);
}

Status ChatSession::save(const std::string& path) const {
  const std::filesystem::path output(path);
  CREST_RETURN_IF_ERROR(refuse_overwriting(std::span(&output, 1), engine_.model().file(), {}));
  return session_->save(path, messages_.dump());
}

Status ChatSession::load(const std::string& path) {
  CREST_TRY(const std::string attachment, session_->load(path));
  text::Json messages = text::Json::parse(attachment, nullptr, false);
  if (messages.is_discarded() || !messages.is_array()) return make_error(ErrorCode::kInvalidFile, "{}: holds no conversation", path);
  messages_ = std::move(messages);
  return {};
}

std::string ChatSession::statistics() const {
  std::string text = fmt::format("{} messages, {} answers, {} of {} tokens of context used\n", messages_.size(), answers_, session_->sequence().length(),
                                 engine_.options().context_length);
  if (answers_ > 0) text += "last answer: " + timing_line(last_) + "\n";
  return text;
}

}  // namespace crest::cli
