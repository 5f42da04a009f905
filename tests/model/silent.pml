/* Those that do not answer: a waiter that never looks again is passed over, and keeps its place. A model of its own: what is
 * decided under the gate is one step, and so is a grant. All devices are alike, and nobody fills gaps.
 *   JOBS DEVICES NEED  as in lease.pml; all wait at first, in the order of their numbers, and strangers have all devices
 *   FREEZES    how many times a waiter is frozen: it does not look until it thaws, which may be never
 *   BREAK_x    a broken variant        SEEN=x   x must be reachable: PASSED, THAWED or BOTH
 * Time: a unit is half a tick. It passes only if no waiter that lives has still to look. Each looks by itself at every second
 * unit, in a phase of its own: so it may look just before another does, or just after. */

#define has(set, x) (((set) >> (x)) & 1)
#define bit(x) (1 << (x))
#define all (bit(JOBS) - 1)
#define LONG 20 /* no age is larger */
#define GAP 5 /* looks that are further apart say nothing together: whoever judges may have been frozen itself */
#ifdef BREAK_IMPATIENT
#define PATIENCE 2
#else
#define PATIENCE 3
#endif
/* How long a device may stay free beside a waiter that lives and has `before` others before it. */
#define bound(before) (6 * (before) + 2)

#define PASSED 1 /* somebody starts before one that does not answer */
#define THAWED 2 /* one that was passed over starts later on */
#define BOTH 3   /* two are passed over at once */
#ifdef SEEN
#define see(what) if :: SEEN == what -> unseen = 0; assert(unseen) :: else fi
#else
#define see(what) skip
#endif

hidden byte need[JOBS] = {NEED};
hidden byte i, turns, place, passes, rest;
hidden byte able, same;
hidden byte once, order, stuck, unseen;

byte free, strangers = DEVICES;
byte waiting = all, running, frozen;
byte event;              /* waiters that something has woken */
byte due = all;          /* waiters that have to look by themselves in this unit */
byte phase;              /* a set: who looks in odd units */
bool odd;
byte freezes = FREEZES;
byte left[JOBS];         /* a set: who leaves its turn, by what this waiter has seen */
byte age[JOBS * JOBS];   /* for how long */
byte quiet[JOBS];        /* since this waiter has looked */
byte suspects[JOBS];     /* 0, or 1 + for how long it seems to this waiter that somebody does */
#ifdef BREAK_NO_GATE
byte planned;
#endif

/* Ghosts. */
byte awake[JOBS];        /* for how long it has not been frozen; LONG at first */
byte passed_over;
byte beside[JOBS];       /* for how long a device has been free beside this waiter */

/* Who of those before it could start if nobody before them took anything; and whether it could itself. Nobody, if they leave
 * it enough: then it need pass none of them. */
inline find_turns(j) {
  turns = 0; place = 0; able = (need[j] <= free); rest = free; i = 0;
  do
  :: i < j ->
     if
     :: has(waiting, i) && need[i] <= free -> turns = turns | bit(i); place++
     :: has(waiting, i) && need[i] > free -> able = 0
     :: else
     fi;
     if
     :: has(waiting, i) && need[i] <= rest -> rest = rest - need[i]
     :: has(waiting, i) && need[i] > rest -> rest = 0
     :: else
     fi;
     i++
  :: else -> break
  od;
  if :: !able || need[j] <= rest -> turns = 0; place = 0 :: else fi;
  rest = 0
}

inline see_again(j) {
#ifndef BREAK_OLD_LOOK
  if :: quiet[j] > GAP -> left[j] = 0 :: else fi;
#endif
  quiet[j] = 0;
  same = 1; i = 0;
  do
  :: i < j ->
#ifdef BREAK_OLD_CHANCE /* that somebody before has left changes nothing */
     same = 1;
#endif
     if :: has(turns, i) != has(left[j], i) -> same = 0 :: else fi;
#ifdef BREAK_FOR_EVER
     if :: has(turns, i) && !has(left[j], i) -> age[j * JOBS + i] = 0 :: else fi;
#else
     if :: !has(turns, i) || !same -> age[j * JOBS + i] = 0 :: else fi;
#endif
     i++
  :: else -> break
  od;
#ifdef BREAK_FOR_EVER /* one that was passed over once is so for good */
  left[j] = left[j] | turns
#else
  left[j] = turns
#endif
}

/* How many of `turns` it may pass, from the first on. */
inline find_silent(j) {
  passes = 0; i = 0;
  do
  :: i < j ->
     if
     :: !has(turns, i)
#ifdef BREAK_ALL_AT_ONCE /* those behind the first get no time to notice it themselves */
     :: has(turns, i) && age[j * JOBS + i] >= PATIENCE -> passes++
#else
     :: has(turns, i) && age[j * JOBS + i] >= (passes + 1) * PATIENCE -> passes++
#endif
     :: else -> break
     fi;
     i++
  :: else -> break
  od
}

/* Whoever is passed over was frozen not long ago. */
inline check_order() {
  order = 1; place = 0; i = 0;
  do
  :: i < JOBS ->
     if
     :: has(turns, i) -> place++; order = order && awake[i] <= place * PATIENCE + 2
     :: else
     fi;
     i++
  :: else -> break
  od;
  assert(order)
}

