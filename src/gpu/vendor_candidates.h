// Where the vendor's libnccl.so.2 may be: a framework brings its own, and this library has taken that one's name.
#pragma once

#include <string>
#include <vector>

namespace falcon::gpu {

/// A place to look at, and why there.
struct Candidate {
  std::string path;
  const char* reason = "";
};

/// What is loaded in this process already, beside this library, in the folders that its packages' objects search
/// (RPATH), in its interpreter's packages, beside the CUDA toolkit, in LD_LIBRARY_PATH, the loader's cache and the
/// system's folders. Only files that are there, each once; in this order.
std::vector<Candidate> vendorCandidates();

/// The package folders that hold these files: of /x/lib/python3.11/site-packages/torch/lib/libtorch.so it is
/// /x/lib/python3.11/site-packages. Each once.
std::vector<std::string> packageFoldersOf(const std::vector<std::string>& files);

}  // namespace falcon::gpu
