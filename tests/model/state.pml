/* What the model's processes share: the lease directory and the kernel's locks, what each job knows, and ghosts.
 * Sets of tickets and sets of devices are bit masks. */

#define CAPACITY 10       /* memory of every device; promises are counted against it */
#define SOMEBODY_ELSE 100 /* the bare flock(1) citizen, as owner of a device lock */

#ifdef FORGER
#define TICKETS (JOBS + 1) /* the last is the forger's, which no process of ours made */
#define forged bit(JOBS)
#elif defined(STRANGERS)
#define forged 0
#define TICKETS (JOBS + 2)
#else
#define forged 0
#define TICKETS JOBS
#endif

#define me _pid
#define bit(x) (1 << (x))
#define mine bit(_pid)
#define has(set, x) (((set) >> (x)) & 1)
#define rivals(a, b) ((candidates[a] & candidates[b]) != 0)
#define whole(t) (memory[t] == 0)

/* Constants and scratch are hidden: they are no part of the state. */
hidden byte candidates[TICKETS] = {CANDIDATES};
hidden byte need[TICKETS] = {NEED};
hidden byte memory[TICKETS] = {MEMORY};
hidden byte k, d, n, sum, clash, others;

/* One name a property: a failing assertion prints its expression. */
hidden byte exclusive, promise, fifo, order, wakes, stuck, unseen;

/* The directory. */
byte gate;                /* 0, or 1 + the job that holds the flock on the directory */
#ifdef STRANGERS
#define first_leases (bit(JOBS) | bit(JOBS + 1))
#else
#define first_leases 0
#endif
byte queued, leased = first_leases; /* tickets linked in queue/, in leases/ */
byte alive = first_leases, waiting; /* tickets whose byte 0, whose byte 1 is locked */
byte id[TICKETS], newest_id;
#ifdef STRANGERS
byte devices[TICKETS] = {LEASED_AT_FIRST};
byte locked_whole[DEVICES] = {LOCKED_AT_FIRST};
#else
byte devices[TICKETS];    /* the devices written in the ticket */
byte locked_whole[DEVICES]; /* 0, or 1 + the owner of LOCK_EX, on the file that bears the device's name now */
#endif
byte locked_shared[DEVICES];

/* Descriptors. A lock or an event of a close belongs to the last process that has the descriptor. */
byte open_ticket;         /* jobs that have their own ticket open */
byte open_devices[JOBS];
byte closing_now;         /* descriptors between the event of their close and the end of their lock */
#ifdef KID
byte kid_ticket, kid_devices; /* what a child of job 0 inherited */
#define kid_has_device(t, x) ((t) == 0 && has(kid_devices, x))
#define kid_has_ticket(t) ((t) == 0 && kid_ticket)
#define kid_lives(t) ((t) == 0 && (kid_ticket || kid_devices != 0))
#define lose(t) let_go(t); k = 0
#else
#define lose(t) skip
#define kid_has_device(t, x) false
#define kid_has_ticket(t) false
#define kid_lives(t) false
#endif

/* What jobs know and wait for. */
byte noted[JOBS];         /* the earlier rivals noted at join, less those seen gone */
byte asleep_on[JOBS];     /* 0, or 1 + the ticket whose waiting byte the job sleeps on */
byte watched_devices[JOBS], watched_tickets[JOBS];
byte event;               /* jobs with an unread inotify event */

/* The life of processes. */
byte stopped, ended, finished; /* ended: killed; finished: the kernel has closed all that it had */
byte started;             /* how many jobs have begun */
byte in_call;             /* jobs inside a system call of two steps */

/* Ghosts: what only assertions and the abstraction of time read. */
byte before[TICKETS];     /* who waited, known or not, when this ticket was linked */
byte held[JOBS];          /* devices of the lease, from the grant until the last of its locks has ended */
#ifdef HEAD_TICK
byte silent;              /* jobs that have not looked since the last change that makes no event */
#define silent_change silent = 255
#define heard silent = silent & ~mine
#else
#define silent_change skip
#define heard skip
#endif
#ifdef CITIZEN
bool citizen_has;         /* the bare flock holder has device 0 */
#endif
#ifdef REMOVAL
bool made_anew;           /* device 0's file was removed and made anew */
#endif

inline count_of(set, out)
{
  out = 0; d = 0;
  do :: d < DEVICES -> out = out + has(set, d); d++ :: else -> break od
}

