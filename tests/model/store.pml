/* The queue of a lab, which a store orders (docs/store-protocol.md). A model of its own: who stands in the own line of a host
 * is granted its one GPU in turn, which lease.pml shows, and here is one step.
 *   REQUESTS   two or three, for one GPU each; two hosts with one GPU each; two machines with an agent each
 *   HOMES      a set: the requests that were asked on machine 1, and not on machine 0
 *   NAMES      two bits a request: the hosts that could start it
 *   WINDOW     so many requests of the lab stand in the own line of a host at once
 *   LONG       a set: requests whose command never ends
 *   TWIN       request 1 is a second process with the mark of request 0
 * Faults, so many of each, at any step:
 *   AGENT_KILLS KILLS STOPS   an agent, a request; a request is stopped, and may go on
 *   CRASHES            a machine is gone for good, with its agent and its requests
 *   CUTS               one agent does not reach the store for a while, and its presence ends
 *   LEASES             the store loses all leases at once
 *   WIPES              the store loses all keys
 *   LOST LATE          a write is made and its answer lost; a write is made later, or never, and has no answer
 *   GIVE_UPS LOSSES    an envoy gives up waiting for the word; a host is lost to a request
 *   MUTES              a watch tells nothing any more, and nobody says so
 *   BREAK_x            a broken variant        SEEN=x   x must be reachable: AGAIN, LET_GO or JUDGED
 */
#define N REQUESTS
#define AGAIN 1
#define LET_GO 2
#define JUDGED 3
#ifndef LONG
#define LONG 0
#endif
#ifndef AGENT_KILLS
#define AGENT_KILLS 0
#endif
#ifndef KILLS
#define KILLS 0
#endif
#ifndef STOPS
#define STOPS 0
#endif
#ifndef CRASHES
#define CRASHES 0
#endif
#ifndef CUTS
#define CUTS 0
#endif
#ifndef LEASES
#define LEASES 0
#endif
#ifndef WIPES
#define WIPES 0
#endif
#ifndef LOST
#define LOST 0
#endif
#ifndef LATE
#define LATE 0
#endif
#ifndef GIVE_UPS
#define GIVE_UPS 0
#endif
#ifndef LOSSES
#define LOSSES 0
#endif
#ifndef MUTES
#define MUTES 0
#endif

#if CRASHES + CUTS + LEASES > 0
#define PRESENCE
#endif

#define bit(x) (1 << (x))
#define has(set, x) (((set) >> (x)) & 1)
#if REQUESTS == 2
#define every(P) (P(0) && P(1))
#else
#define every(P) (P(0) && P(1) && P(2))
#endif
#define home(r) has(HOMES, r)
#define named(r) ((NAMES >> (2 * (r))) & 3)
#ifdef TWIN
#define id(r) ((r) == 1 -> 0 : (r))
#define twin(r) (1 - (r))
#else
#define id(r) (r)
#endif

/* A ticket is its create_revision, the hosts that could start it, and those in whose own line it stands. */
#define order_in(ticket) ((ticket) >> 4)
#define hosts_in(ticket) (((ticket) >> 2) & 3)
#define joined_in(ticket) ((ticket) & 3)
#define text(r, h) (1 + (h) + 2 * (r)) /* of a start: the host, and the process that asked */

/* The store. */
byte ticket[N], start[N];
byte alive = 3;
byte revision; /* of the ticket that was made last */

/* What an agent knows of it. */
byte known_ticket[2 * N], known_start[2 * N], known_alive[2], heard_up_to[2];
#define kt(r) known_ticket[home(r) * N + id(r)]
#define ks(r) known_start[home(r) * N + id(r)]

/* The agents. */
byte up = 3, young, crashed, cut, missed[2], whole; /* whole: it knows the line */
byte flight[2]; /* a start that has no answer yet: its text */
byte flight_made;
byte gone;       /* ids whose places are to be taken away */
byte late, late_of, late_order, late_value; /* a write that is under way still */
#define PUT 1
#define START 2
#define REMOVE 3

/* The connections, and what an agent knows by them. */
byte guests, told_yes;
#ifdef BREAK_NO_NEW_TICKET
byte had_ticket;
#endif
byte wants_start[N]; /* 1 + the host */
byte told[N];        /* hosts that it was told it may join */
byte skipped[N];     /* hosts on which it is skipped */
#define wanted(r) (((hosts[r] & ~skipped[r]) << 2) | joined[r])

