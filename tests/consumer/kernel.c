/* SPDX-License-Identifier: MIT
 * A library in C that says of every shape that it is not written yet. */
#include <stdio.h>
#include <stepgate/kernel.h>

STEPGATE_KERNEL_LIBRARY();

STEPGATE_EXPORT int layer_norm(const stepgate_request* request, stepgate_prepared* prepared) {
  snprintf(prepared->message, sizeof prepared->message, "%s is not written yet", request->kernel);
  return STEPGATE_UNSUPPORTED;
}
