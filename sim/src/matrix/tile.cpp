#include "matrix/tile.h"

#include <cstring>

namespace crest_sim::CREST_SIM_LEVEL {
namespace {

/// Lane l of every register row takes what lane source[l] held.
const uint32_t* permute(const uint32_t* rows, int dwords, const uint8_t* source, uint32_t* buffer) {
  for (int r = 0; r < dwords; ++r) {
    for (int l = 0; l < 64; ++l) buffer[r * 64 + l] = rows[r * 64 + source[l]];
  }
  return buffer;
}

Element f8f6f4_format(int selector) {
  switch (selector) {
    case 1:
      return Element::kBf8;
    case 2:
      return Element::kFp6;
    case 3:
      return Element::kBf6;
    case 4:
      return Element::kFp4;
    default:
      return Element::kFp8;
  }
}

}  // namespace

const uint32_t* broadcast_blocks(const MatrixShape& shape, const Instruction& instruction, const uint32_t* rows,
                                 uint32_t* buffer) {
  if (shape.blocks == 1 || shape.d == Accumulator::kF64 || instruction.cbsz == 0) return rows;
  uint8_t source[64];
  const int span = 1 << instruction.cbsz;
  for (int l = 0; l < 64; ++l) {
    const int block = l / shape.m;
    const int from = block / span * span + instruction.abid % span;
    source[l] = uint8_t(from % shape.blocks * shape.m + l % shape.m);
  }
  return permute(rows, shape.a_dwords(), source, buffer);
}

const uint32_t* permute_lane_groups(const MatrixShape& shape, const Instruction& instruction, const uint32_t* rows,
                                    uint32_t* buffer) {
  const int pattern = instruction.blgp;
  if (pattern == 0 || shape.family != MatrixFamily::kMfma || shape.d == Accumulator::kF64) return rows;
  uint8_t source[64];
  for (int l = 0; l < 64; ++l) {
    switch (pattern) {
      case 1:
        source[l] = uint8_t(l % 32);
        break;
      case 2:
        source[l] = uint8_t(32 + l % 32);
        break;
      case 3:
        source[l] = uint8_t((l + 16) % 64);
        break;
      default:
        source[l] = uint8_t((pattern - 4) * 16 + l % 16);
        break;
    }
  }
  return permute(rows, shape.b_dwords(), source, buffer);
}

MatrixShape resolve_formats(const MatrixShape& shape, const Instruction& instruction) {
  MatrixShape resolved = shape;
  resolved.a = f8f6f4_format(instruction.cbsz);
  resolved.b = f8f6f4_format(instruction.blgp);
  return resolved;
}

void load_tables(const MatrixShape& shape, const MatrixCall& call, Tables& tables) {
  alignas(64) uint32_t buffer[8 * 64];
  const int columns = shape.m == 4 ? 64 : shape.m;
  const auto layout = [&](Element e) {
    const int elements = shape.elements_per_lane();
    return UnpackLayout{64, columns, elements, elements > 16 && element_bits(e) == 8};
  };
  const uint32_t* a = broadcast_blocks(shape, *call.instruction, call.a, buffer);
  unpack(shape.a, shape.fnuz, a, layout(shape.a), tables.a);
  const uint32_t* b = permute_lane_groups(shape, *call.instruction, call.b, buffer);
  unpack(shape.b, shape.fnuz, b, layout(shape.b), tables.b);
}

void load_sparse(const MatrixShape& shape, const MatrixCall& call, SparseTables& sparse) {
  const int elements = shape.elements_per_lane(), groups = 64 / shape.m;
  const bool two_runs = elements > 16 && element_bits(shape.b) == 8;
  unpack(shape.b, shape.fnuz, call.b, {64, shape.m, elements, two_runs}, sparse.tables.b);
  unpack(shape.a, shape.fnuz, call.a, {64, shape.m, elements / 2, false}, sparse.tables.a);

  // Two bits per stored value: its place among four. A lane's indices may fill a part of the register; ABID chooses it.
  const int index_bits = elements;
  const int sets = 32 / index_bits;
  const int shift = call.instruction->cbsz == 0 && sets > 1 ? call.instruction->abid % sets * index_bits : 0;
  for (int lane = 0; lane < 64; ++lane) {
    const int group = lane / shape.m, row = lane % shape.m;
    const uint32_t index = call.index[lane] >> shift;
    for (int e = 0; e < elements / 2; ++e) {
      const int dense = e / 2 * 4 + int(index >> (e * 2) & 3);
      sparse.partner[(group * (elements / 2) + e) * shape.m + row] =
          uint8_t(unpacked_row(group, dense, elements, groups, two_runs));
    }
  }
}

const uint32_t* safe_accumulator(const MatrixShape& shape, const MatrixCall& call, uint32_t* buffer) {
  if (shape.sparse()) return call.d;
  const size_t dwords = size_t(shape.d_dwords()) * shape.lanes;
  const auto distance = reinterpret_cast<intptr_t>(call.d) - reinterpret_cast<intptr_t>(call.c);
  const auto bytes = intptr_t(dwords * 4);
  if (distance == 0 || distance >= bytes || distance <= -bytes) return call.c;
  std::memcpy(buffer, call.c, dwords * 4);
  return buffer;
}

void load_scales(const MatrixShape& shape, const MatrixCall& call, Scales& scales) {
  const Instruction& in = *call.instruction;
  // The scale operands follow A, B and C; op_sel and op_sel_hi choose one byte of four.
  const auto byte_of = [&](int operand) {
    const uint8_t mods = in.src[operand].mods;
    return (mods & kHigh ? 1 : 0) + (mods & kHighHi ? 2 : 0);
  };
  const int shift_a = byte_of(3) * 8, shift_b = byte_of(4) * 8;
  const auto exponent = [](uint32_t byte) { return byte == 255 ? Scales::kNanScale : int16_t(int(byte) - 127); };
  for (int lane = 0; lane < 64; ++lane) {
    scales.a[lane / shape.m][lane % shape.m] = exponent(call.scale_a[lane] >> shift_a & 255);
    scales.b[lane / shape.m][lane % shape.m] = exponent(call.scale_b[lane] >> shift_b & 255);
  }
}

}  // namespace crest_sim::CREST_SIM_LEVEL
