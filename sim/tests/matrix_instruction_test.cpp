// Matrix instructions from assembly text to registers: every mnemonic is decoded, bound and executed with VGPRs and
// AGPRs, inline constants for C and every modifier; results equal the operation called directly.
#include <gtest/gtest.h>

#include <bit>
#include <map>
#include <tuple>

#include "assemble.h"
#include "machine.h"
#include "matrix_names.h"

namespace crest_sim_test {
namespace {

using crest_sim::Arch;
using crest_sim::kHigh;
using crest_sim::kHighHi;
using crest_sim::kNeg;
using crest_sim::kNegHi;
using crest_sim::target_info;
namespace test = crest_sim::test;

std::string tuple(const char* file, int first, int count) {
  const std::string name = file;
  return count == 1 ? name + std::to_string(first)
                    : name + "[" + std::to_string(first) + ":" + std::to_string(first + count - 1) + "]";
}

struct Sizes {
  int a, b, d;
};
Sizes sizes(const Instruction& in) {
  const int b = in.per_lane() * in.b_bits() / 32, a = in.per_lane() * in.a_bits() / 32;
  return {in.kind == MatrixKind::kSparse ? a / 2 : a, b, in.d_values() * (in.d == "f64" ? 2 : 1)};
}

/// Assembles many lines with few runs of the assembler: tests go through their lines twice, and the first time `ready`
/// only takes notes.
class Batch {
 public:
  bool ready(const Instruction& in, const std::string& text) {
    if (assembled_) return true;
    lines_[{in.arch, in.lanes}].push_back(text);
    return false;
  }
  void assemble() {
    for (const auto& [machine, texts] : lines_) {
      const auto lines = test::assemble(std::string(target_info(machine.first).name), uint32_t(machine.second), texts);
      for (size_t i = 0; i < texts.size(); ++i) bytes_[{machine.first, machine.second, texts[i]}] = lines.at(i).bytes;
    }
    assembled_ = true;
  }
  const std::vector<uint8_t>& bytes(const Instruction& in, const std::string& text) const {
    return bytes_.at({in.arch, in.lanes, text});
  }

 private:
  std::map<std::pair<Arch, int>, std::vector<std::string>> lines_;
  std::map<std::tuple<Arch, int, std::string>, std::vector<uint8_t>> bytes_;
  bool assembled_ = false;
};

std::vector<uint8_t> assemble_one(const Instruction& in, const std::string& text) {
  return test::assemble(std::string(target_info(in.arch).name), uint32_t(in.lanes), {text}).at(0).bytes;
}

/// Executes `text` and returns the registers of the destination (first register `d`, or 256 + number for AGPRs).
class Runner {
 public:
  Runner(const Instruction& in, uint32_t seed) : machine_(in.arch, uint32_t(in.lanes)), lanes_(in.lanes) {
    std::mt19937 random(seed);
    for (int reg = 0; reg < 512; ++reg) {
      for (int lane = 0; lane < lanes_; ++lane) machine_.v(reg, lane) = random() & 0x3fff3fffu;
    }
  }
  void run(const Instruction& in, const std::string& text, const std::vector<uint8_t>& bytes) {
    ASSERT_FALSE(bytes.empty()) << text << " is not an instruction of " << target_info(in.arch).name;
    const test::Decoded decoded = test::decode_one(target_info(in.arch), uint32_t(lanes_), bytes);
    ASSERT_TRUE(decoded.ok) << decoded.problem;
    machine_.set_exec(0x5555);  // matrix instructions ignore EXEC
    machine_.run(decoded);
  }
  Rows rows(int reg, int count) {
    return {machine_.wave.v + size_t(reg) * size_t(lanes_), machine_.wave.v + size_t(reg + count) * size_t(lanes_)};
  }

