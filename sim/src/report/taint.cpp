#include "report/taint.h"

#include <algorithm>
#include <bit>

#include "exec/matrix_call.h"

namespace crest_sim {
namespace {

bool is_memory(InstructionClass c) {
  return (c >= InstructionClass::kSmem && c <= InstructionClass::kSmemAtomic) ||
         (c >= InstructionClass::kGlobalLoad && c <= InstructionClass::kLdsAtomic);
}
bool is_store(InstructionClass c) {
  return c == InstructionClass::kSmemStore || c == InstructionClass::kGlobalStore ||
         c == InstructionClass::kFlatStore || c == InstructionClass::kBufferStore ||
         c == InstructionClass::kScratchStore || c == InstructionClass::kLdsStore;
}
bool is_atomic(InstructionClass c) {
  return c == InstructionClass::kSmemAtomic || c == InstructionClass::kGlobalAtomic ||
         c == InstructionClass::kFlatAtomic || c == InstructionClass::kBufferAtomic ||
         c == InstructionClass::kLdsAtomic;
}

bool mixes_lanes(const Instruction& i) {
  if (i.dpp != Dpp::kNone || i.cls == InstructionClass::kMatrix || i.cls == InstructionClass::kLdsPermute) return true;
  return mnemonic_info(i.mnemonic).name.starts_with("v_permlane");
}

/// Whether the result also depends on what the destination held.
bool keeps_destination(const Instruction& i) {
  if (i.cls == InstructionClass::kMatrix || (i.flags & (kFlagKeepHalf | kFlagTrue16)) || i.sdwa) return true;
  std::string_view name = mnemonic_info(i.mnemonic).name;
  return name.find("fmac") != name.npos || name.find("mac_") != name.npos || name.find("dot") != name.npos ||
         name.starts_with("v_writelane") || name.starts_with("v_swap") || name.find("d16") != name.npos ||
         name.starts_with("s_cmov") || name.starts_with("s_bitset");
}

}  // namespace

Fidelity fidelity_of(const Instruction& i, bool strict_matrix) {
  if (i.cls != InstructionClass::kMatrix || strict_matrix || !i.data) return i.fidelity;
  // What a matrix instruction's data points to begins with the operation (see exec/matrix.cpp).
  const MatrixOp& op = **static_cast<const MatrixOp* const*>(i.data);
  return op.fast ? op.fast_fidelity : op.fidelity;
}

TaintLabel TaintLabels::label_of(uint16_t mnemonic) {
  std::lock_guard lock(mutex_);
  auto [it, fresh] = known_.try_emplace(mnemonic, 0);
  if (fresh) it->second = TaintLabel(1) << std::min<size_t>(known_.size() - 1, 31);  // the last bit is shared
  return it->second;
}
TaintLabel TaintLabels::find(uint16_t mnemonic) const {
  std::lock_guard lock(mutex_);
  auto it = known_.find(mnemonic);
  return it == known_.end() ? 0 : it->second;
}

TaintLabel TaintMemory::load(uint64_t address, uint32_t bytes) const {
  if (empty()) return 0;
  std::lock_guard lock(mutex_);
  TaintLabel out = 0;
  for (uint64_t at = address / 4; at <= (address + bytes - 1) / 4; ++at)
    if (auto page = pages_.find(at / kPage); page != pages_.end()) out |= page->second[at % kPage];
  return out;
}

void TaintMemory::store(uint64_t address, uint32_t bytes, TaintLabel label) {
  if (empty() && !label) return;
  std::lock_guard lock(mutex_);
  empty_ = false;
  for (uint64_t at = address / 4; at <= (address + bytes - 1) / 4; ++at) {
    auto page = pages_.find(at / kPage);
    if (page == pages_.end()) {
      if (!label) continue;
      page = pages_.emplace(at / kPage, std::vector<TaintLabel>(kPage)).first;
    }
    bool whole = at * 4 >= address && at * 4 + 4 <= address + bytes;
    TaintLabel& cell = page->second[at % kPage];
    cell = whole ? label : cell | label;
  }
}

Taint::Taint(Workgroup& g, TaintLabels& labels, TaintMemory& memory, bool strict_matrix)
    : labels_(labels), memory_(memory), strict_(strict_matrix), lanes_(g.waves.empty() ? 64 : g.waves[0].lanes) {
  waves_.resize(g.waves.size());
  for (WaveTaint& t : waves_) t.v.resize(512 * lanes_);
  lds_.resize(g.lds_bytes / 4 + 8);
}

TaintLabel Taint::scalar(const WaveTaint& t, const Operand& o) const {
  TaintLabel out = 0;
  for (uint32_t k = 0; o.is_scalar() && k < o.dwords && o.reg + k < cell::kCount; ++k) out |= t.s[o.reg + k];
  return out;
}

TaintLabel Taint::any_lane(const WaveTaint& t, const Operand& o) const {
  TaintLabel out = scalar(t, o);
  if (o.is_vector())
    for (uint32_t n = 0; n < o.dwords * lanes_; ++n) out |= t.v[o.row + n];
  return out;
}

void Taint::add_source(const WaveTaint& t, const Operand& o, bool mix, TaintLabel* out) const {
  if (!o.is_vector() || mix) {
    TaintLabel all = any_lane(t, o);
    if (all)
      for (uint32_t l = 0; l < lanes_; ++l) out[l] |= all;
    return;
  }
  for (uint32_t k = 0; k < o.dwords; ++k)
    for (uint32_t l = 0; l < lanes_; ++l) out[l] |= t.v[o.row + k * lanes_ + l];
}

void Taint::write(WaveTaint& t, const Operand& o, const TaintLabel* value, uint64_t lanes, bool keep) {
  if (o.is_scalar()) {
    TaintLabel all = 0;
    for (uint32_t l = 0; l < lanes_; ++l) all |= value[l];
    write_scalar(t, o.reg, o.dwords, all | (keep ? scalar(t, o) : 0));
  }
  if (!o.is_vector()) return;
  for (uint32_t k = 0; k < o.dwords; ++k)
    for (uint32_t l = 0; l < lanes_; ++l) {
      if (!(lanes >> l & 1)) continue;
      TaintLabel& cell = t.v[o.row + k * lanes_ + l];
      cell = value[l] | (keep ? cell : 0);
    }
}

void Taint::write_scalar(WaveTaint& t, uint16_t cell, uint32_t count, TaintLabel value) {
  for (uint32_t k = 0; k < count && cell + k < cell::kZero; ++k) t.s[cell + k] = value;
  bool exec = cell < cell::kExec + 2 && cell + count > cell::kExec;
  if (exec) labels_.reach_branch(value);  // which lanes go on is control flow
}

/// Operands that make an address: src[0] is the vector address, src[2] and src[3] base, resource and scalar offset.
void Taint::note_address(const WaveTaint& t, const Instruction& i) {
  bool lds = i.cls >= InstructionClass::kLdsLoad && i.cls <= InstructionClass::kLdsAtomic;
  bool smem = i.cls >= InstructionClass::kSmem && i.cls <= InstructionClass::kSmemAtomic;
  TaintLabel address = any_lane(t, i.src[0]);
  if (smem) address |= scalar(t, i.src[1]);
  if (!lds && !smem) address |= scalar(t, i.src[2]) | scalar(t, i.src[3]);
  if (i.cls == InstructionClass::kBufferToLds) address |= t.s[cell::kM0];
  labels_.reach_address(address);
}

void Taint::before(Wave& w, const Instruction& i) {
  WaveTaint& t = waves_[w.index];
  bool approximate = fidelity_of(i, strict_) == Fidelity::kApproximate ||
                     (i.second && fidelity_of(*i.second, strict_) == Fidelity::kApproximate);
  skip_ = clean_ && !approximate && memory_.empty();
  if (skip_) return;
  exec_ = w.exec();
  implicit_ = 0;
  bool scalar_unit = i.cls == InstructionClass::kSalu || i.cls == InstructionClass::kBranch;
  if (i.implicit & kReadsScc) implicit_ |= t.s[cell::kScc];
  if (i.implicit & kReadsVcc) implicit_ |= t.s[cell::kVcc] | t.s[cell::kVcc + 1];
  if ((i.implicit & kReadsExec) && scalar_unit) implicit_ |= t.s[cell::kExec] | t.s[cell::kExec + 1];
  if (i.implicit & kReadsM0) implicit_ |= t.s[cell::kM0];
  std::fill(result_, result_ + lanes_, implicit_);
  if (i.cls == InstructionClass::kBranch) {
    for (int k = 0; k < i.src_count; ++k) implicit_ |= scalar(t, i.src[k]);
    labels_.reach_branch(implicit_);
    return;
  }
  if (is_memory(i.cls)) return note_address(t, i);
  if (i.cls == InstructionClass::kLdsPermute && i.src_count > 1) labels_.reach_address(any_lane(t, i.src[0]));
  bool mix = mixes_lanes(i);
  auto gather = [&](const Instruction& part) {
    for (int k = 0; k < part.src_count; ++k) add_source(t, part.src[k], mix, result_);
    if (part.cls == InstructionClass::kMatrix) add_source(t, part.dst[0], true, result_);
  };
  gather(i);
  if (i.second) gather(*i.second);  // VOPD: the union of both halves
  if (!approximate) return;
  TaintLabel own = labels_.label_of(i.mnemonic);
  for (uint32_t l = 0; l < lanes_; ++l) result_[l] |= own;
  clean_ = false;
}

void Taint::after(Wave& w, const Instruction& i, const MemoryAccess* access) {
  if (skip_) return;
  WaveTaint& t = waves_[w.index];
  if (is_memory(i.cls)) {
    if (access && access->lanes) memory(t, i, *access);
    return;
  }
  bool scalar_unit = i.cls == InstructionClass::kSalu || i.cls == InstructionClass::kBranch;
  uint64_t lanes = scalar_unit || i.cls == InstructionClass::kMatrix ? w.full_exec : exec_;
  if (mnemonic_info(i.mnemonic).name == "v_writelane_b32") lanes = w.full_exec;
  bool keep = keeps_destination(i);
  for (int k = 0; k < i.dst_count; ++k) write(t, i.dst[k], result_, lanes, keep);
  if (i.second)
    for (int k = 0; k < i.second->dst_count; ++k) write(t, i.second->dst[k], result_, lanes, keep);
  TaintLabel all = 0;
  for (uint32_t l = 0; l < lanes_; ++l) all |= result_[l];
  if (i.implicit & kWritesScc) t.s[cell::kScc] = all;
  if (i.implicit & kWritesVcc) write_scalar(t, cell::kVcc, 2, all);
  if (i.implicit & kWritesExec) write_scalar(t, cell::kExec, 2, all);
  if (i.implicit & kWritesM0) t.s[cell::kM0] = all;
}

TaintLabel Taint::load(WaveTaint& t, const MemoryAccess& a, int part, int lane, uint32_t offset, uint32_t bytes) {
  uint64_t at = a.address[part][lane] + offset;
  bool to_lds = a.space == MemorySpace::kLds || (a.lds_lanes >> lane & 1);
  if (to_lds)
    return at / 4 < lds_.size() ? lds_[at / 4] | lds_[std::min<size_t>((at + bytes - 1) / 4, lds_.size() - 1)] : 0;
  if (a.space == MemorySpace::kScratch || (a.scratch_lanes >> lane & 1)) {
    auto it = t.scratch.find(uint64_t(lane) << 32 | at / 4);
    return it == t.scratch.end() ? 0 : it->second;
  }
  return memory_.load(at, bytes);
}

void Taint::store(WaveTaint& t, const MemoryAccess& a, int part, int lane, uint32_t offset, uint32_t bytes,
                  TaintLabel x) {
  uint64_t at = a.address[part][lane] + offset;
  bool whole = bytes == 4 && at % 4 == 0;
  auto put = [&](TaintLabel& cell) { cell = whole ? x : cell | x; };
  if (a.space == MemorySpace::kLds || (a.lds_lanes >> lane & 1)) {
    for (uint64_t n = at / 4; n <= (at + bytes - 1) / 4 && n < lds_.size(); ++n) put(lds_[n]);
  } else if (a.space == MemorySpace::kScratch || (a.scratch_lanes >> lane & 1)) {
    put(t.scratch[uint64_t(lane) << 32 | at / 4]);
  } else {
    memory_.store(at, bytes, x);
  }
}

void Taint::memory(WaveTaint& t, const Instruction& i, const MemoryAccess& a) {
  bool smem = a.space == MemorySpace::kConstant;
  bool lds = i.cls >= InstructionClass::kLdsLoad && i.cls <= InstructionClass::kLdsAtomic;
  auto each = [&](auto&& body) {  // parts and dwords of one access
    for (int part = 0; part < a.parts; ++part)
      for (uint32_t at = 0; at < a.bytes; at += 4) body(part, at, std::min<uint32_t>(4, a.bytes - at));
  };
  if (a.kind == AccessKind::kLoadToLds) {
    for (uint64_t m = a.lanes; m; m &= m - 1) {
      int l = std::countr_zero(m);
      for (uint32_t at = 0; at < a.bytes; at += 4) {
        uint64_t to = (a.address[1][l] + at) / 4;
        if (to < lds_.size()) lds_[to] = memory_.load(a.address[0][l] + at, std::min<uint32_t>(4, a.bytes - at));
      }
    }
    return;
  }
  bool writes = is_store(i.cls) || is_atomic(i.cls);
  bool returns = !writes || (is_atomic(i.cls) && i.dst_count);
  uint32_t dwords = (a.bytes + 3u) / 4;
  for (uint64_t m = smem ? 1 : a.lanes; m; m &= m - 1) {
    int l = std::countr_zero(m);
    each([&](int part, uint32_t at, uint32_t bytes) {
      uint32_t k = at / 4;
      const Operand& data = smem ? i.src[2] : i.src[lds ? 1 + (part && i.src_count > 2 ? 1 : 0) : 1];
      TaintLabel old = returns || is_atomic(i.cls) ? load(t, a, part, l, at, bytes) : 0;
      if (writes) {
        TaintLabel x = smem ? scalar(t, data)
                       : data.is_vector()
                           ? t.v[data.row + std::min<uint32_t>(k, data.dwords - 1) * lanes_ + static_cast<uint32_t>(l)]
                           : 0;
        store(t, a, part, l, at, bytes, is_atomic(i.cls) ? x | old : x);
      }
      if (!returns) return;
      uint32_t to = static_cast<uint32_t>(part) * dwords + k;
      const Operand& d = i.dst[0];
      if (smem) {
        if (k < d.dwords) write_scalar(t, static_cast<uint16_t>(d.reg + k), 1, old);
      } else if (d.is_vector() && to < d.dwords) {
        TaintLabel& cell = t.v[d.row + to * lanes_ + static_cast<uint32_t>(l)];
        cell = old | (keeps_destination(i) ? cell : 0);
      }
    });
  }
}

}  // namespace crest_sim
