// Cases that users of other simulators and compilers reported, as single instructions with their encodings.
#include <cmath>

#include "assemble.h"
#include "machine.h"

namespace crest_sim::test {
namespace {

using Bytes = std::vector<uint8_t>;

/// Assembles one line and executes it.
void execute(Machine& m, const std::string& line) {
  auto a = assemble(std::string(m.target.name), m.wave.lanes, {line});
  ASSERT_FALSE(a[0].bytes.empty()) << line;
  Decoded d = decode_one(m.target, m.wave.lanes, a[0].bytes);
  ASSERT_TRUE(d.ok) << line << ": " << d.problem;
  m.run(d);
}

void execute_bytes(Machine& m, const Bytes& bytes) {
  Decoded d = decode_one(m.target, m.wave.lanes, bytes);
  ASSERT_TRUE(d.ok) << d.problem;
  m.run(d);
}

// SM-2, wrong addressing of paired LDS accesses: offsets count elements (8 bytes for b64), not dwords.
TEST(SimulatorCases, PairedLdsAccessCountsElements) {
  Machine m(Arch::kGfx942, 64, 8192);
  for (size_t i = 0; i < m.lds.size(); i += 4) {
    uint32_t v = static_cast<uint32_t>(i);
    std::memcpy(&m.lds[i], &v, 4);
  }
  for (int l = 0; l < 64; ++l) m.v(8, l) = static_cast<uint32_t>(32 * l);
  execute_bytes(m, {0x01, 0x03, 0xee, 0xd8, 0x08, 0x00, 0x00, 0x00});  // ds_read2_b64 v[0:3], v8 offset0:1 offset1:3
  for (int l = 0; l < 64; ++l) {
    EXPECT_EQ(m.v(0, l), 32u * l + 8);
    EXPECT_EQ(m.v(1, l), 32u * l + 12);
    EXPECT_EQ(m.v(2, l), 32u * l + 24);
    EXPECT_EQ(m.v(3, l), 32u * l + 28);
  }
  execute(m, "ds_read2st64_b64 v[0:3], v8 offset0:0 offset1:1");
  for (int l = 0; l < 64; ++l) {
    EXPECT_EQ(m.v(0, l), 32u * l);
    EXPECT_EQ(m.v(2, l), 32u * l + 512);
  }
  for (int l = 0; l < 64; ++l)
    for (int r = 0; r < 4; ++r) m.v(r, l) = static_cast<uint32_t>(1000 * r + l);
  execute(m, "ds_write2_b64 v8, v[0:1], v[2:3] offset0:2 offset1:1");
  for (int l = 0; l < 64; ++l) {
    uint32_t got[4];
    std::memcpy(got, &m.lds[size_t(32) * l + 8], 16);
    EXPECT_EQ(got[0], 2000u + l);
    EXPECT_EQ(got[1], 3000u + l);
    EXPECT_EQ(got[2], 0u + l);
    EXPECT_EQ(got[3], 1000u + l);
  }
}

// SM-2, byte permutation that shifts by bits instead of bytes.
TEST(SimulatorCases, BytePermutation) {
  Machine m(Arch::kGfx942, 64);
  m.v(0, 0) = 0x88776655, m.v(1, 0) = 0x44332211, m.v(2, 0) = 0x07050301;
  execute(m, "v_perm_b32 v3, v0, v1, v2");
  EXPECT_EQ(m.v(3, 0), 0x88664422u);
  m.v(2, 0) = 0x0c0d0b08;
  execute(m, "v_perm_b32 v3, v0, v1, v2");
  EXPECT_EQ(m.v(3, 0), 0x00ffff00u);
}

// SM-2, sub-dword destination that takes the wrong part of the sources.
TEST(SimulatorCases, SdwaDestinationByte) {
  Machine m(Arch::kGfx942, 64);
  m.v(0, 0) = 0xaabbccdd, m.v(1, 0) = 0x11220000 | 0x3344, m.v(2, 0) = 0x55667788;
  m.v(1, 0) = 0x11423344;
  execute(m, "v_or_b32_sdwa v0, v1, v2 dst_sel:BYTE_1 dst_unused:UNUSED_PRESERVE src0_sel:BYTE_2 src1_sel:WORD_1");
  EXPECT_EQ(m.v(0, 0), 0xaabb00ddu | ((0x42u | 0x66u) << 8));
}

// SM-4, dual issue: both halves read the old values, so the registers swap.
TEST(SimulatorCases, DualIssueReadsBeforeWriting) {
  for (Arch arch : {Arch::kGfx1100, Arch::kGfx1151}) {
    Machine m(arch, 32);
    for (int l = 0; l < 32; ++l) m.v(0, l) = 100u + l, m.v(1, l) = 200u + l;
    execute_bytes(m,
                  {0x01, 0x01, 0x10, 0xca, 0x00, 0x01, 0x00, 0x00});  // v_dual_mov_b32 v0, v1 :: v_dual_mov_b32 v1, v0
    for (int l = 0; l < 32; ++l) {
      EXPECT_EQ(m.v(0, l), 200u + l);
      EXPECT_EQ(m.v(1, l), 100u + l);
    }
    m.set_exec(0x00ff00ff);
    execute_bytes(m, {0x01, 0x01, 0x10, 0xca, 0x00, 0x01, 0x00, 0x00});
    for (int l = 0; l < 32; ++l) {
      bool swapped = 0x00ff00ff >> l & 1;
      EXPECT_EQ(m.v(0, l), (swapped ? 100u : 200u) + l);
      EXPECT_EQ(m.v(1, l), (swapped ? 200u : 100u) + l);
    }
  }
}

// SM-6, multiplication and addition that round separately.
TEST(SimulatorCases, MatrixMultiplyIsFused) {
  Machine m(Arch::kGfx942, 64);
  for (int l = 0; l < 64; ++l) {
    float a = l < 32 ? 1 + 0x1p-12f : 0;  // K = 2: the second half contributes nothing
    m.v(0, l) = m.v(1, l) = std::bit_cast<uint32_t>(a);
    for (int r = 0; r < 16; ++r) m.v(16 + r, l) = std::bit_cast<uint32_t>(-(1 + 0x1p-11f));
  }
  execute(m, "v_mfma_f32_32x32x2_f32 v[16:31], v0, v1, v[16:31]");
  for (int r = 0; r < 16; ++r) EXPECT_EQ(std::bit_cast<float>(m.v(16 + r, 7)), 0x1p-24f);
}

// SM-6, 64-bit shift counts that are not masked.
TEST(SimulatorCases, WideShiftCountIsMasked) {
  for (Arch arch : {Arch::kGfx942, Arch::kGfx1100}) {
    Machine m(arch, target_info(arch).default_wave_size);
    m.v(0, 0) = 65;
    m.set_v64(2, 0, 0x123456789abcdef0);
    execute(m, "v_lshlrev_b64 v[4:5], v0, v[2:3]");
    EXPECT_EQ(m.v64(4, 0), 0x2468acf13579bde0u);
  }
}

// SM-6, f16 subnormals that are classified as something else.
TEST(SimulatorCases, HalfSubnormalClass) {
  Machine m(Arch::kGfx942, 64);
  m.v(0, 0) = 0x0001, m.v(1, 0) = 1 << 7;  // positive subnormal
  execute(m, "v_cmp_class_f16_e32 vcc, v0, v1");
  EXPECT_EQ(m.wave.vcc() & 1, 1u);
}

// SM-6, v_cmpx: VCC and EXEC on CDNA, EXEC only on RDNA.
TEST(SimulatorCases, CompareExecutionMask) {
  Machine cdna(Arch::kGfx942, 64), rdna(Arch::kGfx1100, 32);
  for (Machine* m : {&cdna, &rdna}) {
    for (uint32_t l = 0; l < m->wave.lanes; ++l) m->v(0, int(l)) = l, m->v(1, int(l)) = 10;
    m->wave.write64(cell::kVcc, 0x5555);
  }
  execute_bytes(cdna, {0x00, 0x03, 0xb2, 0x7d});  // v_cmpx_lt_u32_e32 vcc, v0, v1
  EXPECT_EQ(cdna.wave.exec(), 0x3ffu);
  EXPECT_EQ(cdna.wave.vcc(), 0x3ffu);
  execute_bytes(rdna, {0x00, 0x03, 0x92, 0x7d});  // v_cmpx_lt_u32_e32 v0, v1
  EXPECT_EQ(rdna.wave.exec(), 0x3ffu);
  EXPECT_EQ(rdna.wave.vcc(), 0x5555u);
}

// SM-6, an unknown word that is swallowed: it must fail when reached and be listed.
TEST(SimulatorCases, UnknownWordIsNamed) {
  const Bytes code = {0x00, 0x00, 0x80, 0xbf, 0x00, 0x05,
                      0x08, 0xf4, 0x00, 0x00, 0x81, 0xbf};  // s_nop 0; f4080500; s_endpgm
  Code decoded = decode_section(target_info(Arch::kGfx950), 64, 0, code);
  ASSERT_EQ(decoded.unknown.size(), 1u);
  EXPECT_NE(decoded.unknown[0].find("f4080500"), std::string::npos) << decoded.unknown[0];
  EXPECT_NE(decoded.unknown[0].find("0x4"), std::string::npos);
  Machine m(Arch::kGfx950, 64);
  m.wave.code = decoded.instructions.data();
  m.wave.pc = m.wave.code + 1;
  try {
    levels().run(m.wave, 1);
    FAIL() << "the unknown word was executed";
  } catch (const FaultException& f) {
    EXPECT_EQ(f.kind, FaultKind::kUnknownInstruction);
    EXPECT_EQ(f.instruction->pc, 4u);
    EXPECT_NE(decoded.disassembly(*f.instruction).find("f4080500"), std::string::npos);
  }
}

// MODE: rounding and denormals of f32 and of f16/f64 are separate fields.
TEST(SimulatorCases, ModeRoundingAndDenormals) {
  Machine m(Arch::kGfx942, 64);
  m.v(0, 0) = std::bit_cast<uint32_t>(1.0f), m.v(1, 0) = std::bit_cast<uint32_t>(0x1p-30f);
  const float expected[] = {1.0f, std::nextafterf(1, 2), 1.0f, 1.0f};
  for (uint32_t rounding = 0; rounding < 4; ++rounding) {
    set_mode(m.wave, 0x3f0 | rounding);
    execute(m, "v_add_f32 v2, v0, v1");
    EXPECT_EQ(std::bit_cast<float>(m.v(2, 0)), expected[rounding]) << rounding;
  }
  m.v(1, 0) = std::bit_cast<uint32_t>(-0x1p-30f);
  const float below[] = {1.0f, 1.0f, std::nextafterf(1, 0), std::nextafterf(1, 0)};
  for (uint32_t rounding = 0; rounding < 4; ++rounding) {
    set_mode(m.wave, 0x3f0 | rounding);
    execute(m, "v_add_f32 v2, v0, v1");
    EXPECT_EQ(std::bit_cast<float>(m.v(2, 0)), below[rounding]) << rounding;
  }
  m.v(0, 0) = 0x00000003, m.v(1, 0) = std::bit_cast<uint32_t>(1.0f);
  m.set_v64(4, 0, 3), m.set_v64(6, 0, std::bit_cast<uint64_t>(1.0));
  set_mode(m.wave, 0x3c0);  // f32 flushes, f16 and f64 do not
  execute(m, "v_mul_f32 v2, v0, v1");
  EXPECT_EQ(m.v(2, 0), 0u);
  execute(m, "v_mul_f64 v[8:9], v[4:5], v[6:7]");
  EXPECT_EQ(m.v64(8, 0), 3u);
  execute(m, "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 2), 3");
  EXPECT_EQ(m.wave.mode, 0x3f0u);
  execute(m, "v_mul_f32 v2, v0, v1");
  EXPECT_EQ(m.v(2, 0), 3u);
  execute(m, "s_getreg_b32 s0, hwreg(HW_REG_MODE, 4, 4)");
  EXPECT_EQ(m.wave.s[0], 15u);
}

// Sine and cosine take revolutions; special values, and the range beyond which the hardware gives up.
TEST(SimulatorCases, SineAndCosine) {
  Machine m(Arch::kGfx1100, 32);
  auto at = [&](float x) {
    m.v(0, 0) = std::bit_cast<uint32_t>(x);
    execute(m, "v_sin_f32 v1, v0");
    execute(m, "v_cos_f32 v2, v0");
    return std::pair{std::bit_cast<float>(m.v(1, 0)), std::bit_cast<float>(m.v(2, 0))};
  };
  EXPECT_EQ(at(0.0f), (std::pair{0.0f, 1.0f}));
  EXPECT_EQ(at(0.25f).first, 1.0f);
  EXPECT_EQ(at(0.5f).second, -1.0f);
  EXPECT_EQ(at(-0.75f).first, 1.0f);
  EXPECT_EQ(at(300.0f), (std::pair{0.0f, 1.0f}));
  EXPECT_TRUE(std::isnan(at(INFINITY).first));
  for (float x : {0.1f, -0.3f, 0.6f, 7.3f, -200.123f, 255.9f, 1e-5f}) {
    double angle = (double(x) - std::floor(double(x))) * 6.283185307179586476925;
    EXPECT_NEAR(at(x).first, std::sin(angle), 1.2e-7) << x;
    EXPECT_NEAR(at(x).second, std::cos(angle), 1.2e-7) << x;
  }
}

// Hand-written gfx9 code: VGPR indexing adds M0's index to the operands that the mode names, and checks it.
TEST(SimulatorCases, VgprIndexing) {
  Machine m(Arch::kGfx942, 64);
  for (int r = 0; r < 16; ++r)
    for (int l = 0; l < 64; ++l) m.v(r, l) = static_cast<uint32_t>(100 * r + l);
  m.wave.s[4] = 5;
  execute(m, "s_set_gpr_idx_on s4, gpr_idx(SRC0)");
  execute(m, "v_mov_b32 v1, v2");
  EXPECT_EQ(m.v(1, 3), 703u);
  m.wave.s[cell::kM0] = (m.wave.s[cell::kM0] & ~255u) | 250;
  EXPECT_THROW(execute(m, "v_mov_b32 v1, v10"), FaultException);
  execute(m, "s_set_gpr_idx_off");
  execute(m, "v_mov_b32 v1, v2");
  EXPECT_EQ(m.v(1, 3), 203u);
}

// s_setvskip: vector instructions are skipped, scalar ones are not.
TEST(SimulatorCases, VectorSkip) {
  Machine m(Arch::kGfx942, 64);
  m.v(1, 0) = 1, m.v(2, 0) = 2, m.wave.s[4] = 8;
  execute(m, "s_setvskip s4, 3");
  execute(m, "v_mov_b32 v1, v2");
  execute(m, "s_mov_b32 s5, 77");
  EXPECT_EQ(m.v(1, 0), 1u);
  EXPECT_EQ(m.wave.s[5], 77u);
  execute(m, "s_setvskip s4, 2");
  execute(m, "v_mov_b32 v1, v2");
  EXPECT_EQ(m.v(1, 0), 2u);
}

}  // namespace
}  // namespace crest_sim::test
