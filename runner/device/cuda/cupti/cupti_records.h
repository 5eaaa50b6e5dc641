// SPDX-License-Identifier: MIT
// Converts single CUPTI records to plain values. cupti.cpp opens the library and collects its
// buffers.
#pragma once

#include <cupti.h>

#include <map>
#include <string>
#include <utility>

#include "device/cuda/cupti/activity_records.h"

namespace stepgate {

// Shares the strings of names that occur in thousands of records.
class CuptiRecords {
 public:
  explicit CuptiRecords(decltype(&cuptiGetCallbackName) callback_name)
      : callback_name_(callback_name) {}

  // Adds the record to `records`; ignores kinds that no trace needs.
  void read(const CUpti_Activity&, ActivityRecords&);

 private:
  const std::string& name_of_kernel(const char* symbol);
  const std::string& name_of_call(CUpti_CallbackDomain, CUpti_CallbackId);
  void read_call(const CUpti_ActivityAPI&, CUpti_CallbackDomain, ActivityRecords&);
  void read_kernel(const CUpti_ActivityKernel10&, ActivityRecords&);
  static void read_copy(const CUpti_ActivityMemcpy6&, ActivityRecords&);
  static void read_fill(const CUpti_ActivityMemset4&, ActivityRecords&);
  static void read_pages(const CUpti_ActivityUnifiedMemoryCounter3&, ActivityRecords&);
  static void read_memory(const CUpti_ActivityMemory4&, ActivityRecords&);
  static void read_overhead(const CUpti_ActivityOverhead3&, ActivityRecords&);

  decltype(&cuptiGetCallbackName) callback_name_;
  std::map<const char*, std::string> kernel_names_;
  std::map<std::pair<CUpti_CallbackDomain, CUpti_CallbackId>, std::string> call_names_;
};

}  // namespace stepgate
