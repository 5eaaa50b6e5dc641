// SPDX-License-Identifier: MIT
// Every family of kernels, and the one list of them: CMake compiles what is included here, and
// catalogue.cpp has their rows. Each header declares `<family>_kernels()`.
#pragma once

#include "kernels/attention/attention.h"
#include "kernels/embedding/embedding.h"
#include "kernels/gemm/gemm.h"
#include "kernels/heads/heads.h"
#include "kernels/input/input.h"
#include "kernels/loss/loss.h"
#include "kernels/norm/norm.h"
#include "kernels/optimizer/optimizer.h"
#include "kernels/pointwise/pointwise.h"
#include "kernels/probes/probes.h"
