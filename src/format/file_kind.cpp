#include "format/file_kind.h"

#include <cctype>
#include <cstring>
#include <string_view>

#include "format/escape.h"

namespace crest::format {
namespace {

struct Magic {
  std::string_view prefix;
  std::string_view description;
};

using namespace std::string_view_literals;

constexpr Magic kMagics[] = {
    {"GGUF"sv, "a GGUF file"},
    {"FUGG"sv, "a GGUF file with swapped magic"},
    {"version https://git-lfs"sv, "a git-lfs pointer, not the file itself (run \"git lfs pull\")"},
    {"\x7f"
     "ELF"sv,
     "an ELF program"},
    {"\x1f\x8b"sv, "gzip-compressed (unpack it first)"},
    {"\x28\xb5\x2f\xfd"sv, "zstd-compressed (unpack it first)"},
    {"\xfd"
     "7zXZ"sv,
     "xz-compressed (unpack it first)"},
    {"BZh"sv, "bzip2-compressed (unpack it first)"},
    {"PK\x03\x04"sv, "a zip archive or a PyTorch checkpoint (pickle files are not read: they can run code)"},
    {"\x80\x02"sv, "a pickle file (not read: it can run code)"},
    {"\x80\x03"sv, "a pickle file (not read: it can run code)"},
    {"\x80\x04"sv, "a pickle file (not read: it can run code)"},
    {"\x80\x05"sv, "a pickle file (not read: it can run code)"},
    {"lmgg"sv, "a model in the old GGML format (convert it to GGUF)"},
    {"tjgg"sv, "a model in the old GGJT format (convert it to GGUF)"},
    {"fmgg"sv, "a model in the old GGMF format (convert it to GGUF)"},
    {"\x93NUMPY"sv, "a NumPy array"},
    {"\x89PNG"sv, "a PNG image"},
    {"%PDF"sv, "a PDF document"},
    {"#!"sv, "a script"},
};

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

bool starts_with_ignoring_case(std::string_view text, std::string_view lower) {
  if (text.size() < lower.size()) return false;
  for (size_t i = 0; i < lower.size(); ++i) {
    if (std::tolower(static_cast<unsigned char>(text[i])) != lower[i]) return false;
  }
  return true;
}

}  // namespace

FileKind file_kind(std::span<const std::byte> bytes) {
  const std::string_view text = as_text(bytes);
  if (text.starts_with("GGUF")) return FileKind::kGguf;
  if (text.size() >= 9 && text[8] == '{') {
    uint64_t header = 0;
    std::memcpy(&header, text.data(), sizeof header);
    // The length of a header is far below 2^32, so its upper half is zero; JSON text that has '{' here has letters.
    if (header >> 32 == 0) return FileKind::kSafetensors;
  }
  return FileKind::kOther;
}

std::string describe_bytes(std::span<const std::byte> bytes) {
  if (bytes.empty()) return "empty";
  std::string_view text = as_text(bytes.first(std::min<size_t>(bytes.size(), 512)));
  for (const Magic& magic : kMagics) {
    if (text.starts_with(magic.prefix)) return std::string(magic.description);
  }
  if (file_kind(bytes) == FileKind::kSafetensors) return "a safetensors file";
  const std::string_view start = text.substr(0, 8);
  if (text.find_first_not_of('\0') == std::string_view::npos)
    return "filled with zeros (a download that did not finish?)";
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text[0])) != 0) text.remove_prefix(1);
  if (starts_with_ignoring_case(text, "<!doctype html") || starts_with_ignoring_case(text, "<html"))
    return "an HTML page (a download link that asked for a log-in?)";
  if (text.starts_with("<?xml") || text.starts_with("<Error>")) return "an XML page (a download that failed?)";
  if (text.starts_with('{') || text.starts_with('[')) return "JSON text";
  return fmt::format("something unknown that starts with \"{}\"", escaped(start));
}

Error not_a(std::string_view wanted, std::string_view source, std::span<const std::byte> bytes) {
  return make_error(ErrorCode::kInvalidFile, "{}: is {}, expected {}", source, describe_bytes(bytes), wanted);
}

}  // namespace crest::format