inline grant(j) {
  once = (need[j] <= free); assert(once);
  check_order();
  if :: turns != 0 -> see(PASSED) :: else fi;
  if :: passes > 1 -> see(BOTH) :: else fi;
  if :: has(passed_over, j) -> see(THAWED) :: else fi;
  passed_over = passed_over | turns;
  free = free - need[j];
  waiting = waiting & ~bit(j);
  running = running | bit(j);
  left[j] = 0; suspects[j] = 0; quiet[j] = 0; beside[j] = 0; awake[j] = LONG; i = 0;
  do
  :: i < JOBS -> /* whoever sleeps behind it is woken; and the time of the others begins anew */
     age[j * JOBS + i] = 0; beside[i] = 0; i++
  :: else -> break
  od;
  event = event | waiting
}

#ifdef BREAK_NO_GATE
#define take(j) planned = planned | bit(j)
#else
#define take(j) grant(j)
#endif

inline look(j) {
  event = event & ~bit(j); due = due & ~bit(j);
  find_turns(j);
  if
  :: able && turns == 0 -> passes = 0; suspects[j] = 0; left[j] = 0; take(j)
  :: !able -> suspects[j] = 0; see_again(j)
  :: able && turns != 0 ->
     if :: suspects[j] == 0 -> suspects[j] = 1 :: else fi;
     if
     :: suspects[j] > (place - 1) * PATIENCE || left[j] != 0 ->
        see_again(j); find_silent(j);
#ifndef BREAK_PASS_NOBODY
        if :: passes == place -> take(j) :: else fi
#endif
     :: else
     fi
  fi;
  i = 0; turns = 0; place = 0; passes = 0; able = 0; same = 0
}

/* Ghost: beside whom has a device been free? */
inline count_idle() {
  able = 1; place = 0; passes = 0;
  do
  :: place < JOBS ->
     if
     :: has(waiting, place) ->
        able = able && need[place] <= free;
        if
        :: able && !has(frozen, place) ->
           beside[place]++;
           stuck = (beside[place] > bound(passes)); assert(!stuck)
        :: else -> beside[place] = 0
        fi;
        passes++
     :: else
     fi;
     place++
  :: else -> break
  od;
  place = 0; passes = 0; able = 0
}

inline time_passes() {
  odd = !odd; i = 0;
  do
  :: i < JOBS * JOBS -> if :: has(left[i / JOBS], i % JOBS) && age[i] < LONG -> age[i]++ :: else fi; i++
  :: else -> break
  od;
  place = 0;
  do
  :: place < JOBS ->
     if :: suspects[place] != 0 && suspects[place] < LONG -> suspects[place]++ :: else fi;
     if :: left[place] != 0 && quiet[place] <= GAP -> quiet[place]++ :: else fi;
     if :: !has(frozen, place) && has(waiting, place) && awake[place] < LONG -> awake[place]++ :: else fi;
     place++
  :: else -> break
  od;
  count_idle();
  due = due | (waiting & (odd -> phase : ~phase));
  i = 0; place = 0
}

#define STEPS(j) \
  :: d_step { has((event | due) & waiting & ~frozen PLANNED, j) -> look(j) } \
  :: d_step { has(running, j) -> running = running & ~bit(j); give_back(need[j]) } \
  :: d_step { has(waiting & ~frozen, j) && freezes > 0 -> \
       freezes--; frozen = frozen | bit(j); awake[j] = 0; beside[j] = 0 } \
  :: d_step { has(frozen, j) -> frozen = frozen & ~bit(j); due = due | bit(j) }

#ifdef BREAK_NO_GATE
#define PLANNED & ~planned
#define PLANNED_TOO | planned
#define GRANT(j) :: d_step { has(planned & ~frozen, j) -> planned = planned & ~bit(j); find_turns(j); turns = 0; grant(j) }
#else
#define PLANNED
#define PLANNED_TOO
#define GRANT(j)
#endif

/* Devices become free: an event for the first that waits, or none, as of memory that comes back. */
inline give_back(count) {
  free = free + count;
  i = 0;
  do :: i < JOBS && !has(waiting, i) -> i++ :: else -> break od;
  if :: i < JOBS -> event = event | bit(i) :: else fi;
  i = 0
}

active proctype Everything() {
  d_step {
    i = 0;
    do :: i < JOBS -> awake[i] = LONG; i++ :: else -> break od;
    i = 0
  }
  do
  :: phase = phase | 1; break
  :: break
  od;
#if JOBS > 1
  do :: phase = phase | 2; break :: break od;
#endif
#if JOBS > 2
  do :: phase = phase | 4; break :: break od;
#endif
  do
  STEPS(0)
  GRANT(0)
#if JOBS > 1
  STEPS(1)
  GRANT(1)
#endif
#if JOBS > 2
  STEPS(2)
  GRANT(2)
#endif
  :: d_step { strangers > 0 -> strangers--; give_back(1) }
  :: d_step { strangers > 0 -> strangers--; free++ } /* without an event */
  :: d_step { ((event | due PLANNED_TOO) & waiting & ~frozen) == 0 && waiting != 0 -> time_passes() }
  od
}
