#include "base/calling_thread.h"

namespace falcon {

constinit thread_local CallingThread CallingThread::mine;

}  // namespace falcon
