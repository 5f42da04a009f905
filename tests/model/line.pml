/* The line with backfill: who starts in front of an earlier rival, and who is rung. Only with BELLS:
 *   SHORT     a set of jobs that end before any reservation begins: they may have what is kept
 *   STRANGERS two leases of nobody here: one of device 0 that stays, one of device 1 that ends at any time
 *   UNHEARD   no bell is heard, as from another network namespace
 *   TICKS     so often, when nothing else moves, all that sleep behind a rival look by themselves
 * Jobs join in the order of their numbers, so that the order of ids is that of the tickets. */

#ifdef BELLS
hidden byte w, taken, reserved, avail, r, got, others_waiting;

byte rung;   /* jobs with an unread datagram */
byte bells;  /* jobs whose bell is bound */
#ifdef TICKS
byte ticks = TICKS;
byte ticked; /* jobs whose timer has fired */
#endif

#ifdef TICKS
#define unhear_ticks ticked = ticked & ~mine
#else
#define unhear_ticks skip
#endif

/* The devices that ticket t may have beside these waiters, if they are enough for it; else none. It goes through them in
 * order: who finds enough starts; the first of his rivals who does not has a reservation. */
inline left_by_the_line(t, waiters, leases, out)
{
  taken = 0; reserved = 0; w = 0;
  do
  :: w < t ->
     if
     :: has(waiters, w) ->
        free_by_ledger(w, leases, avail);
        avail = avail & ~taken & (has(SHORT, w) -> 255 : ~reserved);
        count_of(avail, sum);
        if
        :: sum >= need[w] -> choose(avail, need[w], 0, others); taken = taken | others
        :: sum < need[w] && (candidates[w] & reserved) == 0 -> reserved = reserved | candidates[w]
        :: else
        fi
     :: else
     fi;
     w++
  :: else -> break
  od;
#ifdef BREAK_NO_RESERVATION
  reserved = 0;
#endif
  free_by_ledger(t, leases, out);
  out = out & ~taken & (has(SHORT, t) -> 255 : ~reserved);
  count_of(out, sum);
  if :: sum < need[t] -> out = 0 :: else fi;
  w = 0; taken = 0; avail = 0; others = 0; sum = 0; d = 0; k = 0; clash = 0; n = 0
}

/* Ghost, at a grant: what is kept for an earlier rival goes to nobody who takes long. */
inline check_reservation(t, pick, skipped, leases)
{
  fifo = 1; w = 0;
  do
  :: w < t ->
     if
     :: has(before[t] & queued & alive & waiting & ~(skipped), w) && !has(SHORT, t) && (candidates[w] & pick) != 0 ->
        free_by_ledger(w, leases, avail);
        count_of(avail, sum);
        if :: sum < need[w] -> fifo = 0 :: else fi
     :: else
     fi;
     w++
  :: else -> break
  od;
  w = 0; avail = 0; sum = 0; d = 0; k = 0; clash = 0;
  assert(fifo)
}

#ifdef UNHEARD
#define ring_one(r) skip
#else
#define ring_one(r) rung = rung | bit(r)
#endif

/* Rings whoever starts by what was read of the line without the gate. If it seems to be the ringer's own turn, which it has
 * just found that it is not, he counts as if he did not wait. */
inline ring_who_starts(waiters, leases)
{
  left_by_the_line(me, waiters, leases, got);
  others_waiting = (got != 0 -> (waiters) & ~mine : waiters);
  got = 0; r = 0;
  do
  :: r < JOBS ->
     if
     :: r != me && has(others_waiting & bells, r) ->
        left_by_the_line(r, others_waiting, leases, got);
        if :: got != 0 -> ring_one(r) :: else fi
     :: else
     fi;
     r++
  :: else -> break
  od;
  r = 0; got = 0; others_waiting = 0
}

/* A stopped one whose turn it would be hears the bell when it goes on. */
#ifdef BREAK_RING_NO_STOPPED
#define ring_the_stopped skip
#else
#define ring_the_stopped ring_who_starts((queued & alive & waiting), leases_read)
#endif

/* The leases are read, then the queue, then bells are rung: all without the gate. */
#ifdef BREAK_RING_NOBODY
#define RING skip
#else
#define RING \
    leases_read = leased & alive; \
    d_step { \
      ring_the_stopped; \
      ring_who_starts((queued & alive & waiting & ~stopped), leases_read); leases_read = 0; news = 0 }
#endif
#define may_stand_before_me(t) true
#define unwatched_end silent_change /* of a lease that came in front of a head after its look */
#define joined_later(t, u) ((t) > (u)) /* also of one that has ended meanwhile, whose id is let go */
#define has_news news = 1
#else
#define may_stand_before_me(t) rivals(me, t)
#define unwatched_end skip
#define joined_later(t, u) (id[t] > id[u])
#define has_news skip
#endif
