#include <gtest/gtest.h>

#include <cstdlib>

int main(int argc, char** argv) {
  setenv("CREST_SIM_DEVICES", "gfx942,gfx1100", 1);
  setenv("CREST_SIM_THREADS", "2", 1);
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
