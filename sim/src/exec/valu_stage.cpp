#include "exec/valu.h"

namespace crest_sim::CREST_SIM_LEVEL {
namespace {

/// Lanes that row_mask and bank_mask let through.
uint64_t enabled_lanes(const Instruction& i, uint32_t lanes) {
  if (i.row_mask == 15 && i.bank_mask == 15) return ~uint64_t(0);
  uint64_t enabled = 0;
  for (uint32_t l = 0; l < lanes; ++l) {
    bool on = ((i.row_mask >> ((l >> 4) & 3)) & 1) && ((i.bank_mask >> ((l >> 2) & 3)) & 1);
    enabled |= static_cast<uint64_t>(on) << l;
  }
  return enabled;
}

/// Permutes by the lane map. Lanes whose source is missing read 0 (bound_ctrl) or drop out of `exec`.
const uint32_t* permute(Wave& w, const Instruction& i, const uint32_t* in, Row& out, uint64_t& exec) {
  const LaneMap& map = *i.lane_map;
  uint64_t active = w.exec(), usable = 0;
  if (active == w.full_exec || i.fetch_inactive) {
    for (uint32_t l = 0; l < w.lanes; ++l) out.lane[l] = in[map.source[l]];
    usable = map.valid;
    if (i.bound_ctrl) for_active(w.full_exec & ~map.valid, [&](int l) { out.lane[l] = 0; });
  } else {
    for (uint32_t l = 0; l < w.lanes; ++l) {
      uint32_t source = map.source[l];
      bool good = ((map.valid >> l) & 1) && ((active >> source) & 1);
      out.lane[l] = good ? in[source] : 0;
      usable |= static_cast<uint64_t>(good) << l;
    }
  }
  exec &= (i.bound_ctrl ? ~uint64_t(0) : usable) & enabled_lanes(i, w.lanes);
  return out.lane;
}

void select_part(Row& out, const uint32_t* in, Select select, bool sign_extend, uint32_t lanes) {
  uint32_t s = static_cast<uint32_t>(select);
  uint32_t shift = s < 4 ? s * 8 : (s - 4) * 16, bits = s < 4 ? 8 : 16;
  if (sign_extend) {
    uint32_t left = 32 - bits - shift;
    for_lanes(lanes, [&](uint32_t l) {
      out.lane[l] = static_cast<uint32_t>(static_cast<int32_t>(in[l] << left) >> (32 - bits));
    });
  } else {
    uint32_t mask = (1u << bits) - 1;
    for_lanes(lanes, [&](uint32_t l) { out.lane[l] = (in[l] >> shift) & mask; });
  }
}

const uint32_t* fetch(Wave& w, const Operand& o, int part, Row& buffer) {
  if (o.is_vector()) return row(w, o) + static_cast<size_t>(part) * w.lanes;
  uint32_t value = part == 0 ? scalar(w, o) : o.is_literal() ? static_cast<uint32_t>(o.literal >> 32) : w.s[o.reg + 1];
  broadcast(buffer.lane, value, w.lanes);
  return buffer.lane;
}

void clamp_float(Row& r, const Wave& w) {
  bool zero_nan = mode_dx10_clamp(w);
  for_lanes(w.lanes, [&](uint32_t l) {
    float x = as_float(r.lane[l]);
    float y = x > 1.0f ? 1.0f : x > 0.0f ? x : 0.0f;
    r.lane[l] = x != x && !zero_nan ? r.lane[l] : as_bits(y);
  });
}

float omod_factor(const Instruction& i) { return i.omod == 1 ? 2.0f : i.omod == 2 ? 4.0f : 0.5f; }

/// Output modifiers are ignored while denormal results are enabled; -0 becomes +0.
void apply_omod(Row& r, const Instruction& i, const Wave& w, Type type) {
  bool f16 = is_16(type);
  if (w.mode & (f16 ? 0x80 : 0x20)) return;
  float factor = omod_factor(i);
  for_lanes(w.lanes, [&](uint32_t l) {
    float x = f16 ? half_to_float(r.lane[l]) : as_float(r.lane[l]);
    float y = x * factor + 0.0f;
    r.lane[l] = f16 ? float_to_half(y) : as_bits(y);
  });
}

void clamp_half(Row& r, const Wave& w) {
  bool zero_nan = mode_dx10_clamp(w);
  for_lanes(w.lanes, [&](uint32_t l) {
    float x = half_to_float(r.lane[l]);
    float y = x > 1.0f ? 1.0f : x > 0.0f ? x : 0.0f;
    r.lane[l] = x != x && !zero_nan ? r.lane[l] : float_to_half(y);
  });
}

/// Puts the result into the selected byte or word of the destination.
void place_sdwa(const Instruction& i, const uint32_t* d, Row& r, uint32_t lanes) {
  uint32_t s = static_cast<uint32_t>(i.dst_select);
  uint32_t shift = s < 4 ? s * 8 : (s - 4) * 16, bits = s < 4 ? 8 : 16, mask = ((1u << bits) - 1) << shift;
  uint8_t unused = i.dst_unused;
  for_lanes(lanes, [&](uint32_t l) {
    uint32_t part = (r.lane[l] << shift) & mask;
    uint32_t extended = static_cast<uint32_t>(static_cast<int32_t>(part << (32 - bits - shift)) >> (32 - bits - shift));
    r.lane[l] = unused == 2 ? part | (d[l] & ~mask) : unused == 1 ? extended : part;
  });
}

}  // namespace

const uint32_t* stage(Wave& w, const Instruction& i, int index, Type type, Row& buffer, uint64_t& exec) {
  const Operand& o = i.src[index];
  const uint32_t* a = fetch(w, o, 0, buffer);
  if (index == 0 && i.dpp != Dpp::kNone) {
    Row copy;  // the permutation must not overwrite what it reads
    if (a == buffer.lane) std::memcpy(copy.lane, a, sizeof(copy.lane)), a = copy.lane;
    a = permute(w, i, a, buffer, exec);
  }
  if (o.select != Select::kDword) {
    select_part(buffer, a, o.select, o.mods & kSext, w.lanes);
    a = buffer.lane;
  }
  uint8_t mods = o.mods & (kNeg | kAbs);
  bool high = (o.mods & kHigh) && is_16(type);
  if (high) {
    for_lanes(w.lanes, [&](uint32_t l) { buffer.lane[l] = a[l] >> 16; });
    a = buffer.lane;
  }
  if (mods && is_float(type)) {
    uint32_t sign = is_16(type) ? 0x8000u : 0x80000000u;
    uint32_t clear = mods & kAbs ? ~sign : ~0u, flip = mods & kNeg ? sign : 0;
    for_lanes(w.lanes, [&](uint32_t l) { buffer.lane[l] = (a[l] & clear) ^ flip; });
    a = buffer.lane;
  }
  return a;
}

const uint32_t* stage_part(Wave& w, const Instruction& i, int index, int part, Row& buffer, uint64_t& exec) {
  const uint32_t* a = fetch(w, i.src[index], part, buffer);
  if (index != 0 || i.dpp == Dpp::kNone) return a;
  Row copy;
  std::memcpy(copy.lane, a, w.lanes * 4);
  return permute(w, i, copy.lane, buffer, exec);
}

void finish(Wave& w, const Instruction& i, Type type, Row& r, uint64_t exec) {
  if (i.omod && is_float(type)) apply_omod(r, i, w, type);
  if (i.clamp && (type == Type::kF32 || type == Type::kB32)) clamp_float(r, w);
  if (i.clamp && (type == Type::kF16 || type == Type::kB16)) clamp_half(r, w);
  uint32_t* d = row(w, i.dst[0]);
  if (i.sdwa && i.dst_select != Select::kDword) {
    place_sdwa(i, d, r, w.lanes);
  } else if (is_16(type) && (i.flags & kFlagKeepHalf)) {
    if (i.dst[0].mods & kHigh)
      for_lanes(w.lanes, [&](uint32_t l) { r.lane[l] = (r.lane[l] << 16) | (d[l] & 0xffff); });
    else
      for_lanes(w.lanes, [&](uint32_t l) { r.lane[l] = (r.lane[l] & 0xffff) | (d[l] & 0xffff0000); });
  }
  merge_row(w, d, r.lane, exec);
}

void choose_half(Instruction& i, const BindContext& c, bool preserving) {
  if (!c.target.cdna || preserving || (i.dst[0].mods & kHigh)) i.flags |= kFlagKeepHalf;
}

}  // namespace crest_sim::CREST_SIM_LEVEL
