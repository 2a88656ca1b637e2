#include "api/stream_callback.h"

#include "api/guard.h"
#include "base/applications_callback.h"

namespace falcon::api {
namespace {

class CallbackWork final : public QueuedWork {
 public:
  CallbackWork(Lane& lane, StreamCallback callback) : lane_(&lane), callback_(callback) { lanes.push_back(&lane); }

  Status run() override {
    const auto error = lane_->takeErrorForCallback();
    callBack(callback_, error ? finish(*error) : ncclSuccess);
    return {};
  }

 private:
  void release() override { delete this; }

  Lane* lane_;
  StreamCallback callback_;
};

}  // namespace

FALCON_CALLS_APPLICATION void callBack(const StreamCallback& callback, ncclResult_t result) {
  callback.function(result, callback.context);
  FALCON_CALLBACK_ENDS;
}

bool queueCallback(Lane& lane, StreamCallback callback) {
  return Lane::queue(QueuedWorkRef(new CallbackWork(lane, callback)));
}

}  // namespace falcon::api
