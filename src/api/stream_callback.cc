#include "api/stream_callback.h"

#include "api/guard.h"

namespace falcon::api {
namespace {

class CallbackWork final : public QueuedWork {
 public:
  CallbackWork(Lane& lane, StreamCallback callback) : lane_(&lane), callback_(callback) { lanes.push_back(&lane); }

  Status run() override {
    const auto error = lane_->takeErrorForCallback();
    callback_.function(error ? finish(*error) : ncclSuccess, callback_.context);
    return {};
  }

 private:
  void release() override { delete this; }

  Lane* lane_;
  StreamCallback callback_;
};

}  // namespace

bool queueCallback(Lane& lane, StreamCallback callback) {
  return Lane::queue(QueuedWorkRef(new CallbackWork(lane, callback)));
}

}  // namespace falcon::api
