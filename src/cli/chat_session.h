#pragma once

#include <memory>
#include <optional>
#include <string>

#include "cli/answer.h"
#include "cli/sampling_options.h"
#include "engine/session.h"

namespace crest::cli {

/// The conversation of `crest chat`: messages, settings, and what the /commands do to them.
class ChatSession {
 public:
  static Result<std::unique_ptr<ChatSession>> create(engine::Engine& engine, const SamplingOptions& sampling, std::optional<std::string> system, bool no_think);

  /// Answers a message. A cancelled answer stays in the history as far as it came.
  Status say(const std::string& text);
  /// Forgets the last answer and gives another one.
  Status regenerate();
  void clear();
  void set_system(const std::string& text);
  /// "temp 0.2", "think off"; without a value: shows the settings.
  Result<std::string> set(const std::string& name, const std::string& value);
  Status save(const std::string& path) const;
  Status load(const std::string& path);
  std::string statistics() const;

 private:
  ChatSession(engine::Engine& engine, Conversation conversation, std::unique_ptr<engine::Session> session, const SamplingOptions& sampling, bool no_think)
      : engine_(engine), conversation_(std::move(conversation)), session_(std::move(session)), sampling_(sampling), no_think_(no_think) {}
  Status answer();
  std::string settings() const;

  engine::Engine& engine_;
  Conversation conversation_;
  std::unique_ptr<engine::Session> session_;
  SamplingOptions sampling_;
  bool no_think_;
  text::Json messages_ = text::Json::array();
  engine::Timings last_;
  int64_t answers_ = 0;
};

}  // namespace crest::cli
