#pragma once

#include <functional>
#include <string_view>

#include "text/jinja_runtime.h"

namespace crest::text::jinja {

/// A method of a built-in type.
using Method = Value (*)(Runtime& runtime, const Value& self, const Args& args);

Method find_string_method(std::string_view name);
/// Methods of list, tuple, dict, range and numbers.
Method find_container_method(const Value& self, std::string_view name);

Value make_function(Runtime& runtime, std::string name, std::function<Value(Runtime&, Args&)> body);
Value bind_method(Runtime& runtime, const Value& self, std::string_view name, Method method);

/// str.strip and its one-sided kin as byte ranges; `chars` missing or None: white space.
Text strip_text(Runtime& runtime, const Text& text, const Value& chars, bool left, bool right);
/// str.split(separator, limit); separator missing or None: runs of white space.
std::vector<Value> split_text(Runtime& runtime, const Value& self, const Value& separator, Int limit);
std::vector<Value> rsplit_text(Runtime& runtime, const Value& self, const Value& separator, Int limit);
std::vector<Text> split_lines(Runtime& runtime, const Text& text, bool keep_ends);
Text replace_text(Runtime& runtime, const Text& text, const Text& from, const Text& to, Int limit);
Text center_text(Runtime& runtime, const StringObject& self, Int width, const Text& fill);

/// Appends a text `count` times; who calls has checked the size.
void append_repeated(Runtime& runtime, Text& out, const Text& text, Int count);

/// Position of a needle from `begin` on, npos if there is none; linear time.
size_t find_bytes(std::string_view text, std::string_view needle, size_t begin = 0);
size_t rfind_bytes(std::string_view text, std::string_view needle);

bool is_lower_text(std::string_view text);
bool is_upper_text(std::string_view text);

}  // namespace crest::text::jinja