/* The requests. */
#define COMES 0
#define WAITS 1
#define RUNS 2
#define OVER 3
byte life[N], stopped;
byte hosts[N], joined[N], entered[N];
byte asking[N], right[N]; /* 1 + the host */
byte opened[N], yes_word[N], no_word; /* said to it, and not read yet */
byte back; /* whose start was taken back */
byte fell[N]; /* a set of hosts: the envoy has given up, and who is stopped has not seen it */

/* Its envoy on each host. */
#define AWAY 0
#define STANDS 1
#define GRANTED 2
#define TOLD 3
#define BEGUN 4
byte stage[2 * N], rank[2 * N], holder[2];
#define at(r, h) stage[2 * (r) + (h)]
#define rank_at(r, h) rank[2 * (r) + (h)]

byte agent_kills, kills, stops, crashes, cuts, leases, wipes, lost, lates, give_ups, losses, mutes, mute;

/* Ghosts. */
byte begun, away, excused;
bool once, order, held, place, exclusive, stuck, counted, unseen;

hidden byte i, j, made;

#define awake(r) !has(stopped, r)
#define ready(a) (has(up, a) && !has(cut, a) && flight[a] == 0)

inline copy(a) {
  i = 0;
  do
  :: i < N -> known_ticket[(a) * N + i] = ticket[i]; known_start[(a) * N + i] = start[i]; i++
  :: else -> break
  od;
  i = 0; heard_up_to[a] = revision; whole = whole | bit(a);
#ifdef PRESENCE
  known_alive[a] = alive
#endif
}
/* What it knows, with its last guest. That it keeps the line for 60 s changes nothing: it might know it late as well. */
inline forget_line(a) {
  i = 0;
  do
  :: i < N -> known_ticket[(a) * N + i] = 0; known_start[(a) * N + i] = 0; i++
  :: else -> break
  od;
  i = 0; known_alive[a] = 0; heard_up_to[a] = 0; missed[a] = 0; whole = whole & ~bit(a)
}
#define guests_of(a) (guests & ((a) -> HOMES : ~HOMES))
#define same_of(q) (known_ticket[me * N + (q)] == ticket[q] && known_start[me * N + (q)] == start[q])

inline leave_host(r, h) {
  if :: holder[h] == (r) + 1 -> holder[h] = 0 :: else fi;
  at(r, h) = AWAY; rank_at(r, h) = 0
}
inline forget_guest(r) {
  guests = guests & ~bit(r); told_yes = told_yes & ~bit(r); wants_start[r] = 0; told[r] = 0; skipped[r] = 0;
  if :: guests_of(home(r)) == 0 -> forget_line(home(r)) :: else fi
}
/* Its connection ends with it, and so does its place. */
inline end_request(r) {
  leave_host(r, 0); leave_host(r, 1);
  if :: has(guests, r) -> gone = gone | bit(id(r)) :: else fi;
  forget_guest(r);
  life[r] = OVER; stopped = stopped & ~bit(r);
  hosts[r] = 0; joined[r] = 0; entered[r] = 0; asking[r] = 0; right[r] = 0; opened[r] = 0; yes_word[r] = 0; fell[r] = 0;
  no_word = no_word & ~bit(r)
}

/* Writes of the store: each is one transaction. */
#ifdef BREAK_UNCONDITIONAL
#define may_put(t, seen_order) true
#elif defined(BREAK_START_TWICE)
#define may_put(t, seen_order) (order_in(ticket[t]) == (seen_order))
#else
#define may_put(t, seen_order) (order_in(ticket[t]) == (seen_order) && ((seen_order) != 0 || start[t] == 0))
#endif
inline write_put(t, seen_order, value) {
  if
  :: may_put(t, seen_order) ->
     if
     :: ticket[t] == 0 -> revision++; ticket[t] = (revision << 4) | (value)
     :: else -> ticket[t] = (order_in(ticket[t]) << 4) | (value)
     fi;
     made = 1
  :: else -> made = 0
  fi
}
/* An earlier one that waits, could start there, and was not skipped by a rule. */
#define before_it(q) \
    ((q) != j && ticket[q] != 0 && order_in(ticket[q]) < order_in(ticket[j]) && life[q] == WAITS && \
     has(hosts[q], i) && !has(excused, q))
