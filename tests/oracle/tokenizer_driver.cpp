// Encodes texts for the comparison with other tokenisers (see tokenizer_oracle.py). Reads from standard input: for each
// text a 4-byte little-endian length and the bytes; writes the ids of each text on a line. Ends with exit code 1 when a
// text does not come back from its ids.
//
// usage: crest_tokenizer_driver VOCAB [--special] [--add-special] [--bench] < TEXTS
// VOCAB: a tokenizer.json (any name that ends in .json), a GGUF file or a Hugging Face folder.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include "core/file_map.h"
#include "format/model_file.h"
#include "text/byte_alphabet.h"
#include "text/normalize.h"
#include "text/tokenizer.h"

namespace {

using crest::Result;
using crest::text::VocabData;

Result<VocabData> load_vocab(const std::string& path) {
  if (!path.ends_with(".json")) {
    CREST_TRY(const auto model, crest::format::ModelFile::open(path));
    return model->vocab();
  }
  CREST_TRY(const std::string text, crest::core::read_file(path, uint64_t{1} << 30));
  crest::text::HfTokenizerFiles files;
  files.tokenizer_json = text;
  return crest::text::vocab_from_tokenizer_json(files);
}

Result<crest::text::Tokenizer> load(const std::string& path) {
  CREST_TRY(VocabData vocab, load_vocab(path));
  return crest::text::Tokenizer::create(std::move(vocab));
}

std::vector<std::string> read_texts() {
  const std::string all{std::istreambuf_iterator<char>(std::cin), {}};
  std::vector<std::string> texts;
  for (size_t at = 0; at + 4 <= all.size();) {
    uint32_t length = 0;
    std::memcpy(&length, all.data() + at, 4);
    texts.push_back(all.substr(at + 4, length));
    at += 4 + length;
  }
  return texts;
}

int fail(const std::string& message) {
  std::cerr << message << '\n';
  return 2;
}

/// What decoding must give: the text, as far as the vocabulary's normalisation leaves it.
std::string expected_text(const crest::text::Tokenizer& tokenizer, const std::string& text) {
  std::string result = text;
  for (const auto& step : tokenizer.vocab().normalizer) {
    if (step.kind == crest::text::RewriteStep::Kind::kNfc) result = crest::text::normalize_nfc(result);
  }
  if (tokenizer.vocab().kind == crest::text::VocabKind::kSentencePieceBpe) {
    std::string spaced;
    for (size_t i = 0; i < result.size(); ++i) {
      const bool is_mark = result.compare(i, 3, "\xE2\x96\x81") == 0;
      spaced.push_back(is_mark ? ' ' : result[i]);
      if (is_mark) i += 2;
    }
    result = spaced;
  }
  return result;
}

/// Whether the vocabulary has a token for every byte of a text (some byte-level ones have not).
bool has_all_bytes(const crest::text::Tokenizer& tokenizer, const std::string& text) {
  if (tokenizer.vocab().kind != crest::text::VocabKind::kByteLevelBpe) return true;
  return std::all_of(text.begin(), text.end(), [&](char byte) {
    return tokenizer.find(crest::text::letters_of_bytes(std::string_view(&byte, 1))).has_value();
  });
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return fail("usage: crest_tokenizer_driver VOCAB [--special] [--add-special] [--bench] < TEXTS");
  crest::text::EncodeOptions options;
  bool bench = false;
  for (int i = 2; i < argc; ++i) {
    const std::string_view flag = argv[i];
    options.parse_special |= flag == "--special";
    options.add_special |= flag == "--add-special";
    bench |= flag == "--bench";
  }
  const std::vector<std::string> texts = read_texts();
  const std::clock_t loading = std::clock();
  const auto tokenizer = load(argv[1]);
  if (!tokenizer.ok()) return fail(tokenizer.error().message);
  const std::clock_t start = std::clock();
  size_t bytes = 0, changed = 0;
  std::string out;
  for (const std::string& text : texts) {
    const auto ids = tokenizer->encode(text, options);
    if (!ids.ok()) return fail(ids.error().message);
    bytes += text.size();
    if (bench) continue;
    for (const auto id : *ids) fmt::format_to(std::back_inserter(out), "{} ", id);
    out.push_back('\n');
    const std::string expected = expected_text(*tokenizer, text);
    const auto back = tokenizer->decode(*ids);
    if (options.add_special || *back == expected || !has_all_bytes(*tokenizer, expected)) continue;
    ++changed;
    std::cerr << "does not come back: " << text << '\n';
  }
  if (bench) {
    const auto seconds = [](std::clock_t ticks) { return static_cast<double>(ticks) / CLOCKS_PER_SEC; };
    std::printf("processor time: %.3f s to load, %.1f MB/s\n", seconds(start - loading),
                static_cast<double>(bytes) / seconds(std::clock() - start) / 1e6);
  }
  std::fwrite(out.data(), 1, out.size(), stdout);
  return changed == 0 ? 0 : 1;
}
