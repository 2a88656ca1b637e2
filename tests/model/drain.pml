/* Draining to a consistent cut: entered collectives are counted per communicator, messages per ordered pair, a group is
 * one event. Ranks that are below a target run on, others are held before their next event; targets are the maxima over
 * the ranks and rise as they run on, until nothing changes. Then nobody is inside of an event that others never enter.
 * A rank counts first and then looks whether it has to be held; then it takes that back, but it may have been reported.
 * The job's program: EVENTS events, each over a communicator, a message, or a group of both, in any order.
 * TIME_RUNS_OUT: the controller may lose patience; then everybody goes on to the end of the job.
 * Broken twins: BROKEN_NO_FIXPOINT, BROKEN_SILENT_BELOW, BROKEN_COUNT_LATE. */
#define RANKS 3
#ifndef EVENTS
#define EVENTS 2
#endif
#define KEYS 4 /* what is counted: communicators {0,1,2}, {0,1}, {1,2}, and messages from 0 to 2 */
#define GROUP 4 /* one event of all ranks: collectives over {0,1} and {1,2}, and a message from 0 to 2 */

/* Who takes part in a key, and in an event of the program. */
#define counts(k, r) (k == 0 || (k == 1 && r != 2) || (k == 2 && r != 0) || (k == 3 && r != 1))
#define inEvent(e, k) (e == k || (e == GROUP && (k == 1 || k == 2 || k == 3)))
#define takesPart(e, r) (e == GROUP || counts(e, r))
#define at(k, r) entered[(k) * RANKS + (r)]

byte program[EVENTS];
byte entered[KEYS * RANKS];
byte targets[KEYS];         /* as the controller has them */
byte version = 0;           /* of the targets */
byte known[KEYS * RANKS];   /* the targets, as a rank knows them */
byte heard[RANKS];          /* which version; 0: it knows of no drain */
bool reportedBelow[RANKS];  /* and that it was below a target */
bool changed[RANKS];        /* it has entered something since */
byte position[RANKS];
bool inside[RANKS];      /* of an event that has not ended */
byte trying[RANKS];      /* 1 + the event that it has counted, before it looks whether it may enter; 0: none */
bool ended[RANKS];

/* As a report finds it. */
#define seen(k, r) (at(k, r) + (trying[r] > 0 && counts(k, r) && inEvent((trying[r] - 1), k)))
#define isBelowIn(k, r) (counts(k, r) && seen(k, r) < known[(k) * RANKS + (r)])
#define isBelow(r) (isBelowIn(0, r) || isBelowIn(1, r) || isBelowIn(2, r) || isBelowIn(3, r))
#define mayEnter(r) (heard[r] == 0 || isBelow(r))
/* An event ends for a rank when all that take part have entered as often as this rank has: nothing is buffered. */
#define met(k, r) (!counts(k, r) || ((!counts(k, 0) || at(k, 0) >= at(k, r)) && (!counts(k, 1) || at(k, 1) >= at(k, r)) && \
                   (!counts(k, 2) || at(k, 2) >= at(k, r))))

#define enter(k) if :: inEvent(e, k) && counts(k, me) -> at(k, me) = at(k, me) + 1; changed[me] = (heard[me] > 0) :: else fi

proctype Application(byte me) {
  byte e = 0;
#ifdef BROKEN_COUNT_LATE
  bool late = false;
#endif
nextEvent:
  atomic {
    do
    :: position[me] < EVENTS && !takesPart(program[position[me]], me) -> position[me] = position[me] + 1
    :: position[me] == EVENTS || takesPart(program[position[me]], me) -> break
    od;
    if
    :: position[me] == EVENTS -> goto done
    :: else -> e = program[position[me]]
    fi
  }
#ifdef BROKEN_COUNT_LATE
  if
  :: heard[me] == 0 -> late = true
  :: else
  fi;
  if
  :: late -> atomic { late = false; enter(0); enter(1); enter(2); enter(3); inside[me] = true; goto isInside }
  :: else
  fi;
#else
  trying[me] = e + 1;
  atomic {
    trying[me] = 0;
    if
    :: mayEnter(me) -> enter(0); enter(1); enter(2); enter(3); inside[me] = true; goto isInside
    :: else
    fi
  }
#endif
  /* What is asked and what is counted is one step, also for a whole group. */
  atomic { mayEnter(me) -> enter(0); enter(1); enter(2); enter(3); inside[me] = true };
isInside:
  atomic { met(0, me) && met(1, me) && met(2, me) && met(3, me) ->
           inside[me] = false; position[me] = position[me] + 1; e = 0; goto nextEvent };
done:
  ended[me] = true;
endOfJob:
  false
}

/* The controller. The bus takes any time: for targets to a rank, and for a report of one. */
#define raise(k, r) if :: counts(k, r) && seen(k, r) > targets[k] -> targets[k] = seen(k, r); rose = true :: else fi
#define learn(k, r) known[(k) * RANKS + (r)] = targets[k]
/* A rank hears of targets, or has entered something, and reports: all its counts of one moment, and for which targets. */
#ifdef BROKEN_SILENT_BELOW
#define mayReport(r) (heard[r] < version || (changed[r] && !isBelow(r)))
#else
#define mayReport(r) (heard[r] < version || changed[r])
#endif
#define report(r) \
  atomic { mayReport(r) -> \
    learn(0, r); learn(1, r); learn(2, r); learn(3, r); heard[r] = version; \
    changed[r] = false; reportedBelow[r] = isBelow(r); \
    raise(0, r); raise(1, r); raise(2, r); raise(3, r); version = version + rose; rose = false }
#ifdef BROKEN_NO_FIXPOINT
#define settled(r) (heard[r] > 0)
#else
#define settled(r) (heard[r] == version && !reportedBelow[r])
#endif

proctype Controller() {
  bool rose = false;
  byte i = 0;
  version = 1; /* every rank that hears of it is held before its next event */
  do
  :: report(0)
  :: report(1)
  :: report(2)
  :: atomic { settled(0) && settled(1) && settled(2) -> break }
#ifdef TIME_RUNS_OUT
  :: goto lift
#endif
  od;
  /* TrapState: held. That comes, since the cut is consistent: all agree on every count. */
  atomic { !inside[0] && !inside[1] && !inside[2] && !trying[0] && !trying[1] && !trying[2] ->
  assert(met(0, 0) && met(0, 1) && met(0, 2) && met(1, 0) && met(1, 1) && met(2, 1) && met(2, 2) && met(3, 0) && met(3, 2)) };
lift:
  atomic {
    version = 0;
    for (i : 0 .. RANKS - 1) { heard[i] = 0; changed[i] = false; reportedBelow[i] = false }
    for (i : 0 .. KEYS * RANKS - 1) { known[i] = 0 }
    for (i : 0 .. KEYS - 1) { targets[i] = 0 }
    i = 0
  };
  (ended[0] && ended[1] && ended[2]);
endOfController:
  false
}

init {
  byte i;
  for (i : 0 .. EVENTS - 1) {
    if
    :: program[i] = 0
    :: program[i] = 1
    :: program[i] = 2
    :: program[i] = 3
    :: program[i] = GROUP
    fi
  }
  atomic {
    for (i : 0 .. RANKS - 1) {
      run Application(i)
    }
    run Controller(); i = 0
  }
endOfInit:
  false
}