#define none_before_it(q) !before_it(q)
#ifdef BREAK_UNCONDITIONAL
#define may_start(t, seen_order) true
#elif defined(BREAK_START_TWICE)
#define may_start(t, seen_order) (order_in(ticket[t]) == (seen_order))
#elif defined(BREAK_NO_REVISION)
#define may_start(t, seen_order) (start[t] == 0)
#else
#define may_start(t, seen_order) (order_in(ticket[t]) == (seen_order) && start[t] == 0)
#endif
inline write_start(t, seen_order, value) {
  if
  :: may_start(t, seen_order) ->
     i = ((value) - 1) & 1; j = t;
     order = (wipes > 0) || has(back, ((value) - 1) / 2) || every(none_before_it);
     assert(order);
     i = 0; j = 0;
     place = (ticket[t] != 0);
     assert(place);
     ticket[t] = 0; start[t] = value; made = 1
  :: else -> made = 0
  fi
}
/* Nothing takes the place of one that waits, but for one that has not come back in time. */
#define may_go(q) (id(q) != j || life[q] != WAITS || has(away, id(q)) || has(no_word, q))
inline write_remove(t) {
  j = t;
  held = (ticket[t] == 0) || every(may_go);
  assert(held);
  j = 0;
  ticket[t] = 0; start[t] = 0
}

/* The start of one that runs, which the store has lost. */
inline write_start_again(t, seen_order, value) {
  if
  :: (order_in(ticket[t]) == (seen_order) && start[t] == 0) -> ticket[t] = 0; start[t] = value; made = 1
  :: else -> made = 0
  fi
}

/* A start of one that has lost its host before the command could begin: it waits again, at the end of the line. In
 * the lines in which it stands already it stays before those who came after it. */
inline write_back(t, seen_start, value) {
  if
  :: start[t] == (seen_start) && ticket[t] == 0 ->
     start[t] = 0; revision++; ticket[t] = (revision << 4) | (value); made = 1
  :: else -> made = 0
  fi
}

/* It has no right to start there any more. What it was told before is read before it is opened this host again. */
inline ask_no_more(r, h) {
#ifndef BREAK_KEEP_THE_YES
  if :: right[r] == h + 1 || yes_word[r] == h + 1 -> told_yes = told_yes & ~bit(r) :: else fi;
#endif
  if :: yes_word[r] == h + 1 -> yes_word[r] = 0 :: else fi;
  if :: right[r] == h + 1 -> right[r] = 0 :: else fi;
  if :: asking[r] == h + 1 -> asking[r] = 0 :: else fi;
  if :: wants_start[r] == h + 1 -> wants_start[r] = 0 :: else fi
}
/* Its envoy has given up: the agent hears so, and opens this host again in its turn. */
inline let_go(r, h) {
  ask_no_more(r, h);
#ifndef BREAK_STAND_NO_MORE
  told[r] = told[r] & ~bit(h);
#endif
#ifndef BREAK_SKIPPED_FOR_EVER
  skipped[r] = skipped[r] & ~bit(h);
#endif
  joined[r] = joined[r] & ~bit(h); entered[r] = entered[r] & ~bit(h)
}

/* --- on a host: the own line, the grant, the word */

