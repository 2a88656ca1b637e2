// fmt, compiled once into the library (format.cc) so that libnccl.so.2 needs no libfmt.so.
#pragma once

#include <fmt/core.h>
