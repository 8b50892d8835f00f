// Random tests of vector operations: every form the assembler accepts (scalars, constants, neg/abs, clamp, DPP, SDWA,
// op_sel, half registers) on random registers and EXEC masks, against a reference that looks at one lane at a time and
// knows nothing of the interpreter. The whole register file must come out as expected, so stray writes are found as
// well.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "assemble.h"
#include "machine.h"

namespace crest_sim::test {

/// Operand types: i 32-bit integer, f f32, s 16-bit integer, h f16, q 64-bit integer, d f64.
using Reference = std::function<uint64_t(const uint64_t* sources)>;

struct ValuOp {
  std::string name;
  std::string types;  ///< result, then sources: "fff"
  Reference reference;
  Reference saturating = nullptr;  ///< with clamp, for integers
  double tolerance = 0;            ///< relative, for approximate operations
  bool accumulates = false;        ///< the last source is the destination
};

struct SourceForm {
  enum Kind { kVector, kScalar, kConstant } kind = kVector;
  int reg = 0;
  uint64_t constant = 0;
  bool neg = false, abs = false, sext = false, high = false;
  int select = 6;
};

struct Form {
  std::string text;
  std::vector<SourceForm> sources;
  int dst = 10;
  bool clamp = false, dst_high = false, keep_half = false, sdwa = false;
  int dst_select = 6, dst_unused = 0;
  std::function<int(int)> source_lane;  ///< DPP: -1 invalid
  int row_mask = 15, bank_mask = 15;
  bool bound = false, fetch_inactive = false;
};

class ValuTester {
 public:
  ValuTester(Arch arch, uint32_t lanes);
  /// Adds what the assembler accepts of the forms of `op`.
  void add(const ValuOp& op);
  /// Assembles everything and checks `cases` lanes per operation.
  void run(int cases);

 private:
  struct Planned {
    const ValuOp* op;
    Form form;
  };
  void plan(const ValuOp& op);
  void check(Machine& m, const ValuOp& op, const Form& form, const Decoded& d);
  uint64_t read_source(Machine& m, const ValuOp& op, const Form& form, size_t index, int lane,
                       const std::vector<uint32_t>& before);

  Arch arch_;
  uint32_t lanes_;
  bool cdna_;
  std::vector<ValuOp> ops_;
  std::vector<Planned> planned_;
  std::mt19937_64 random_{7};
};

uint64_t random_value(std::mt19937_64& random, char type);

inline float f32(uint64_t x) { return std::bit_cast<float>(static_cast<uint32_t>(x)); }
inline uint64_t bits(float x) { return std::bit_cast<uint32_t>(x); }
inline double f64(uint64_t x) { return std::bit_cast<double>(x); }
inline uint64_t bits(double x) { return std::bit_cast<uint64_t>(x); }

/// f16 by definition: the value of the bits, and the nearest f16 by search.
double half_value(uint64_t x);
uint64_t nearest_half(__float128 x);

}  // namespace crest_sim::test