#define me (_pid / 2)
#define h (_pid % 2)
#define is_behind(q) (at(q, h) != STANDS || rank_at(q, h) >= rank_at(me, h))
#define holds_none(q) ((q) == me || at(q, h) < GRANTED)
active [2 * N] proctype Envoy()
{
  do
  :: d_step { life[me] == WAITS && awake(me) && at(me, h) == AWAY && has(hosts[me], h) && !has(fell[me], h) && has(opened[me] | entered[me], h) ->
       i = 0; j = 0;
       do
       :: i < N -> if :: rank_at(i, h) > j -> j = rank_at(i, h) :: else fi; i++
       :: else -> break
       od;
       rank_at(me, h) = j + 1; at(me, h) = STANDS; i = 0; j = 0;
       entered[me] = entered[me] | bit(h); opened[me] = opened[me] & ~bit(h) }
  :: d_step { life[me] == WAITS && awake(me) && at(me, h) != AWAY && !has(joined[me], h) ->
       joined[me] = joined[me] | bit(h); skipped[me] = skipped[me] & ~bit(h) }
  :: d_step { at(me, h) == STANDS && holder[h] == 0 && every(is_behind) ->
       at(me, h) = GRANTED; rank_at(me, h) = 0; holder[h] = me + 1 }
  :: d_step { at(me, h) == GRANTED && life[me] == WAITS && awake(me) && has(joined[me], h) && asking[me] == 0 ->
       asking[me] = h + 1;
       if :: has(guests, me) -> wants_start[me] = h + 1 :: else fi }
  :: d_step { at(me, h) == GRANTED && life[me] == WAITS && awake(me) && right[me] == h + 1 ->
#if SEEN == LET_GO
       unseen = (at(me, 1 - h) != GRANTED); assert(unseen);
#endif
       at(me, h) = TOLD; life[me] = RUNS; leave_host(me, 1 - h);
       entered[me] = 0; opened[me] = 0; asking[me] = 0; right[me] = 0 }
  :: d_step { at(me, h) == TOLD ->
       once = !has(begun, id(me));
       assert(once);
       exclusive = every(holds_none) && holder[h] == me + 1;
       assert(exclusive);
       place = (start[id(me)] == 0 || start[id(me)] == text(me, h));
       assert(place);
       begun = begun | bit(id(me)); at(me, h) = BEGUN }
  :: d_step { at(me, h) == BEGUN && !has(LONG, me) -> end_request(me) }
  /* 30 s without the word; who is stopped gets in line again only when it goes on. */
  :: d_step { at(me, h) == GRANTED && (has(stopped, me) || right[me] != h + 1 && give_ups < GIVE_UPS) ->
       leave_host(me, h); excused = excused | bit(me);
       if
       :: awake(me) -> give_ups++; let_go(me, h)
       :: else -> fell[me] = fell[me] | bit(h)
       fi }
  :: d_step { has(fell[me], h) && life[me] == WAITS && awake(me) -> fell[me] = fell[me] & ~bit(h); let_go(me, h) }
  :: d_step { at(me, h) == TOLD && give_ups < GIVE_UPS -> give_ups++; end_request(me) }
  :: d_step { at(me, h) != AWAY && life[me] == WAITS && awake(me) && losses < LOSSES ->
       losses++; leave_host(me, h);
       hosts[me] = hosts[me] & ~bit(h); joined[me] = joined[me] & ~bit(h); entered[me] = entered[me] & ~bit(h);
       ask_no_more(me, h);
       if :: hosts[me] == 0 -> end_request(me) :: else fi }
  od
}
#undef me
#undef h

/* --- the request and its connection */

#ifdef TWIN
#define twin_is_no_guest(q) ((q) > 1 || !has(guests, twin(q)))
#ifdef LIMIT_LATE_TWIN
#define twin_has_come true
#else
#define twin_has_come (life[0] != COMES && life[1] != COMES)
#endif
#else
#define twin_is_no_guest(q) true
#define twin_has_come true
#endif
#define me (_pid - 2 * N)
active [N] proctype Request()
{
  do
  :: d_step { life[me] <= WAITS && awake(me) && !has(guests, me) && has(up, home(me)) && !has(no_word, me) &&
              twin_is_no_guest(me) ->
       if :: life[me] == COMES -> life[me] = WAITS; hosts[me] = named(me) :: else fi;
       guests = guests | bit(me); gone = gone & ~bit(id(me)); wants_start[me] = asking[me] }
  /* It runs, and says so to an agent that has started since. */
  :: d_step { life[me] == RUNS && awake(me) && !has(guests, me) && has(up, home(me)) && twin_is_no_guest(me) ->
       guests = guests | bit(me); gone = gone & ~bit(id(me)); told_yes = told_yes | bit(me) }
#ifdef TWIN
  :: d_step { me <= 1 && life[me] <= WAITS && awake(me) && !has(guests, me) && has(guests, twin(me)) && right[me] == 0 ->
       end_request(me) }
#endif
  :: d_step { yes_word[me] != 0 && life[me] == WAITS && awake(me) ->
       if
       :: asking[me] == yes_word[me] -> right[me] = asking[me]; yes_word[me] = 0
       :: else -> yes_word[me] = 0 /* that host was lost, and the agent has heard so */
       fi }
  :: d_step { has(no_word, me) && yes_word[me] == 0 && life[me] == WAITS && awake(me) ->
       no_word = no_word & ~bit(me);
       if :: right[me] == 0 -> end_request(me) :: else fi }
  od
}
#undef me

