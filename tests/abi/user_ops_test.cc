// PreMulSum: a scalar of its own on every rank, read when the operation says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "abi/ranks.h"

namespace falcon::abi {
namespace {

using testing::Each;
using testing::HasSubstr;

cudaStream_t const noStream = nullptr;

/// One number in a type's own encoding.
struct Encoded {
  ncclDataType_t type;
  size_t size;
  std::uint64_t (*bits)(int);
};
template <class T>
std::uint64_t plain(int number) {
  const T value = static_cast<T>(number);
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  return bits;
}
/// Of 1, 2, 3, 6, 9, 12 only, by hand.
template <std::uint64_t one, std::uint64_t two, std::uint64_t three, std::uint64_t six, std::uint64_t nine,
          std::uint64_t twelve>
std::uint64_t listed(int number) {
  switch (number) {
    case 1:
      return one;
    case 2:
      return two;
    case 3:
      return three;
    case 6:
      return six;
    case 9:
      return nine;
    default:
      EXPECT_EQ(number, 12);
      return twelve;
  }
}
const Encoded types[] = {{ncclInt8, 1, plain<std::int8_t>},
                         {ncclUint8, 1, plain<std::uint8_t>},
                         {ncclInt32, 4, plain<std::int32_t>},
                         {ncclUint32, 4, plain<std::uint32_t>},
                         {ncclInt64, 8, plain<std::int64_t>},
                         {ncclUint64, 8, plain<std::uint64_t>},
                         {ncclFloat32, 4, plain<float>},
                         {ncclFloat64, 8, plain<double>},
                         {ncclFloat16, 2, listed<0x3c00, 0x4000, 0x4200, 0x4600, 0x4880, 0x4a00>},
                         {ncclBfloat16, 2, listed<0x3f80, 0x4000, 0x4040, 0x40c0, 0x4110, 0x4140>},
                         {ncclFloat8e4m3, 1, listed<0x38, 0x40, 0x44, 0x4c, 0x51, 0x54>},
                         {ncclFloat8e5m2, 1, listed<0x3c, 0x40, 0x42, 0x46, 0, 0x4a>}};

std::vector<char> repeated(const Encoded& kind, int number, size_t count) {
  const std::uint64_t bits = kind.bits(number);
  std::vector<char> bytes(kind.size * count);
  for (size_t i = 0; i < count; ++i) std::memcpy(&bytes[i * kind.size], &bits, kind.size);
  return bytes;
}

TEST(PreMulSum, MultipliesEveryRanksInputByItsOwnScalar) {
  withRanks(3, [](int rank, ncclComm_t comm) {
    for (const Encoded& kind : types)
      for (const auto residence : {ncclScalarDevice, ncclScalarHostImmediate}) {
        constexpr size_t count = 37;
        // 1*2 + 2*2 + 3*2 = 12
        auto scalar = repeated(kind, rank + 1, 1);
        const auto input = repeated(kind, 2, count), sum = repeated(kind, 12, count);
        ncclRedOp_t op;
        NCCL_OK(ncclRedOpCreatePreMulSum(&op, scalar.data(), kind.type, residence, comm));
        std::vector<char> output(input.size());
        NCCL_OK(ncclAllReduce(input.data(), output.data(), count, kind.type, op, comm, noStream));
        EXPECT_EQ(output, sum) << kind.type;
        std::fill(output.begin(), output.end(), 0);
        NCCL_OK(ncclReduce(input.data(), rank == 2 ? output.data() : nullptr, count, kind.type, op, 2, comm, noStream));
        if (rank == 2) {
          EXPECT_EQ(output, sum) << kind.type;
        }
        const auto blocks = repeated(kind, 2, 3 * count);
        NCCL_OK(ncclReduceScatter(blocks.data(), output.data(), count, kind.type, op, comm, noStream));
        EXPECT_EQ(output, sum) << kind.type;
        std::copy(input.begin(), input.end(), output.begin());
        NCCL_OK(ncclAllReduce(output.data(), output.data(), count, kind.type, op, comm, noStream));
        EXPECT_EQ(output, sum) << kind.type;
        NCCL_OK(ncclRedOpDestroy(op, comm));
      }
  });
}

TEST(PreMulSum, OneRankMultipliesToo) {
  const Communicator comm{alone()};
  float scalar = 3, in[] = {1, 2, 4}, out[3] = {};
  ncclRedOp_t op;
  NCCL_OK(ncclRedOpCreatePreMulSum(&op, &scalar, ncclFloat, ncclScalarHostImmediate, comm.handle));
  NCCL_OK(ncclAllReduce(in, out, 3, ncclFloat, op, comm.handle, noStream));
  EXPECT_THAT(out, testing::ElementsAre(3, 6, 12));
  NCCL_OK(ncclReduceScatter(in, in, 3, ncclFloat, op, comm.handle, noStream));
  EXPECT_THAT(in, testing::ElementsAre(3, 6, 12));
}

TEST(PreMulSum, HostImmediateIsCopiedAndDeviceIsReadWhenTheOperationRuns) {
  const Communicator comm{alone()};
  float scalar = 2;
  const float in = 10;
  ncclRedOp_t copied, read;
  NCCL_OK(ncclRedOpCreatePreMulSum(&copied, &scalar, ncclFloat, ncclScalarHostImmediate, comm.handle));
  NCCL_OK(ncclRedOpCreatePreMulSum(&read, &scalar, ncclFloat, ncclScalarDevice, comm.handle));
  EXPECT_NE(copied, read);
  float first = 0, second = 0;
  NCCL_OK(ncclGroupStart());
  NCCL_OK(ncclAllReduce(&in, &first, 1, ncclFloat, copied, comm.handle, noStream));
  NCCL_OK(ncclAllReduce(&in, &second, 1, ncclFloat, read, comm.handle, noStream));
  // Nothing has run yet, and an op may go as soon as the call that uses it has returned.
  NCCL_OK(ncclRedOpDestroy(copied, comm.handle));
  NCCL_OK(ncclRedOpDestroy(read, comm.handle));
  scalar = 5;
  NCCL_OK(ncclGroupEnd());
  EXPECT_EQ(first, 20);
  EXPECT_EQ(second, 50);
}

TEST(PreMulSum, BelongsToItsCommunicatorAndType) {
  const Communicator comm{alone()}, other{alone()};
  float scalar = 2, in[2] = {}, out[2] = {};
  ncclRedOp_t op;
  NCCL_OK(ncclRedOpCreatePreMulSum(&op, &scalar, ncclFloat, ncclScalarHostImmediate, comm.handle));
  EXPECT_EQ(ncclAllReduce(in, out, 1, ncclDouble, op, comm.handle, noStream), ncclInvalidArgument);
  EXPECT_THAT(ncclGetLastError(comm.handle), HasSubstr("made for float, not for double"));
  EXPECT_EQ(ncclAllReduce(in, out, 1, ncclFloat, op, other.handle, noStream), ncclInvalidArgument);
  EXPECT_EQ(ncclRedOpDestroy(op, other.handle), ncclInvalidArgument);
  NCCL_OK(ncclRedOpDestroy(op, comm.handle));
  EXPECT_EQ(ncclRedOpDestroy(op, comm.handle), ncclInvalidArgument);
  EXPECT_EQ(ncclAllReduce(in, out, 1, ncclFloat, op, comm.handle, noStream), ncclInvalidArgument);
  EXPECT_EQ(ncclRedOpDestroy(ncclSum, comm.handle), ncclInvalidArgument);
  EXPECT_THAT(ncclGetLastError(nullptr), HasSubstr("sum is built in"));
}

TEST(PreMulSum, RefusesWhatCannotBe) {
  const Communicator comm{alone()};
  float scalar = 2;
  ncclRedOp_t op;
  const auto create = [&](ncclRedOp_t* output, void* from, int type, int residence) {
    return ncclRedOpCreatePreMulSum(output, from, static_cast<ncclDataType_t>(type),
                                    static_cast<ncclScalarResidence_t>(residence), comm.handle);
  };
  EXPECT_EQ(create(nullptr, &scalar, ncclFloat, ncclScalarDevice), ncclInvalidArgument);
  EXPECT_EQ(create(&op, nullptr, ncclFloat, ncclScalarDevice), ncclInvalidArgument);
  EXPECT_EQ(create(&op, &scalar, 12, ncclScalarDevice), ncclInvalidArgument);
  EXPECT_EQ(create(&op, &scalar, -1, ncclScalarDevice), ncclInvalidArgument);
  EXPECT_EQ(create(&op, &scalar, ncclFloat, 2), ncclInvalidArgument);
}

}  // namespace
}  // namespace falcon::abi
