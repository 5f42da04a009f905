/* The switches of the protocol: what a broken variant changes, what must be seen to be reachable, and the few
 * assumptions about time. The names of the variants are explained in docs/model.md. */

#ifdef BREAK_NO_GATE
#define gate_is_free true
#define take_gate skip
#define drop_gate skip
#else
#define gate_is_free (gate == 0)
#define take_gate gate = me + 1
#define drop_gate gate = 0
#endif

#if defined(BREAK_NO_GATE) || defined(BREAK_NO_GATE_AT_PLAN)
#define plan_gate_is_free true
#define take_plan_gate skip
#define drop_plan_gate skip
#else
#define plan_gate_is_free gate_is_free
#define take_plan_gate take_gate
#define drop_plan_gate drop_gate
#endif

#ifdef BREAK_GATE_OUTLIVES /* a gate that is a file made and removed, not a flock */
#define gate_is_left(t) true
#else
#define gate_is_left(t) (gate != (t) + 1)
#endif

#ifdef BREAK_NO_ATTRIB
#define tell_of_unlink(t) skip
#else
#define tell_of_unlink(t) notify_ticket(t)
#endif

#ifdef BREAK_NO_GATE_AT_JOIN
#define join_gate_is_free true
#define take_join_gate skip
#define drop_join_gate skip
#else
#define join_gate_is_free gate_is_free
#define take_join_gate take_gate
#define drop_join_gate drop_gate
#endif

#ifdef START_IN_ORDER
#define may_start(t) (started == t)
#else
#define may_start(t) true
#endif

#ifdef REMOVAL
#define names_another_file (at == 0 && old_file != made_anew)
#else
#define names_another_file false
#endif

#ifdef BREAK_RESCAN
#define is_before_me(t) (rivals(t, me) && id[t] < id[me])
#define worth_a_look (queued | leased)
#else
#define worth_a_look ((queued & noted[me]) | leased)
#define is_before_me(t) has(noted[me], t)
#endif

#if defined(BREAK_NO_SKIP)
#define seen_stopped(t) false
#define remember_stopped(t) skip
#elif defined(BREAK_STALE_SKIP) /* what the tick saw, not what the decision sees */
#define seen_stopped(t) has(was_stopped, t)
#define remember_stopped(t) was_stopped = was_stopped | bit(t)
#else
#define seen_stopped(t) has(stopped, t)
#define remember_stopped(t) skip
#endif

#ifdef BREAK_PRUNE_NEAREST /* walks the list from its end, only to the first that still waits (needs alike jobs) */
#define forget(t) skip
#else
#define forget(t) noted[me] = noted[me] & ~bit(t)
#endif

#ifdef BREAK_NO_LIFE
#define believed_alive 255
#else
#define believed_alive alive
#endif

/* A look may come between the event of a close and the end of its lock, so the first in line looks once more a few
 * milliseconds later. That look is modelled where it can find anything new: where the first one began in between. */
#if defined(BREAK_NO_SECOND_LOOK)
#define at_look skip
#define at_event skip
#elif defined(BREAK_SETTLE_ONCE) /* an event that ends the pause is taken for the pause */
#define at_look skip
#define at_event look_again = !look_again
#elif defined(SETTLE) /* the rule as a program keeps it: look_again says that a quiet pause came before the last look */
#define at_look skip
#define at_event look_again = 0
#elif defined(BREAK_SECOND_LOOK_AT_EVENTS)
#define at_look skip
#define at_event look_again = (closing_now != 0)
#else
#define at_look look_again = (closing_now != 0)
#define at_event skip
#endif

#ifdef SEEN
#define see(what) if :: SEEN == what -> unseen = 0; assert(unseen) :: else fi
#else
#define see(what) skip
#endif
#define SKIPPED 1     /* a grant past a stopped rival */
#define NOT_RIVALRY 2     /* a grant of devices that no earlier waiter could use, while one waits */
#define SHARED 3          /* two shared leases on one device */
#define KERNEL_REFUSED 4  /* a lock refused though the ledger called the device free */
#define SECOND_LOOK 5     /* the look a little after an event */
#define RUNG 7            /* a grant to one that a bell has woken */
#define JUDGED 6          /* the judge sees somebody wait rightly */

/* The kernel closes what a process had open, in any order. For each the close event comes before the lock ends. */
#define CLOSE_DEVICE(x) \
  :: d_step { has(open_devices[me], x) && !kid_has_device(me, x) -> notify_device(x); closing_now++ }; \
     d_step { open_devices[me] = open_devices[me] & ~bit(x); unlock_device(me, x); closing_now--; lose(me) } \
  :: d_step { has(open_devices[me], x) && kid_has_device(me, x) -> open_devices[me] = open_devices[me] & ~bit(x) }
