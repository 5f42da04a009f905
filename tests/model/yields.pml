/* Leases that yield: who is rung, who ends, and for whom. A model of its own, as its looks are torn: the holder of such a
 * lease asks the driver, then reads queue/, then leases/, without the gate, and anything may happen between. Who is
 * granted what under the gate, and that a release wakes the first in line, is the business of lease.pml: here each is one
 * step.
 *   YIELDERS   leases of one device each that yield; a higher number is a younger lease
 *   WAITERS    requests that come in the order of their numbers; each wants NEED[i] devices, whichever, and keeps them
 *   YIELDING   a set of waiters that yield themselves
 *   KILLS      so many holders and waiters are killed, each at any step
 *   UNHEARD    no bell is heard, as from another network namespace
 *   TICKS      so often, when nothing else moves, all holders look by themselves
 * The processes of the waiters have their numbers after those of the yielders. */

#ifndef KILLS
#define KILLS 0
#endif
#ifndef YIELDING
#define YIELDING 0
#endif
#define bit(x) (1 << (x))
#define has(set, x) (((set) >> (x)) & 1)
#define all_devices (bit(YIELDERS) - 1)

byte need[WAITERS] = { NEED };
byte held = all_devices; /* devices, which are the leases on them: those that yield */
byte ending;             /* of these, those whose byte 2 is locked */
byte bells;              /* of these, those that can be rung */
byte rung;               /* of these, those with an unread datagram */
byte waiting;            /* waiters in queue/ */
byte granted;            /* waiters in leases/ */
byte taken;              /* devices that they have */
byte asleep;             /* waiters */
byte dead, over, kills;
byte ended, asked; /* ghosts: leases that ended to yield; devices that were wanted by those who do not yield and can be served */
bool few, stuck, unseen;

hidden byte w, j, spare, found, chosen, missing;

inline count_spare() { found = 0; j = 0;
  do :: j < YIELDERS -> found = found + has(spare, j); j++ :: else -> break od; j = 0 }

/* The leases that are to end by a view: for each waiter that does not yield and cannot start, in order, as few as suffice,
 * the youngest; none where not even all would do. What is ending counts as gone. A device on which the driver saw
 * somebody who has no lease is free for nobody. */
inline who_yields(seen_used, seen_waiting, seen_held, seen_ending, seen_granted, seen_taken)
{
  chosen = 0; w = 0; spare = 0;
  spare = all_devices & ~(seen_held & ~(seen_ending)) & ~(seen_taken) & ~(seen_used & ~(seen_held));
  count_spare();
  do
#ifdef BREAK_YIELD_TO_YIELDER
  :: w < WAITERS && has(seen_waiting & ~(seen_granted), w) ->
#else
  :: w < WAITERS && has(seen_waiting & ~(seen_granted) & ~YIELDING, w) ->
#endif
     if
     :: found >= need[w] -> found = found - need[w]
     :: else ->
        missing = need[w] - found; found = 0; j = YIELDERS;
        do
        :: j > 0 && missing > 0 ->
           j--;
           if :: has(seen_held & ~(seen_ending) & ~chosen, j) -> chosen = chosen | bit(j); missing-- :: else fi
        :: else -> break
        od;
        j = 0;
#ifndef BREAK_HALF
        if :: missing > 0 -> chosen = 0; break :: else fi
#endif
     fi;
     w++
  :: w < WAITERS && !has(seen_waiting, w) || w < WAITERS && has(seen_granted, w) -> w++
#ifndef BREAK_YIELD_TO_YIELDER
  :: w < WAITERS && has(seen_waiting & ~(seen_granted) & YIELDING, w) -> w++
#endif
  :: w == WAITERS -> break
  od;
  w = 0; spare = 0; found = 0; missing = 0
}

/* A release, or one who waits no more. */
#define wake_the_line asleep = 0
#define end_lease \
    held = held & ~bit(_pid); ending = ending & ~bit(_pid); bells = bells & ~bit(_pid); rung = rung & ~bit(_pid); \
    wake_the_line; over = over | bit(_pid)

