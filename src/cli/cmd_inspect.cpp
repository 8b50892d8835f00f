#include <algorithm>

#include "cli/app.h"
#include "cli/commands.h"
#include "cli/terminal.h"
#include "format/inspect.h"

namespace crest::cli {
namespace {

struct InspectOptions {
  std::string file;
  bool json = false, tensors = false;
};

std::string shape_text(const std::vector<int64_t>& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

/// File content is shown to a terminal: no escape sequences from it.
std::string plain(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  }
  return text;
}

void print_report(const format::InspectReport& r, bool tensors) {
  write_stdout(fmt::format("{}: {}{}\n", r.path, format::name(r.kind), r.gguf_version > 0 ? fmt::format(" version {}", r.gguf_version) : ""));
  if (!r.architecture.empty()) write_stdout(fmt::format("architecture  {}\n", plain(r.architecture)));
  write_stdout(fmt::format("tensors       {} in {} file{}\nparameters    {:.3f} billion\nweights       {}\n", r.tensors.size(), r.files.size(), r.files.size() == 1 ? "" : "s",
                           static_cast<double>(r.parameters) * 1e-9, human_bytes(r.tensor_bytes)));
  if (r.vocab_size > 0) write_stdout(fmt::format("vocabulary    {} tokens\nchat template {}\n", r.vocab_size, r.chat_template ? "yes" : "no"));
  for (const auto& type : r.types) {
    write_stdout(fmt::format("  {:<10} {:>5} tensors {:>16} values {:>12}\n", type.dtype, type.tensors, type.elements, human_bytes(type.bytes)));
  }
  if (r.files.size() > 1) {
    for (const auto& file : r.files) write_stdout(fmt::format("  file {} {} tensors, {}\n", file.path, file.tensors, human_bytes(file.bytes)));
  }
  if (!r.metadata.empty()) write_stdout("metadata\n");
  for (const auto& [key, value] : r.metadata) write_stdout(fmt::format("  {} ({}) = {}\n", plain(key), value.type_name(), plain(value.to_text())));
  if (tensors) write_stdout("tensors\n");
  for (size_t i = 0; tensors && i < r.tensors.size(); ++i) {
    const auto& t = r.tensors[i];
    write_stdout(fmt::format("  {:<48} {:<8} {:<24} {}\n", plain(t.name), t.dtype, shape_text(t.shape), human_bytes(t.bytes)));
  }
  for (const auto& note : r.notes) print_note(note);
}

}  // namespace

void add_inspect_command(Application& application) {
  auto o = std::make_shared<InspectOptions>();
  application
      .add_command("inspect", "Show what a model file holds, without loading it", {"crest inspect model.gguf", "crest inspect folder --tensors", "crest inspect model.gguf --json"},
                   [o]() -> Result<int> {
                     CREST_TRY(const auto report, format::inspect(o->file));
                     if (o->json) {
                       write_stdout(format::to_json(report) + "\n");
                     } else {
                       print_report(report, o->tensors);
                     }
                     return kExitOk;
                   })
      .positional("file", o->file, "GGUF file (any of a split set), safetensors file or Hugging Face folder")
      .flag("--tensors", o->tensors, "List every tensor")
      .flag("--json", o->json, "Print one JSON object");
}

}  // namespace crest::cli
