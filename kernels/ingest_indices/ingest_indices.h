// SPDX-License-Identifier: MIT
// Samples of raw words become one index into each of a model's tables, and a label. Every word of a
// sample takes part, so that a transfer that lost one shows.
//   shape     rows = samples B; columns = T, tables; depth = words of a sample, more than T
//   operands  payload (32-bit words [rows][depth]), indices (int32, one a sample and a table),
//             labels (int32 [rows], each in [0, classes))
// With word(b, j) the exclusive or of payload[b][j + k (T + 1)] over all k, for j in [0, T], and
// token_of as ingest_tokens.h has it: sample b looks up row(b, t) = token_of(word(b, t),
// table_rows) of table t, and labels[b] = token_of(word(b, T), classes). The indices are
//   as rows of one table, in which the tables lie one after the other:
//             [rows][T], t table_rows + row(b, t)
//   by table  [T][rows], row(b, t)
#pragma once

#include "kernels/kernel.h"

namespace stepgate {

namespace kernels {

struct IngestIndices {
  static constexpr std::string_view name = "ingest_indices";
  struct Attributes {
    std::int64_t table_rows = 1;
    std::int64_t classes = 1;
    bool by_table = false;
  };
};

}  // namespace kernels

std::vector<Kernel> ingest_indices_kernels();

// Only in CUDA builds.
Launch prepare_ingest_indices(const KernelShape&, DType, const KernelAttributes&,
                              const LaunchContext&);

}  // namespace stepgate
