#pragma once

#include "core/result.h"
#include "engine/evaluate.h"
#include "format/imatrix.h"

namespace crest::engine {

/// Evaluates the rows, each from an empty state, and sums up the squared inputs of every weight matrix but the
/// output's. The multi-token prediction head is part of it if EngineOptions::mtp_cache is set and the model has one.
/// Experts stored as one gate_up tensor count under the names that a GGUF file has (ffn_gate_exps, ffn_up_exps).
Result<format::Imatrix> collect_imatrix(Engine& engine, const TokenRows& rows, const LikelihoodOptions& options);

}  // namespace crest::engine
