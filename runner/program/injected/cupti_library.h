// SPDX-License-Identifier: MIT
// The copy of CUPTI that this process has, or would have: never a second one.
#pragma once

#include "program/injected/cuda_interface.h"

namespace stepgate::attached {

struct CuptiLibrary {
  char path[512] = {};
  int (*version)(std::uint32_t*) = nullptr;
  int (*subscribe)(void** subscriber, CuptiCallback, void* user) = nullptr;
  int (*subscribe_v2)(void** subscriber, CuptiCallback, void* user,
                      CuptiSubscriberParams*) = nullptr;  // from 13.0 on
  int (*enable_callback)(std::uint32_t on, void* subscriber, std::uint32_t domain,
                         std::uint32_t call) = nullptr;
  int (*callback_name)(std::uint32_t domain, std::uint32_t call, const char** name) = nullptr;

  // False where there is none, or one without these functions.
  bool open();
};

}  // namespace stepgate::attached