/* --- what an agent does for one of its guests */

#define me (_pid - 3 * N)
#define a home(me)
inline say_yes(host) {
  yes_word[me] = (host) + 1; told_yes = told_yes | bit(me);
  if :: wants_start[me] == (host) + 1 -> wants_start[me] = 0 :: else fi
}
/* The start that is there stays. */
inline say_no() { no_word = no_word | bit(me); forget_guest(me) }

#define is_lost_on(host) (ks(me) == text(me, host) && wants_start[me] != (host) + 1)
#ifdef BREAK_YES_ANYWHERE
#define has_lost_start false
#else
#define has_lost_start (!has(told_yes, me) && (is_lost_on(0) || is_lost_on(1)))
#endif
#define is_guest (ready(a) && has(whole, a) && has(guests, me))
#ifdef BREAK_RUNNING_GETS_TICKET
#define may_have_ticket true
#else
#define may_have_ticket !has(told_yes, me)
#endif
#ifdef BREAK_START_TWICE
#define is_known_started false
#else
#define is_known_started (ks(me) != 0)
#endif
#ifdef BREAK_NO_NEW_TICKET
#define may_be_new !has(had_ticket, me)
#else
#define may_be_new true
#endif
#define put_due \
    (is_guest && (kt(me) == 0 -> !is_known_started && may_have_ticket && may_be_new : wants_start[me] == 0 && (kt(me) & 15) != wanted(me)))
/* It was told yes for this host, and the store knows nothing of it. */
#define yes_host(r) (right[r] != 0 -> right[r] - 1 : (yes_word[r] != 0 -> yes_word[r] - 1 : (at(r, 0) >= TOLD -> 0 : 1)))
#if defined(BREAK_FORGET_RUNNING) || defined(BREAK_RUNNING_GETS_TICKET)
#define start_again_due false
#else
#define start_again_due (is_guest && has(told_yes, me) && ks(me) == 0)
#endif
#define start_due (is_guest && wants_start[me] != 0 && kt(me) != 0)

/* The window, as the agent knows it. */
#define known(q) known_ticket[a * N + (q)]
#define counts(q, host) \
    ((q) != id(me) && known(q) != 0 && order_in(known(q)) < order_in(kt(me)) && has(hosts_in(known(q)), host) && \
     !is_missed(q, host))
#ifdef BREAK_DEAD_KEEP_WINDOW
#define is_missed(q, host) (has(missed[a], home(q)) && !has(joined_in(known(q)), host))
#elif defined(BREAK_WAIT_FOR_MISSED)
#define is_missed(q, host) false
#else
#define is_missed(q, host) has(missed[a], home(q))
#endif
#ifdef BREAK_OPEN_UNHEARD
#define has_heard_all true
#else
#define has_heard_all (order_in(kt(me)) <= heard_up_to[a])
#endif
#ifdef BREAK_OPEN_UNJOINED
#define stands(q, host) true
#else
#define stands(q, host) (!counts(q, host) || has(joined_in(known(q)), host))
#endif
#if REQUESTS == 2
#define all_stand(host) (stands(0, host) && stands(1, host))
#define earlier(host) (counts(0, host) + counts(1, host))
#else
#define all_stand(host) (stands(0, host) && stands(1, host) && stands(2, host))
#define earlier(host) (counts(0, host) + counts(1, host) + counts(2, host))
#endif
#define is_open(host) \
    (is_guest && kt(me) != 0 && has_heard_all && !has(told[me], host) && has(hosts_in(kt(me)), host) && \
     all_stand(host) && earlier(host) < WINDOW)
inline say_open(host) {
  told[me] = told[me] | bit(host);
  if :: !has(entered[me], host) -> opened[me] = opened[me] | bit(host) :: else fi
}
#ifdef BREAK_NO_SKIP
#define is_unjoined(host) false
#else
#define is_unjoined(host) \
    (is_guest && has(stopped, me) && has(told[me], host) && !has(joined[me], host) && !has(skipped[me], host) && \
     has(hosts[me], host))
