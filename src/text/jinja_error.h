#pragma once

#include <fmt/format.h>

#include <exception>
#include <string>
#include <utility>

namespace crest::text::jinja {

/// The kinds of exception that Python and Jinja tell apart; templates cannot catch them, but some operations do.
enum class Fault {
  kTemplate,  // raise_exception
  kSyntax,
  kUndefined,
  kType,
  kValue,
  kLookup,
  kOverflow,
  kZeroDivision,
  kSecurity,
  kUnsupported,
  kBudget,  // steps, bytes or depth used up
};

/// Thrown inside the interpreter only; Template turns it into an Error.
class TemplateFault : public std::exception {
 public:
  TemplateFault(Fault fault, std::string message) : fault_(fault), message_(std::move(message)) {}
  Fault fault() const { return fault_; }
  const std::string& message() const { return message_; }
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  Fault fault_;
  std::string message_;
};

template <typename... Args>
[[noreturn]] void raise(Fault fault, fmt::format_string<Args...> format, Args&&... args) {
  throw TemplateFault(fault, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace crest::text::jinja
