// A job that is slow from its start, without a baseline of an earlier run: its ranks and groups beside each other. Glue
// to instrument/peer_comparison.h.
#pragma once

#include <cstddef>
#include <vector>

#include "control/job_view.h"
#include "instrument/peer_comparison.h"

namespace falcon::control {

/// What the members do with their communicators in an iteration, by their newest samples, and by the calls of the
/// baseline where they are known.
std::vector<instrument::CommunicatorShape> shapesOf(const JobView& job);

/// Who was slower than peers over the newest `window` iterations. Own times are compared at the same number of
/// micro-batches.
instrument::Suspicion suspicionByPeers(const JobView& job, std::size_t window, const instrument::PeerRules& rules = {});

/// Those of `one` whom `other` suspects too.
instrument::Suspicion inBoth(const instrument::Suspicion& one, const instrument::Suspicion& other);

/// The baseline of the suspected becomes what their peers take: they are compared with that from now on. Returns the
/// seconds by which an iteration would be shorter, at most.
double usePeers(const instrument::Suspicion& suspicion, JobView& job);

}  // namespace falcon::control