inline choose(set, count, from_the_top, out)
{
  out = 0; n = 0; d = 0;
  do
  :: d < DEVICES && n < count ->
     k = (from_the_top -> DEVICES - 1 - d : d);
     if :: has(set, k) -> out = out | bit(k); n++ :: else fi;
     d++
  :: else -> break
  od;
  k = 0
}

/* The candidates of ticket t that these leases leave to it. */
inline free_by_ledger(t, leases, out)
{
  out = 0; d = 0;
  do
  :: d < DEVICES ->
     sum = 0; clash = !has(candidates[t], d); k = 0;
     do
     :: k < TICKETS ->
        if
        :: k != t && has(leases, k) && has(devices[k], d) ->
           sum = sum + memory[k]; clash = clash || whole(k) || whole(t)
        :: else
        fi;
        k++
     :: else -> break
     od;
     if :: !clash && sum + memory[t] <= CAPACITY -> out = out | bit(d) :: else fi;
     d++
  :: else -> break
  od
}

#define kernel_refuses(t, x) \
  ((locked_whole[x] != 0 && locked_whole[x] != (t) + 1) || (whole(t) && (locked_shared[x] & ~bit(t)) != 0))

/* Ghost: could ticket t be granted, were it to look now? Earlier tickets that are stopped do not count. */
inline could_go(t, out)
{
  free_by_ledger(t, (leased & alive), out);
  d = 0;
  do :: d < DEVICES -> if :: kernel_refuses(t, d) -> out = out & ~bit(d) :: else fi; d++ :: else -> break od;
  count_of(out, n);
  out = (n >= need[t])
}

inline notify_device(x)
{
  k = 0;
  do :: k < JOBS -> if :: has(watched_devices[k], x) -> event = event | bit(k) :: else fi; k++ :: else -> break od
}

inline notify_ticket(x)
{
  k = 0;
  do :: k < JOBS -> if :: has(watched_tickets[k], x) -> event = event | bit(k) :: else fi; k++ :: else -> break od
}

inline unlock_device(t, x)
{
  if :: locked_whole[x] == t + 1 -> locked_whole[x] = 0 :: else fi;
  locked_shared[x] = locked_shared[x] & ~bit(t)
}

/* A lease that ends by itself lets a device go with the last of the two that say so: ticket and lock. */
inline let_go(t)
{
  d = 0;
  do
  :: d < DEVICES ->
     if
     :: !has(leased & alive, t) && locked_whole[d] != t + 1 && !has(locked_shared[d], t) ->
        held[t] = held[t] & ~bit(d)
     :: else
     fi;
     d++
  :: else -> break
  od
}

/* Ghost, at the grant of `pick` to ticket t: the three promises of safety and order. */
inline check_grant(t, pick, skipped)
{
  exclusive = 1; promise = 1; fifo = 1; d = 0;
  do
  :: d < DEVICES ->
     sum = memory[t]; k = 0;
     do
     :: k < JOBS ->
        if
        :: k != t && has(pick, d) && has(held[k], d) ->
           sum = sum + memory[k];
           if :: whole(t) || whole(k) -> exclusive = 0 :: else fi
        :: else
        fi;
        k++
     :: else -> break
     od;
     if :: has(pick, d) && sum > CAPACITY -> promise = 0 :: else fi;
     d++
  :: else -> break
  od;
  k = 0;
#ifndef BELLS /* there check_reservation tells */
  do
  :: k < TICKETS ->
     if
     :: has(before[t] & queued & alive & waiting & ~(skipped), k) && (candidates[k] & pick) != 0 -> fifo = 0
     :: else
     fi;
     k++
  :: else -> break
  od;
#endif
  assert(exclusive); assert(promise); assert(fifo)
}

/* Ghost: a waiter that goes to sleep is alone, among its rivals, on that ticket, or on those devices. */
inline check_wakes(t)
{
  wakes = 1; k = 0;
  do
  :: k < JOBS ->
     if
     :: k != t && rivals(k, t) && has(queued & alive & waiting & ~ended, k) &&
        ((asleep_on[t] != 0 && asleep_on[k] == asleep_on[t]) ||
         (watched_devices[t] != 0 && (watched_devices[k] & watched_devices[t]) != 0)) -> wakes = 0
     :: else
     fi;
     k++
  :: else -> break
  od;
  assert(wakes)
}