#endif
active [N] proctype Guest()
{
  do
  :: d_step { put_due ->
       write_put(id(me), order_in(kt(me)), wanted(me));
#ifdef BREAK_NO_NEW_TICKET
       had_ticket = had_ticket | bit(me);
#endif
       if :: made -> kt(me) = ticket[id(me)] :: else -> copy(a) fi; made = 0 }
  :: d_step { lost < LOST && put_due -> lost++; write_put(id(me), order_in(kt(me)), wanted(me)); made = 0 }
  :: d_step { start_again_due ->
       j = text(me, yes_host(me));
       write_start_again(id(me), order_in(kt(me)), j);
       j = 0;
       if :: made -> kt(me) = 0; ks(me) = start[id(me)] :: else -> copy(a) fi; made = 0 }
  :: d_step { lates < LATE && late == 0 && put_due ->
       lates++; late = PUT; late_of = id(me); late_order = order_in(kt(me)); late_value = wanted(me) }
  :: d_step { start_due ->
       flight[a] = text(me, wants_start[me] - 1);
       write_start(id(me), order_in(kt(me)), flight[a]);
       flight_made = (made -> flight_made | bit(a) : flight_made & ~bit(a)); made = 0 }
  :: d_step { lates < LATE && late == 0 && start_due ->
       lates++; late = START; late_of = id(me); late_order = order_in(kt(me)); late_value = text(me, wants_start[me] - 1);
#ifdef BREAK_YES_UNREAD
       say_yes(wants_start[me] - 1)
#endif
       }
  /* The answer. */
  :: d_step { flight[a] != 0 && (flight[a] - 1) / 2 == me ->
       if
       :: has(flight_made, a) ->
          kt(me) = 0; ks(me) = flight[a];
          if :: has(guests, me) && wants_start[me] == 1 + ((flight[a] - 1) & 1) -> say_yes((flight[a] - 1) & 1) :: else fi
       :: else -> copy(a)
       fi;
       flight[a] = 0; flight_made = flight_made & ~bit(a) }
  :: d_step { lost < LOST && flight[a] != 0 && (flight[a] - 1) / 2 == me ->
       lost++; flight[a] = 0; flight_made = flight_made & ~bit(a) }
#ifndef BREAK_SILENT_ABOUT_START
  :: d_step { is_guest && kt(me) == 0 && has_lost_start ->
       write_back(id(me), ks(me), wanted(me));
       if
       :: made -> kt(me) = ticket[id(me)]; ks(me) = 0; back = back | bit(me)
       :: else -> copy(a)
       fi;
       made = 0 }
#endif
  /* It was started: the same host and the same process may hear it again. */
  :: d_step { is_guest && wants_start[me] != 0 && kt(me) == 0 && ks(me) != 0 && is_known_started && !has_lost_start ->
       if
#ifdef BREAK_YES_ANYWHERE
       :: true -> say_yes(wants_start[me] - 1)
#endif
       :: ks(me) == text(me, wants_start[me] - 1) ->
#if SEEN == AGAIN
          unseen = (lost == 0); assert(unseen);
#endif
          say_yes(wants_start[me] - 1)
       :: else -> say_no()
       fi }
#if !defined(BREAK_SILENT_ABOUT_START) && !defined(BREAK_START_TWICE)
  :: d_step { is_guest && wants_start[me] == 0 && kt(me) == 0 && ks(me) != 0 && !has(told_yes, me) && !has_lost_start -> say_no() }
#endif
  :: d_step { is_open(0) -> say_open(0) }
  :: d_step { is_open(1) -> say_open(1) }
  :: d_step { is_unjoined(0) -> skipped[me] = skipped[me] | 1; excused = excused | bit(me) }
  :: d_step { is_unjoined(1) -> skipped[me] = skipped[me] | 2; excused = excused | bit(me) }
  od
}
#undef me
#undef a

/* --- the rest of an agent */

#define me (_pid - 4 * N)
#define other (1 - me)
#ifdef PRESENCE
#define same_presence (known_alive[me] == alive)
#else
#define same_presence true
#endif
#define is_due(q) (home(q) == me && has(gone, q))
#define is_left(q) \
    (home(q) == me && id(q) == (q) && (ticket[q] != 0 || start[q] != 0) && !has(guests | gone, q) && twin_is_no_guest(q))
