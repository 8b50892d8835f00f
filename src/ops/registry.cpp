#include "ops/registry.h"

#include "core/cpu_features.h"
#include "ops/ops.h"

namespace crest::ops {

std::string_view name(Backend backend) {
  switch (backend) {
    case Backend::kCpu:
      return "cpu";
    case Backend::kHip:
      return "hip";
    case Backend::kCuda:
      return "cuda";
  }
  return "?";
}

bool arch_available(Backend backend, std::string_view arch) {
  if (backend != Backend::kCpu) return false;
  if (arch == "*") return true;
  const auto& cpu = core::cpu_features();
  if (arch == "avx2") return cpu.avx2;
  if (arch == "avx_vnni") return cpu.avx_vnni;
  if (arch == "avx512") return cpu.avx512;
  if (arch == "avx512_vnni") return cpu.avx512_vnni;
  if (arch == "avx512_bf16") return cpu.avx512_bf16;
  if (arch == "amx_int8") return cpu.amx_int8;
  if (arch == "amx_bf16") return cpu.amx_bf16;
  CREST_CHECK(false, "kernel of unknown processor feature '{}'", arch);
}

Status OperatorBase::check_forced(const std::vector<std::string>& forced) const {
  const auto list = kernels();
  for (const auto& wanted : forced) {
    const auto found =
        std::find_if(list.begin(), list.end(), [&](const auto& kernel) { return kernel.name == wanted; });
    if (found == list.end()) {
      std::string known;
      for (const auto& kernel : list) known += (known.empty() ? "" : ", ") + kernel.name;
      return make_error(ErrorCode::kInvalidArgument, "operator {} has no kernel '{}'; its kernels are: {}", name_,
                        wanted, known);
    }
    if (!found->available) {
      return make_error(ErrorCode::kUnsupported,
                        "kernel '{}' of operator {} needs {} ({}), which this machine does not offer", wanted, name_,
                        found->arch, ops::name(found->backend));
    }
  }
  return {};
}

const std::vector<const OperatorBase*>& all_operators() {
  static const std::vector<const OperatorBase*> operators = [] {
    std::vector<const OperatorBase*> list = {
        &add_operator(),
        &attention_operator(),
        &attention_output_gate_operator(),
        &causal_conv1d_operator(),
        &delta_gates_operator(),
        &embedding_operator(),
        &gated_activation_operator(),
        &gated_delta_operator(),
        &kv_read_operator(),
        &kv_write_operator(),
        &linear_operator(),
        &moe_router_operator(),
        &quantize_activations_operator(),
        &rms_norm_operator(),
        &rope_operator(),
        &rope_table_operator(),
        &rotate_operator(),
        &sample_operator(),
        &shared_expert_add_operator(),
    };
    std::sort(list.begin(), list.end(), [](const auto* a, const auto* b) { return a->name() < b->name(); });
    return list;
  }();
  return operators;
}

}  // namespace crest::ops
