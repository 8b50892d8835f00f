#pragma once

#include <nlohmann/json.hpp>

#include "text/jinja_runtime.h"

namespace crest::text::jinja {

struct JsonSize {
  size_t bytes = 0;   // of strings
  size_t values = 0;  // of any kind
};

/// Adds up what a document holds. Raises if it is nested too deeply.
void measure_json(const nlohmann::ordered_json& json, JsonSize& size, uint32_t depth = 0);

/// A JSON document as a Python value; its strings, keys too, count as input unless `trusted`.
Value from_json(Runtime& runtime, const nlohmann::ordered_json& json, bool trusted = false);

}  // namespace crest::text::jinja