#define is_back(q) (home(q) != me || life[q] != WAITS || has(stopped | guests, q) || has(no_word, q))
#ifdef BREAK_SWEEP_FOR_GUESTS
#define may_sweep (guests_of(me) != 0)
#elif defined(BREAK_NO_SWEEP)
#define may_sweep false
#else
#define may_sweep true
#endif
inline remove_first() {
  i = 0;
  do :: is_due(i) -> break :: else -> i++ od
}
#define none_due(q) !is_due(q)
#define none_left(q) !is_left(q)
active [2] proctype Agent()
{
  do
#if MUTES > 0
  :: d_step { has(whole, me) && mutes < MUTES -> mutes++; mute = mute | bit(me) }
#endif
#ifdef BREAK_TRUST_WATCH
#define hears !(has(mute, me) && has(whole, me))
#else
#define hears true /* at the next renewal of its presence, if not by the watch */
#endif
  :: d_step { guests_of(me) != 0 && !has(cut, me) && hears &&
              !(has(whole, me) && every(same_of) && same_presence && heard_up_to[me] == revision) ->
       copy(me) }
#ifdef PRESENCE
  :: d_step { ready(me) && !has(alive, me) -> alive = alive | bit(me) }
  /* The presence of one that does not renew it ends. Its home is missed 30 s later. */
  :: d_step { has(alive, me) && (!has(up, me) || has(cut, me)) -> alive = alive & ~bit(me) }
  :: d_step { has(whole, me) && !has(known_alive[me], other) && !has(missed[me], other) && (!has(up, other) || has(cut, other)) ->
       missed[me] = bit(other); excused = excused | (other -> HOMES : ~HOMES) }
#ifdef BREAK_REMOVE_MISSED
#define is_of_missed(q) (home(q) == other && known_ticket[me * N + (q)] != 0)
#define is_of_others(q) !is_of_missed(q)
  :: d_step { ready(me) && has(whole, me) && !has(known_alive[me], other) && !every(is_of_others) ->
       i = 0;
       do :: is_of_missed(i) -> break :: else -> i++ od;
       write_remove(i); known_ticket[me * N + i] = 0; i = 0 }
#endif
  :: d_step { has(whole, me) && has(known_alive[me], other) && has(missed[me], other) -> missed[me] = 0 }
#endif
  /* Places of those who have gone. */
#ifndef BREAK_KEEP_THE_DEAD
  :: d_step { ready(me) && !every(none_due) ->
       remove_first(); write_remove(i);
       if :: has(whole, me) -> known_ticket[me * N + i] = 0; known_start[me * N + i] = 0 :: else fi;
       gone = gone & ~bit(i); i = 0 }
  :: d_step { lates < LATE && late == 0 && ready(me) && !every(none_due) ->
       lates++; remove_first(); late = REMOVE; late_of = i; i = 0 }
#endif
  /* And of those who have not come back to an agent that was killed. */
  :: d_step { has(young, me) && has(up, me) && every(is_back) && twin_has_come -> young = young & ~bit(me) }
  :: d_step { ready(me) && !has(young, me) && may_sweep && !every(none_left) ->
       i = 0;
       do :: i < N -> if :: is_left(i) -> gone = gone | bit(i); away = away | bit(i) :: else fi; i++ :: else -> break od;
       i = 0 }
  :: d_step { !has(up | crashed, me) -> up = up | bit(me); young = young | bit(me) }
  od
}
#undef me

/* --- faults */

inline kill_agent(b) {
  up = up & ~bit(b); young = young & ~bit(b); cut = cut & ~bit(b); flight[b] = 0; flight_made = flight_made & ~bit(b);
  if :: home(0) == b -> forget_guest(0); gone = gone & ~1 :: else fi;
  if :: home(1) == b -> forget_guest(1); gone = gone & ~2 :: else fi;
#if REQUESTS == 3
  if :: home(2) == b -> forget_guest(2); gone = gone & ~4 :: else fi;
#endif
  forget_line(b)
}
inline crash(b) {
  crashes++; crashed = crashed | bit(b);
  if :: home(0) == b -> end_request(0) :: else fi;
  if :: home(1) == b -> end_request(1) :: else fi;
#if REQUESTS == 3
  if :: home(2) == b -> end_request(2) :: else fi;
#endif
  kill_agent(b)
}
#define can_kill_agent(b) (agent_kills < AGENT_KILLS && has(up, b) && guests_of(b) != 0)
#define can_crash(b) (crashes < CRASHES && has(up, b))
#define can_cut(b) (cuts < CUTS && has(up, b) && !has(cut, b))
#define can_kill(r) (kills < KILLS && (life[r] == WAITS || life[r] == RUNS))
#define can_stop(r) (stops < STOPS && life[r] == WAITS && awake(r))
/* It may give up: a fault that is always possible would hide a state of rest. */
#define may_do_more \
    (agent_kills < AGENT_KILLS || crashes < CRASHES || cuts < CUTS || kills < KILLS || stops < STOPS || \
     leases < LEASES || wipes < WIPES || stopped != 0)
