// The loader's functions as the oldest C library of x86-64 has them: this library goes into every program of a job,
// also those that bring an older C library than the machine on which it was built.
#pragma once

#include <dlfcn.h>

#if defined(__x86_64__) && defined(__GLIBC__)
__asm__(".symver dladdr,dladdr@GLIBC_2.2.5");
__asm__(".symver dladdr1,dladdr1@GLIBC_2.3.3");
__asm__(".symver dlclose,dlclose@GLIBC_2.2.5");
__asm__(".symver dlerror,dlerror@GLIBC_2.2.5");
__asm__(".symver dlinfo,dlinfo@GLIBC_2.3.3");
__asm__(".symver dlopen,dlopen@GLIBC_2.2.5");
__asm__(".symver dlsym,dlsym@GLIBC_2.2.5");
#endif
