#include <nlohmann/json.hpp>

#include "cli/app.h"
#include "cli/commands.h"
#include "cli/id_list.h"
#include "cli/input.h"
#include "cli/terminal.h"
#include "format/model_file.h"
#include "text/tokenizer.h"

namespace crest::cli {
namespace {

struct TokenizeOptions {
  std::string model, list;
  std::optional<std::string> prompt, file, ids;
  bool special = false, json = false, decode = false, add_bos = false;
};

Result<text::Tokenizer> load_tokenizer(const std::string& path) {
  CREST_TRY(const auto file, format::ModelFile::open(path));
  CREST_TRY(text::VocabData vocab, file->vocab());
  auto tokenizer = text::Tokenizer::create(std::move(vocab));
  if (!tokenizer.ok()) return std::move(tokenizer).error().with_context(path);
  return tokenizer;
}

Result<int> decode_ids(const text::Tokenizer& tokenizer, const TokenizeOptions& options) {
  CREST_TRY(const std::string list, input_text(options.ids ? options.ids : options.list.empty() ? options.prompt : options.list, options.file));
  CREST_TRY(const std::vector<int32_t> ids, parse_id_list(list, tokenizer.vocab_size()));
  CREST_TRY(const std::string bytes, tokenizer.decode(ids));
  if (options.json) {
    write_stdout(nlohmann::ordered_json{{"text", text::to_valid_utf8(bytes)}}.dump() + "\n");
  } else {
    write_stdout(bytes);
  }
  return kExitOk;
}

Result<int> tokenize(const TokenizeOptions& options) {
  if ((options.ids || !options.list.empty()) && !options.decode)
    return usage_error("ids are for --decode; the text to tokenize goes with -p");
  if (options.ids && !options.list.empty()) return usage_error("give the ids once");
  CREST_TRY(const text::Tokenizer tokenizer, load_tokenizer(options.model));
  if (options.decode) return decode_ids(tokenizer, options);
  CREST_TRY(const std::string text, input_text(options.prompt, options.file));
  CREST_TRY(const auto ids, tokenizer.encode(text, {.parse_special = options.special, .add_special = options.add_bos}));
  if (options.json) {
    write_stdout(nlohmann::ordered_json{{"ids", ids}}.dump() + "\n");
    return kExitOk;
  }
  for (const int32_t id : ids) {
    write_stdout(fmt::format("{:>8}  {}\n", id, nlohmann::json(text::to_valid_utf8(tokenizer.token_text(id))).dump()));
  }
  return kExitOk;
}

}  // namespace

void add_tokenize_command(Application& application) {
  auto o = std::make_shared<TokenizeOptions>();
  application
      .add_command("tokenize", "Show the tokens of a text, or the text of tokens",
                   {"crest tokenize -m model.gguf -p 'Hello world'", "crest tokenize -m model.gguf -f text.txt --json",
                    "crest tokenize -m model.gguf --decode 1,2,3"},
                   [o] { return tokenize(*o); })
      .option("-m,--model", o->model, "MODEL", "GGUF file or Hugging Face folder")
      .required()
      .env("CREST_MODEL")
      .option("-p,--prompt", o->prompt, "TEXT", "The text (with --decode: the ids)")
      .option("-f,--file", o->file, "FILE", "Read it from a file; - is standard input, the default")
      .option("--ids", o->ids, "IDS", "The ids for --decode, as an option")
      .flag("--special", o->special, "Control tokens spelled in the text become control tokens")
      .flag("--add-bos", o->add_bos, "Add the tokens that the model wants in front of and behind a prompt")
      .flag("--decode", o->decode, "Turn ids into text")
      .optional_positional("list", o->list, "Ids for --decode: 1,2,3")
      .flag("--json", o->json, "Print {\"ids\": [...]} or {\"text\": ...}");
}

}  // namespace crest::cli
