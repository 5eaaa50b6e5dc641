// SPDX-License-Identifier: MIT
// Binds the functions that moved into libc.so in glibc 2.34 to their first versions, so that the
// library loads with glibc 2.28 and later. Included by every file that calls one of them.
#pragma once

#include <dlfcn.h>

#if defined(__x86_64__)
#define STEPGATE_FIRST_GLIBC "GLIBC_2.2.5"
#elif defined(__aarch64__)
#define STEPGATE_FIRST_GLIBC "GLIBC_2.17"
#endif

#ifdef STEPGATE_FIRST_GLIBC
__asm__(".symver dlopen,dlopen@" STEPGATE_FIRST_GLIBC);
__asm__(".symver dlsym,dlsym@" STEPGATE_FIRST_GLIBC);
__asm__(".symver dladdr,dladdr@" STEPGATE_FIRST_GLIBC);
#endif
