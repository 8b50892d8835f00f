#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

#include "core/result.h"

namespace crest::format {

enum class FileKind { kGguf, kSafetensors, kOther };

/// What the first bytes look like.
FileKind file_kind(std::span<const std::byte> bytes);

/// What a file that is no model seems to be, and what to do about it: "a git-lfs pointer: …", "an HTML page: …",
/// "empty". For messages of the form "x.gguf: is …".
std::string describe_bytes(std::span<const std::byte> bytes);

/// "PATH: is …, expected WANTED"
Error not_a(std::string_view wanted, std::string_view source, std::span<const std::byte> bytes);

}  // namespace crest::format
