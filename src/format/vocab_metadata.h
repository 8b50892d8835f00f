#pragma once

#include "core/result.h"
#include "format/metadata.h"
#include "text/vocab_data.h"

namespace crest::format {

/// The vocabulary of GGUF's tokenizer.* keys. Unknown ids (-1, also as u32) count as absent.
Result<text::VocabData> vocab_from_metadata(const Metadata& metadata);

/// Writes the tokenizer.* keys, readable by llama.cpp. Ids that end a generation beside eos and eot go into the key
/// crest.end_of_generation_ids. Refuses a pre-tokeniser that GGUF has no name for.
Status vocab_to_metadata(const text::VocabData& vocab, Metadata& metadata);

/// Unused tokens "[PADn]" up to `rows`, the rows of the embedding; more tokens than rows are an error.
Status pad_vocab(text::VocabData& vocab, int64_t rows, std::string_view source);

}  // namespace crest::format
