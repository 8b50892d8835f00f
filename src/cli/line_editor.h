#pragma once

#include <memory>
#include <optional>
#include <string>

namespace crest::cli {

/// Lines from a terminal, with editing and a history file, or from a pipe.
class LineEditor {
 public:
  /// History is kept in $XDG_STATE_HOME/crest/history (~/.local/state), unless CREST_NO_HISTORY is set.
  LineEditor();
  ~LineEditor();
  LineEditor(const LineEditor&) = delete;
  LineEditor& operator=(const LineEditor&) = delete;

  /// The next line without its end; nothing at the end of input. The prompt is shown on a terminal only.
  std::optional<std::string> read(const std::string& prompt);
  bool interactive() const { return terminal_ != nullptr; }

 private:
  struct Terminal;
  std::unique_ptr<Terminal> terminal_;
  std::string buffered_;
  bool ended_ = false;
};

}  // namespace crest::cli
