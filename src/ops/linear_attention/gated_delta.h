#pragma once

#include "ops/registry.h"
#include "ops/views.h"

namespace crest::ops {

/// Which key head a value head reads when there are more of the latter.
enum class HeadOrder : uint8_t {
  kGrouped,  // v head h reads k head h / (v_heads / k_heads): Hugging Face, ParoQuant
  kTiled,    // v head h reads k head h % k_heads: GGUF of qwen35, qwen35moe
};

/// Gates of gated DeltaNet: beta = sigmoid(b), g = a_scale * softplus(a + dt_bias), the logarithm of the decay.
struct DeltaGatesProblem {
  int64_t tokens = 0;
  int64_t v_heads = 0;
};
struct DeltaGatesArgs {
  const float* a = nullptr;  // [tokens, v_heads]
  const float* b = nullptr;  // [tokens, v_heads]
  int64_t a_stride = 0;      // floats from token to token; 0: v_heads
  int64_t b_stride = 0;
  const float* a_scale = nullptr;  // [v_heads] = -exp(A_log): GGUF's ssm_a
  const float* dt_bias = nullptr;  // [v_heads]
  float* g = nullptr;              // [tokens, v_heads], <= 0
  float* beta = nullptr;           // [tokens, v_heads]
};
Status check(const DeltaGatesProblem& problem, const DeltaGatesArgs& args);
Status delta_gates(const DeltaGatesProblem& problem, const DeltaGatesArgs& args, Context& context);
const Operator<DeltaGatesProblem, DeltaGatesArgs>& delta_gates_operator();

/// The gated delta rule (arXiv 2412.06464) over packed sequences. Per value head with state S [k_dim, v_dim]:
///   S = exp(g) S;  d = beta (v - S^T k);  S += k d^T;  o = S^T (q * scale)
/// q and k are first divided by sqrt(sum x^2 + l2_eps) when l2_norm is set. The chunked form (WY representation, chunks
/// of 64) gives the same to rounding. Decays are formed from differences of sums of g, so that no length overflows.
/// What a sequence gives depends neither on the sequences that it is packed with nor on their number.
struct GatedDeltaProblem {
  int64_t tokens = 0;
  int64_t sequences = 0;
  int64_t max_q_len = 0;  // tokens of the longest sequence: a hint for the choice of the kernel
  int64_t k_heads = 0;
  int64_t v_heads = 0;  // a multiple of k_heads
  int64_t k_dim = 0;
  int64_t v_dim = 0;
  int64_t slots = 0;  // of the state pool
  HeadOrder order = HeadOrder::kGrouped;
  bool l2_norm = true;
  float l2_eps = 1e-6f;
  float scale = 0;  // 0: 1/sqrt(k_dim)
};
struct GatedDeltaArgs {
  HeadsView q{}, k{};                    // [tokens, k_heads, k_dim]
  HeadsView v{};                         // [tokens, v_heads, v_dim]
  const float* g = nullptr;              // [tokens, v_heads]
  const float* beta = nullptr;           // [tokens, v_heads]
  const int32_t* cu_seqlens = nullptr;   // [sequences + 1]
  const int32_t* state_slots = nullptr;  // [sequences], all different
  const uint8_t* has_state = nullptr;    // [sequences]: 0 = new sequence, starts from zero; null: all have a state
  float* state = nullptr;                // [slots, v_heads, k_dim, v_dim], read and replaced
  MutableHeadsView out{};                // [tokens, v_heads, v_dim]
};
Status check(const GatedDeltaProblem& problem, const GatedDeltaArgs& args);
Status gated_delta(const GatedDeltaProblem& problem, const GatedDeltaArgs& args, Context& context);
const Operator<GatedDeltaProblem, GatedDeltaArgs>& gated_delta_operator();

}  // namespace crest::ops
