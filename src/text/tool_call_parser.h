#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "text/output_tags.h"

namespace crest::text {

/// A call the model made. `arguments` is the text of a JSON object, as OpenAI's clients expect it.
struct ToolCall {
  std::string name;
  std::string arguments;

  friend bool operator==(const ToolCall&, const ToolCall&) = default;
};

enum class ToolCallForm {
  kNone,     // the output holds no calls
  kQwenXml,  // <tool_call>\n<function=NAME>\n<parameter=KEY>\nVALUE\n</parameter>\n</function>\n</tool_call>
  kHermes,   // <tool_call>\n{"name": ..., "arguments": {...}}\n</tool_call>
};

/// The form a template asks the model for, seen from its source; kNone if it knows neither.
ToolCallForm tool_call_form(std::string_view template_source);

struct ToolCallFormat {
  ToolCallForm form = ToolCallForm::kNone;
  OutputTag open{"<tool_call>"};
  OutputTag close{"</tool_call>"};
  /// The tools offered (OpenAI's array): the JSON schema of a parameter decides the type of its value.
  nlohmann::ordered_json tools;
};

/// Finds calls in generated content while it streams. Fails soft: what cannot be read as a call stays text.
class ToolCallParser {
 public:
  explicit ToolCallParser(ToolCallFormat format);

  struct Delta {
    std::string content;
    std::vector<ToolCall> calls;
  };

  Delta push(const OutputPiece& piece);
  /// End of the output: a call cut short is given as far as its name and complete parameters are known.
  Delta finish();

 private:
  bool step_content(Delta& delta, bool last);
  bool step_call(Delta& delta, bool last);
  Delta run(bool last);
  void emit_content(Delta& delta, std::string_view text);

  ToolCallFormat format_;
  bool inside_ = false;
  bool after_call_ = false;
  TagBuffer buffer_;
  std::string body_;        // of the call that is open
  std::string held_space_;  // goes if a call follows
};

/// The calls in the text between the tags. Empty: there is none that can be read. `cut`: the text ends early,
/// parameters whose end is missing do not count.
std::vector<ToolCall> parse_tool_calls(std::string_view body, const ToolCallFormat& format, bool cut);

/// One value of Qwen's XML-like form, typed by the schema of its parameter (null, boolean, integer, number, array,
/// object, string in this order among the declared types; the text itself if none fits or no schema is known).
nlohmann::ordered_json typed_argument(std::string_view text, const nlohmann::ordered_json& schema);

}  // namespace crest::text
