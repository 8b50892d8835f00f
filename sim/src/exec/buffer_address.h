// Addresses through a 128-bit buffer resource, with the hardware's range checks.
#pragma once

#include "exec/memory_fast.h"

namespace crest_sim::CREST_SIM_LEVEL {

struct BufferResource {
  uint64_t base;
  uint32_t stride, records, index_stride, element;
  bool swizzle, add_lane;
  uint32_t bounds;  ///< RDNA3 OOB_SELECT; gfx9 is given the value that behaves alike

  BufferResource(const Wave& w, const Operand& o, bool cdna) {
    const uint32_t* d = &w.s[o.reg];
    base = d[0] | static_cast<uint64_t>(d[1] & 0xffff) << 32;
    stride = (d[1] >> 16) & 0x3fff;
    swizzle = cdna ? d[1] >> 31 : (d[1] >> 30) != 0;
    records = d[2];
    index_stride = 8u << ((d[3] >> 21) & 3);
    element = cdna ? 2u << ((d[3] >> 19) & 3) : 4u << ((d[1] >> 30) == 3 ? 2 : 0);
    add_lane = (d[3] >> 23) & 1;
    // gfx9: with stride and swizzle the index is checked, otherwise bytes (also for a stride without swizzle: published
    // kernels set stride 4 and expect num_records in bytes).
    bounds = cdna ? (stride != 0 && swizzle ? 1 : 3) : (d[3] >> 28) & 3;
  }
};

/// Fills address[0] and returns the lanes whose access is in range.
inline uint64_t buffer_addresses(Wave& w, const Instruction& i, uint32_t bytes, MemoryAccess& a) {
  BufferResource r(w, i.src[2], w.workgroup->launch->target->cdna);
  uint32_t soffset = i.src[3].kind == OperandKind::kNone ? 0 : scalar(w, i.src[3]);
  bool offen = i.flags & kFlagOffen, idxen = i.flags & kFlagIdxen;
  const uint32_t* index = idxen ? row(w, i.src[0]) : nullptr;
  const uint32_t* voffset = offen ? row(w, i.src[0]) + (idxen ? w.lanes : 0) : nullptr;
  uint32_t inst_offset = static_cast<uint32_t>(i.offset);
  uint64_t byte_limit = r.records > soffset ? r.records - soffset : 0, in_range = 0;
  if (!r.swizzle && !index && !r.add_lane && r.bounds == 3) {
    // The usual raw buffer.
    alignas(64) uint32_t good[64];
    uint64_t origin = r.base + soffset;
    for_lanes(w.lanes, [&](uint32_t l) {
      uint64_t offset = static_cast<uint64_t>(inst_offset) + (voffset ? voffset[l] : 0);
      a.address[0][l] = origin + offset;
      good[l] = offset + bytes <= byte_limit ? ~0u : 0u;
    });
    in_range = collect_signs(good, w.lanes);
  } else {
    for (uint32_t l = 0; l < w.lanes; ++l) {
      uint64_t offset = static_cast<uint64_t>(inst_offset) + (voffset ? voffset[l] : 0);
      uint64_t n = (index ? index[l] : 0) + (r.add_lane ? l : 0);
      uint64_t linear = r.swizzle ? (n / r.index_stride * r.stride + offset / r.element * r.element) * r.index_stride +
                                        n % r.index_stride * r.element + offset % r.element
                                  : offset + n * r.stride;
      bool good = r.bounds == 0   ? n < r.records && offset + bytes <= r.stride
                  : r.bounds == 1 ? n < r.records
                  : r.bounds == 2 ? r.records != 0
                                  : linear + bytes <= byte_limit;
      a.address[0][l] = r.base + soffset + linear;
      in_range |= static_cast<uint64_t>(good) << l;
    }
  }
  uint64_t exec = w.exec();
  a.clipped = exec & ~in_range;
  a.lanes = exec & in_range;
  return a.lanes;
}

}  // namespace crest_sim::CREST_SIM_LEVEL
