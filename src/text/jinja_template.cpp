#include "text/jinja_template.h"

#include <algorithm>

#include "text/jinja_interpreter.h"
#include "text/jinja_json.h"
#include "text/jinja_parser.h"
#include "text/jinja_unicode.h"

namespace crest::text::jinja {
namespace {

ErrorCode code_of(Fault fault) {
  switch (fault) {
    case Fault::kBudget:
      return ErrorCode::kResourceExhausted;
    case Fault::kUnsupported:
      return ErrorCode::kUnsupported;
    default:
      return ErrorCode::kInvalidArgument;
  }
}

/// A message may hold a whole conversation.
std::string shown(const std::string& message) {
  constexpr size_t kLongest = 16384;
  if (message.size() <= kLongest) return message;
  size_t end = kLongest;
  while (end > 0 && (static_cast<unsigned char>(message[end]) & 0xC0u) == 0x80u) --end;
  return message.substr(0, end) + "…";
}

}  // namespace

Result<Template> Template::parse(std::string_view source) {
  if (source.size() > kMaxSource) {
    return make_error(ErrorCode::kInvalidArgument, "the template has {} bytes, at most {} are allowed", source.size(),
                      kMaxSource);
  }
  try {
    return Template(Parser(tokenize(source)).parse());
  } catch (const SyntaxFault& fault) {
    return make_error(ErrorCode::kInvalidArgument, "line {}: {}", fault.line(), shown(fault.message()));
  } catch (const TemplateFault& fault) {
    return make_error(code_of(fault.fault()), "{}", shown(fault.message()));
  } catch (const std::bad_alloc&) {
    return make_error(ErrorCode::kOutOfMemory, "not enough memory to parse the template");
  }
}

Result<std::vector<Segment>> Template::render(const Inputs& inputs) const {
  uint32_t line = 0;
  try {
    JsonSize size;
    for (const auto& [name, json] : inputs.variables) measure_json(*json, size);
    Interpreter interpreter(tree_, Limits::for_input(size.bytes, size.values), inputs.now);
    try {
      for (const auto& [name, token] : inputs.tokens) interpreter.define(name, interpreter.string(Text(token)));
      for (const auto& [name, json] : inputs.variables) interpreter.define(name, jinja::from_json(interpreter, *json));
      return interpreter.run().segments();
    } catch (...) {
      line = interpreter.line();
      throw;
    }
  } catch (const TemplateFault& fault) {
    if (line == 0) return make_error(code_of(fault.fault()), "{}", shown(fault.message()));
    return make_error(code_of(fault.fault()), "line {}: {}", line, shown(fault.message()));
  } catch (const std::bad_alloc&) {
    return make_error(ErrorCode::kOutOfMemory, "not enough memory to render the template");
  }
}

bool Template::reads(std::string_view variable) const {
  return std::find(tree_.names.begin(), tree_.names.end(), variable) != tree_.names.end();
}

}  // namespace crest::text::jinja
