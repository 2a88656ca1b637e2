// A job that is slow from its start, without a baseline of an earlier run: its peers stand for one, and the account is
// the same.
#pragma once

#include <cstddef>
#include <vector>

#include "control/job_view.h"
#include "diagnose/suspicion.h"
#include "instrument/communicator_roles.h"

namespace falcon::control {

/// What the members do with their communicators in an iteration, by their newest samples, and by the calls of the
/// baseline where they are known.
std::vector<instrument::CommunicatorShape> shapesOf(const JobView& job);

/// Who was slower than peers over the newest `window` iterations. Own times are compared at the same number of
/// micro-batches.
/// @param leastShare  of an iteration: see SuspicionThresholds
diagnose::Suspicion suspicionByPeers(const JobView& job, std::size_t window, double leastShare);

/// Those of `one` whom `other` suspects too.
diagnose::Suspicion inBoth(const diagnose::Suspicion& one, const diagnose::Suspicion& other);

/// The baseline of the suspected becomes what their peers take: they are compared with that from now on. Returns the
/// seconds by which an iteration would be shorter, at most.
double usePeers(const diagnose::Suspicion& suspicion, JobView& job);

}  // namespace falcon::control
