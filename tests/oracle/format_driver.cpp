#include <fmt/format.h>

#include <iostream>
#include <string>

#include "format/convert.h"
#include "format/inspect.h"
#include "format/make_model.h"
#include "format/safetensors.h"

namespace {

constexpr const char* kUsage =
    "usage: crest_oracle_format convert FOLDER OUT TYPE | make SIZE OUT TYPE [LAYERS [EXPERTS]] | inspect PATH | "
    "accepts < PATHS\n";

int report(const crest::Status& status) {
  if (status.ok()) return 0;
  fmt::print(stderr, "{}\n", status.error().message);
  return 1;
}

template <typename T>
crest::Status status_of(const crest::Result<T>& result) {
  return result.ok() ? crest::Status() : crest::Status(result.error());
}

}  // namespace

int main(int argc, char** argv) {
  using namespace crest;
  const std::string command = argc > 1 ? argv[1] : "";
  core::ThreadPool pool;
  if (command == "convert" && argc == 5) {
    format::ConvertOptions options;
    options.type = argv[4];
    return report(status_of(format::convert(argv[2], argv[3], options, pool)));
  }
  if (command == "make" && argc >= 5) {
    format::MakeModelOptions options;
    options.like = argv[2];
    options.type = argv[4];
    if (argc > 5) options.layers = std::stoll(argv[5]);
    if (argc > 6) options.experts = std::stoll(argv[6]);
    return report(status_of(format::make_model(argv[3], options, pool)));
  }
  if (command == "inspect" && argc == 3) {
    const auto result = format::inspect(argv[2]);
    if (result.ok()) fmt::print("{}\n", format::to_json(*result));
    return report(status_of(result));
  }
  if (command == "accepts" && argc == 2) {
    // One line for each path: "ok" or the error.
    for (std::string path; std::getline(std::cin, path);) {
      const auto file = format::SafetensorsFile::open(path);
      fmt::print("{}\n", file.ok() ? "ok" : file.error().message);
    }
    return 0;
  }
  fmt::print(stderr, "{}", kUsage);
  return 2;
}