active proctype World()
{
  do
#if AGENT_KILLS > 0
  :: d_step { can_kill_agent(0) -> agent_kills++; kill_agent(0) }
  :: d_step { can_kill_agent(1) -> agent_kills++; kill_agent(1) }
#endif
#if CRASHES > 0
  :: d_step { can_crash(0) -> crash(0) }
  :: d_step { can_crash(1) -> crash(1) }
#endif
#if CUTS > 0
  :: d_step { can_cut(0) -> cuts++; cut = cut | 1 }
  :: d_step { can_cut(1) -> cuts++; cut = cut | 2 }
#endif
#if KILLS > 0
  :: d_step { can_kill(0) -> kills++; end_request(0) }
  :: d_step { can_kill(1) -> kills++; end_request(1) }
#if REQUESTS == 3
  :: d_step { can_kill(2) -> kills++; end_request(2) }
#endif
#endif
#if STOPS > 0
  :: d_step { can_stop(0) -> stops++; stopped = stopped | 1 }
  :: d_step { can_stop(1) -> stops++; stopped = stopped | 2 }
#if REQUESTS == 3
  :: d_step { can_stop(2) -> stops++; stopped = stopped | 4 }
#endif
  :: d_step { stopped != 0 -> stopped = 0 }
#endif
#if LEASES > 0
#ifdef BREAK_TICKET_UNDER_LEASE
  :: d_step { leases < LEASES && revision > 0 -> leases++; alive = 0; write_remove(0); write_remove(1) }
#else
  :: d_step { leases < LEASES && revision > 0 -> leases++; alive = 0 }
#endif
#endif
#if WIPES > 0
  :: d_step { wipes < WIPES && revision > 0 ->
       wipes++; revision = 0; i = 0;
#ifdef PRESENCE
       alive = 0;
#endif
       do :: i < N -> ticket[i] = 0; start[i] = 0; i++ :: else -> break od;
       i = 0 }
#endif
  :: may_do_more -> break
  od
}
/* What ends by itself. */
active proctype Network()
{
  do
  :: d_step { cut != 0 -> cut = 0 }
  :: d_step { late == PUT -> late = 0; write_put(late_of, late_order, late_value); made = 0;
              late_of = 0; late_order = 0; late_value = 0 }
  :: d_step { late == START -> late = 0; write_start(late_of, late_order, late_value); made = 0;
              late_of = 0; late_order = 0; late_value = 0 }
  :: d_step { late == REMOVE -> late = 0; write_remove(late_of); late_of = 0 }
  :: d_step { late != 0 -> late = 0; late_of = 0; late_order = 0; late_value = 0 }
  od
}

/* When nothing moves any more, the store knows who runs, whose agent is there. */
#ifdef BREAK_RUNNING_GETS_TICKET
#define is_counted(r) true
#else
#define is_counted(r) (life[r] != RUNS || !has(guests, r) || start[id(r)] != 0)
#endif
/* When nothing moves any more, nobody waits who is awake and has a GPU that is free, or is his. */
#define could_start(r, host) (has(hosts[r], host) && (holder[host] == 0 || holder[host] == (r) + 1))
#define waits_rightly(r) (life[r] != WAITS || has(stopped, r) || !(could_start(r, 0) || could_start(r, 1)))
active proctype Judge()
{
#if SEEN == JUDGED
  timeout -> d_step { unseen = (life[0] != WAITS && life[1] != WAITS); assert(unseen) }
#else
  timeout -> d_step { stuck = every(waits_rightly); assert(stuck); counted = every(is_counted); assert(counted) }
#endif
}
