#pragma once

#include <fmt/format.h>

#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace crest {

enum class ErrorCode {
  kInvalidArgument,  // a value the caller gave is not allowed
  kInvalidFile,      // a file's content is broken
  kUnsupported,      // well-formed, but not something Crest can do
  kNotFound,         // a file, tensor or key is missing
  kIo,               // the operating system refused
  kOutOfMemory,
  kResourceExhausted,  // a budget or a context is used up
  kCancelled,
  kInternal,
};

/// What went wrong, in one sentence that names the thing, its value and what is allowed.
struct Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;

  /// Puts a context in front ("model.gguf: ...").
  Error with_context(std::string_view context) && {
    message = fmt::format("{}: {}", context, message);
    return std::move(*this);
  }
};

template <typename... Args>
Error make_error(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) {
  return Error{code, fmt::format(format, std::forward<Args>(args)...)};
}

[[noreturn]] void fail_check(const char* expression, const char* file, int line, const std::string& message);

/// A value or an Error. Reading the value of a failed result is our own mistake and aborts.
template <typename T>
class [[nodiscard]] Result {
 public:
  using value_type = T;
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& value() & { return expect(), std::get<0>(state_); }
  const T& value() const& { return expect(), std::get<0>(state_); }
  T&& value() && { return expect(), std::get<0>(std::move(state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  const Error& error() const& { return std::get<1>(state_); }
  Error&& error() && { return std::get<1>(std::move(state_)); }
  T value_or(T other) && { return ok() ? std::get<0>(std::move(state_)) : std::move(other); }

 private:
  void expect() const {
    if (!ok()) fail_check("result.ok()", __FILE__, __LINE__, std::get<1>(state_).message);
  }
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}
  bool ok() const { return !error_; }
  explicit operator bool() const { return ok(); }
  const Error& error() const& { return *error_; }
  Error&& error() && { return *std::move(error_); }

 private:
  std::optional<Error> error_;
};

using Status = Result<void>;

}  // namespace crest

#define CREST_CONCAT_INNER(a, b) a##b
#define CREST_CONCAT(a, b) CREST_CONCAT_INNER(a, b)

/// CREST_TRY(auto x, expr): x = value of expr, or return its error.
#define CREST_TRY(target, expr) CREST_TRY_INNER(CREST_CONCAT(crest_try_, __LINE__), target, expr)
#define CREST_TRY_INNER(name, target, expr)       \
  auto name = (expr);                             \
  if (!name.ok()) return std::move(name).error(); \
  target = std::move(name).value()

/// CREST_RETURN_IF_ERROR(expr): return the error of a Status or Result whose value is not needed.
#define CREST_RETURN_IF_ERROR(expr)                                                             \
  do {                                                                                          \
    if (auto crest_status = (expr); !crest_status.ok()) return std::move(crest_status).error(); \
  } while (false)

/// For our own mistakes only: no input can reach it.
#define CREST_CHECK(condition, ...)                                                                       \
  do {                                                                                                    \
    if (!(condition)) ::crest::fail_check(#condition, __FILE__, __LINE__, ::fmt::format("" __VA_ARGS__)); \
  } while (false)
