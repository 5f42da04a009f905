/* The order by response ratio: whose turn it is changes with time, and nothing tells of it. A model of its own: what is
 * decided under the gate is one step here, and so are a grant, a release and a death, which lease.pml takes apart.
 *   JOBS DEVICES CANDIDATES NEED  as in lease.pml
 *   LEASED     a set of devices that strangers have at first; each may be given back at any time, or never
 *   OLD        a set of jobs of a program that does not know this order: it waits for all that came before it
 *   AGAIN      a set of jobs that ask anew while job 0 waits, again and again: a stream that never ends
 *   AGED       a set of jobs that have waited for the longest wait from the beginning
 *   AGING      job 0 may come to it at any time
 *   KILLS STOPS  as in lease.pml
 *   BREAK_x    a broken variant        SEEN=x   x must be reachable
 * Jobs join in the order of their numbers. Of two requests the later one goes past the earlier one once at most: two
 * ratios are straight lines, and whoever joins has ratio 0. */

#ifndef OLD
#define OLD 0
#endif
#ifndef AGAIN
#define AGAIN 0
#endif
#ifndef AGED
#define AGED 0
#endif
#ifndef LEASED
#define LEASED 0
#endif
#define me _pid
#define bit(x) (1 << (x))
#define mine bit(_pid)
#define has(set, x) (((set) >> (x)) & 1)
#define rivals(a, b) ((candidates[a] & candidates[b]) != 0)
#define all_devices (bit(DEVICES) - 1)
#define is_old(t) has(OLD, t)

hidden byte candidates[JOBS] = {CANDIDATES};
hidden byte need[JOBS] = {NEED};
hidden byte k, d, n, w, t, u, oldest, taken, reserved, kept, avail, others, sum, starts, enough, first, guards;
hidden byte turn, order, once, stuck, unseen;

byte started;               /* how many jobs have joined */
byte waiting, stopped, dead, over;
byte earlier[JOBS];         /* of those that wait: who came before */
byte ahead[JOBS];           /* of those that wait: whose ratio is larger */
byte aged = AGED;           /* who has waited for the longest wait */
byte held[JOBS];            /* devices */
byte strangers = LEASED;    /* the devices that they still have */
byte in_use = LEASED;       /* what the ledger says */
byte behind[JOBS];          /* 0, or 1 + the job on whose waiting byte it sleeps */
byte watched[JOBS];         /* devices */
byte event, rung;           /* jobs with an unread event, with an unread datagram */
byte silent;                /* jobs that have not looked since the last change that makes no event */
byte asleep;                /* jobs that hear a bell */

#define OVERTAKEN 1         /* a later request starts before an earlier rival */
#define BY_TIME 2           /* a guard looks because of the time alone, and rings somebody */
#define OLDEST 3            /* the oldest starts before one whose ratio is larger */
#define JUDGED 4            /* the judge sees somebody wait rightly */
#ifdef SEEN
#define see(what) if :: SEEN == what -> unseen = 0; assert(unseen) :: else fi
#else
#define see(what) skip
#endif

inline count_of(set) {
  sum = 0; d = 0;
  do :: d < DEVICES -> sum = sum + has(set, d); d++ :: else -> break od
}

/* The oldest of these. */
inline find_oldest(set) {
  oldest = JOBS; k = 0;
  do
  :: k < JOBS -> if :: has(set, k) && (earlier[k] & (set)) == 0 -> oldest = k :: else fi; k++
  :: else -> break
  od
}

#ifdef BREAK_PAST_THE_OLD /* ranked among the others, as if its time were known */
#define walls 0
#define is_wall(x) false
#define ranked 255
#else
#define walls (waiting & OLD)
#define is_wall(x) is_old(x)
#define ranked ~OLD
#endif

/* Whether a's turn is before b's, as a program sees it that knows the order or not. REQUIRES: find_oldest. */
#ifdef BREAK_NO_LONGEST_WAIT
#define is_first(a) false
#else
#define is_first(a) ((a) == oldest && has(aged, a))
#endif
#define in_one_run(a, b) \
  (!is_wall(a) && !is_wall(b) && (earlier[a] & walls) == (earlier[b] & walls))
#define is_before(a, b, knows) \
  ((knows) && in_one_run(a, b) -> (is_first(a) || (!is_first(b) && has(ahead[b], a))) : has(earlier[b], a))

/* The devices that x may have beside those of this set whose turn is before its own, if they are enough for it; else none.
 * In their order: who finds enough starts; the first few of its rivals who do not have a reservation each. */
