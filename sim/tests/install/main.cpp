// Both interfaces of the installed library: the simulator's own and HIP's.
#include <crest_sim/device.h>
#include <crest_sim/hip/hip_runtime_api.h>
#include <crest_sim/profile.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <vector>

int main(int, char** argv) {
  std::ifstream in(argv[1], std::ios::binary);
  std::vector<uint8_t> file{std::istreambuf_iterator<char>(in), {}};
  auto memory = crest_sim::Memory::create();
  auto device = crest_sim::Device::create(crest_sim::Arch::kGfx942, *memory);
  auto module = (*device)->load(file);
  if (!module) return std::puts(module.error().c_str()), 1;
  auto* a = reinterpret_cast<float*>(*(*memory)->allocate(400));
  auto* c = reinterpret_cast<float*>(*(*memory)->allocate(400));
  for (int i = 0; i < 100; ++i) a[i] = static_cast<float>(i);
  crest_sim::Profile profile;
  crest_sim::LaunchConfig config{.grid = {1}, .block = {256}};
  config.observers.push_back(&profile);
  auto result =
      (*device)->launch(**module, "vadd", config, crest_sim::Arguments().add(a).add(a).add(c).add(100).bytes());
  if (!result.ok) return std::puts(result.fault.to_string().c_str()), 1;
  if (c[99] != 198.0f || profile.report().kernels.size() != 1) return 1;
  hipModule_t loaded = nullptr;
  return hipModuleLoad(&loaded, argv[1]) == hipSuccess ? 0 : 1;
}
