/* One job: join, plan, wait, grant, use, release. Each step is one system call, or one look at one file.
 * A job may be stopped between any two steps (`provided`) and killed between any two (`unless`). */

/* The next name in the directory, from `at` on. */
inline next_file(directory)
{
  do :: at < TICKETS && (at == me || !has(directory, at)) -> at++ :: else -> break od
}

/* The end of a lease is the unlink: no look finds the ticket any more, and whoever watches it gets IN_ATTRIB. As with
 * a close, the kernel sends the event first. Nobody is stopped or killed inside a system call. */
#define UNLINK_TICKET \
    atomic { at = 0; d_step { in_call = in_call | mine; tell_of_unlink(me); closing_now++ } }; \
    d_step { leased = leased & ~mine; closing_now--; in_call = in_call & ~mine; let_go(me); unwatched_end; k = 0 }

active [JOBS] proctype Job() provided (!has(stopped, _pid))
{
  byte at;       /* the ticket or device of this step */
  byte ahead;    /* rivals before me that wait and are not stopped */
  byte skipped;   /* rivals before me that are stopped */
  byte live;     /* leases seen alive */
  byte busy;     /* devices that the kernel refused though the ledger called them free */
  byte pick;
  bool choice, look_again;
#ifdef REMOVAL
  bool old_file;
#endif
#ifdef BREAK_SINGLE_SHOT
  bool armed;
#endif
#ifdef BREAK_STALE_SKIP
  byte was_stopped;
#endif
#ifdef BELLS
  bool news;     /* something woke it: what that was may make it another's turn */
  bool was_rung; /* and looks once more, as the locks may end after the event that made somebody ring */
  byte leases_read, went_past;
#endif
  {
    /* ---- join: the ticket is made, written and locked while it has no name; then, under the gate, linked. */
    d_step { join_gate_is_free && may_start(me) -> take_join_gate; started++;
             open_ticket = open_ticket | mine; alive = alive | mine; waiting = waiting | mine };
note:
    if
    :: d_step { at < TICKETS ->
         next_file(queued);
         if
         :: at < TICKETS ->
            if :: has(alive & waiting, at) && may_stand_before_me(at) -> noted[me] = noted[me] | bit(at) :: else fi;
            at++
         :: else
         fi } -> goto note
    :: d_step { at == TICKETS -> at = 0; newest_id++; id[me] = newest_id;
         before[me] = (queued & alive & waiting & ~forged) | (noted[me] & forged); queued = queued | mine }
    fi;
    drop_join_gate;

look: /* ---- plan, under the gate. The events were read before, so that none is lost. */
    atomic { plan_gate_is_free -> d_step { take_plan_gate; heard; at_look } };
scan:
    if
    :: d_step { at < TICKETS ->
         next_file(worth_a_look);
         if
         :: at == TICKETS
         :: else ->
         if
         :: is_before_me(at) && has(queued & believed_alive & waiting, at) ->
            if :: seen_stopped(at) -> skipped = skipped | (stopped & bit(at)) :: else -> ahead = ahead | bit(at) fi
         :: else -> forget(at)
         fi;
#ifdef BREAK_INFER
         d = 0;
         do
         :: d < DEVICES ->
            if
            :: has(leased, at) && has(devices[at], d) && (locked_whole[d] != 0 || locked_shared[d] != 0) ->
               live = live | bit(at)
            :: else
            fi;
            d++
         :: else -> break
         od;
#else
         if :: has(leased & believed_alive, at) -> live = live | bit(at) :: else fi;
#endif
         at++
         fi } -> goto scan
    :: at == TICKETS
    fi;

decide:
    atomic { at = 0; d_step {
#ifdef BREAK_PRUNE_NEAREST
      k = 0; clash = 0;
      do /* downwards in age: whoever stands before one that still waits is believed to wait */
      :: k < TICKETS ->
         d = TICKETS - 1 - k;
         clash = clash || has(ahead | skipped, d);
         if :: has(noted[me] & ~skipped, d) && clash -> ahead = ahead | bit(d) :: else fi;
         k++
      :: else -> break
      od;
#endif
#ifdef BREAK_ONLY_LOCK
      if :: whole(me) -> pick = candidates[me] :: else -> free_by_ledger(me, live, pick) fi;
#else
      free_by_ledger(me, live, pick);
#endif
      pick = pick & ~busy;
#ifdef BELLS
#ifdef BREAK_TRUST_BELL
      if :: !was_rung -> left_by_the_line(me, ahead, live, pick) :: else fi;
#else
      left_by_the_line(me, ahead, live, pick);
#endif
      pick = pick & ~busy
#elif !defined(BREAK_IGNORE_QUEUE)
      k = 0;
      do :: k < TICKETS -> if :: has(ahead, k) -> pick = pick & ~candidates[k] :: else fi; k++ :: else -> break od;
#endif
#ifdef BELLS
      ;
#endif
      count_of(pick, sum);
      if :: sum < need[me] -> pick = 0 :: else fi
    } };
    if
    :: pick == 0 && ahead != 0 -> goto behind
    :: pick == 0 && ahead == 0 -> goto blocked
    :: pick != 0 -> d_step { others = pick; choose(others, need[me], 0, pick) }
    :: pick != 0 -> d_step { others = pick; choose(others, need[me], 1, pick) } /* a policy may choose any */
    fi;

    /* ---- grant, under the gate: lock all or none, write, rename, drop the waiting byte. */
lock:
    if
#ifdef REMOVAL
    :: (pick >> at) != 0 -> old_file = made_anew; /* opened by name, which may then come to mean another file */
       d_step {
#else
    :: d_step { (pick >> at) != 0 ->
#endif
         do :: !has(pick, at) -> at++ :: else -> break od;
         if
#if defined(REMOVAL) && !defined(BREAK_NO_COMPARE)
         :: at == 0 && names_another_file /* not the file that bears the name: close it, open again */
#endif
#ifndef BREAK_ONLY_LEDGER
         :: kernel_refuses(me, at) && !names_another_file ->
            see(KERNEL_REFUSED); busy = busy | bit(at); at = DEVICES
#endif
         :: else ->
            open_devices[me] = open_devices[me] | bit(at);
            if
            :: names_another_file || kernel_refuses(me, at) /* a lock that excludes nobody; no lock */
            :: else ->
               if
               :: whole(me) -> locked_whole[at] = me + 1
               :: else -> locked_shared[at] = locked_shared[at] | mine
               fi
            fi;
#ifdef CITIZEN
            exclusive = !(at == 0 && citizen_has); assert(exclusive);
#endif
            at++
         fi
       } -> goto lock
    :: d_step { (pick >> at) == 0 && (busy & pick) != 0 -> /* LOCK_UN on descriptors that stay open: no event */
         sum = 0;
         do
         :: sum < DEVICES ->
            unlock_device(me, sum);
#ifdef BREAK_SELF_WAKE
            if :: has(pick, sum) -> notify_device(sum) :: else fi;
#endif
            sum++
         :: else -> break
         od;
         open_devices[me] = 0; pick = 0 } -> goto decide
    :: d_step { (pick >> at) == 0 && (busy & pick) == 0 -> /* write */
      if :: skipped != 0 -> see(SKIPPED) :: else fi;
      if :: ahead != 0 -> see(NOT_RIVALRY) :: else fi;
      if :: !whole(me) && (locked_shared[0] & ~mine) != 0 -> see(SHARED) :: else fi;
#ifdef BELLS
      check_reservation(me, pick, skipped, live);
#endif
      check_grant(me, pick, skipped);
      devices[me] = pick; held[me] = pick;
      pick = 0; ahead = 0; skipped = 0; live = 0; busy = 0; choice = 0; look_again = 0;
#ifdef BELLS
      if :: was_rung -> see(RUNG) :: else fi;
      news = 0; was_rung = 0; went_past = 0; rung = rung & ~mine; bells = bells & ~mine; unhear_ticks;
#endif
      noted[me] = 0; before[me] = 0; watched_devices[me] = 0; watched_tickets[me] = 0; event = event & ~mine;
      at = 0 }
    fi;
#ifdef BREAK_EARLY_GRANT
    drop_plan_gate; waiting = waiting & ~mine;
#endif
    d_step { queued = queued & ~mine; leased = leased | mine }; /* rename */
#ifndef BREAK_EARLY_GRANT
    waiting = waiting & ~mine;
    drop_plan_gate;
#endif

#ifdef KID
    /* ---- the command starts a child that will outlive it, with some of the descriptors. */
    if
    :: me == 0 -> d_step { kid_ticket = 1; kid_devices = devices[me] }
    :: me == 0 -> kid_ticket = 1
    :: me == 0 && whole(me) -> kid_devices = devices[me]
    :: skip
    fi;
#endif
    goto release;

behind: /* ---- sleep on the waiting byte of the last rival before me; a periodic tick sees it stopped. */
    atomic { at = 0; d_step {
      k = 0;
      do
      :: k < TICKETS ->
#ifdef BREAK_BEHIND_FIRST
         if :: has(ahead, k) && (!has(ahead, at) || id[k] < id[at]) -> at = k :: else fi;
#else
         if :: has(ahead, k) && (!has(ahead, at) || joined_later(k, at)) -> at = k :: else fi;
#endif
         k++
      :: else -> break
      od;
      order = has(before[me], at); assert(order);
#ifdef BELLS
      went_past = skipped;
#endif
      ahead = 0; skipped = 0; live = 0; busy = 0; drop_plan_gate
#ifdef BREAK_SINGLE_SHOT
      ; armed = 1
#endif
    } };
#ifdef BREAK_SINGLE_SHOT
    if :: armed = 0 :: skip fi; /* the timer fires before the call: nothing to interrupt */
#endif
#ifdef BELLS
    if :: news -> RING :: else fi;
    if
    :: d_step { !has(bells, me) -> bells = bells | mine; at = 0 }
#ifndef BREAK_BELL_UNBOUND
       -> goto look /* nobody could ring until now */
#endif
    :: has(bells, me)
    fi;
#endif
    d_step { asleep_on[me] = at + 1;
#if STOPS == 0 || defined(LIMIT_WAKES)
             check_wakes(me)
#endif
    };
sleep:
    if
    :: d_step { !has(waiting, at) -> asleep_on[me] = 0; at = 0; has_news } -> goto look
#if defined(BELLS) && !defined(BREAK_DEAF)
    :: d_step { has(rung, me) -> rung = rung & ~mine; was_rung = 1; asleep_on[me] = 0; at = 0; has_news } -> goto look
#ifndef BREAK_FORGET_SKIPPED /* the tick sees that one whom it went past goes on */
    :: d_step { (went_past & ~stopped & waiting) != 0 -> asleep_on[me] = 0; at = 0; has_news } -> goto look
#endif
#ifdef TICKS
    :: d_step { has(ticked, me) -> ticked = ticked & ~mine; asleep_on[me] = 0; at = 0 } -> goto look
#endif
    :: d_step { was_rung && look_again && closing_now == 0 -> look_again = 0; was_rung = 0; asleep_on[me] = 0; at = 0 } -> goto look
#endif
#if defined(BREAK_SINGLE_SHOT)
    :: d_step { armed && has(stopped, at) -> armed = 0; asleep_on[me] = 0; at = 0 } -> goto look
    :: d_step { armed && !has(stopped, at) -> armed = 0 } -> goto sleep
#elif !defined(BREAK_NO_TICK) && !defined(BREAK_NO_SKIP)
    :: d_step { has(stopped, at) -> remember_stopped(at); asleep_on[me] = 0; at = 0; has_news } -> goto look
#endif
    fi;

blocked: /* ---- first of its rivals: watch, look again if the watch is new, then sleep until an event. */
    atomic { skipped = 0; d_step {
      k = 0;
      do /* only the leases that stand in the way */
      :: k < TICKETS -> if :: (devices[k] & candidates[me]) == 0 -> live = live & ~bit(k) :: else fi; k++
      :: else -> break
      od;
      busy = 0;
      drop_plan_gate
    } };
#ifdef BREAK_WATCH_ONLY_DEVICES
    live = 0;
#endif
#if defined(BELLS) && !defined(BREAK_RING_BEFORE_LOOK)
    RING;
#endif
    d_step {
      choice = (watched_devices[me] != candidates[me]) || (live & ~watched_tickets[me]) != 0;
      watched_devices[me] = candidates[me];
      watched_tickets[me] = watched_tickets[me] | live;
      live = 0;
#ifdef BREAK_READ_EVENTS_LATE
      event = event & ~mine;
#endif
#if STOPS == 0 || defined(LIMIT_WAKES)
      check_wakes(me)
#endif
    };
#ifndef BREAK_LOOK_BEFORE_WATCH
    if :: choice -> choice = 0; goto look :: else fi;
#endif
    if
    :: d_step { has(event, me) -> event = event & ~mine; at_event; choice = 0 }
#ifdef BREAK_RING_BEFORE_LOOK
       -> RING
#endif
       -> goto look
#if defined(SETTLE) || defined(BREAK_SETTLE_ONCE)
    :: d_step { !has(event, me) && !look_again && closing_now == 0 -> look_again = 1; choice = 0 } -> goto look
#else
    :: d_step { look_again && closing_now == 0 -> see(SECOND_LOOK); look_again = 0; choice = 0 } -> goto look
#endif
#ifdef HEAD_TICK
    :: d_step { has(silent, me) -> choice = 0 } -> goto look
#endif
    fi;

release: /* ---- end of the lease by its own hand. */
#ifdef BREAK_TICKET_FIRST
    UNLINK_TICKET;
#endif
    do
    :: d_step { (devices[me] >> at) != 0 ->
         do :: !has(devices[me], at) -> at++ :: else -> break od;
         unlock_device(me, at); let_go(me); silent_change; at++ }
    :: (devices[me] >> at) == 0 -> break
    od;
#ifdef BREAK_DRAFTED_END
    /* As drafted: unlock the ticket, unlink it, ring each device. */
    atomic { at = 0; d_step { alive = alive & ~mine; let_go(me); silent_change } };
    leased = leased & ~mine;
#ifndef BREAK_NO_RING
    do
    :: d_step { (devices[me] >> at) != 0 ->
         do :: !has(devices[me], at) -> at++ :: else -> break od;
         notify_device(at); at++ }
#ifdef BREAK_RING_ONE
       ; break
#endif
    :: (devices[me] >> at) == 0 -> break
    od;
#endif
#elif !defined(BREAK_TICKET_FIRST)
    UNLINK_TICKET;
#endif
    /* Exit: no lock but the unlinked ticket's is left, so that the order of the closes cannot matter. */
    atomic { at = 0; d_step {
      do
      :: at < DEVICES ->
         if :: has(open_devices[me], at) && !kid_has_device(me, at) -> notify_device(at) :: else fi;
         at++
      :: else -> break
      od;
      if :: !kid_has_ticket(me) -> notify_ticket(me); alive = alive & ~mine :: else fi;
      at = 0; id[me] = 0; open_devices[me] = 0; open_ticket = open_ticket & ~mine; finished = finished | mine
    } };
    goto over
  } unless {
    /* ---- killed */
    d_step { has(ended, _pid) ->
      at = 0; ahead = 0; skipped = 0; live = 0; busy = 0; pick = 0; choice = 0; look_again = 0;
#ifdef REMOVAL
      old_file = 0;
#endif
#ifdef BREAK_SINGLE_SHOT
      armed = 0;
#endif
#ifdef BELLS
      news = 0; was_rung = 0; leases_read = 0; went_past = 0; rung = rung & ~mine; bells = bells & ~mine; unhear_ticks;
#endif
      noted[me] = 0; before[me] = 0; asleep_on[me] = 0;
      watched_devices[me] = 0; watched_tickets[me] = 0; event = event & ~mine
    };
    do
#ifndef BREAK_GATE_OUTLIVES
    :: gate == me + 1 -> gate = 0
#endif
    CLOSE_DEVICE(0)
#if DEVICES > 1
    CLOSE_DEVICE(1)
#endif
#if DEVICES > 2
    CLOSE_DEVICE(2)
#endif
#if DEVICES > 3
    CLOSE_DEVICE(3)
#endif
    :: d_step { has(open_ticket, me) && !kid_has_ticket(me) -> notify_ticket(me); closing_now++ };
       d_step { open_ticket = open_ticket & ~mine; alive = alive & ~mine; waiting = waiting & ~mine; closing_now--;
                lose(me) }
    :: d_step { has(open_ticket, me) && kid_has_ticket(me) -> open_ticket = open_ticket & ~mine }
    :: d_step { gate_is_left(me) && open_devices[me] == 0 && !has(open_ticket, me) ->
         finished = finished | mine; id[me] = 0 } -> break
    od
  };
over:
  skip
}
