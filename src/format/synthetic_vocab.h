#pragma once

#include <cstdint>

#include "format/hf_config.h"
#include "text/vocab_data.h"

namespace crest::format {

/// Smallest size that synthetic_vocab can make: the bytes and the control tokens.
inline constexpr int64_t kMinSyntheticVocab = 256 + 16;

/// A byte-level BPE vocabulary of exactly `size` tokens: all bytes, then pairs and triples of characters with their
/// merges, then ChatML's control tokens. It encodes any text; its pieces mean nothing.
text::VocabData synthetic_vocab(int64_t size, Family family);

}  // namespace crest::format
