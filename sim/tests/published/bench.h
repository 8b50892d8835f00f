// What the checks of published objects share: a device, buffers with guards, kernel arguments in 16-byte slots, and the
// table of results.
#pragma once

#include <cmath>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "crest_sim/check.h"
#include "crest_sim/device.h"

namespace crest_sim::published {

float bf16_to_float(uint16_t x);
uint16_t float_to_bf16(float x);
/// E4M3 with bias 8 (FNUZ), the fp8 of gfx942.
float fp8_to_float(uint8_t x);
uint8_t float_to_fp8(float x);

/// One line of the table.
struct Line {
  std::string object, shape, problem;  ///< `problem` is empty if the case passed
  double error = 0;                    ///< largest absolute difference from the reference
  double share = 0;                    ///< largest difference ÷ allowance of its element
  uint64_t instructions = 0;
  double seconds = 0;
  std::vector<std::string> findings;  ///< of the checks that CREST_SIM_CHECK names
};

/// Compares element by element; `allowed` is the bound on the difference that the arithmetic of the kernel explains.
struct Comparison {
  double error = 0, share = 0;
  size_t worst = 0;
  void add(size_t index, double got, double want, double allowed);
};

/// Kernel arguments of AITER's host structs: every argument starts a 16-byte slot.
class Slots {
 public:
  explicit Slots(size_t bytes) : bytes_(bytes) {}
  template <class T>
  Slots& put(size_t offset, T value) {
    std::memcpy(bytes_.data() + offset, &value, sizeof(T));
    return *this;
  }
  std::span<const uint8_t> bytes() const { return bytes_; }

 private:
  std::vector<uint8_t> bytes_;
};

class Bench {
 public:
  Bench(std::string directory, std::function<void(const Line&)> report);

  /// Device memory with these values; reads of it outside are reported by the simulator.
  template <class T>
  T* upload(const std::vector<T>& values) {
    return static_cast<T*>(place(values.data(), values.size() * sizeof(T)));
  }
  /// Output: every byte starts as 0xff (a NaN in all formats), or as zero.
  template <class T>
  T* output(size_t count, bool zero = false) {
    return upload(std::vector<T>(count, zero ? T(0) : static_cast<T>(-1)));
  }
  float normal() { return std::normal_distribution<float>(0, 1)(random); }
  std::vector<uint16_t> normal_bf16(size_t count, float scale = 1);
  std::vector<uint8_t> normal_fp8(size_t count, float scale = 1);

  /// Runs the only kernel of an object and lets `judge` compare. Buffers are given back afterwards.
  void run(const std::string& object, const std::string& shape, Dim3 grid, Dim3 block, const Slots& arguments,
           const std::function<Comparison()>& judge);
  const std::string& directory() const { return directory_; }

  std::mt19937 random{1};

 private:
  void* place(const void* data, size_t bytes);
  std::string directory_;
  std::function<void(const Line&)> report_;
  std::shared_ptr<Memory> memory_;
  std::unique_ptr<Device> device_;
  std::vector<uint64_t> buffers_;
  std::unique_ptr<Checker> checker_;
};

/// (16, 16) weight shuffle of [..., rows, columns]: tiles of 16 rows by 32 columns, stored as slabs of 16 lanes by 16
/// bytes.
template <class T>
std::vector<T> shuffle_weight(const std::vector<T>& w, size_t rows, size_t columns) {
  constexpr size_t kPack = 16 / sizeof(T), kTile = 32;
  std::vector<T> out(w.size());
  size_t at = 0;
  for (size_t base = 0; base < w.size(); base += rows * columns)
    for (size_t r = 0; r < rows; r += 16)
      for (size_t c = 0; c < columns; c += kTile)
        for (size_t slab = 0; slab < kTile / kPack; ++slab)
          for (size_t i = 0; i < 16; ++i)
            for (size_t e = 0; e < kPack; ++e) out[at++] = w[base + (r + i) * columns + c + slab * kPack + e];
  return out;
}

void check_attention(Bench& bench);
void check_latent_attention(Bench& bench);
void check_gemm(Bench& bench);
void check_block_scale_gemm(Bench& bench);
void check_fused_moe(Bench& bench);
void check_paged_attention(Bench& bench);

/// Loads and decodes every object below `directory`; false if one has an unknown encoding or the two views of an
/// instruction differ. Prints the counts and what is not known.
bool decode_all(const std::string& directory, Arch arch);

}  // namespace crest_sim::published
