// A file of the job's folder as memory.
#pragma once

#include <boost/interprocess/file_mapping.hpp>
#include <boost/interprocess/mapped_region.hpp>
#include <string>

#include "base/result.h"

namespace falcon::instrument {

/// Error (system), which calls the file `what`.
inline Result<boost::interprocess::mapped_region> mapFile(const char* what, const std::string& path,
                                                          boost::interprocess::mode_t mode) {
  try {
    return boost::interprocess::mapped_region(boost::interprocess::file_mapping(path.c_str(), mode), mode);
  } catch (const boost::interprocess::interprocess_exception& exception) {
    return Error::system("{} {} cannot be mapped: {}", what, path, exception.what());
  }
}

}  // namespace falcon::instrument
