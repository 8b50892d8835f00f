// crest_sim_published DIR [SUITE…]: checks published objects below DIR (the folder that contains gfx942/).
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "bench.h"

namespace {

using namespace crest_sim;
using namespace crest_sim::published;

struct Suite {
  const char* name;
  void (*run)(Bench&);
};
constexpr Suite kSuites[] = {{"attention", check_attention}, {"latent-attention", check_latent_attention},
                             {"gemm", check_gemm},           {"block-scale-gemm", check_block_scale_gemm},
                             {"fused-moe", check_fused_moe}, {"paged-attention", check_paged_attention}};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr,
               "usage: {} DIR [decode|attention|latent-attention|gemm|block-scale-gemm|fused-moe|paged-attention]…\n",
               argv[0]);
    return 2;
  }
  std::string root = argv[1];
  std::vector<std::string> wanted(argv + 2, argv + argc);
  auto selected = [&](std::string_view name) {
    return wanted.empty() || std::find(wanted.begin(), wanted.end(), name) != wanted.end();
  };
  if (!std::filesystem::is_directory(root + "/gfx942")) {
    fmt::print(stderr, "{} has no folder gfx942 (expected: the folder hsa of a copy of ROCm/aiter)\n", root);
    return 2;
  }
  size_t cases = 0, failed = 0;
  if (selected("decode")) {
    failed += !decode_all(root + "/gfx942", Arch::kGfx942);
    if (std::filesystem::is_directory(root + "/gfx950")) decode_all(root + "/gfx950", Arch::kGfx950);
  }
  Bench bench(root + "/gfx942", [&](const Line& l) {
    ++cases;
    failed += !l.problem.empty();
    fmt::print("{:<58} {:<44} {:>9.2e} {:>6.3f} {:>10} {:>7.2f}  {}\n", l.object, l.shape, l.error, l.share,
               l.instructions, l.seconds, l.problem.empty() ? "ok" : "FAILED: " + l.problem);
    for (const std::string& finding : l.findings) fmt::print("  {}\n", finding);
    std::fflush(stdout);
  });
  for (const Suite& s : kSuites) {
    if (!selected(s.name)) continue;
    fmt::print("\n{:<58} {:<44} {:>9} {:>6} {:>10} {:>7}\n", s.name, "shape", "max error", "share", "wave insts",
               "seconds");
    s.run(bench);
  }
  fmt::print("\n{} cases, {} failed\n", cases, failed);
  return failed ? 1 : 0;
}
