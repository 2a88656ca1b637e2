/* The frozen kind of trap: ranks join at a call's entry or in a wait loop, wherever they are, and are let go again.
 * Default: nobody dies and no time runs out; then the freeze must complete, for every order of communicators.
 * TIME_RUNS_OUT, CONTROLLER_DIES, RANK_DIES: at any moment; after a controller's death the time may run out as well.
 * Broken twins: BROKEN_ENTRY_ONLY, BROKEN_NO_LIMIT, BROKEN_EARLY_TEST. */
#define RANKS 3
#define COMMUNICATORS 3
#if defined(CONTROLLER_DIES) || defined(RANK_DIES) || defined(TIME_RUNS_OUT)
#define CALLS 1 /* over all ranks: enough for one to be before it, one in it and one behind it */
#else
#define CALLS 2 /* of the job's program, each over any communicator */
#endif

/* 0: all ranks, 1: ranks 0 and 1, 2: ranks 1 and 2. */
#define hasRank(c, r) (c == 0 || (c == 1 && r != 2) || (c == 2 && r != 0))
#define before(c, r) (c == 0 -> (r + RANKS - 1) % RANKS : (c == 1 -> 1 - r : 3 - r))
#define link(c, r) flight[(c) * RANKS + (r)]

mtype = { close, open };
chan orders[RANKS] = [2] of { mtype };    /* the bus, controller to members */
bool reported[RANKS];                     /* the bus, TrapState{held} */

byte program[CALLS];
byte flight[COMMUNICATORS * RANKS]; /* chunks between a rank and the next of the ring; one fits */
bool raised[RANKS], held[RANKS];
bool dead[RANKS], gone[RANKS];                  /* gone: dead, or left the job in order */
bool controllerDead = false, someoneDied = false;
bool testing = false, letGo = false; /* letGo: the controller has let the job go, or is dead */
bool ready = false;

#define brokenFor(c) ((dead[0] && hasRank(c, 0)) || (dead[1] && hasRank(c, 1)) || (dead[2] && hasRank(c, 2)))

#ifdef TIME_RUNS_OUT
#define timeMayBeOver true
#else
#define timeMayBeOver controllerDead
#endif
#ifdef BROKEN_ENTRY_ONLY
#define mayHold !sent
#define mayMove (!dead[me] && (sent || !raised[me]))
#else
#define mayHold true
#define mayMove (!dead[me] && !raised[me])
#endif

/* The application's thread: runWatched and drive. */
proctype Application(byte me) {
  byte call = 0, c = 0;
  bool sent = false;
  ready;
nextCall:
  atomic {
    do
    :: call < CALLS && !hasRank(program[call], me) -> call++
    :: call == CALLS || hasRank(program[call], me) -> break
    od;
    if
    :: call == CALLS || dead[me] -> goto ended
    :: else -> c = program[call]; sent = false
    fi
  }
  do
  /* At the call's entry before anything is sent, in the wait later. */
  :: atomic { raised[me] && mayHold -> held[me] = true };
     atomic { !raised[me] || dead[me] -> held[me] = false }
  :: atomic { mayMove && !sent && link(c, me) == 0 ->
              link(c, me) = 1; sent = true; assert(!testing || timeMayBeOver || someoneDied || letGo) }
  :: atomic { mayMove && sent && link(c, before(c, me)) == 1 ->
              link(c, before(c, me)) = 0; call++; c = 0; goto nextCall }
  :: atomic { dead[me] || (!raised[me] && brokenFor(c)) -> goto ended } /* the call ends with a remote error */
  od;
ended:
  atomic { gone[me] = true; call = 0; c = 0; sent = false };
endOfJob:
  false
}

/* The member: what the monitor's thread does between two ticks. */
proctype Monitor(byte me) {
  bool heardOfDeath = false;
end:
  do
  :: atomic { orders[me] ? close -> raised[me] = !dead[me] }
  :: atomic { orders[me] ? open -> raised[me] = false }
  /* Member::newController. It is no order: it may come before or after the dead controller's last one. */
  :: atomic { controllerDead && !heardOfDeath -> heardOfDeath = true; raised[me] = false }
  :: atomic { raised[me] && held[me] && !reported[me] && !letGo -> reported[me] = true }
#ifndef BROKEN_NO_LIMIT
  :: atomic { raised[me] && timeMayBeOver -> raised[me] = false } /* the trap's own deadline */
#endif
  od
}

/* The validation, from the order to close to the order to open. */
proctype Controller() {
  byte r = 0;
  ready;
  do
  :: atomic { r < RANKS -> orders[r] ! close; r++ }
#ifdef CONTROLLER_DIES
  :: atomic { controllerDead = true; letGo = true; goto ended }
#endif
  :: atomic { r == RANKS -> break }
  od;
  if
#ifdef BROKEN_EARLY_TEST
  :: reported[0] && reported[1]
#else
  :: reported[0] && reported[1] && reported[2]
#endif
  :: gone[0] || gone[1] || gone[2] -> goto release /* a rank left the job: Validation::left */
  :: timeMayBeOver -> goto release                 /* not all came in time */
#ifdef CONTROLLER_DIES
  :: atomic { controllerDead = true; letGo = true; goto ended }
#endif
  fi;
  testing = true;
  if
  :: atomic { testing -> assert(timeMayBeOver || someoneDied || (held[0] && held[1] && held[2])) }
#ifdef CONTROLLER_DIES
  :: atomic { controllerDead = true; letGo = true; goto ended }
#endif
  fi;
release:
  atomic { letGo = true; testing = false; r = 0 };
  do
  :: atomic { r < RANKS -> orders[r] ! open; r++ }
#ifdef CONTROLLER_DIES
  :: atomic { controllerDead = true; goto ended }
#endif
  :: atomic { r == RANKS -> break }
  od;
ended:
  atomic { testing = false; r = 0 };
endOfController:
  false
}

#ifdef RANK_DIES
/* One rank dies, wherever it is; any one, as the only call goes over all of them. */
proctype Death() {
  atomic { someoneDied = true; dead[1] = true; gone[1] = true };
endOfDeath:
  false
}
#endif

/* Everything is started at once. */
init {
  byte i;
  for (i : 0 .. CALLS - 1) {
    if
    :: program[i] = 0
#if CALLS > 1
    :: program[i] = 1
    :: program[i] = 2
#endif
    fi
  }
  atomic {
    for (i : 0 .. RANKS - 1) {
      run Application(i);
      run Monitor(i)
    }
    run Controller();
#ifdef RANK_DIES
    run Death();
#endif
    ready = true; i = 0
  }
endOfInit:
  false
}
