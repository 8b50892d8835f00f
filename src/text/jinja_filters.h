#pragma once

#include <string_view>

#include "text/jinja_runtime.h"

namespace crest::text::jinja {

using Filter = Value (*)(Runtime& runtime, const Value& input, const Args& args);
using Test = bool (*)(Runtime& runtime, const Value& input, const Args& args);

/// Null where there is none of this name.
Filter find_filter(std::string_view name);
Test find_test(std::string_view name);

struct FilterEntry {
  std::string_view name;
  Filter filter;
};
Filter find_text_filter(std::string_view name);
Filter find_value_filter(std::string_view name);
Filter find_sequence_filter(std::string_view name);

/// Variables that exist in every template: range, dict, namespace, cycler, joiner, raise_exception, strftime_now;
/// missing for others.
Value find_global(Runtime& runtime, std::string_view name);

}  // namespace crest::text::jinja
