// SPDX-License-Identifier: MIT
// CUDA kernels and launchers of the input kernels; input.h has their meaning and shapes.
#include "kernels/input/input.h"

#include "kernels/launch.cuh"
#include "kernels/stream_elementwise.cuh"

namespace stepgate {
namespace {

struct DecodeOnDevice {
  const std::uint8_t* bytes;
  float* words;

  template <int count>
  __device__ Pack<std::uint8_t, count> read(std::int64_t first) const {
    return load<count>(bytes, first);
  }

  template <int count>
  __device__ void finish(std::int64_t first, const Pack<std::uint8_t, count>& read) const {
    Pack<float, count> pack;
#pragma unroll
    for (int i = 0; i < count; ++i) pack.values[i] = decoded(read.values[i]);
    store<count>(words, first, pack);
  }
};

}  // namespace

Launch kernels::Decode::prepare(const Shape& shape, DType, const Attributes&,
                                const LaunchContext&) {
  // A pack fills one 16-byte store. Four fifths of the bytes moved are words, and a warp's stores
  // are contiguous only if a thread has one.
  constexpr int count = access_bytes / sizeof(float);
  return [shape](void* const* buffers, cudaStream_t stream) {
    const DecodeOnDevice element{static_cast<const std::uint8_t*>(buffers[0]),
                                 static_cast<float*>(buffers[1])};
    launch_stream<count>("decode", elements_of(shape), element,
                         aligned_to_access(element.bytes, element.words), stream);
  };
}

namespace {

constexpr int ingest_block_threads = 256;
constexpr int ingest_largest_slices = 8;

struct IngestGrid {
  std::int64_t features;
  std::int64_t words;
  std::int64_t blocks_per_sample;
  std::int64_t least_terms;   // of a feature's mean
  std::int64_t longer_means;  // number of features, from the first, with one term more
  std::int64_t classes;
};

// A block takes `packs_of_block` of the packs of a sample.
IngestGrid grid_of(const kernels::Ingest::Shape& shape, std::int64_t classes, std::int64_t packs,
                   std::int64_t packs_of_block) {
  const std::int64_t data_words = shape.words - 1;
  return {shape.features,
          shape.words,
          ceiling_quotient(packs, packs_of_block),
          data_words / shape.features,
          data_words % shape.features,
          classes};
}

__device__ std::int32_t label_of(float word, std::int64_t classes) {
  const auto bits = static_cast<std::uint64_t>(__float_as_uint(word));
  return static_cast<std::int32_t>(bits % static_cast<std::uint64_t>(classes));
}

// A block takes blockDim.x packs of neighbouring features of one sample. Its blockDim.y slices
// share the terms of each mean; slice 0 adds the slices up in their order. Along x the threads of a
// warp read neighbouring words: a pack at once where the samples' first words are aligned.
template <int count, bool aligned_samples, class Number>
__global__ void __launch_bounds__(ingest_block_threads)
    ingest(const float* payload, Number* features, std::int32_t* labels, IngestGrid grid) {
  __shared__ float partial[ingest_block_threads * count];
  const std::int64_t sample = blockIdx.x / grid.blocks_per_sample;
  const std::int64_t pack = (blockIdx.x % grid.blocks_per_sample) * blockDim.x + threadIdx.x;
  const std::int64_t feature = pack * count;
  const float* row = payload + sample * grid.words;
  const std::int64_t data_words = grid.words - 1;  // the last one is the label

  float sums[count] = {};
  if (feature < grid.features) {
#pragma unroll 8
    for (std::int64_t word = feature + threadIdx.y * grid.features; word < data_words;
         word += blockDim.y * grid.features) {
      // The last pack of a sample may hold its label, which is not part of the features.
      if constexpr (aligned_samples) {
        const auto terms = load<count>(row, word);
#pragma unroll
        for (int i = 0; i < count; ++i) sums[i] += word + i < data_words ? terms.values[i] : 0.0f;
      } else {
#pragma unroll
        for (int i = 0; i < count; ++i) sums[i] += word + i < data_words ? row[word + i] : 0.0f;
      }
    }
  }
  const int slot = threadIdx.y * blockDim.x + threadIdx.x;
#pragma unroll
  for (int i = 0; i < count; ++i) partial[i * ingest_block_threads + slot] = sums[i];
  __syncthreads();
  if (threadIdx.y != 0 || feature >= grid.features) return;

  Pack<Number, count> means;
#pragma unroll
  for (int i = 0; i < count; ++i) {
    float sum = 0.0f;
    for (int slice = 0; slice < blockDim.y; ++slice) {
      sum += partial[i * ingest_block_threads + slice * blockDim.x + threadIdx.x];
    }
    const std::int64_t terms = grid.least_terms + (feature + i < grid.longer_means ? 1 : 0);
    means.values[i] = from_float<Number>(sum / static_cast<float>(terms));
  }
  store<count>(features, sample * grid.features + feature, means);
  if (pack == 0) labels[sample] = label_of(row[data_words], grid.classes);
}

template <int count, bool aligned_samples, class Number>
void launch(const kernels::Ingest::Shape& shape, std::int64_t classes, void* const* buffers,
            cudaStream_t stream) {
  // There are at most as many slices as terms, so that no thread of a short sample is idle.
  unsigned slices = 1;
  while (slices < ingest_largest_slices && slices * shape.features < shape.words - 1) slices *= 2;
  const dim3 threads(ingest_block_threads / slices, slices);
  const IngestGrid grid = grid_of(shape, classes, shape.features / count, threads.x);
  const auto blocks = static_cast<unsigned>(shape.samples * grid.blocks_per_sample);
  ingest<count, aligned_samples><<<blocks, threads, 0, stream>>>(
      static_cast<const float*>(buffers[0]), static_cast<Number*>(buffers[1]),
      static_cast<std::int32_t*>(buffers[2]), grid);
  check_launch("ingest");
}

}  // namespace

Launch kernels::Ingest::prepare(const Shape& shape, DType dtype, const Attributes& attributes,
                                const LaunchContext&) {
  return with_storage(dtype, [&](auto zero) -> Launch {
    using Number = decltype(zero);
    return [shape, classes = classes_of(shape, attributes)](void* const* buffers,
                                                            cudaStream_t stream) {
      constexpr int count = access_bytes / sizeof(float);
      const bool aligned_samples = shape.words % count == 0 && aligned_to_access(buffers[0]);
      if (shape.features % count != 0 || !aligned_to_access(buffers[1])) {
        launch<1, true, Number>(shape, classes, buffers, stream);
      } else if (aligned_samples) {
        launch<count, true, Number>(shape, classes, buffers, stream);
      } else {
        launch<count, false, Number>(shape, classes, buffers, stream);
      }
    };
  });
}

namespace {

constexpr int decode_images_block_threads = 256;

// Returns `count` bytes from any address. A pack comes from the two neighbouring packs that hold
// it; the second one is also the first of the next thread, so that it comes from the cache. Where
// these would reach beyond [first, end), only the bytes before `end` are read, one by one.
template <int count>
__device__ __forceinline__ Pack<std::uint8_t, count> load_anywhere(const std::uint8_t* from,
                                                                   const std::uint8_t* first,
                                                                   const std::uint8_t* end) {
  Pack<std::uint8_t, count> pack{};
  const auto ahead = reinterpret_cast<std::uintptr_t>(from) % count;
  const std::uint8_t* const aligned = from - ahead;
  if constexpr (count == access_bytes) {
    if (aligned >= first && aligned + 2 * count <= end) {
      const uint4 low = *reinterpret_cast<const uint4*>(aligned);
      const uint4 high = *reinterpret_cast<const uint4*>(aligned + count);
      const std::uint32_t read[] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
      std::uint32_t* const words = reinterpret_cast<std::uint32_t*>(&pack);
      // An index that is only known at run time would put the words into local memory.
#pragma unroll
      for (int skipped = 0; skipped < 4; ++skipped) {
        if (ahead / 4 != skipped) continue;
#pragma unroll
        for (int i = 0; i < 4; ++i)
          words[i] = __funnelshift_r(read[skipped + i], read[skipped + i + 1], 8 * (ahead % 4));
      }
      return pack;
    }
  }
#pragma unroll
  for (int i = 0; i < count; ++i) {
    if (from + i < end) pack.values[i] = from[i];
  }
  return pack;
}

// A thread takes `count` neighbouring features of one sample.
template <int count, class Number>
__global__ void __launch_bounds__(decode_images_block_threads)
    decode_images(const std::uint8_t* bytes, const std::uint8_t* end, Number* images,
                  std::int32_t* labels, IngestGrid grid) {
  const std::int64_t sample = blockIdx.x / grid.blocks_per_sample;
  const std::int64_t thread =
      (blockIdx.x % grid.blocks_per_sample) * decode_images_block_threads + threadIdx.x;
  const std::int64_t feature = thread * count;
  if (feature >= grid.features) return;
  const std::uint8_t* const row = bytes + sample * grid.words;
  const std::int64_t data_words = grid.words - 1;  // the last one is the label

  float sums[count] = {};
  for (std::int64_t word = feature; word < data_words; word += grid.features) {
    const auto read = load_anywhere<count>(row + word, bytes, end);
    // The last pack of a sample may hold its label, which is not part of the features.
#pragma unroll
    for (int i = 0; i < count; ++i)
      sums[i] += word + i < data_words ? decoded(read.values[i]) : 0.0f;
  }
  Pack<Number, count> means;
#pragma unroll
  for (int i = 0; i < count; ++i) {
    const std::int64_t terms = grid.least_terms + (feature + i < grid.longer_means ? 1 : 0);
    means.values[i] =
        from_float<Number>(terms == 1 ? sums[i] : sums[i] / static_cast<float>(terms));
  }
  store<count>(images, sample * grid.features + feature, means);
  if (thread == 0) labels[sample] = label_of(decoded(row[data_words]), grid.classes);
}

template <int count, class Number>
void launch_images(const kernels::DecodeImages::Shape& shape, std::int64_t classes,
                   void* const* buffers, cudaStream_t stream) {
  const IngestGrid grid =
      grid_of(shape, classes, shape.features / count, decode_images_block_threads);
  const auto* bytes = static_cast<const std::uint8_t*>(buffers[0]);
  const auto blocks = static_cast<unsigned>(shape.samples * grid.blocks_per_sample);
  decode_images<count><<<blocks, decode_images_block_threads, 0, stream>>>(
      bytes, bytes + shape.samples * shape.words, static_cast<Number*>(buffers[1]),
      static_cast<std::int32_t*>(buffers[2]), grid);
  check_launch("decode_images");
}

}  // namespace

Launch kernels::DecodeImages::prepare(const Shape& shape, DType dtype, const Attributes& attributes,
                                      const LaunchContext&) {
  return with_storage(dtype, [&](auto zero) -> Launch {
    using Number = decltype(zero);
    return [shape, classes = classes_of(shape, attributes)](void* const* buffers,
                                                            cudaStream_t stream) {
      if (shape.features % access_bytes == 0 && aligned_to_access(buffers[1])) {
        launch_images<access_bytes, Number>(shape, classes, buffers, stream);
      } else {
        launch_images<1, Number>(shape, classes, buffers, stream);
      }
    };
  });
}

namespace {

constexpr int ingest_indices_block_threads = 256;

struct IndexGrid {
  std::int64_t samples;
  std::int64_t tables;
  std::int64_t words;
  std::uint32_t table_rows;
  std::uint32_t classes;
  bool by_table;
};

// A thread takes an index of a sample, or its label. Neighbouring threads read neighbouring words.
__global__ void __launch_bounds__(ingest_indices_block_threads)
    ingest_indices(const std::uint32_t* payload, std::int32_t* indices, std::int32_t* labels,
                   IndexGrid grid) {
  const std::int64_t period = grid.tables + 1;
  const std::int64_t thread =
      static_cast<std::int64_t>(blockIdx.x) * ingest_indices_block_threads + threadIdx.x;
  const std::int64_t sample = thread / period;
  const std::int64_t table = thread % period;
  if (sample >= grid.samples) return;
  const std::uint32_t* row = payload + sample * grid.words;
  std::uint32_t folded = 0;
  for (std::int64_t word = table; word < grid.words; word += period) folded ^= row[word];
  if (table == grid.tables) {
    labels[sample] = token_of(folded, grid.classes);
    return;
  }
  const std::int32_t index = token_of(folded, grid.table_rows);
  if (grid.by_table) {
    indices[table * grid.samples + sample] = index;
  } else {
    indices[sample * grid.tables + table] =
        static_cast<std::int32_t>(table * grid.table_rows) + index;
  }
}

}  // namespace

Launch kernels::IngestIndices::prepare(const Shape& shape, DType, const Attributes& attributes,
                                       const LaunchContext&) {
  const auto [table_rows, classes, by_table] = attributes;
  const IndexGrid grid{shape.samples,
                       shape.tables,
                       shape.words,
                       static_cast<std::uint32_t>(table_rows),
                       static_cast<std::uint32_t>(classes),
                       by_table};
  const auto blocks = static_cast<unsigned>(
      ceiling_quotient(shape.samples * (shape.tables + 1), ingest_indices_block_threads));
  return [=](void* const* buffers, cudaStream_t stream) {
    ingest_indices<<<blocks, ingest_indices_block_threads, 0, stream>>>(
        static_cast<const std::uint32_t*>(buffers[0]), static_cast<std::int32_t*>(buffers[1]),
        static_cast<std::int32_t*>(buffers[2]), grid);
    check_launch("ingest_indices");
  };
}

namespace {

constexpr int ingest_tokens_block_threads = 256;
constexpr int ingest_tokens_largest_slices = 8;

struct TokenGrid {
  std::int64_t positions;
  std::int64_t labelled;  // number of labelled positions, from the first
  std::int64_t words;
  std::int64_t blocks_per_sample;
  std::uint32_t vocabulary;
};

// A block takes blockDim.x neighbouring positions of one sample; its blockDim.y slices share the
// words of each. Along x the threads of a warp read neighbouring words. Rows of T + 1 words start
// at any address, so words move one by one.
__global__ void __launch_bounds__(ingest_tokens_block_threads)
    ingest_tokens(const std::uint32_t* payload, std::int32_t* tokens, std::int32_t* labels,
                  TokenGrid grid) {
  __shared__ std::uint32_t partial[ingest_tokens_block_threads];
  const std::int64_t sample = blockIdx.x / grid.blocks_per_sample;
  const std::int64_t position = (blockIdx.x % grid.blocks_per_sample) * blockDim.x + threadIdx.x;
  const std::uint32_t* row = payload + sample * grid.words;
  const std::int64_t period = grid.positions + 1;

  std::uint32_t folded = 0;
  if (position < period) {
#pragma unroll 8
    for (std::int64_t word = position + threadIdx.y * period; word < grid.words;
         word += blockDim.y * period) {
      folded ^= row[word];
    }
  }
  partial[threadIdx.y * blockDim.x + threadIdx.x] = folded;
  __syncthreads();
  if (threadIdx.y != 0 || position >= period) return;

  for (unsigned slice = 1; slice < blockDim.y; ++slice) {
    folded ^= partial[slice * blockDim.x + threadIdx.x];
  }
  const std::int32_t token = token_of(folded, grid.vocabulary);
  const std::int64_t first = sample * grid.positions;
  if (position < grid.positions) tokens[first + position] = token;
  if (position > 0) {
    labels[first + position - 1] = position <= grid.labelled ? token : label_of_padding;
  }
}

}  // namespace

Launch kernels::IngestTokens::prepare(const Shape& shape, DType, const Attributes& attributes,
                                      const LaunchContext&) {
  // There are at most as many slices as words per position, so that no thread of a short sample is
  // idle.
  unsigned slices = 1;
  while (slices < ingest_tokens_largest_slices && slices * (shape.positions + 1) < shape.words)
    slices *= 2;
  const dim3 threads(ingest_tokens_block_threads / slices, slices);
  const TokenGrid grid{shape.positions, labelled_positions(shape, attributes), shape.words,
                       ceiling_quotient(shape.positions + 1, threads.x),
                       static_cast<std::uint32_t>(attributes.vocabulary)};
  const auto blocks = static_cast<unsigned>(shape.samples * grid.blocks_per_sample);
  return [=](void* const* buffers, cudaStream_t stream) {
    ingest_tokens<<<blocks, threads, 0, stream>>>(static_cast<const std::uint32_t*>(buffers[0]),
                                                  static_cast<std::int32_t*>(buffers[1]),
                                                  static_cast<std::int32_t*>(buffers[2]), grid);
    check_launch("ingest_tokens");
  };
}

}  // namespace stepgate