inline left_beside(x, set, used, knows, most)
{
  find_oldest(set);
  taken = 0; reserved = 0; kept = 0; n = set; n = n & ~bit(x); others = JOBS;
  do
  :: others > 0 ->
     others--; w = JOBS; k = 0;
     do /* the next of them, if it is before x */
     :: k < JOBS ->
        if
        :: has(n, k) && is_before(k, x, knows) && (w == JOBS || is_before(k, w, knows)) -> w = k
        :: else
        fi;
        k++
     :: else -> break
     od;
     if
     :: w == JOBS -> others = 0
     :: else ->
        n = n & ~bit(w);
        avail = candidates[w] & ~(used) & ~taken & ~reserved;
        count_of(avail);
        if
        :: sum >= need[w] ->
           sum = 0; d = 0;
           do
           :: d < DEVICES && sum < need[w] ->
              if :: has(avail, d) -> taken = taken | bit(d); sum++ :: else fi; d++
           :: else -> break
           od
        :: else ->
           sum = 0; k = 0;
           do
           :: k < JOBS -> sum = sum + (has(kept, k) && rivals(k, w)); k++
           :: else -> break
           od;
           if :: sum < (most) -> kept = kept | bit(w); reserved = reserved | candidates[w] :: else fi
        fi
     fi
  :: else -> break
  od;
  avail = candidates[x] & ~(used) & ~taken & ~reserved;
  count_of(avail);
  if :: sum < need[x] -> avail = 0 :: else fi;
  w = 0; n = 0; d = 0; k = 0; sum = 0; taken = 0; reserved = 0; kept = 0
}

#define RESERVATIONS 3
#ifdef BREAK_ONE_RESERVATION
#define left_for(x, set, used, knows) left_beside(x, set, used, knows, 1)
#else
#define left_for(x, set, used, knows) left_beside(x, set, used, knows, RESERVATIONS)
#endif

/* Who would start, by its own program's order; the asker, if it is one of them, counts as if it did not wait. */
inline who_starts(set, used, asker)
{
  starts = 0; u = set;
  left_for(asker, u, used, !is_old(asker));
  if :: avail != 0 -> u = u & ~bit(asker) :: else fi;
  t = 0;
  do
  :: t < JOBS ->
     if
     :: t != asker && has(u, t) ->
        left_for(t, u, used, !is_old(asker));
        if :: avail != 0 -> starts = starts | bit(t) :: else fi
     :: else
     fi;
     t++
  :: else -> break
  od;
  t = 0; avail = 0; u = 0
}

#define counted (waiting & ~stopped)

inline forget(x) {
  waiting = waiting & ~bit(x); k = 0;
  do
  :: k < JOBS ->
     if :: behind[k] == x + 1 -> event = event | bit(k) :: else fi;
     earlier[k] = earlier[k] & ~bit(x); ahead[k] = ahead[k] & ~bit(x); k++
  :: else -> break
  od;
  k = 0; earlier[x] = 0; ahead[x] = 0; watched[x] = 0; behind[x] = 0; aged = aged & ~bit(x); silent = waiting;
  rung = rung & ~bit(x); event = event & ~bit(x); asleep = asleep & ~bit(x)
}

inline give_back(set) {
  in_use = in_use & ~(set); k = 0;
  do :: k < JOBS -> if :: (watched[k] & (set)) != 0 -> event = event | bit(k) :: else fi; k++ :: else -> break od;
  k = 0
}

#ifdef BREAK_NO_GATE /* of what it breaks, the worse is asked for */
#define assert_turn skip
#else
#define assert_turn assert(turn)
#endif

/* What must hold at a grant, by the ranks of that moment. */
inline check_grant(x, pick)
{
  once = ((pick & in_use) == 0); assert(once);
  left_beside(x, counted, in_use, !is_old(x), RESERVATIONS);
  turn = ((pick & ~avail) == 0); assert_turn;
  /* The first of all loses nothing, whatever the others are like. */
  find_oldest(counted); n = 0;
  do
  :: n < JOBS ->
     first = has(counted, n); w = 0;
     do
     :: w < JOBS ->
        if :: w != n && has(counted, w) && is_before(w, n, true) -> first = 0 :: else fi;
        w++
     :: else -> break
     od;
     if
     :: first && n != x && (candidates[n] & pick) != 0 ->
        avail = candidates[n] & ~in_use & ~(pick); count_of(avail);
        turn = (sum >= need[n]); assert_turn
     :: else
     fi;
     n++
  :: else -> break
  od;
  if :: (earlier[x] & counted) != 0 -> see(OVERTAKEN) :: else fi;
  if :: x == oldest && has(aged, x) && (ahead[x] & counted) != 0 -> see(OLDEST) :: else fi;
  n = 0; w = 0; avail = 0; sum = 0; d = 0; first = 0; oldest = 0
}

