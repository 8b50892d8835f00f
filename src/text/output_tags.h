#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace crest::text {

/// A piece of generated text: the text that one step added and the token it came from. `token` < 0: unknown.
struct OutputPiece {
  std::string text;
  int32_t token = -1;

  friend bool operator==(const OutputPiece&, const OutputPiece&) = default;
};

/// One tag of an output format. With `token` >= 0 only that token is the tag and its spelling is plain text; without,
/// its spelling is. Neither token nor text: the tag does not exist.
struct OutputTag {
  std::string text;
  int32_t token = -1;
};

/// Text that waits until it is known whether a tag stands in it.
class TagBuffer {
 public:
  void push(const OutputPiece& piece);
  bool empty() const { return pieces_.empty(); }
  const std::string& text() const { return text_; }

  struct Found {
    const OutputTag* tag = nullptr;  // the first of the tags; null: none so far
    size_t position = 0;             // where it begins; without one, how much text cannot belong to one
    size_t size = 0;
    size_t piece = 0;  // index of the piece that is the tag, where the tag is a token
  };
  /// The first tag in the text. Unless `last`, an end that may become a tag is not counted as safe.
  Found find(std::span<const OutputTag* const> tags, bool last) const;

  enum class Lead { kNo, kMaybe, kYes };
  /// Whether the text begins with the tag, white space aside.
  Lead leads(const OutputTag& tag, Found& found) const;

  /// Removes so many bytes from the front and returns them.
  std::string take(size_t bytes);
  /// The same, with the tokens they came from.
  void take(size_t bytes, std::vector<OutputPiece>& out);
  /// Removes everything up to the end of a tag.
  void drop(const Found& found);
  void drop_leading(std::string_view characters);

 private:
  struct Piece {
    size_t begin;
    int32_t token;
  };
  std::string text_;
  std::vector<Piece> pieces_;  // by `begin`; each ends where the next begins
};

}  // namespace crest::text
