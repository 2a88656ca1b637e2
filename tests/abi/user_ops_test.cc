// PreMulSum: a scalar of its own on every rank, read when the operation says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "abi/ranks.h"

namespace falcon::abi {
namespace {

using testing::Each;
using testing::HasSubstr;

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

/// Bits that differ by rank and element, so that no two of and, or, xor are alike.
std::int64_t patternOf(int rank, size_t index) {
  return static_cast<std::int64_t>((index + 1) * 0x9e3779b97f4a7c15 ^ (static_cast<std::uint64_t>(rank) << 60 | rank));
}

template <class T>
void expectBitwise(ncclDataType_t type, int rank, int ranks, size_t count, ncclComm_t comm) {
  for (const auto which : {ncclFalconBitwiseAnd, ncclFalconBitwiseOr, ncclFalconBitwiseXor}) {
    ncclRedOp_t op;
    NCCL_OK(ncclFalconRedOpCreateBitwise(&op, which, type, comm));
    std::vector<T> mine(count * ranks), all(count * ranks), output(count * ranks, T{1});
    for (int other = 0; other < ranks; ++other)
      for (size_t i = 0; i < mine.size(); ++i) {
        const T value = static_cast<T>(patternOf(other, i));
        if (other == rank) mine[i] = value;
        if (other == 0)
          all[i] = value;
        else
          all[i] = static_cast<T>(which == ncclFalconBitwiseAnd  ? all[i] & value
                                  : which == ncclFalconBitwiseOr ? all[i] | value
                                                                 : all[i] ^ value);
      }
    NCCL_OK(ncclAllReduce(mine.data(), output.data(), mine.size(), type, op, comm, noStream));
    EXPECT_EQ(output, all) << type << " " << which;
    std::fill(output.begin(), output.end(), T{1});
    NCCL_OK(ncclReduce(mine.data(), output.data(), mine.size(), type, op, ranks - 1, comm, noStream));
    if (rank == ranks - 1) {
      EXPECT_EQ(output, all) << type << " " << which;
    }
    std::vector<T> block(count);
    NCCL_OK(ncclReduceScatter(mine.data(), block.data(), count, type, op, comm, noStream));
    EXPECT_TRUE(std::equal(block.begin(), block.end(), all.begin() + static_cast<std::ptrdiff_t>(rank * count)))
        << type << " " << which;
    NCCL_OK(ncclRedOpDestroy(op, comm));
  }
}

// One element, and enough for the algorithms of long calls.
TEST(Bitwise, CombineTheBitsOfEveryInteger) {
  for (const int ranks : {1, 2, 3, 4})
    withRanks(ranks, [&](int rank, ncclComm_t comm) {
      for (const size_t count : {size_t{1}, size_t{100'001}}) {
        expectBitwise<std::int8_t>(ncclInt8, rank, ranks, count, comm);
        expectBitwise<std::uint8_t>(ncclUint8, rank, ranks, count, comm);
        expectBitwise<std::int32_t>(ncclInt32, rank, ranks, count, comm);
        expectBitwise<std::uint32_t>(ncclUint32, rank, ranks, count, comm);
        expectBitwise<std::int64_t>(ncclInt64, rank, ranks, count, comm);
        expectBitwise<std::uint64_t>(ncclUint64, rank, ranks, count, comm);
      }
    });
}

TEST(Bitwise, RefuseWhatCannotBe) {
  const Communicator comm{alone()}, other{alone()};
  ncclRedOp_t op;
  for (const auto type : {ncclFloat16, ncclFloat32, ncclFloat64, ncclBfloat16, ncclFloat8e4m3, ncclFloat8e5m2}) {
    EXPECT_EQ(ncclFalconRedOpCreateBitwise(&op, ncclFalconBitwiseAnd, type, comm.handle), ncclInvalidArgument);
    EXPECT_THAT(ncclGetLastError(nullptr), HasSubstr("is no integer"));
  }
  EXPECT_EQ(ncclFalconRedOpCreateBitwise(&op, static_cast<ncclFalconBitwise_t>(3), ncclInt, comm.handle),
            ncclInvalidArgument);
  EXPECT_THAT(ncclGetLastError(nullptr), HasSubstr("3 is no bitwise reduction"));
  EXPECT_EQ(ncclFalconRedOpCreateBitwise(&op, ncclFalconBitwiseAnd, static_cast<ncclDataType_t>(12), comm.handle),
            ncclInvalidArgument);
  EXPECT_EQ(ncclFalconRedOpCreateBitwise(nullptr, ncclFalconBitwiseAnd, ncclInt, comm.handle), ncclInvalidArgument);
  NCCL_OK(ncclFalconRedOpCreateBitwise(&op, ncclFalconBitwiseAnd, ncclInt, comm.handle));
  int value = 6;
  EXPECT_EQ(ncclAllReduce(&value, &value, 1, ncclUint32, op, comm.handle, noStream), ncclInvalidArgument);
  EXPECT_EQ(ncclAllReduce(&value, &value, 1, ncclInt, op, other.handle, noStream), ncclInvalidArgument);
  NCCL_OK(ncclAllReduce(&value, &value, 1, ncclInt, op, comm.handle, noStream));
  EXPECT_EQ(value, 6);
  NCCL_OK(ncclRedOpDestroy(op, comm.handle));
  EXPECT_EQ(ncclAllReduce(&value, &value, 1, ncclInt, op, comm.handle, noStream), ncclInvalidArgument);
}

}  // namespace
}  // namespace falcon::abi