 private:
  test::Machine machine_;
  int lanes_;
};

/// The operation called directly on copies of the registers.
Rows direct(const Instruction& in, const Rows& a, const Rows& b, const Rows& c, const Rows& index,
            const crest_sim::Instruction& modifiers, const Rows& scale_a = {}, const Rows& scale_b = {}) {
  Operands o(in);
  std::copy(a.begin(), a.end(), o.a.begin());
  std::copy(b.begin(), b.end(), o.b.begin());
  std::copy(c.begin(), c.end(), o.c.begin());
  o.d = o.c;
  o.index = index;
  o.scale_a = scale_a;
  o.scale_b = scale_b;
  o.instruction = modifiers;
  o.run(in, find(in, levels().back())->fast);
  return {o.d.begin(), o.d.begin() + sizes(in).d * in.lanes};
}

std::string format_text(const Instruction& in) {
  if (!in.mnemonic.ends_with("f8f6f4")) return "";
  return " cbsz:" + std::to_string(format_selector(in.a)) + " blgp:" + std::to_string(format_selector(in.b));
}
crest_sim::Instruction format_modifiers(const Instruction& in) {
  crest_sim::Instruction m;
  if (in.mnemonic.ends_with("f8f6f4")) {
    m.cbsz = uint8_t(format_selector(in.a));
    m.blgp = uint8_t(format_selector(in.b));
  }
  return m;
}

void run_every_mnemonic(Batch& batch) {
  uint32_t seed = 0;
  for (const Instruction& in : all_instructions()) {
    const Sizes n = sizes(in);
    const bool sparse = in.kind == MatrixKind::kSparse, scaled = in.kind == MatrixKind::kScaled,
               cdna = in.kind != MatrixKind::kWmma;
    for (const bool acc : {false, true}) {
      if (acc && !cdna) continue;
      const char* file = acc ? "a" : "v";
      const int base = acc ? 256 : 0;
      std::string text =
          in.mnemonic + " " + tuple(file, 0, n.d) + ", " + tuple(file, 64, n.a) + ", " + tuple("v", 96, n.b);
      if (sparse)
        text += ", v120";
      else
        text += ", " + tuple(file, 32, n.d);
      if (scaled) text += ", v121, v122 op_sel:[1,0] op_sel_hi:[0,1]";
      text += format_text(in);
      if (!batch.ready(in, text)) continue;
      Runner runner(in, ++seed);
      const Rows a = runner.rows(base + 64, n.a), b = runner.rows(96, n.b),
                 c = runner.rows(base + (sparse ? 0 : 32), n.d);
      const Rows index = sparse ? runner.rows(120, 1) : Rows{};
      const Rows scale_a = scaled ? runner.rows(121, 1) : Rows{}, scale_b = scaled ? runner.rows(122, 1) : Rows{};
      auto modifiers = format_modifiers(in);
      if (scaled) {
        modifiers.src[3].mods = kHigh;
        modifiers.src[4].mods = kHighHi;
      }
      const Rows before = runner.rows(base, 32);
      ASSERT_NO_FATAL_FAILURE(runner.run(in, text, batch.bytes(in, text))) << text;
      Rows want = direct(in, a, b, c, index, modifiers, scale_a, scale_b);
      if (in.d == "f16" || in.d == "bf16") {  // upper halves stay
        for (size_t at = 0; at < want.size(); ++at) want[at] = (want[at] & 0xffff) | (before[at] & 0xffff0000u);
      }
      EXPECT_EQ(runner.rows(base, n.d), want) << text;
    }
  }
}

TEST(MatrixInstruction, EveryMnemonicRunsFromItsEncoding) {
  Batch batch;
  run_every_mnemonic(batch);
  batch.assemble();
  run_every_mnemonic(batch);
}

void run_inline_constants(Batch& batch) {
  uint32_t seed = 1000;
  for (const Instruction& in : all_instructions()) {
    if (in.kind == MatrixKind::kSparse) continue;
    const Sizes n = sizes(in);
    for (const char* constant : {"0", "1.0", "-2.0", "5"}) {
      const bool integer = in.integer(), is_float = std::string(constant).find('.') != std::string::npos;
      if (integer == is_float && constant[0] != '0') continue;
      if (!integer && constant[0] == '5') continue;
      std::string text = in.mnemonic + " " + tuple("v", 0, n.d) + ", " + tuple("v", 64, n.a) + ", " +
                         tuple("v", 96, n.b) + ", " + constant;
      if (in.kind == MatrixKind::kScaled) text += ", v121, v122";
      text += format_text(in);
      if (!batch.ready(in, text)) continue;
      Runner runner(in, ++seed);
      const double value = std::stod(constant);
      Rows c(size_t(n.d * in.lanes));
      for (size_t at = 0; at < c.size(); ++at) {
        const auto wide = std::bit_cast<uint64_t>(value);
        c[at] = integer         ? uint32_t(value)
                : in.d == "f64" ? uint32_t(at / size_t(in.lanes) % 2 ? wide >> 32 : wide)
                : in.d == "f32" ? std::bit_cast<uint32_t>(float(value))
                                : encode_exact(format_of(in.d, false), value);
      }
      const Rows a = runner.rows(64, n.a), b = runner.rows(96, n.b), before = runner.rows(0, n.d);
      const Rows scale_a = in.kind == MatrixKind::kScaled ? runner.rows(121, 1) : Rows{};
      const Rows scale_b = in.kind == MatrixKind::kScaled ? runner.rows(122, 1) : Rows{};
      ASSERT_NO_FATAL_FAILURE(runner.run(in, text, batch.bytes(in, text))) << text;
      Rows want = direct(in, a, b, c, {}, format_modifiers(in), scale_a, scale_b);
      if (in.d == "f16" || in.d == "bf16") {
        for (size_t at = 0; at < want.size(); ++at) want[at] = (want[at] & 0xffff) | (before[at] & 0xffff0000u);
      }
      EXPECT_EQ(runner.rows(0, n.d), want) << text;
    }
  }
}

TEST(MatrixInstruction, InlineConstantsAsC) {
  Batch batch;
  run_inline_constants(batch);
  batch.assemble();
  run_inline_constants(batch);
}

TEST(MatrixInstruction, ModifiersReachTheOperation) {
  struct Row {
    const char* name;
    Arch arch;
    int lanes;
    const char* text;
    void (*set)(crest_sim::Instruction&);
  };
  const std::vector<Row> rows = {
      {"v_mfma_f32_16x16x4_4b_f16", Arch::kGfx942, 64, " cbsz:2 abid:3 blgp:5",
       [](crest_sim::Instruction& m) { m.cbsz = 2, m.abid = 3, m.blgp = 5; }},
      {"v_mfma_f32_32x32x1_2b_f32", Arch::kGfx950, 64, " cbsz:1 abid:1 blgp:3",
       [](crest_sim::Instruction& m) { m.cbsz = 1, m.abid = 1, m.blgp = 3; }},
      {"v_mfma_f64_16x16x4_f64", Arch::kGfx942, 64, " neg:[1,0,1]", [](crest_sim::Instruction& m) { m.blgp = 5; }},
      {"v_wmma_f32_16x16x16_f16", Arch::kGfx1100, 32, " neg_lo:[1,0,1] neg_hi:[0,1,1]",
       [](crest_sim::Instruction& m) { m.src[0].mods = kNeg, m.src[1].mods = kNegHi, m.src[2].mods = kNeg | kNegHi; }},
      {"v_wmma_i32_16x16x16_iu8", Arch::kGfx1151, 32, " neg_lo:[0,1,0] clamp",
       [](crest_sim::Instruction& m) { m.src[1].mods = kNeg, m.clamp = true; }},
      {"v_wmma_i32_16x16x16_iu4", Arch::kGfx1100, 64, " neg_lo:[1,0,0]",
       [](crest_sim::Instruction& m) { m.src[0].mods = kNeg; }}};
  uint32_t seed = 2000;
  for (const Row& row : rows) {
    const Instruction in = parse(row.name, row.arch, row.lanes);
    const Sizes n = sizes(in);
    Runner runner(in, ++seed);
    const Rows a = runner.rows(64, n.a), b = runner.rows(96, n.b), c = runner.rows(32, n.d);
    const std::string text = in.mnemonic + " " + tuple("v", 0, n.d) + ", " + tuple("v", 64, n.a) + ", " +
                             tuple("v", 96, n.b) + ", " + tuple("v", 32, n.d) + row.text;
    ASSERT_NO_FATAL_FAILURE(runner.run(in, text, assemble_one(in, text))) << text;
    crest_sim::Instruction modifiers;
    row.set(modifiers);
    EXPECT_EQ(runner.rows(0, n.d), direct(in, a, b, c, {}, modifiers)) << text;
    EXPECT_NE(runner.rows(0, n.d), direct(in, a, b, c, {}, {})) << text << ": the modifiers made no difference";
  }
}

TEST(MatrixInstruction, OpSelWritesTheUpperHalvesOfWmmaResults) {
  for (const int lanes : {32, 64}) {
    const Instruction in = parse("v_wmma_f16_16x16x16_f16", Arch::kGfx1100, lanes);
    const Sizes n = sizes(in);
    Runner runner(in, 3000);
    const Rows a = runner.rows(64, n.a), b = runner.rows(96, n.b), before = runner.rows(0, n.d);
    Rows c = before;
    for (auto& word : c) word >>= 16;
    const std::string text = in.mnemonic + " " + tuple("v", 0, n.d) + ", " + tuple("v", 64, n.a) + ", " +
                             tuple("v", 96, n.b) + ", " + tuple("v", 0, n.d) + " op_sel:[0,0,1]";
    ASSERT_NO_FATAL_FAILURE(runner.run(in, text, assemble_one(in, text))) << text;
    Rows want = direct(in, a, b, c, {}, {});
    for (size_t at = 0; at < want.size(); ++at) want[at] = want[at] << 16 | (before[at] & 0xffff);
    EXPECT_EQ(runner.rows(0, n.d), want);
  }
}

}  // namespace
}  // namespace crest_sim_test
