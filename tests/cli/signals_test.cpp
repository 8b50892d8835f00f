#include "cli/signals.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "core/file_map.h"
#include "testing/temporary_folder.h"

namespace crest::cli {
namespace {

// A model that another program truncates while it runs: one sentence, not a silent death by signal.
TEST(Signals, FileThatShrinksWhileItIsRead) {
  const crest::testing::TemporaryFolder folder;
  const auto path = folder.write("data", std::string(1 << 20, 'x'));
  const auto map = core::FileMap::open(path);
  ASSERT_TRUE(map.ok());
  std::filesystem::resize_file(path, 0);
  EXPECT_EXIT(
      {
        explain_bus_errors();
        const volatile std::byte* byte = (*map)->bytes().data() + (1 << 19);
        (void)*byte;
      },
      ::testing::ExitedWithCode(1), "became shorter");
}

}  // namespace
}  // namespace crest::cli
