// Result<T>: a value or an error message. No exception leaves the library.
#pragma once

#include <string>
#include <utility>
#include <variant>

namespace crest_sim {

struct Error {
  std::string message;
};

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}
  Result(Error error) : state_(std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }
  T& value() { return *std::get_if<0>(&state_); }
  const T& value() const { return *std::get_if<0>(&state_); }
  T& operator*() { return value(); }
  const T& operator*() const { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  /// Only when !ok().
  const std::string& error() const { return std::get_if<1>(&state_)->message; }

 private:
  std::variant<T, Error> state_;
};

struct Unit {};
using Status = Result<Unit>;

}  // namespace crest_sim
