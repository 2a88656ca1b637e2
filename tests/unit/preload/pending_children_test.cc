#include "preload/pending_children.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

namespace falcon::preload {
namespace {

ncclComm_t handle(std::uintptr_t number) {
  return reinterpret_cast<ncclComm_t>(0x10000 + 64 * number);
}

PendingChild childAt(ncclComm_t* output) {
  return {std::make_shared<Making>(), output, nullptr, nullptr};
}

TEST(PendingChildren, IsFoundByWhatTheVendorWrote) {
  PendingChildren children;
  ncclComm_t first = nullptr, second = nullptr;
  const PendingChild child = childAt(&second);
  children.add(childAt(&first));
  children.add(child);
  EXPECT_FALSE(children.take(nullptr)) << "not written yet";
  EXPECT_FALSE(children.take(handle(2)));
  second = handle(2);
  const auto taken = children.take(handle(2));
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->making, child.making);
  EXPECT_FALSE(children.take(handle(2)));
  EXPECT_TRUE(children.any());
}

TEST(PendingChildren, IsFoundWhenItsOutputIsAnothersByThen) {
  PendingChildren children;
  ncclComm_t output = handle(1);
  children.add(childAt(&output));
  EXPECT_FALSE(children.take(handle(7)));
  output = handle(2);
  EXPECT_FALSE(children.take(handle(2)));
  EXPECT_TRUE(children.take(handle(1)));
}

TEST(PendingChildren, IsNotKeptWhereItCanBeFoundNoLonger) {
  PendingChildren children;
  auto* const gone = static_cast<ncclComm_t*>(
      mmap(nullptr, sizeof(void*), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  children.add(childAt(gone));
  EXPECT_FALSE(children.take(handle(1)));
  EXPECT_TRUE(children.any());
  munmap(gone, sizeof(void*));
  EXPECT_FALSE(children.take(handle(1)));
  EXPECT_FALSE(children.any()) << "its output is unmapped";

  ncclComm_t output = nullptr;
  const auto making = Making::start([](const auto&) { return Result(Making::Joined{}); });
  making->ended().wait();
  children.add({making, &output, nullptr, nullptr});
  EXPECT_FALSE(children.take(handle(1)));
  EXPECT_FALSE(children.any()) << "nobody waits for it";
}

TEST(PendingChildren, AreNoMoreThanSoMany) {
  PendingChildren children;
  std::vector<ncclComm_t> outputs(PendingChildren::most + 2);
  for (ncclComm_t& output : outputs) children.add(childAt(&output));
  for (std::size_t i = 0; i < outputs.size(); ++i) outputs[i] = handle(i);
  for (std::size_t i = 0; i < outputs.size(); ++i)
    EXPECT_EQ(children.take(handle(i)).has_value(), i >= 2) << "the oldest are not kept";
  EXPECT_FALSE(children.any());
}

}  // namespace
}  // namespace falcon::preload
