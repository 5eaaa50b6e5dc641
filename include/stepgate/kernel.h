/* SPDX-License-Identifier: MIT
 * The C interface between stepgate and a shared library that has a kernel of stepgate's catalogue.
 * It is plain C without CUDA headers: a stream is a cudaStream_t passed as void*, operands are
 * device pointers. `stepgate kernel describe NAME` prints the sizes, attributes and operands of a
 * kernel.
 *
 * A library exports once STEPGATE_KERNEL_LIBRARY(); and for each of its kernels a function
 *   STEPGATE_EXPORT int NAME(const stepgate_request*, stepgate_prepared*);
 * which does everything that is slow: stepgate calls it once for each shape, before the first step.
 * The launch that it names enqueues work on the given stream and does nothing else: it waits for
 * nothing, allocates nothing, uses no other stream, changes no limit of the device, and leaves
 * nothing behind that a later launch reads.
 *
 * Versions: `abi` changes when a library that was built before would misread something. Structs
 * otherwise only grow at the end, and `size` is the size that its filler knew: a reader looks at no
 * member beyond it. Formats, dtypes, sizes, attributes and operands are only added; a library
 * answers STEPGATE_UNSUPPORTED to what it does not know. */
#ifndef STEPGATE_KERNEL_H
#define STEPGATE_KERNEL_H

#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#define STEPGATE_KERNEL_ABI 1u

/* tf32 stores fp32 and may round the factors of products to 10 bits of mantissa. */
enum { STEPGATE_FP32 = 0, STEPGATE_TF32 = 1, STEPGATE_BF16 = 2, STEPGATE_FP16 = 3 };

enum { STEPGATE_READ = 0, STEPGATE_WRITE = 1, STEPGATE_READ_WRITE = 2 };

/* storage: the dtype of the launch; single: fp32; index: int32; count: uint64; word: uint32; byte:
 * uint8; control: fp32 words that steer an update; scratch: bytes without a defined content before
 * and after a launch. */
enum {
  STEPGATE_STORAGE = 0,
  STEPGATE_SINGLE = 1,
  STEPGATE_INDEX = 2,
  STEPGATE_COUNT = 3,
  STEPGATE_WORD = 4,
  STEPGATE_BYTE = 5,
  STEPGATE_CONTROL = 6,
  STEPGATE_SCRATCH = 7
};

/* What a function or a launch returns. Positive values are CUDA's own (cudaError_t): return
 * cudaGetLastError() after a launch, since stepgate cannot see the errors of another CUDA runtime.
 */
enum { STEPGATE_OK = 0, STEPGATE_UNSUPPORTED = -1, STEPGATE_FAILED = -2 };

typedef struct {
  const char* name; /* "x", "weight": the names of `stepgate kernel describe` */
  uint32_t access;  /* of a launch with these attributes */
  uint32_t format;
  int64_t elements;
  int64_t bytes;
  int64_t alignment;   /* in bytes: the least that the operand's address has */
  int32_t may_replace; /* index of the input whose buffer a launch may get for this output too; -1:
                          none */
  uint32_t reserved;
} stepgate_operand;

typedef struct {
  const char* name; /* "rows", "columns" */
  int64_t value;
} stepgate_dimension;

typedef struct {
  const char* name; /* "epsilon", "accumulate" */
  double value;     /* flags are 0 and 1; whole numbers are exact up to 2^53 */
} stepgate_attribute;

typedef struct {
  uint32_t size; /* sizeof(stepgate_request) of the stepgate that asks */
  uint32_t abi;
  const char* kernel; /* "layer_norm": one function may serve several kernels */
  uint32_t dtype;
  uint32_t capability; /* of the device: 90 is compute capability 9.0 */
  uint32_t multiprocessors;
  uint32_t shared_bytes; /* the most shared memory that a block may have */
  uint32_t dimension_count;
  uint32_t attribute_count;
  uint32_t operand_count;
  uint32_t reserved;
  const stepgate_dimension* dimensions;
  const stepgate_attribute* attributes;
  const stepgate_operand* operands; /* in the order in which a launch gets their addresses */
  int64_t workspace_bytes;          /* of device memory that a launch may have; 0 by default */
} stepgate_request;

typedef struct {
  uint32_t size;           /* sizeof(stepgate_prepared) of the stepgate that asks */
  uint32_t launches;       /* kernels, copies and fills that one call enqueues; 0 counts as 1 */
  int64_t workspace_bytes; /* of workspace_bytes, what a launch uses: aligned to 256 bytes, shared
                              with other kernels of the stream */
  void* state;             /* given to launch and release; launches may run from several threads */
  int (*launch)(void* state, void* const* operands, void* workspace, void* stream);
  void (*release)(void* state); /* may be null */
  char message[256];            /* for people, why not: "columns must be a multiple of 8" */
} stepgate_prepared;

typedef int (*stepgate_kernel_function)(const stepgate_request*, stepgate_prepared*);

/* The value of a dimension or attribute, the index of an operand; `otherwise` where the kernel has
 * none of that name. */
static inline int64_t stepgate_dimension_of(const stepgate_request* request, const char* name,
                                            int64_t otherwise) {
  for (uint32_t i = 0; i < request->dimension_count; ++i)
    if (strcmp(request->dimensions[i].name, name) == 0) return request->dimensions[i].value;
  return otherwise;
}
static inline double stepgate_attribute_of(const stepgate_request* request, const char* name,
                                           double otherwise) {
  for (uint32_t i = 0; i < request->attribute_count; ++i)
    if (strcmp(request->attributes[i].name, name) == 0) return request->attributes[i].value;
  return otherwise;
}
static inline int32_t stepgate_operand_of(const stepgate_request* request, const char* name,
                                          int32_t otherwise) {
  for (uint32_t i = 0; i < request->operand_count; ++i)
    if (strcmp(request->operands[i].name, name) == 0) return (int32_t)i;
  return otherwise;
}

#define STEPGATE_EXPORT __attribute__((visibility("default")))

#ifdef __cplusplus
}
#define STEPGATE_KERNEL_LIBRARY()                            \
  extern "C" {                                               \
  extern STEPGATE_EXPORT const uint32_t stepgate_kernel_abi; \
  const uint32_t stepgate_kernel_abi = STEPGATE_KERNEL_ABI;  \
  }                                                          \
  static_assert(true, "")
#else
#define STEPGATE_KERNEL_LIBRARY()                            \
  extern STEPGATE_EXPORT const uint32_t stepgate_kernel_abi; \
  const uint32_t stepgate_kernel_abi = STEPGATE_KERNEL_ABI
#endif

#endif