/* The rivals behind which x may sleep. */
inline find_guards(x) {
  guards = 0; k = 0;
  do
  :: k < JOBS ->
#ifdef BREAK_SLEEP_BY_RANK
     if :: k != x && has(counted, k) && rivals(x, k) && is_before(k, x, !is_old(x)) -> guards = guards | bit(k) :: else fi;
#else
     if :: has(earlier[x] & counted, k) && rivals(x, k) -> guards = guards | bit(k) :: else fi;
#endif
     k++
  :: else -> break
  od;
  k = 0
}

/* Who waits for too little sleeps behind the last guard that waits for all that it waits for, else behind the last, and
 * watches the rest itself. Who has no guard watches all, and also sleeps behind the rival right before it. */
inline find_place(x, rival) {
  rival = JOBS; n = JOBS; k = 0;
  do
  :: k < JOBS ->
     if
     :: has(guards, k) ->
        if :: n == JOBS || has(earlier[k], n) -> n = k :: else fi;
        if
        :: (candidates[x] & ~candidates[k]) == 0 && (rival == JOBS || has(earlier[k], rival)) -> rival = k
        :: else
        fi
     :: else
     fi;
     k++
  :: else -> break
  od;
  if :: rival == JOBS -> rival = n :: else fi;
  if
  :: rival != JOBS -> watched[x] = candidates[x] & ~candidates[rival]
  :: else ->
     watched[x] = candidates[x]; k = 0;
     do
     :: k < JOBS ->
        if
        :: enough && k != x && has(counted, k) && rivals(x, k) && is_before(k, x, !is_old(x)) &&
           (rival == JOBS || is_before(rival, k, !is_old(x))) -> rival = k
        :: else
        fi;
        k++
     :: else -> break
     od
  fi;
  order = (rival == JOBS || has(earlier[x], rival) || watched[x] == candidates[x]); assert(order);
  behind[x] = (rival == JOBS -> 0 : rival + 1);
  k = 0; n = 0
}

/* The leases are read, then the queue, then bells are rung, all without the gate. A stopped one whose turn it would be
 * hears the bell when it goes on. */
#ifdef BREAK_RING_NOBODY
#define RING news = 0
#else
#define RING \
    leases_read = in_use; \
    d_step { who_starts(waiting, leases_read, me); n = starts; \
             who_starts(counted, leases_read, me); n = n | starts; rung = rung | (n & asleep); \
             if :: by_time && (n & asleep) != 0 -> see(BY_TIME) :: else fi; \
             n = 0; starts = 0; leases_read = 0; news = 0; by_time = 0 }
#endif

