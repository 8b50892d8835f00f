#pragma once

#include "ops/embedding/embedding.h"

namespace crest::ops {

Kernel<EmbeddingProblem, EmbeddingArgs> embedding_reference();

}  // namespace crest::ops
