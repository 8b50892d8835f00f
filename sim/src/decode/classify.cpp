#include <deque>
#include <map>
#include <mutex>

#include "decode/decoder.h"

namespace crest_sim {
namespace {

bool starts(std::string_view s, std::string_view prefix) { return s.starts_with(prefix); }
bool has(std::string_view s, std::string_view part) { return s.find(part) != std::string_view::npos; }

InstructionClass classify_scalar(std::string_view b) {
  using enum InstructionClass;
  if (starts(b, "s_load_") || starts(b, "s_buffer_load_") || starts(b, "s_scratch_load_")) return kSmem;
  if (starts(b, "s_store_") || starts(b, "s_buffer_store_") || starts(b, "s_scratch_store_")) return kSmemStore;
  if (starts(b, "s_atomic_") || starts(b, "s_buffer_atomic_")) return kSmemAtomic;
  if (starts(b, "s_dcache_") || starts(b, "s_icache_") || b == "s_gl1_inv" || b == "s_memtime" || b == "s_memrealtime")
    return b[2] == 'm' ? kSmem : kCache;
  if (starts(b, "s_cbranch_") || b == "s_branch" || b == "s_setpc_b64" || b == "s_swappc_b64" || b == "s_call_b64" ||
      b == "s_subvector_loop_begin" || b == "s_subvector_loop_end")
    return kBranch;
  if (b == "s_endpgm" || b == "s_endpgm_saved") return kEnd;
  if (b == "s_barrier") return kBarrier;
  if (starts(b, "s_sendmsg") || b == "s_trap" || b == "s_sethalt" || b == "s_ttracedata" || b == "s_ttracedata_imm")
    return kMessage;
  if (starts(b, "s_waitcnt") || starts(b, "s_wait_") || b == "s_waitcnt_depctr") return kWait;
  if (b == "s_nop" || b == "s_delay_alu" || b == "s_clause" || b == "s_setprio" || b == "s_code_end" ||
      b == "s_version" || b == "s_set_inst_prefetch_distance" || b == "s_inst_prefetch" || b == "s_incperflevel" ||
      b == "s_decperflevel" || b == "s_setkill")
    return kNop;
  return kSalu;
}

InstructionClass memory_class(std::string_view b, InstructionClass load, InstructionClass store,
                              InstructionClass atomic) {
  if (has(b, "atomic") || has(b, "_csub")) return atomic;
  return has(b, "store") ? store : load;
}

InstructionClass classify_lds(std::string_view b) {
  using enum InstructionClass;
  if (has(b, "permute") || has(b, "swizzle")) return kLdsPermute;
  if (b == "ds_nop") return kNop;
  if (starts(b, "ds_read") || starts(b, "ds_load")) return kLdsLoad;
  if (starts(b, "ds_write") || starts(b, "ds_store")) return has(b, "xchg") ? kLdsAtomic : kLdsStore;
  return kLdsAtomic;
}

InstructionClass classify_vector(std::string_view b) {
  using enum InstructionClass;
  if (b == "v_nop" || b == "v_clrexcp" || b == "v_pipeflush") return kNop;
  if (starts(b, "v_mfma") || starts(b, "v_smfmac") || starts(b, "v_wmma")) return kMatrix;
  for (std::string_view t : {"v_rcp_", "v_rsq_", "v_sqrt_", "v_exp_", "v_log_", "v_sin_", "v_cos_", "v_prng_"})
    if (starts(b, t)) return kValuTrans;
  return b.ends_with("_f64") ? kValu64 : kValu;
}

}  // namespace

InstructionClass classify(std::string_view b, const Instruction& i) {
  using enum InstructionClass;
  if (starts(b, "v_")) return classify_vector(b);
  if (starts(b, "s_")) return classify_scalar(b);
  if (starts(b, "ds_")) return classify_lds(b);
  bool to_lds = i.flags & kFlagLds;
  if (starts(b, "buffer_gl") || starts(b, "buffer_inv") || starts(b, "buffer_wb")) return kCache;
  if (starts(b, "buffer_") || starts(b, "tbuffer_"))
    return to_lds ? kBufferToLds : memory_class(b, kBufferLoad, kBufferStore, kBufferAtomic);
  if (starts(b, "global_inv") || starts(b, "global_wb")) return kCache;
  if (starts(b, "global_")) return to_lds ? kBufferToLds : memory_class(b, kGlobalLoad, kGlobalStore, kGlobalAtomic);
  if (starts(b, "flat_")) return memory_class(b, kFlatLoad, kFlatStore, kFlatAtomic);
  if (starts(b, "scratch_")) return has(b, "store") ? kScratchStore : kScratchLoad;
  return kUnknown;
}

namespace {

struct Interned {
  std::mutex mutex;
  std::deque<std::string> names;
  std::deque<MnemonicInfo> infos;
  std::map<std::string, uint16_t, std::less<>> index;
};

Interned& interned() {
  static Interned* table = new Interned;  // never destroyed: observers may report at exit
  return *table;
}

}  // namespace

uint16_t intern_mnemonic(std::string_view base, InstructionClass cls, Fidelity fidelity) {
  Interned& t = interned();
  std::lock_guard lock(t.mutex);
  if (auto it = t.index.find(base); it != t.index.end()) return it->second;
  auto id = static_cast<uint16_t>(t.infos.size());
  t.names.emplace_back(base);
  t.infos.push_back({t.names.back(), cls, fidelity});
  t.index.emplace(base, id);
  return id;
}

const MnemonicInfo& mnemonic_info(uint16_t mnemonic) {
  Interned& t = interned();
  std::lock_guard lock(t.mutex);
  return t.infos.at(mnemonic);
}

size_t mnemonic_count() {
  Interned& t = interned();
  std::lock_guard lock(t.mutex);
  return t.infos.size();
}

}  // namespace crest_sim
