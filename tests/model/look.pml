/* A look at one device (src/core/lease/look.cpp). The kernel takes its time to tell the locks, so they are read beside the
 * driver's answer, and the tickets after it. What is told of a lock that no ticket explains? A model of its own.
 *   LEASES    so many, one after the other: the lock, the ticket; at the end the lock goes and then the ticket's name
 *   KILLS     so many of them are killed: lock and life end one by one, and the name stays. LOCK_FIRST: the lock first
 *   CITIZENS  so many times a bare flock(1) has the lock
 *   LIMIT_GRANT  a lock is taken before its ticket says so, as it is; else in one step
 *   BREAK_x   a broken variant        SEEN=x   x must be reachable: AGAIN or NAMED
 */
#define NOBODY 0
#define LEASE 1
#define CITIZEN 2
#define AGAIN 1
#define NAMED 2

byte lock = NOBODY; /* who has the kernel's */
bool alive, dead;   /* of tickets in leases/: one whose holder lives; one whose holder was killed */
byte changes;       /* of the folder */

/* Ghosts: what was so at some moment of the look. */
bool looking, citizen_had, nobody_had;
bool stranger, free, unseen = true;

inline note() {
  citizen_had = citizen_had || (looking && lock == CITIZEN);
  nobody_had = nobody_had || (looking && lock == NOBODY);
}

active proctype holders() {
  byte left = LEASES, kills = KILLS;
  do
  :: left > 0 ->
     left--;
     d_step { lock == NOBODY -> lock = LEASE
#ifdef LIMIT_GRANT
     }
     d_step {
#endif
     alive = true; changes++ }
     if
     :: atomic { lock = NOBODY; note() }
        atomic { alive = false; changes++ }
     :: kills > 0 ->
        kills--;
        if
        :: atomic { lock = NOBODY; note() }
           atomic { alive = false; dead = true }
#ifndef LOCK_FIRST
        :: atomic { alive = false; dead = true }
           atomic { lock = NOBODY; note() }
#endif
        fi
     fi
  :: left == 0 -> break
  od
}

active proctype citizens() {
  byte left = CITIZENS;
  do
  :: left > 0 ->
     left--;
     atomic { lock == NOBODY -> lock = CITIZEN; note() }
     atomic { lock = NOBODY; note() }
  :: break
  od
}

active proctype look() {
  byte held, before;
  bool explained, is_suspect;
  atomic { looking = true; note() }
  before = changes;
#ifdef BREAK_NEVER_ASK
  skip;
#else
  held = lock;
#endif
  /* The driver answers. */
  atomic { explained = alive; is_suspect = dead }
#ifdef BREAK_NOT_THE_DEAD
  is_suspect = false;
#endif
  is_suspect = is_suspect || before != changes;
#ifdef BREAK_ONCE
  is_suspect = false;
#endif
  if
  :: held != NOBODY && !explained && is_suspect ->
#if SEEN == AGAIN
     unseen = false; assert(unseen);
#endif
     held = lock;
     explained = alive
  :: else
  fi
#if SEEN == NAMED
  unseen = !(held != NOBODY && !explained && citizen_had); assert(unseen);
#endif
  stranger = held == NOBODY || explained || citizen_had;
  assert(stranger);
  free = held != NOBODY || explained || nobody_had;
  assert(free)
}