active [JOBS] proctype Job() provided (!has(stopped, _pid))
{
  byte rival, pick, skipped, leases_read;
  bool news, by_time;
#ifdef BREAK_OLD_RANKS
  byte then;
#endif
  {
    started >= me; /* they join in the order of their numbers */
#ifdef BREAK_OLD_RANKS /* those of a moment before the gate, and the leases of now */
anew:
    atomic { started >= me -> d_step { left_for(me, counted | mine, in_use, !is_old(me)); then = avail; avail = 0 } };
#endif
look:
    atomic { started >= me -> /* under the gate, and so are the join and the grant */
      d_step {
        if
        :: !has(waiting, me) ->
           earlier[me] = waiting; ahead[me] = waiting & ranked; waiting = waiting | mine;
           if :: started == me -> started++ :: else fi
        :: else
        fi;
        skipped = waiting & stopped;
        event = event & ~mine; rung = rung & ~mine; silent = silent & ~mine; asleep = asleep & ~mine; behind[me] = 0;
        watched[me] = 0;
        avail = candidates[me] & ~in_use; count_of(avail); enough = (sum >= need[me]);
#if defined(BREAK_LATER_UNLISTED)
        left_for(me, (counted & (earlier[me] | mine)), in_use, !is_old(me));
#elif defined(BREAK_FRONT_BY_ID)
        left_for(me, counted, in_use, false);
#else
        left_for(me, counted, in_use, !is_old(me));
#endif
#ifdef BREAK_OLD_RANKS
        count_of(then & ~in_use); if :: sum >= need[me] -> avail = then & ~in_use :: else fi; then = 0;
#endif
        pick = avail; avail = 0; sum = 0;
        if
        :: pick == 0 ->
           find_guards(me); find_oldest(counted); find_place(me, rival);
           if :: rival == JOBS -> news = 1 :: else fi;
           rival = 0; asleep = asleep | mine
        :: else
        fi;
        n = 0; k = 0; sum = 0; d = 0; enough = 0; guards = 0; oldest = 0
      };
      if :: pick == 0 -> goto waits :: pick != 0 fi;
#ifdef BREAK_NO_GATE
    }
    atomic {
#endif
      d_step { /* the lowest of them: which, changes nothing here */
        u = pick; pick = 0; n = 0; d = 0;
        do
        :: d < DEVICES && n < need[me] -> if :: has(u, d) -> pick = pick | bit(d); n++ :: else fi; d++
        :: else -> break
        od;
        u = 0; n = 0; d = 0;
        check_grant(me, pick);
        held[me] = pick; in_use = in_use | pick; pick = 0; skipped = 0; news = 0; by_time = 0; forget(me) }
    };
    d_step { give_back(held[me]); held[me] = 0 };
    if
    :: has(AGAIN, me) && has(waiting, 0) -> goto look
    :: else -> goto done
    fi;

waits:
    if
    :: d_step { news && in_use == all_devices -> news = 0; by_time = 0 }
    :: !news
    :: news && in_use != all_devices -> RING
    fi;
    /* sleep */
    if
    :: d_step { has(event, me) -> news = 1 }
#ifndef BREAK_DEAF
    :: d_step { has(rung, me) -> news = 1 }
#endif
    :: d_step { (behind[me] != 0 && has(stopped, behind[me] - 1)) || (skipped & counted) != 0 -> news = 1 }
#ifndef BREAK_FORGET_THE_CROSSING /* whoever watches devices itself looks at its tick, and rings */
    :: d_step { has(silent, me) && watched[me] != 0 && !is_old(me) -> news = 1; by_time = 1 }
#endif
    fi;
#ifdef BREAK_OLD_RANKS
    goto anew
#else
    goto look
#endif
  } unless {
    d_step { has(dead, _pid) ->
             rival = 0; pick = 0; skipped = 0; leases_read = 0; news = 0; by_time = 0;
             forget(me); give_back(held[me]); held[me] = 0 }
  };
done:
  over = over | mine
}

/* A later request goes past the one right before it, by its ratio; the one that has waited longest reaches the longest
 * wait. It may give up at any moment, so that a run in which nobody can move is at rest. */
#define CROSS(i, j) \
  :: d_step { has(waiting, i) && has(earlier[j], i) && has(ahead[j], i) && ahead[j] == (ahead[i] | bit(i)) && \
              ((bit(i) | bit(j)) & ~(ranked)) == 0 -> \
              ahead[j] = ahead[j] & ~bit(i); ahead[i] = ahead[i] | bit(j); silent = waiting }
#define EITHER(i, j) CROSS(i, j) CROSS(j, i)

active proctype Time()
{
  do
  EITHER(0, 1)
#if JOBS > 2
  EITHER(0, 2)
  EITHER(1, 2)
#endif
#ifdef AGING
  :: d_step { has(waiting & ~aged, 0) -> aged = aged | 1; silent = waiting }
#endif
  :: break
  od
}

#if LEASED > 0
active proctype Strangers()
{
  do
  :: d_step { has(strangers, 0) -> strangers = strangers & ~1; give_back(1) }
#if DEVICES > 1
  :: d_step { has(strangers, 1) -> strangers = strangers & ~2; give_back(2) }
#endif
  :: break
  od
}
#endif

#define MAY_STRIKE(j) (has(waiting & ~dead, j) || (held[j] != 0 && !has(dead, j)))
#define STRIKE(j) \
  :: d_step { kills != 0 && MAY_STRIKE(j) -> kills--; stopped = stopped & ~bit(j); dead = dead | bit(j) } \
  :: d_step { stops != 0 && MAY_STRIKE(j) && !has(stopped, j) -> stops--; stopped = stopped | bit(j); silent = waiting } \
  :: d_step { has(stopped, j) -> stopped = stopped & ~bit(j); silent = waiting }

#if KILLS + STOPS > 0
active proctype Fault()
{
  byte kills = KILLS, stops = STOPS;
  do
  STRIKE(0)
  STRIKE(1)
#if JOBS > 2
  STRIKE(2)
#endif
  :: d_step { true -> kills = 0; stops = 0 } -> break
  od
}
#endif

/* When nothing moves any more, nobody waits who could start. */
active proctype Judge()
{
  byte j;
  timeout -> d_step {
    do
    :: j < JOBS ->
       if
       :: has(counted, j) ->
          left_for(j, counted, in_use, true);
          stuck = (avail == 0); assert(stuck);
          see(JUDGED)
       :: else
       fi;
       j++
    :: else -> break
    od
  }
}
