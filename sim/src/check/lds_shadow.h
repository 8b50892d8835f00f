// Who touched which dword of a workgroup's LDS since the last barrier.
//
// A tag is epoch << 6 | DMA << 5 | wave; the epoch counts barriers, so tags of older epochs need no clearing. Two waves
// that share a dword at byte granularity move it into tables of bytes (`kSplit`).
#pragma once

#include <cstdint>
#include <vector>

namespace crest_sim {

struct LdsShadow {
  static constexpr uint32_t kDma = 32;    ///< tag bit: written by a load to LDS
  static constexpr uint32_t kMany = 63;   ///< reader: several waves
  static constexpr uint32_t kSplit = 62;  ///< writer and reader: see the byte tables
  static constexpr uint32_t kWave = 31;
  // Besides the instruction's index, meta says which bytes, and whether the access was atomic or stored undefined data.
  static constexpr uint32_t kInstruction = 0xffffff, kBytesShift = 24, kAllBytes = 15u << kBytesShift;
  static constexpr uint32_t kAtomic = 1u << 28, kUndefined = 1u << 29;

  struct Table {
    std::vector<uint32_t> tag, meta;
    void assign(size_t n) {
      tag.assign(n, 0);
      meta.resize(n);
    }
  };
  Table writer, reader;            ///< per dword; writer tag 0: never written
  Table byte_writer, byte_reader;  ///< made when needed
  uint32_t epoch = 0;
  uint32_t floor = 64;      ///< tags below belong to older epochs
  uint32_t low_floor = 64;  ///< lower if late writes have to be looked for
  bool undefined_stored = false;

  void start(uint32_t bytes) {
    size_t n = (bytes + 3) / 4;
    writer.assign(n);
    if (reader.tag.size() != n || epoch > (1u << 26) - 4096) {
      reader.assign(n);
      byte_writer = byte_reader = {};
      epoch = 0;
    }
    undefined_stored = false;
    next_epoch();
  }
  void next_epoch() {
    if (++epoch >= (1u << 26) - 1) {
      for (uint32_t& t : writer.tag) t = t ? 64 : 0;
      reader.assign(reader.tag.size());
      byte_writer = byte_reader = {};
      epoch = 2;
    }
    floor = low_floor = epoch << 6;
  }
  /// Moves the records of a dword into the byte tables.
  void split(uint32_t dword);
};

}  // namespace crest_sim
