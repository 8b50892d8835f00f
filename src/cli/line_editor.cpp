#include "cli/line_editor.h"

#include <histedit.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "cli/signals.h"
#include "core/env.h"

namespace crest::cli {
namespace {

constexpr int kHistoryLines = 1000;
constexpr size_t kMaxLine = size_t{16} << 20;

std::filesystem::path history_file() {
  if (core::env("CREST_NO_HISTORY")) return {};
  std::filesystem::path folder;
  if (const auto state = core::env("XDG_STATE_HOME")) {
    folder = *state;
  } else if (const auto home = core::env("HOME")) {
    folder = std::filesystem::path(*home) / ".local" / "state";
  } else {
    return {};
  }
  std::error_code code;
  std::filesystem::create_directories(folder / "crest", code);
  if (code) return {};
  std::filesystem::permissions(folder / "crest", std::filesystem::perms::owner_all, code);
  return folder / "crest" / "history";
}

}  // namespace

struct LineEditor::Terminal {
  EditLine* editor = nullptr;
  History* history = nullptr;
  HistEvent event{};
  std::filesystem::path file;
  std::string prompt;

  static char* show_prompt(EditLine* editor) {
    Terminal* self = nullptr;
    ::el_get(editor, EL_CLIENTDATA, &self);
    return self->prompt.data();
  }
};

LineEditor::LineEditor() {
  if (::isatty(0) != 1 || ::isatty(2) != 1) return;
  terminal_ = std::make_unique<Terminal>();
  Terminal& t = *terminal_;
  t.editor = ::el_init("crest", stdin, stderr, stderr);
  if (t.editor == nullptr) {
    terminal_.reset();
    return;
  }
  t.history = ::history_init();
  t.file = history_file();
  ::history(t.history, &t.event, H_SETSIZE, kHistoryLines);
  ::history(t.history, &t.event, H_SETUNIQUE, 1);
  if (!t.file.empty()) ::history(t.history, &t.event, H_LOAD, t.file.c_str());
  ::el_set(t.editor, EL_CLIENTDATA, &t);
  ::el_set(t.editor, EL_PROMPT, &Terminal::show_prompt);
  ::el_set(t.editor, EL_EDITOR, "emacs");
  ::el_set(t.editor, EL_HIST, ::history, t.history);
  ::el_source(t.editor, nullptr);
}

LineEditor::~LineEditor() {
  if (!terminal_) return;
  if (!terminal_->file.empty()) {
    ::history(terminal_->history, &terminal_->event, H_SAVE, terminal_->file.c_str());
    std::error_code code;
    std::filesystem::permissions(terminal_->file, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write, code);
  }
  ::history_end(terminal_->history);
  ::el_end(terminal_->editor);
}

std::optional<std::string> LineEditor::read(const std::string& prompt) {
  if (terminal_) {
    Terminal& t = *terminal_;
    t.prompt = prompt;
    int length = 0;
    const char* text = ::el_gets(t.editor, &length);
    if (text == nullptr || length <= 0) return std::nullopt;
    std::string line(text, static_cast<size_t>(length));
    if (line.find_first_not_of(" \t\r\n") != std::string::npos) ::history(t.history, &t.event, H_ENTER, line.c_str());
    while (!line.empty() && (line.back() == '\n' || line.back() == '\r')) line.pop_back();
    return line;
  }
  while (true) {
    const size_t end = buffered_.find('\n');
    if (end != std::string::npos || (ended_ && !buffered_.empty()) || buffered_.size() > kMaxLine) {
      std::string line = buffered_.substr(0, end);
      buffered_.erase(0, end == std::string::npos ? buffered_.size() : end + 1);
      if (!line.empty() && line.back() == '\r') line.pop_back();
      return line;
    }
    if (ended_) return std::nullopt;
    char bytes[1 << 16];
    const ssize_t got = ::read(0, bytes, sizeof bytes);
    if (got < 0 && errno == EINTR && !InterruptGuard::interrupted()) continue;
    if (got <= 0) {
      ended_ = true;
      continue;
    }
    buffered_.append(bytes, static_cast<size_t>(got));
  }
}

}  // namespace crest::cli
