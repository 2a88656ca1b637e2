// Makes communicators whose data the vendor's library moves. Beside each stands Falcon's own network of the same ranks,
// where Falcon is on for any of them: it tells who they are, and follows what is made of the communicator. Whatever
// fails there leaves the communicator unwatched, and nothing else.
#pragma once

#include <memory>
#include <optional>
#include <span>

#include "api/communicator.h"

namespace falcon::api {

/// For ncclGetUniqueId where the vendor's library will move the data: its own id. With Falcon on the way to Falcon's
/// network rides where the vendor leaves room.
Result<ncclUniqueId> newVendorsId(const gpu::VendorLibrary& library);
/// Of bytes that are none of ours. Errors: this process cannot join by them, and why.
Status checkVendorsId(const char* function, const ncclUniqueId& id);
/// Blocking; every member calls, with the same ids, which checkVendorsId() has passed. Without Falcon nothing happens
/// but the vendor's own. Ends with start() on `communicator`.
Status joinOnVendor(ncclComm& communicator, std::span<const ncclUniqueId> ids, int size, Rank rank);

/// The same where ours is the id: every member calls, and has met the others in `network`, over which the vendor's id
/// travels. Ends with start() on `communicator`. `job`: null where Falcon is off here.
Status establishOnVendor(ncclComm& communicator, std::shared_ptr<bootstrap::CommunicatorNetwork> network,
                         std::shared_ptr<control::Job> job, bool anybodyWatches);

/// These are as establishSplit() and its like. Falcon's part is done beside the vendor's, and waited for 5 s longer.
Status splitOnVendor(ncclComm& parent, ncclComm& child, int color, int key);
Status shrinkOnVendor(ncclComm& parent, ncclComm& child, std::span<const Rank> excluded, bool despiteFailure);

/// For one that grows: the vendor's, in which a way to Falcon's network rides where the vendor leaves room.
Result<ncclUniqueId> uniqueIdToGrow(ncclComm& parent);
/// A rank of `parent`; `id` and `rank` go on to the vendor as they were given. `ours`: the id that this rank knows.
Status growOnVendor(ncclComm& parent, ncclComm& child, int size, const std::optional<ncclUniqueId>& id,
                    const std::optional<ncclUniqueId>& ours, Rank rank);
/// A rank that was none of it, which has the vendor's id.
Status joinGrownOnVendor(ncclComm& communicator, int size, const ncclUniqueId& id, Rank rank);

}  // namespace falcon::api
