// SPDX-License-Identifier: MIT
// The one list of all kernel families: CMake compiles the folders whose headers are included here,
// and catalogue.cpp collects their rows. Each header declares `<family>_kernels()`.
#pragma once

#include "kernels/attention/attention.h"
#include "kernels/batch_norm/batch_norm.h"
#include "kernels/convolution/convolution.h"
#include "kernels/diffusion/diffusion.h"
#include "kernels/embedding/embedding.h"
#include "kernels/fp8/fp8.h"
#include "kernels/gemm/gemm.h"
#include "kernels/group_norm/group_norm.h"
#include "kernels/heads/heads.h"
#include "kernels/input/input.h"
#include "kernels/layout/layout.h"
#include "kernels/loss/loss.h"
#include "kernels/norm/norm.h"
#include "kernels/optimizer/optimizer.h"
#include "kernels/pointwise/pointwise.h"
#include "kernels/pool/pool.h"
#include "kernels/probes/probes.h"
#include "kernels/upsample/upsample.h"
