#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "core/atomic_file.h"
#include "core/file_map.h"
#include "core/sha256.h"
#include "testing/temporary_folder.h"

namespace crest::core {
namespace {

using crest::testing::TemporaryFolder;

TEST(FileMap, RefusesWhatIsNotARegularFile) {
  const TemporaryFolder folder;
  ASSERT_EQ(::mkfifo((folder.path() / "fifo").c_str(), 0600), 0);
  for (const auto& [path, word] : {std::pair{folder.path(), "a directory"},
                                   {folder.path() / "fifo", "a named pipe"},
                                   {std::filesystem::path("/dev/zero"), "a device"},
                                   {folder.path() / "none", "No such file"}}) {
    const auto map = FileMap::open(path);
    ASSERT_FALSE(map.ok()) << path;
    EXPECT_NE(map.error().message.find(word), std::string::npos) << map.error().message;
  }
}

TEST(FileMap, NoticesAFileThatShrinks) {
  const TemporaryFolder folder;
  const auto path = folder.write("data", std::string(10000, 'x'));
  const auto map = FileMap::open(path);
  ASSERT_TRUE(map.ok());
  EXPECT_TRUE((*map)->verify_size().ok());
  std::filesystem::resize_file(path, 5000);
  EXPECT_FALSE((*map)->verify_size().ok());
}

TEST(AtomicFile, AppearsOnlyWhenCommitted) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "out";
  {
    auto file = AtomicFile::create(path);
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE(file->write("lost").ok());
  }
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  auto file = AtomicFile::create(path);
  ASSERT_TRUE(file->write("0123").ok());
  ASSERT_TRUE(file->write(std::string(3 << 20, 'y')).ok());
  ASSERT_TRUE(file->write_zeros(5).ok());
  ASSERT_TRUE(file->write_at(1, std::as_bytes(std::span("ab", 2))).ok());
  ASSERT_TRUE(file->commit().ok());
  const auto text = read_file(path, 1 << 30);
  EXPECT_EQ(*text, "0ab3" + std::string(3 << 20, 'y') + std::string(5, '\0'));
}

// Renaming over a device or a pipe would destroy it and report success.
TEST(AtomicFile, ReplacesNothingButFiles) {
  const TemporaryFolder folder;
  const auto fifo = folder.path() / "fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  std::filesystem::create_symlink(fifo, folder.path() / "link");
  for (const auto& [path, word] :
       {std::pair{fifo, "pipe"}, {folder.path() / "link", "pipe"}, {folder.path(), "directory"}}) {
    const auto file = AtomicFile::create(path);
    ASSERT_FALSE(file.ok()) << path;
    EXPECT_NE(file.error().message.find(word), std::string::npos) << file.error().message;
  }
  EXPECT_TRUE(std::filesystem::is_fifo(fifo));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 2);
}

TEST(AtomicFile, LinkKeepsPointingAtTheNewFile) {
  const TemporaryFolder folder;
  const auto target = folder.write("target", "old");
  std::filesystem::create_symlink(target, folder.path() / "link");
  auto file = AtomicFile::create(folder.path() / "link");
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(file->write("new").ok());
  ASSERT_TRUE(file->commit().ok());
  EXPECT_EQ(*read_file(target, 100), "new");
  EXPECT_TRUE(std::filesystem::is_symlink(folder.path() / "link"));
}

TEST(AtomicFile, MissingFolderIsAnError) {
  const auto file = AtomicFile::create("/nonexistent-folder/file");
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.error().code, ErrorCode::kNotFound);
}

TEST(Sha256, PublishedVectors) {
  const auto hash = [](std::string_view text) {
    return sha256_hex(std::as_bytes(std::span(text.data(), text.size())));
  };
  EXPECT_EQ(hash(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(hash("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hash(std::string(1000000, 'a')), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

}  // namespace
}  // namespace crest::core
