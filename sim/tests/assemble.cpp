#include "assemble.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

namespace crest_sim::test {

std::vector<Assembled> assemble(const std::string& cpu, uint32_t wave_size, const std::vector<std::string>& lines) {
  std::string base = (std::filesystem::temp_directory_path() / "crest_sim_asm_XXXXXX").string();
  EXPECT_NE(mkdtemp(base.data()), nullptr);
  std::string source = base + "/in.s", out = base + "/out", err = base + "/err";
  std::ofstream file(source);
  for (const std::string& line : lines) file << line << "\n";
  file.close();
  std::string features = cpu.starts_with("gfx9") ? ""
                         : wave_size == 32       ? " -mattr=+wavefrontsize32,-wavefrontsize64"
                                                 : " -mattr=-wavefrontsize32,+wavefrontsize64";
  std::string command = std::string(CREST_SIM_LLVM_MC) + " -triple=amdgcn-amd-amdhsa -mcpu=" + cpu + features +
                        " -show-encoding " + source + " >" + out + " 2>" + err;
  int status = std::system(command.c_str());
  static_cast<void>(status);  // refused lines make it fail; they are found below

  std::set<size_t> refused;
  std::ifstream errors(err);
  for (std::string line; std::getline(errors, line);) {
    size_t at = line.find("in.s:");
    if (at != std::string::npos && line.find(": error:") != std::string::npos)
      refused.insert(std::stoul(line.substr(at + 5)));
  }
  std::vector<std::vector<uint8_t>> encodings;
  std::ifstream output(out);
  for (std::string line; std::getline(output, line);) {
    size_t at = line.find("encoding: [");
    if (at == std::string::npos) continue;
    std::vector<uint8_t> bytes;
    std::stringstream list(line.substr(at + 11));
    for (std::string item; std::getline(list, item, ',');)
      bytes.push_back(static_cast<uint8_t>(std::stoul(item, nullptr, 16)));
    encodings.push_back(bytes);
  }
  std::vector<Assembled> result;
  size_t next = 0;
  for (size_t n = 0; n < lines.size(); ++n) {
    Assembled a{lines[n], {}};
    if (!refused.contains(n + 1) && next < encodings.size()) a.bytes = encodings[next++];
    result.push_back(a);
  }
  EXPECT_EQ(next, encodings.size()) << "llvm-mc gave another number of encodings than expected";
  for (const std::string& f : {source, out, err}) unlink(f.c_str());
  rmdir(base.c_str());
  return result;
}

}  // namespace crest_sim::test
