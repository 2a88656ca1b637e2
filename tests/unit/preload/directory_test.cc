#include "preload/directory.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace falcon::preload {
namespace {

ncclComm_t handle(std::uintptr_t number) {
  return reinterpret_cast<ncclComm_t>(0x10000 + 64 * number);
}

std::shared_ptr<WatchedCommunicator> communicator(int size) {
  std::promise<void> done;
  done.set_value();
  return std::make_shared<WatchedCommunicator>(0, size, 0, done.get_future().share());
}

TEST(Directory, FindsWhatWasInsertedUntilItIsRemoved) {
  auto directory = std::make_unique<Directory>();
  EXPECT_FALSE(directory->find(handle(1)));
  EXPECT_FALSE(directory->find(nullptr));
  ASSERT_TRUE(directory->insert(handle(1), communicator(11)));
  ASSERT_TRUE(directory->insert(handle(2), communicator(12)));
  EXPECT_EQ((*directory->find(handle(1))).size(), 11);
  EXPECT_EQ((*directory->find(handle(2))).size(), 12);
  EXPECT_EQ(directory->remove(handle(1))->size(), 11);
  EXPECT_FALSE(directory->find(handle(1)));
  EXPECT_EQ(directory->remove(handle(1)), nullptr);
  EXPECT_EQ((*directory->find(handle(2))).size(), 12);
}

TEST(Directory, AnAddressThatComesAgainIsTheNewCommunicator) {
  auto directory = std::make_unique<Directory>();
  for (int size = 1; size < 3 * Directory::capacity; ++size) {
    ASSERT_TRUE(directory->insert(handle(7), communicator(size)));
    ASSERT_EQ((*directory->find(handle(7))).size(), size);
  }
}

TEST(Directory, PlacesAreUsedAgain) {
  auto directory = std::make_unique<Directory>();
  for (std::uintptr_t round = 0; round < 20; ++round) {
    for (std::uintptr_t i = 0; i < 500; ++i) ASSERT_TRUE(directory->insert(handle(1000 * round + i), communicator(1)));
    for (std::uintptr_t i = 0; i < 500; ++i) ASSERT_TRUE(directory->remove(handle(1000 * round + i)));
  }
}

TEST(Directory, SaysWhenItIsFull) {
  auto directory = std::make_unique<Directory>();
  int inserted = 0;
  for (std::uintptr_t i = 0; i < 2 * Directory::capacity; ++i)
    inserted += directory->insert(handle(i), communicator(1));
  EXPECT_LE(inserted, Directory::capacity);
  EXPECT_GT(inserted, Directory::capacity / 2);
}

TEST(Directory, WhatIsInUseStaysThoughItIsRemovedAndItsAddressComesAgain) {
  auto directory = std::make_unique<Directory>();
  ASSERT_TRUE(directory->insert(handle(1), communicator(11)));
  const Directory::Use use = directory->find(handle(1));
  std::weak_ptr<WatchedCommunicator> kept = use.share();
  directory->remove(handle(1));
  ASSERT_TRUE(directory->insert(handle(1), communicator(12)));
  EXPECT_EQ((*use).size(), 11);
  EXPECT_EQ((*directory->find(handle(1))).size(), 12);
  EXPECT_FALSE(kept.expired());
}

TEST(Directory, ManyThreadsFindWhileOneRemovesAndInserts) {
  auto directory = std::make_unique<Directory>();
  std::atomic<bool> stop{false};
  std::atomic<int> found{0};
  std::vector<std::thread> readers;
  for (int i = 0; i < 3; ++i)
    readers.emplace_back([&] {
      while (!stop)
        if (const Directory::Use use = directory->find(handle(1))) found += (*use).size() == 5;
    });
  for (int i = 0; i < 20000; ++i) {
    ASSERT_TRUE(directory->insert(handle(1), communicator(5)));
    if (i % 64 == 0) std::this_thread::yield();
    directory->remove(handle(1));
  }
  ASSERT_TRUE(directory->insert(handle(1), communicator(5)));
  while (found == 0) std::this_thread::yield();
  stop = true;
  for (std::thread& reader : readers) reader.join();
}

}  // namespace
}  // namespace falcon::preload
