// Transcendental operations in f32 and f16.
#include "exec/transcendental.h"
#include "exec/valu.h"

namespace crest_sim::CREST_SIM_LEVEL {
namespace {

constexpr Type F = Type::kF32, H = Type::kF16;
constexpr Fidelity kAbout = Fidelity::kApproximate;

inline float half_exp2(float x) {
  float bounded = x > 30.0f ? 30.0f : x > -40.0f ? x : -40.0f;
  return x != x ? x : static_cast<float>(exp2_wide(static_cast<double>(bounded)));
}

}  // namespace

void register_valu_transcendental(Registry& r) {
  add_valu<F, F>(r, "v_exp_f32", [](float x) { return exp2_f32(x); }, kAbout);
  add_valu<F, F>(r, "v_log_f32", [](float x) { return log2_f32(x); }, kAbout);
  add_valu<F, F>(r, "v_rcp_f32", [](float x) { return rcp_f32(x); }, kAbout);
  add_valu<F, F>(r, "v_rsq_f32", [](float x) { return rsq_f32(x); }, kAbout);
  add_valu<F, F>(r, "v_sqrt_f32", [](float x) { return sqrt_f32(x); }, kAbout);
  add_general<F, F>(r, "v_sin_f32", [](float x) { return sin_f32(x); }, kAbout);
  add_general<F, F>(r, "v_cos_f32", [](float x) { return cos_f32(x); }, kAbout);
  r.alias("v_rcp_iflag_f32", "v_rcp_f32");
  r.alias("v_exp_legacy_f32", "v_exp_f32");
  r.alias("v_log_legacy_f32", "v_log_f32");
  add_general<H, H>(r, "v_exp_f16", [](float x) { return half_exp2(x); }, kAbout);
  add_general<H, H>(r, "v_log_f16", [](float x) { return log2_f32(x); }, kAbout);
  add_general<H, H>(r, "v_rcp_f16", [](float x) { return 1.0f / x; }, kAbout);
  add_general<H, H>(r, "v_rsq_f16", [](float x) { return rsq_f32(x); }, kAbout);
  add_general<H, H>(r, "v_sqrt_f16", [](float x) { return __builtin_sqrtf(x); }, kAbout);
  add_general<H, H>(r, "v_sin_f16", [](float x) { return sin_f32(x); }, kAbout);
  add_general<H, H>(r, "v_cos_f16", [](float x) { return cos_f32(x); }, kAbout);
}

}  // namespace crest_sim::CREST_SIM_LEVEL
