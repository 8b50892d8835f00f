#include "cli/input.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "cli/app.h"
#include "core/file_map.h"
#include "format/convert.h"
#include "format/gguf_writer.h"

namespace crest::cli {
namespace {
constexpr uint64_t kMaxInputBytes = uint64_t{256} << 20;
}

Result<std::string> read_standard_input() {
  std::string text;
  char buffer[1 << 16];
  while (true) {
    const ssize_t got = ::read(0, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) return Error{ErrorCode::kCancelled, "interrupted"};
    if (got < 0) return make_error(ErrorCode::kIo, "cannot read standard input: {}", std::strerror(errno));
    if (got == 0) return text;
    text.append(buffer, static_cast<size_t>(got));
    if (text.size() > kMaxInputBytes) return make_error(ErrorCode::kInvalidArgument, "standard input: more than {} bytes", kMaxInputBytes);
  }
}

Result<std::string> input_text(const std::optional<std::string>& text, const std::optional<std::string>& file) {
  if (text && file) return usage_error("give -p or -f, not both");
  if (text) return *text;
  if (file && *file != "-") return core::read_file(*file, kMaxInputBytes);
  if (!file && ::isatty(0) == 1) return usage_error("no input: give -p TEXT, -f FILE, or pipe it in");
  return read_standard_input();
}

Status refuse_overwriting(std::span<const std::filesystem::path> outputs, const format::ModelFile& model,
                          std::span<const std::filesystem::path> other_inputs) {
  auto inputs = format::input_files(model);
  inputs.insert(inputs.end(), other_inputs.begin(), other_inputs.end());
  std::vector<std::filesystem::path> seen;
  for (const auto& output : outputs) {
    if (output.empty()) continue;
    CREST_RETURN_IF_ERROR(format::refuse_same_file(output, inputs));
    std::error_code code;
    const auto absolute = std::filesystem::weakly_canonical(std::filesystem::absolute(output, code), code);
    if (std::find(seen.begin(), seen.end(), absolute) != seen.end())
      return usage_error("{}: would be written twice", output.string());
    seen.push_back(absolute);
  }
  return {};
}

}  // namespace crest::cli
