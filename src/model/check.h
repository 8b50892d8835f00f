#pragma once

#include "core/result.h"
#include "format/model_file.h"

namespace crest::model {

/// Number of tokens a model knows: the rows of its embedding. Errors: no such tensor (a vocabulary-only file is named
/// as one), a token list of another length, a special token id outside of it.
Result<int64_t> check_vocabulary(const format::ModelFile& file);

}  // namespace crest::model
