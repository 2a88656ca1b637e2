#include "ucx/ucx_listener.h"

#include "base/log.h"
#include "base/random.h"
#include "ucx/ucx_connection.h"

namespace falcon::net {
namespace {

constexpr std::size_t mostArrivals = 32;
constexpr Nanoseconds arrivalLimit = 10s;

std::string senderOf(ucp_conn_request_h request) {
  ucp_conn_request_attr_t attributes{};
  attributes.field_mask = UCP_CONN_REQUEST_ATTR_FIELD_CLIENT_ADDR;
  if (ucp_conn_request_query(request, &attributes) != UCS_OK) return "an address that UCX does not tell";
  const auto* at = reinterpret_cast<const sockaddr*>(&attributes.client_address);
  return SocketAddress(at, at->sa_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in)).text();
}

}  // namespace

Result<std::unique_ptr<Listener>> UcxListener::make(ucp_context_h context, const SocketAddress& address,
                                                    Handle handle) {
  const auto number = randomValue<std::uint64_t>();
  if (!number) return log::decided(number.error());
  const auto secret = randomValue<transport::Secret>();
  if (!secret) return log::decided(secret.error());
  std::unique_ptr<UcxListener> made(new UcxListener(context, *secret, *number));
  ucp_worker_params_t worker{};
  worker.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  worker.thread_mode = UCS_THREAD_MODE_SERIALIZED;
  if (const auto status = ucp_worker_create(context, &worker, &made->worker_); status != UCS_OK)
    return log::decided(Error::system("UCX makes no worker: {}", textOf(status)));
  ucp_listener_params_t how{};
  how.field_mask = UCP_LISTENER_PARAM_FIELD_SOCK_ADDR | UCP_LISTENER_PARAM_FIELD_CONN_HANDLER;
  how.sockaddr.addr = address.get();
  how.sockaddr.addrlen = address.length();
  how.conn_handler.cb = onRequest;
  how.conn_handler.arg = made.get();
  if (const auto status = ucp_listener_create(made->worker_, &how, &made->listener_); status != UCS_OK)
    return log::decided(
        Error::system("UCX cannot listen at {}: {}; UCX_TLS and UCX_SOCKADDR_TLS_PRIORITY say what it may use",
                      address.host(), textOf(status)));
  ucp_listener_attr_t bound{};
  bound.field_mask = UCP_LISTENER_ATTR_FIELD_SOCKADDR;
  if (const auto status = ucp_listener_query(made->listener_, &bound); status != UCS_OK)
    return log::decided(Error::system("UCX does not say where it listens: {}", textOf(status)));
  const auto* at = reinterpret_cast<const sockaddr*>(&bound.sockaddr);
  write({SocketAddress(at, at->sa_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in)), *number, *secret},
        handle);
  return std::unique_ptr<Listener>(std::move(made));
}

UcxListener::~UcxListener() {
  for (ucp_conn_request_h request : requests_) ucp_listener_reject(listener_, request);
  arrivals_.clear();
  if (listener_) ucp_listener_destroy(listener_);
  if (worker_) ucp_worker_destroy(worker_);
}

void UcxListener::onRequest(ucp_conn_request_h request, void* listener) {
  static_cast<UcxListener*>(listener)->requests_.push_back(request);
}

Result<std::unique_ptr<Connection>> UcxListener::accept() {
  const Nanoseconds now = SystemClock::instance().now();
  ucp_worker_progress(worker_);
  takeRequests(now);
  for (auto arrival = arrivals_.begin(); arrival != arrivals_.end();) {
    const Step step = advance(*arrival, now);
    if (step == Step::proven) {
      arrival->handshake.reset();
      auto connection = std::make_unique<UcxConnection>(std::move(arrival->end), false, arrival->from);
      arrivals_.erase(arrival);
      return std::unique_ptr<Connection>(std::move(connection));
    }
    arrival = step == Step::stranger ? arrivals_.erase(arrival) : std::next(arrival);
  }
  return std::unique_ptr<Connection>();
}

void UcxListener::takeRequests(Nanoseconds now) {
  while (!requests_.empty()) {
    ucp_conn_request_h request = requests_.front();
    requests_.pop_front();
    if (arrivals_.size() == mostArrivals) {
      dropped(arrivals_.front().from, "too many have come that prove nothing", now);
      arrivals_.pop_front();
    }
    const std::string from = senderOf(request);
    auto end = UcxEnd::idle(context_);
    if (!end) {  // which was said
      ucp_listener_reject(listener_, request);
      continue;
    }
    if (!(*end)->accept(request)) continue;
    auto handshake = UcxHandshake::make(**end);
    if (!handshake) continue;
    auto& arrival = arrivals_.emplace_back();
    arrival.end = std::move(*end);
    arrival.handshake = std::move(*handshake);
    arrival.from = from;
    arrival.since = now;
  }
}

UcxListener::Step UcxListener::advance(Arrival& arrival, Nanoseconds now) {
  using Progress = transport::Challenge::Progress;
  const int socket = arrival.handshake->socket();
  arrival.handshake->progress();
  auto progress = arrival.challenge.read(socket);
  if (progress == Progress::opened) {
    if (arrival.challenge.key() != number_)
      return dropped(arrival.from, "it looks for another listener", now), Step::stranger;
    if (const Status challenged = arrival.challenge.challenge(socket, secret_); !challenged)
      return dropped(arrival.from, challenged.error().message(), now), Step::stranger;
    arrival.handshake->progress();
    progress = arrival.challenge.read(socket);
  }
  if (progress == Progress::complete) return Step::proven;
  if (progress == Progress::stranger) return dropped(arrival.from, arrival.challenge.reason(), now), Step::stranger;
  if (now - arrival.since <= arrivalLimit) return Step::waits;
  return dropped(arrival.from, "it has not proven in 10 s that it belongs to the job", now), Step::stranger;
}

void UcxListener::dropped(const std::string& from, std::string_view why, Nanoseconds now) {
  if (const auto held = dropLog_.pass(now))
    log::warn("a connection from {} by UCX is dropped: {}{}", from, why,
              *held ? fmt::format(" ({} more before it)", *held) : "");
}

}  // namespace falcon::net