active [YIELDERS] proctype Holder()
{
  byte used, queue, leases, ends, others, devices;
  bool seems_asked;
  {
    /* The bell is bound a little after the grant, and nobody could ring until then. */
#ifdef BREAK_BELL_UNBOUND
    bells = bells | bit(_pid);
#else
    d_step { bells = bells | bit(_pid); rung = rung | bit(_pid) };
#endif
deaf:
    atomic { has(rung, _pid) -> rung = rung & ~bit(_pid) };
look:
    used = held;
    queue = waiting;
#ifdef BREAK_SEEN_TWICE /* one that was granted between counts as waiting and as a lease */
    d_step { leases = held; ends = ending; devices = taken };
#else
    d_step { leases = held; ends = ending; devices = taken; others = granted };
#endif
    atomic {
      d_step { who_yields(used, queue, leases, ends, others, devices);
               used = 0; queue = 0; leases = 0; ends = 0; others = 0; devices = 0 };
      if
#ifdef BREAK_ANYBODY /* whoever is rung ends, where somebody has to */
      :: chosen == 0 -> seems_asked = 0; goto deaf
#define is_mine (chosen != 0)
#else
      :: !has(chosen, _pid) -> seems_asked = 0; chosen = 0; goto deaf
#define is_mine has(chosen, _pid)
#endif
#ifdef BREAK_ONE_LOOK
      :: is_mine -> chosen = 0
#else
      :: is_mine && !seems_asked -> seems_asked = 1; chosen = 0; goto look /* a little later */
      :: is_mine && seems_asked -> chosen = 0
#endif
      fi
    };
    /* Byte 2 is locked; SIGTERM, grace, SIGKILL; the lease ends. */
    d_step { ending = ending | bit(_pid); ended++; seems_asked = 0; few = (ended <= asked); assert(few) };
    d_step { end_lease }
  } unless {
    d_step { has(dead, _pid) ->
      used = 0; queue = 0; leases = 0; ends = 0; others = 0; devices = 0; seems_asked = 0; end_lease }
  }
}

#define me (_pid - YIELDERS)
#define yields has(YIELDING, me)
/* Those that yield stand behind all others. */
#define before_me (yields -> ((waiting & ~YIELDING) | (waiting & (bit(me) - 1))) : (waiting & ~YIELDING & (bit(me) - 1)))

active [WAITERS] proctype Waiter()
{
  {
    d_step { (waiting | granted | (over >> YIELDERS)) == bit(me) - 1 ->
             waiting = waiting | bit(me); if :: !yields && need[me] <= YIELDERS -> asked = asked + need[me] :: else fi };
look: /* under the gate */
    if
    :: d_step { true -> spare = all_devices & ~held & ~taken; count_spare();
         if
         :: found >= need[me] && before_me == 0 ->
            do
            :: j < YIELDERS && missing < need[me] -> taken = taken | (spare & bit(j)); missing = missing + has(spare, j); j++
            :: else -> break
            od;
#ifdef SEEN
            if :: ended > 0 -> assert(unseen) :: else fi;
#endif
            granted = granted | bit(me); waiting = waiting & ~bit(me); wake_the_line; over = over | bit(_pid)
         :: else -> asleep = asleep | bit(me)
         fi;
         spare = 0; found = 0; missing = 0; j = 0 }
    fi;
    if
    :: has(granted, me) -> goto done
    :: !has(granted, me)
    fi;
#if !defined(BREAK_RING_NOBODY) && !defined(UNHEARD)
    if :: d_step { !yields -> rung = rung | bells } :: yields fi; /* then it sleeps; an event since its look wakes it */
#endif
    !has(asleep, me) -> goto look;
done: skip
  } unless {
    d_step { has(dead, _pid) -> waiting = waiting & ~bit(me); asleep = asleep & ~bit(me); wake_the_line;
             over = over | bit(_pid) }
  }
}

#if KILLS > 0
active proctype Killer()
{
  byte victim;
  do
  :: d_step { kills < KILLS && !has(over | dead, victim) -> dead = dead | bit(victim); kills++; victim = 0 }
  :: d_step { victim < YIELDERS + WAITERS - 1 && kills < KILLS -> victim++ }
  :: break
  od
}
#endif

/* When nothing moves any more, nobody waits for whom leases would have to end. */
active proctype Judge()
{
#ifdef TICKS
  byte ticks = TICKS;
  do
  :: timeout && ticks > 0 -> d_step { ticks--; rung = rung | bells }
  :: ticks == 0 -> break
  od;
#endif
  timeout -> d_step { who_yields(0, waiting, held, ending, granted, taken); stuck = (chosen == 0); chosen = 0; assert(stuck) }
}
