/* Everything that is not a job: faults, the child of a job, strangers, and the judge. */

inline kill(j)
{
  /* Nothing uses the devices of a dead process, unless a child of it does. */
  if :: kid_lives(j) :: else -> held[j] = 0 fi;
  stopped = stopped & ~bit(j);
  ended = ended | bit(j)
}

/* Kill and stop at any step. The fault process may give up at any moment, so that a run in which nobody can move
 * is really at rest: an ever possible kill would hide it from the judge. */
#define MAY_STRIKE(j) (has(open_ticket & ~in_call & ~ended, j))
#define STRIKE(j) \
  :: d_step { kills != 0 && MAY_STRIKE(j) -> kills--; kill(j) } \
  :: d_step { stops != 0 && MAY_STRIKE(j) && !has(stopped, j) -> stops--; stopped = stopped | bit(j) } \
  :: d_step { has(stopped, j) -> stopped = stopped & ~bit(j) }

active proctype Fault()
{
  byte kills = KILLS, stops = STOPS;
  do
  STRIKE(0)
#if JOBS > 1
  STRIKE(1)
#endif
#if JOBS > 2
  STRIKE(2)
#endif
#if JOBS > 3
  STRIKE(3)
#endif
  :: d_step { true -> kills = 0; stops = 0 } -> break
  od
}

#ifdef KID
#define KID_CLOSES(x) \
  :: d_step { has(kid_devices, x) && !has(open_devices[0], x) -> notify_device(x); closing_now++ }; \
     d_step { kid_devices = kid_devices & ~bit(x); unlock_device(0, x); closing_now--; lose(0) } \
  :: d_step { has(kid_devices, x) && has(open_devices[0], x) -> kid_devices = kid_devices & ~bit(x) }

/* A child of job 0: closes its descriptors sooner or later, in any order, or never. A device is its own while it has
 * the ticket or that device's descriptor. */
active proctype Kid()
{
  do
  KID_CLOSES(0)
#if DEVICES > 1
  KID_CLOSES(1)
#endif
  :: d_step { kid_ticket && !has(open_ticket, 0) -> notify_ticket(0); closing_now++ };
     d_step { kid_ticket = 0; alive = alive & ~1; waiting = waiting & ~1; closing_now--; lose(0) }
  :: d_step { kid_ticket && has(open_ticket, 0) -> kid_ticket = 0 }
  :: true -> break
  od
}
#endif

#ifdef CITIZEN
/* flock(1) on device 0: opened for reading, so its end makes no event. It may keep the lock for ever. */
active proctype Citizen()
{
  if
  :: d_step { locked_whole[0] == 0 && locked_shared[0] == 0 -> locked_whole[0] = SOMEBODY_ELSE; citizen_has = 1 }
  :: goto over
  fi;
  if
  :: d_step { true -> citizen_has = 0; silent_change;
              if :: locked_whole[0] == SOMEBODY_ELSE -> locked_whole[0] = 0 :: else fi }
  :: skip
  fi;
over:
  skip
}
#endif

#ifdef REMOVAL
/* The owner of device 0's file removes it; the next to need it makes it anew. Locks stay with the old file, and so do
 * watches: IN_ATTRIB tells the watcher, which watches the name again (its looks always do). */
active proctype Remover()
{
  if
  :: d_step { true -> notify_device(0); closing_now++ };
     d_step { true -> closing_now--; made_anew = 1; locked_whole[0] = 0; locked_shared[0] = 0; k = 0;
              do :: k < JOBS -> watched_devices[k] = watched_devices[k] & ~1; k++ :: else -> break od;
#ifdef CITIZEN
              citizen_has = 0; /* nobody can see that lock any more: the weaker promise of a user's directory */
#endif
              k = 0 }
  :: skip
  fi
}
#endif

#ifdef STRANGERS
#define STAYS JOBS
#define ENDS (JOBS + 1)

/* It is killed, or ends by itself: its two locks end in any order. */
active proctype Stranger()
{
  bool ticket_ended, device_ended;
  if
  :: true ->
     do
     :: d_step { !ticket_ended -> notify_ticket(ENDS); closing_now++ };
        d_step { alive = alive & ~bit(ENDS); closing_now--; ticket_ended = 1 }
     :: d_step { !device_ended -> notify_device(1); closing_now++ };
        d_step { locked_whole[1] = 0; closing_now--; device_ended = 1 }
     :: ticket_ended && device_ended -> break
     od
  :: true
  fi
}
#endif

#ifdef FORGER
/* A ticket that claims to be older than all, and then only waits. */
active proctype Forger()
{
  if
  :: d_step { true -> queued = queued | bit(JOBS); alive = alive | bit(JOBS); waiting = waiting | bit(JOBS) }
  :: skip
  fi
}
#endif

/* No stuck waiter, no lost wake-up: when nothing can move any more (`timeout`), whoever waits must have to.
 * Excepted: everybody, while a stopped process holds the gate; a stopped waiter. */
#ifdef LIMIT_STOPPED_GATE
#define gate_is_stopped false
#else
#define gate_is_stopped (gate != 0 && has(stopped, gate - 1))
#endif

active proctype Judge()
{
  byte t;
#if defined(BELLS) && defined(TICKS)
  do /* time passes, and those that sleep look by themselves */
  :: timeout && ticks > 0 -> d_step { ticks--; ticked = bit(JOBS) - 1 }
  :: ticks == 0 -> break
  od;
#endif
  timeout -> d_step {
    t = 0;
    do
    :: t < JOBS ->
       if
       :: has(finished | stopped, t) || gate_is_stopped
       :: else ->
          stuck = 0; clash = 0; k = 0;
          do
          :: k < TICKETS ->
             if
             :: has(before[t] & queued & alive & waiting & ~stopped, k) && rivals(k, t) -> clash = 1
             :: else
             fi;
             k++
          :: else -> break
          od;
          if
          :: !has(queued & alive & waiting, t) -> stuck = 1
#ifdef BELLS
          :: has(queued & alive & waiting, t) ->
             left_by_the_line(t, (queued & alive & waiting & ~stopped), (leased & alive), stuck);
             d = 0;
             do :: d < DEVICES -> if :: kernel_refuses(t, d) -> stuck = stuck & ~bit(d) :: else fi; d++ :: else -> break od;
             count_of(stuck, n);
             stuck = (n >= need[t])
#else
          :: has(queued & alive & waiting, t) && clash == 0 -> could_go(t, stuck)
          :: else
#endif
          fi;
          assert(!stuck);
          see(JUDGED)
       fi;
       t++
    :: else -> break
    od
  }
}
