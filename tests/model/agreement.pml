/* The two-phase agreement: "from collective N on, this ring order", or "from iteration N on, this split".
 * Ranks go on with synchronous iterations meanwhile; a rank may start iteration k + 1 when all have started k.
 * Properties: no iteration runs under two plans; without a change nobody keeps the new plan; nobody waits for ever.
 * CONTROLLER_DIES: at any moment; its successor decides. MESSAGES_GET_LOST: any of them, but the decision of a living
 * controller. Broken twins: BROKEN_ONE_PHASE, BROKEN_NO_HOLD, BROKEN_NO_SUCCESSOR; BROKEN_ALONE: who has heard nothing
 * of a decision goes on with the old plan, and asks nobody; BROKEN_HASTE: the successor decides before all have spoken. */
#define RANKS 3
#define ITERATIONS 3
#define MARGIN 1
#define NONE 15

mtype = { ask, propose, commit, abort };
chan orders[RANKS] = [3] of { mtype, byte };
byte counters[RANKS], votes[RANKS]; /* what the controller has heard; NONE: nothing */

byte next[RANKS];        /* the iteration that this rank starts next */
byte proposal[RANKS];    /* PlanBook::proposal_: not decided; NONE: there is none */
byte newFrom[RANKS];     /* the new plan is in force from here on; NONE: it is not */
byte recalled[RANKS];    /* Recall: what the successor has heard; NONE: nothing */
byte usedOld = 0, usedNew = 0; /* bit k: some rank ran iteration k so */
bool controllerDead = false, finished = false, committed = false;

#ifdef BROKEN_NO_HOLD
#define mayStart(k, undecided) true
#else
#define mayStart(k, undecided) (k < undecided)
#endif
#define allStarted(k) (next[0] >= k && next[1] >= k && next[2] >= k)
#define UNDECIDED 0
#define COMMITTED 1
#define NOTHING 2 /* it has not accepted the proposal, or has heard that it is off */
#define spoken(r) (recalled[r] != NONE)

/* PlanBook::begin */
proctype Application(byte me) {
  do
  :: atomic { next[me] == ITERATIONS -> break }
  :: atomic { next[me] < ITERATIONS && allStarted(next[me]) && mayStart(next[me], proposal[me]) ->
              if
              :: next[me] >= newFrom[me] -> usedNew = usedNew | (1 << next[me])
              :: else -> usedOld = usedOld | (1 << next[me])
              fi;
              assert((usedOld & usedNew) == 0);
              next[me]++ }
  od;
endOfJob:
  false
}

/* Member: AskCounter, Propose, Decide; recall. */
proctype Monitor(byte me) {
  byte from;
end:
  do
  :: atomic { orders[me] ? ask, _ ->
              if
              :: counters[me] = next[me]
#ifdef MESSAGES_GET_LOST
              :: true
#endif
              fi }
  :: atomic { orders[me] ? propose, from ->
              if
              :: from >= next[me] ->
#ifdef BROKEN_ONE_PHASE
                 newFrom[me] = from;
#else
                 proposal[me] = from;
#endif
                 votes[me] = 1
              :: else -> votes[me] = 0
              fi;
#ifdef MESSAGES_GET_LOST
              if
              :: votes[me] = NONE
              :: true
              fi;
#endif
              from = 0 }
  :: atomic { orders[me] ? commit, _ ->
              if
              :: proposal[me] != NONE -> newFrom[me] = proposal[me]
              :: else
              fi;
              proposal[me] = NONE }
  :: atomic { orders[me] ? abort, _ -> proposal[me] = NONE }
  /* The controller died, and nothing of it is on its way any more. */
#ifdef BROKEN_ALONE
  :: atomic { controllerDead && proposal[me] != NONE && empty(orders[me]) -> proposal[me] = NONE }
#else
  :: atomic { controllerDead && !spoken(me) && empty(orders[me]) ->
              if
              :: proposal[me] != NONE -> recalled[me] = UNDECIDED
              :: proposal[me] == NONE && newFrom[me] != NONE -> recalled[me] = COMMITTED
              :: else -> recalled[me] = NOTHING
              fi }
#endif
  od
}

#ifdef CONTROLLER_DIES
#define orDie :: atomic { controllerDead = true; goto ended }
#else
#define orDie
#endif

/* Agreement, with its time limit: it may be over while answers are outstanding. */
proctype Controller() {
  byte r = 0, from = 0;
  do
  :: atomic { r < RANKS -> orders[r] ! ask, 0; r++ }
  orDie
  :: atomic { r == RANKS -> r = 0; break }
  od;
  if
  :: atomic { counters[0] != NONE && counters[1] != NONE && counters[2] != NONE ->
              from = counters[0];
              if :: counters[1] > from -> from = counters[1] :: else fi;
              if :: counters[2] > from -> from = counters[2] :: else fi;
              from = from + MARGIN }
  :: goto decide
  orDie
  fi;
  do
  :: atomic { r < RANKS -> orders[r] ! propose, from; r++ }
  orDie
  :: atomic { r == RANKS -> r = 0; break }
  od;
  if
  :: atomic { votes[0] == 1 && votes[1] == 1 && votes[2] == 1 -> committed = true }
  :: votes[0] == 0 || votes[1] == 0 || votes[2] == 0
  :: true /* the time is over */
  orDie
  fi;
decide:
  r = 0;
  do
  :: atomic { r < RANKS && committed -> orders[r] ! commit, 0; r++ }
  :: atomic { r < RANKS && !committed -> orders[r] ! abort, 0; r++ }
  orDie
  :: atomic { r == RANKS -> r = 0; break }
  od;
  /* A living controller's word reaches everyone, and without a commit nothing changes. */
  (empty(orders[0]) && empty(orders[1]) && empty(orders[2]));
  if
  :: committed -> assert(newFrom[0] == newFrom[1] && newFrom[1] == newFrom[2] && newFrom[0] != NONE)
  :: else -> assert(newFrom[0] == NONE && newFrom[1] == NONE && newFrom[2] == NONE)
  fi;
ended:
  finished = true;
endOfController:
  false
}

/* Succession: the same word for all. */
proctype Successor() {
  byte r = 0;
#ifdef BROKEN_NO_SUCCESSOR
endNobody:
  false;
#endif
endNobodyDied:
#ifdef BROKEN_HASTE
  (spoken(0) || spoken(1) || spoken(2));
#else
  (spoken(0) && spoken(1) && spoken(2));
#endif
  atomic {
    do
    :: r < RANKS && (recalled[0] == COMMITTED || recalled[1] == COMMITTED || recalled[2] == COMMITTED) ->
       orders[r] ! commit, 0; r++
    :: r < RANKS && recalled[0] != COMMITTED && recalled[1] != COMMITTED && recalled[2] != COMMITTED ->
       orders[r] ! abort, 0; r++
    :: r == RANKS -> r = 0; break
    od
  }
endOfSuccessor:
  false
}

init {
  byte i;
  atomic {
    for (i : 0 .. RANKS - 1) {
      counters[i] = NONE; votes[i] = NONE; proposal[i] = NONE; newFrom[i] = NONE; recalled[i] = NONE
    }
    for (i : 0 .. RANKS - 1) {
      run Application(i);
      run Monitor(i)
    }
    run Controller();
#ifdef CONTROLLER_DIES
    run Successor();
#endif
    i = 0
  }
endOfInit:
  false
}
