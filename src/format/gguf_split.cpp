#include <cstdio>
#include <unordered_set>

#include "format/gguf.h"

namespace crest::format {
namespace {

constexpr int64_t kMaxFiles = 65535;

struct SplitName {
  std::string prefix;
  int64_t number = 0;  // from 1
  int64_t count = 0;
};

// NAME-00001-of-00005.gguf, as llama.cpp writes it.
std::optional<SplitName> parse_split_name(const std::string& name) {
  constexpr std::string_view kTail = "-00001-of-00005.gguf";
  if (name.size() <= kTail.size() || !name.ends_with(".gguf")) return std::nullopt;
  const size_t start = name.size() - kTail.size();
  const std::string tail = name.substr(start);
  SplitName split{name.substr(0, start), 0, 0};
  for (size_t i = 0; i < kTail.size(); ++i) {
    const bool digit = i >= 1 && i <= 5;
    const bool total = i >= 10 && i <= 14;
    if (!digit && !total) {
      if (tail[i] != kTail[i]) return std::nullopt;
      continue;
    }
    if (tail[i] < '0' || tail[i] > '9') return std::nullopt;
    int64_t& number = digit ? split.number : split.count;
    number = number * 10 + (tail[i] - '0');
  }
  return split;
}

Status expect(const GgufFile& file, std::string_view key, int64_t expected, std::string_view because) {
  CREST_TRY(const int64_t found, file.metadata().integer(key, 0, std::numeric_limits<int64_t>::max()));
  if (found != expected)
    return make_error(ErrorCode::kInvalidFile, "{}: {} is {}, expected {} ({})", file.source(), key, found, expected,
                      because);
  return {};
}

Status check_set(const std::vector<std::shared_ptr<const GgufFile>>& files) {
  const GgufFile& first = *files.front();
  CREST_TRY(const int64_t total, first.metadata().integer("split.tensors.count", 0, int64_t{1} << 31));
  CREST_TRY(const std::string architecture, first.metadata().string("general.architecture"));
  std::unordered_set<std::string_view> names;
  for (size_t i = 0; i < files.size(); ++i) {
    const GgufFile& file = *files[i];
    CREST_RETURN_IF_ERROR(expect(file, "split.count", static_cast<int64_t>(files.size()), "as the file's name says"));
    CREST_RETURN_IF_ERROR(expect(file, "split.no", static_cast<int64_t>(i), "as the file's name says"));
    CREST_RETURN_IF_ERROR(expect(file, "split.tensors.count", total, "as in " + first.source()));
    CREST_TRY(const std::string own, file.metadata().string_or("general.architecture", architecture));
    if (own != architecture)
      return make_error(ErrorCode::kInvalidFile, "{}: general.architecture is {}, expected {} (as in {})",
                        file.source(), own, architecture, first.source());
    for (const GgufTensor& tensor : file.tensors()) {
      if (!names.insert(tensor.name).second)
        return make_error(ErrorCode::kInvalidFile, "{}: tensor {} is in another file of the set too", file.source(),
                          tensor.name);
    }
  }
  if (static_cast<int64_t>(names.size()) != total)
    return make_error(ErrorCode::kInvalidFile, "{}: split.tensors.count is {}, but the {} files hold {} tensors",
                      first.source(), total, files.size(), names.size());
  return {};
}

}  // namespace

Result<std::vector<std::shared_ptr<const GgufFile>>> open_gguf_set(const std::filesystem::path& path) {
  CREST_TRY(auto named, GgufFile::open(path));
  CREST_TRY(const int64_t count, named->metadata().integer_or("split.count", 0, 0, kMaxFiles));
  if (count <= 1) return std::vector{named};
  const auto split = parse_split_name(path.filename().string());
  if (!split || split->number < 1 || split->number > split->count)
    return make_error(
        ErrorCode::kInvalidFile,
        "{}: split.count is {}, so the file is part of a set and must be named like NAME-00001-of-{:05}.gguf",
        path.string(), count, count);
  CREST_RETURN_IF_ERROR(expect(*named, "split.count", split->count, "as the file's name says"));
  std::vector<std::shared_ptr<const GgufFile>> files;
  for (int64_t i = 1; i <= split->count; ++i) {
    const auto name = path.parent_path() / fmt::format("{}-{:05}-of-{:05}.gguf", split->prefix, i, split->count);
    if (i == split->number) {
      files.push_back(named);
      continue;
    }
    auto file = GgufFile::open(name);
    if (!file.ok())
      return std::move(file).error().with_context(
          fmt::format("file {} of the {} that {} belongs to", i, split->count, path.filename().string()));
    files.push_back(*std::move(file));
  }
  CREST_RETURN_IF_ERROR(check_set(files));
  return files;
}

}  // namespace crest::format
