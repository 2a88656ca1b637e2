#include "gpu_module.h"

#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { largestSize = 4096, smallestSize = 512, hostBytes = 32 << 20 };

/* What one measurement holds; all of it is given back at its end. */
struct Bench {
  int size;          /* of the square matrices */
  void* matrices[3]; /* size x size x 4 bytes each */
  void* host;        /* pinned */
  size_t hostRoom;   /* bytes */
  cudaStream_t stream;
  cudaEvent_t start, stop;
  cublasHandle_t blas;
  cublasLtHandle_t blasLt;
};

static int failed(const char* what, const char* reason, char* why, size_t room) {
  snprintf(why, room, "%s: %s", what, reason);
  return 1;
}

#define CUDA_OR_RETURN(call)                                                              \
  do {                                                                                    \
    const cudaError_t error = (call);                                                     \
    if (error != cudaSuccess) return failed(#call, cudaGetErrorString(error), why, room); \
  } while (0)
#define BLAS_OR_RETURN(call)                                                                             \
  do {                                                                                                   \
    const cublasStatus_t status = (call);                                                                \
    if (status != CUBLAS_STATUS_SUCCESS) return failed(#call, cublasGetStatusString(status), why, room); \
  } while (0)

static int countDevices(int* count, char* why, size_t room) {
  CUDA_OR_RETURN(cudaGetDeviceCount(count));
  return 0;
}

/* Bytes 0x30 to 0x37 are ordinary positive numbers in each of the formats, alone and in rows: 0.5 to 0.94 in f8, 0.13
 * to 0.4 in f16, about 1e-9 in bf16 and f32. Zeros would need less power than a training job's numbers. */
static void fill(unsigned char* bytes, size_t count) {
  unsigned state = 1;
  for (size_t i = 0; i < count; ++i) {
    state = state * 1664525u + 1013904223u;
    bytes[i] = (unsigned char)(0x30 | ((state >> 24) & 7));
  }
}

static int prepare(struct Bench* bench, char* why, size_t room) {
  CUDA_OR_RETURN(cudaStreamCreateWithFlags(&bench->stream, cudaStreamNonBlocking));
  CUDA_OR_RETURN(cudaEventCreate(&bench->start));
  CUDA_OR_RETURN(cudaEventCreate(&bench->stop));
  bench->hostRoom = hostBytes;
  CUDA_OR_RETURN(cudaMallocHost(&bench->host, bench->hostRoom));
  fill(bench->host, bench->hostRoom);
  /* A training job leaves little memory; smaller matrices still compare devices that all use them. */
  for (bench->size = largestSize;; bench->size /= 2) {
    const size_t bytes = (size_t)bench->size * bench->size * 4;
    int made = 0;
    while (made < 3 && cudaMalloc(&bench->matrices[made], bytes) == cudaSuccess) ++made;
    if (made == 3) break;
    cudaGetLastError(); /* it was expected, and must not be found by the job */
    while (made > 0) cudaFree(bench->matrices[--made]);
    memset(bench->matrices, 0, sizeof bench->matrices);
    if (bench->size == smallestSize)
      return failed("GPU test", "the device has no memory left, not even 3 MiB", why, room);
  }
  const size_t bytes = (size_t)bench->size * bench->size * 4;
  for (int i = 0; i < 3; ++i)
    for (size_t at = 0; at < bytes; at += bench->hostRoom) {
      const size_t part = bytes - at < bench->hostRoom ? bytes - at : bench->hostRoom;
      CUDA_OR_RETURN(
          cudaMemcpyAsync((char*)bench->matrices[i] + at, bench->host, part, cudaMemcpyHostToDevice, bench->stream));
    }
  BLAS_OR_RETURN(cublasCreate(&bench->blas));
  BLAS_OR_RETURN(cublasSetStream(bench->blas, bench->stream));
  BLAS_OR_RETURN(cublasLtCreate(&bench->blasLt));
  CUDA_OR_RETURN(cudaStreamSynchronize(bench->stream));
  return 0;
}

static void giveBack(struct Bench* bench) {
  if (bench->stream) cudaStreamSynchronize(bench->stream);
  if (bench->blasLt) cublasLtDestroy(bench->blasLt);
  if (bench->blas) cublasDestroy(bench->blas);
  for (int i = 0; i < 3; ++i) cudaFree(bench->matrices[i]);
  if (bench->host) cudaFreeHost(bench->host);
  if (bench->stop) cudaEventDestroy(bench->stop);
  if (bench->start) cudaEventDestroy(bench->start);
  if (bench->stream) cudaStreamDestroy(bench->stream);
  cudaGetLastError();
}

/* Enqueues one piece of work; 0, or not possible on this device. */
typedef int (*Work)(struct Bench* bench, int kind);

static int multiply(struct Bench* bench, int kind) {
  static const struct {
    cudaDataType_t type;
    cublasComputeType_t compute;
  } kinds[] = {
      [falconGpuFloat32] = {CUDA_R_32F, CUBLAS_COMPUTE_32F},
      [falconGpuTensorFloat32] = {CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32},
      [falconGpuFloat16] = {CUDA_R_16F, CUBLAS_COMPUTE_32F},
      [falconGpuBfloat16] = {CUDA_R_16BF, CUBLAS_COMPUTE_32F},
  };
  const float one = 1, zero = 0;
  const int n = bench->size;
  const cudaDataType_t type = kinds[kind].type;
  return cublasGemmEx(bench->blas, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one, bench->matrices[0], type, n,
                      bench->matrices[1], type, n, &zero, bench->matrices[2], type, n, kinds[kind].compute,
                      CUBLAS_GEMM_DEFAULT) != CUBLAS_STATUS_SUCCESS;
}

/* Products of f8 exist in cublasLt only: the first factor transposed, the result in bf16. */
static int multiplyFloat8(struct Bench* bench, int kind) {
  (void)kind;
  const float one = 1, zero = 0;
  const int n = bench->size;
  const cublasOperation_t transposed = CUBLAS_OP_T;
  cublasLtMatmulDesc_t product = NULL;
  cublasLtMatrixLayout_t factor = NULL, result = NULL;
  cublasLtMatmulPreference_t preference = NULL;
  cublasLtMatmulHeuristicResult_t found;
  const size_t workspace = 0;
  int candidates = 0;
  int wrong = cublasLtMatmulDescCreate(&product, CUBLAS_COMPUTE_32F, CUDA_R_32F) != CUBLAS_STATUS_SUCCESS ||
              cublasLtMatmulDescSetAttribute(product, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof transposed) !=
                  CUBLAS_STATUS_SUCCESS ||
              cublasLtMatrixLayoutCreate(&factor, CUDA_R_8F_E4M3, n, n, n) != CUBLAS_STATUS_SUCCESS ||
              cublasLtMatrixLayoutCreate(&result, CUDA_R_16BF, n, n, n) != CUBLAS_STATUS_SUCCESS ||
              cublasLtMatmulPreferenceCreate(&preference) != CUBLAS_STATUS_SUCCESS ||
              cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace,
                                                   sizeof workspace) != CUBLAS_STATUS_SUCCESS ||
              cublasLtMatmulAlgoGetHeuristic(bench->blasLt, product, factor, factor, result, result, preference, 1,
                                             &found, &candidates) != CUBLAS_STATUS_SUCCESS ||
              candidates == 0 ||
              cublasLtMatmul(bench->blasLt, product, &one, bench->matrices[0], factor, bench->matrices[1], factor,
                             &zero, bench->matrices[2], result, bench->matrices[2], result, &found.algo, NULL, 0,
                             bench->stream) != CUBLAS_STATUS_SUCCESS;
  if (preference) cublasLtMatmulPreferenceDestroy(preference);
  if (result) cublasLtMatrixLayoutDestroy(result);
  if (factor) cublasLtMatrixLayoutDestroy(factor);
  if (product) cublasLtMatmulDescDestroy(product);
  return wrong;
}

static int copyWithin(struct Bench* bench, int kind) {
  (void)kind;
  return cudaMemcpyAsync(bench->matrices[2], bench->matrices[0], (size_t)bench->size * bench->size * 4,
                         cudaMemcpyDeviceToDevice, bench->stream) != cudaSuccess;
}

static size_t crossing(const struct Bench* bench) {
  const size_t bytes = (size_t)bench->size * bench->size * 4;
  return bytes < bench->hostRoom ? bytes : bench->hostRoom;
}
static int copyIn(struct Bench* bench, int kind) {
  (void)kind;
  return cudaMemcpyAsync(bench->matrices[0], bench->host, crossing(bench), cudaMemcpyHostToDevice, bench->stream) !=
         cudaSuccess;
}
static int copyOut(struct Bench* bench, int kind) {
  (void)kind;
  return cudaMemcpyAsync(bench->host, bench->matrices[1], crossing(bench), cudaMemcpyDeviceToHost, bench->stream) !=
         cudaSuccess;
}

static int timed(struct Bench* bench, Work work, int kind, int count, float* milliseconds) {
  if (cudaEventRecord(bench->start, bench->stream) != cudaSuccess) return 1;
  for (int i = 0; i < count; ++i)
    if (work(bench, kind)) return 1;
  return cudaEventRecord(bench->stop, bench->stream) != cudaSuccess ||
         cudaEventSynchronize(bench->stop) != cudaSuccess ||
         cudaEventElapsedTime(milliseconds, bench->start, bench->stop) != cudaSuccess;
}

/* Seconds of one piece of work; 0 where the device cannot do it. */
static double secondsOf(struct Bench* bench, Work work, int kind, double span) {
  float once = 0, all = 0;
  /* The first one loads the kernel. */
  if (timed(bench, work, kind, 1, &once) || timed(bench, work, kind, 1, &once) || once <= 0) {
    cudaGetLastError();
    return 0;
  }
  const double fits = span * 1e3 / once;
  const int count = fits < 1 ? 1 : fits > 10000 ? 10000 : (int)fits;
  if (timed(bench, work, kind, count, &all)) {
    cudaGetLastError();
    return 0;
  }
  return all / 1e3 / count;
}

static int measureOn(struct Bench* bench, double seconds, struct FalconGpuFigures* figures, char* why, size_t room) {
  if (prepare(bench, why, room)) return 1;
  const double span = seconds / (falconGpuProducts + 3);
  const double operations = 2.0 * bench->size * bench->size * bench->size;
  for (int kind = 0; kind < falconGpuProducts; ++kind) {
    const double once = secondsOf(bench, kind == falconGpuFloat8 ? multiplyFloat8 : multiply, kind, span);
    figures->operationsPerSecond[kind] = once > 0 ? operations / once : 0;
  }
  const struct {
    Work work;
    double bytes;
    double* rate;
  } copies[] = {{copyWithin, 8.0 * bench->size * bench->size, &figures->copyRate},
                {copyIn, (double)crossing(bench), &figures->toDeviceRate},
                {copyOut, (double)crossing(bench), &figures->fromDeviceRate}};
  for (size_t i = 0; i < sizeof copies / sizeof *copies; ++i) {
    const double once = secondsOf(bench, copies[i].work, 0, span);
    *copies[i].rate = once > 0 ? copies[i].bytes / once : 0;
  }
  if (figures->operationsPerSecond[falconGpuFloat32] <= 0)
    return failed("GPU test", "not even a product of f32 matrices could be made", why, room);
  return 0;
}

/* On a thread of Falcon's own, which stays on that device: to go back to one that it has never used would make a context
 * there, half a gigabyte of every rank on the first GPU of a node. */
static int measure(int device, double seconds, struct FalconGpuFigures* figures, char* why, size_t room) {
  int before = 0;
  CUDA_OR_RETURN(cudaGetDevice(&before));
  if (device < 0) device = before;
  memset(figures, 0, sizeof *figures);
  struct cudaDeviceProp properties;
  CUDA_OR_RETURN(cudaGetDeviceProperties(&properties, device));
  snprintf(figures->device, sizeof figures->device, "%.63s", properties.name);
  CUDA_OR_RETURN(cudaDeviceGetPCIBusId(figures->bus, sizeof figures->bus, device));
  if (device != before) CUDA_OR_RETURN(cudaSetDevice(device));
  /* The application may be held in the middle of capturing a graph, which what allocates memory would spoil. */
  enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  CUDA_OR_RETURN(cudaThreadExchangeStreamCaptureMode(&mode));
  struct Bench bench;
  memset(&bench, 0, sizeof bench);
  const int wrong = measureOn(&bench, seconds, figures, why, room);
  giveBack(&bench);
  cudaThreadExchangeStreamCaptureMode(&mode);
  return wrong;
}

__attribute__((visibility("default"))) const struct FalconGpuModule* falconGpuModule(void) {
  static const struct FalconGpuModule module = {falconGpuModuleVersion, "cuBLAS", countDevices, measure};
  return &module;
}
