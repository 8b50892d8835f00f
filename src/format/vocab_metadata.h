#pragma once

#include "core/result.h"
#include "format/metadata.h"
#include "text/vocab_data.h"

namespace crest::format {

/// The vocabulary of GGUF's tokenizer.* keys. Unknown ids (-1, also as u32) count as absent.
Result<text::VocabData> vocab_from_metadata(const Metadata& metadata);

/// Writes the tokenizer.* keys, readable by llama.cpp. Ids that end a generation beside eos and eot go into the key
/// crest.end_of_generation_ids. A pre-tokeniser that GGUF has no name for: `tokenizer_json`, if it is not empty, goes
/// into the key tokenizer.huggingface.json, from which vocab_from_metadata takes the exact steps (other programs get
/// the name of the nearest one, with a warning); without it, an error.
Status vocab_to_metadata(const text::VocabData& vocab, std::string_view tokenizer_json, Metadata& metadata);

/// Unused tokens "[PADn]" up to `rows`, the rows of the embedding; more tokens than rows are an error.
Status pad_vocab(text::VocabData& vocab, int64_t rows, std::string_view source);

}  // namespace crest::format
