#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "core/log.h"
#include "format/escape.h"
#include "format/json.h"
#include "format/safetensors.h"

namespace crest::format {
namespace {

namespace fs = std::filesystem;
constexpr uint64_t kMaxIndexBytes = 100'000'000;

Status check_shard_name(const fs::path& index, const std::string& name) {
  const bool plain = !name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos &&
                     name.find('\\') == std::string::npos && name.find('\0') == std::string::npos;
  if (plain && name.ends_with(".safetensors")) return {};
  return make_error(ErrorCode::kInvalidFile,
                    "{}: \"{}\" is not allowed as a file; expected a plain name ending in .safetensors", index.string(),
                    escaped(name));
}

// Weights in other formats, to say why they are not read.
std::string other_weights(const fs::path& folder) {
  std::error_code code;
  for (const auto& entry : fs::directory_iterator(folder, code)) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with(".gguf")) return fmt::format(" (it holds {}: give that file)", name);
    if (name.ends_with(".bin") || name.ends_with(".pt") || name.ends_with(".pth"))
      return fmt::format(" ({} is a pickle file, which is not read: it can run code)", name);
  }
  return "";
}

}  // namespace

Result<SafetensorsSet> SafetensorsSet::open(const fs::path& folder) {
  SafetensorsSet set;
  std::error_code code;
  const fs::path single = folder / "model.safetensors";
  const fs::path index = folder / "model.safetensors.index.json";
  if (fs::exists(single, code)) {
    CREST_TRY(auto file, SafetensorsFile::open(single));
    CREST_RETURN_IF_ERROR(set.add(std::move(file)));
  } else if (fs::exists(index, code)) {
    CREST_RETURN_IF_ERROR(set.open_index(folder, index));
  } else {
    std::vector<fs::path> found;
    for (const auto& entry : fs::directory_iterator(folder, code)) {
      if (entry.path().extension() == ".safetensors") found.push_back(entry.path());
    }
    if (found.size() != 1)
      return make_error(ErrorCode::kNotFound, "{}: {}; expected model.safetensors or model.safetensors.index.json{}",
                        folder.string(), found.empty() ? "no weights" : "several safetensors files without an index",
                        found.empty() ? other_weights(folder) : "");
    CREST_TRY(auto file, SafetensorsFile::open(found.front()));
    CREST_RETURN_IF_ERROR(set.add(std::move(file)));
  }
  std::ranges::sort(set.tensors_, {}, [](const SafetensorsTensor* tensor) { return std::string_view(tensor->name); });
  return set;
}

Result<SafetensorsSet> SafetensorsSet::names_only(std::vector<SafetensorsTensor> tensors) {
  SafetensorsSet set;
  CREST_RETURN_IF_ERROR(set.add_tensors(std::move(tensors), "the list of names"));
  return set;
}

Status SafetensorsSet::add(std::shared_ptr<const SafetensorsFile> file) {
  std::vector<SafetensorsTensor> tensors(file->tensors().begin(), file->tensors().end());
  for (SafetensorsTensor& tensor : tensors) tensor.file = files_.size();
  files_.push_back(file);
  return add_tensors(std::move(tensors), file->source());
}

Status SafetensorsSet::add_tensors(std::vector<SafetensorsTensor> tensors, const std::string& source) {
  for (const SafetensorsTensor& tensor : owned_.emplace_back(std::move(tensors))) {
    if (const auto [at, added] = by_name_.emplace(tensor.name, &tensor); !added)
      return make_error(ErrorCode::kInvalidFile, "{}: tensor {} is in another file of the set too", source,
                        escaped(tensor.name));
    tensors_.push_back(&tensor);
  }
  return {};
}

Status SafetensorsSet::open_index(const fs::path& folder, const fs::path& index) {
  CREST_TRY(const std::string text, core::read_file(index, kMaxIndexBytes));
  CREST_TRY(const nlohmann::json root, parse_json(text, index.string()));
  CREST_TRY(const ConfigView view, ConfigView::create(root, index.string()));
  CREST_TRY(const ConfigView map, view.object("weight_map"));
  std::map<std::string, std::vector<std::string>> shards;
  for (const auto& [name, file] : map.json().items()) {
    if (!file.is_string())
      return make_error(ErrorCode::kInvalidFile, "{}: weight_map: {} is not a file name", index.string(),
                        escaped(name));
    shards[file.get<std::string>()].push_back(name);
  }
  if (shards.empty()) return make_error(ErrorCode::kInvalidFile, "{}: weight_map is empty", index.string());
  for (const auto& [name, names] : shards) CREST_RETURN_IF_ERROR(check_shard_name(index, name));
  size_t listed = 0;
  for (const auto& [name, names] : shards) {
    auto file = SafetensorsFile::open(folder / name);
    if (!file.ok()) return std::move(file).error().with_context("named by " + index.filename().string());
    CREST_RETURN_IF_ERROR(add(*std::move(file)));
    for (const std::string& tensor : names) {
      const SafetensorsTensor* found = find(tensor);
      if (found == nullptr || found->file != files_.size() - 1)
        return make_error(ErrorCode::kInvalidFile, "{}: tensor {} is missing, although {} places it there",
                          (folder / name).string(), escaped(tensor), index.filename().string());
    }
    listed += names.size();
  }
  if (listed != tensors_.size())
    log_warning("{}: {} tensors of the files are not listed", index.string(), tensors_.size() - listed);
  return {};
}

const SafetensorsTensor* SafetensorsSet::find(std::string_view name) const {
  const auto at = by_name_.find(name);
  return at == by_name_.end() ? nullptr : at->second;
}

}  // namespace crest::format
