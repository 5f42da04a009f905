# What `run` runs. Words and reasons for each row are in docs/model.md.
# shellcheck shell=bash disable=SC2046,SC2086 # the lists of macros are to be split

# Jobs start in the order of their numbers. Where they are alike that loses nothing: other orders
# differ by names only. Where they are not, 1st, 2nd and 3rd are the orders that remain when a
# mirror image counts as the same.
in_order=-DSTART_IN_ORDER
pair=$(jobs 2 1 1,1 1,1 0,0)
queue=$(jobs 3 1 1,1,1 1,1,1 0,0,0)
alike="$queue $in_order"
overlap=$(jobs 3 3 3,6,5 2,1,1 0,0,0)           # {0,1}x2 {1,2}x1 {0,2}x1: each is everybody's rival
chain=$(jobs 3 4 3,6,12 2,1,2 0,0,0)            # {0,1}x2 {1,2}x1 {2,3}x2: the ends are no rivals
star=$(jobs 3 2 3,1,2 2,1,1 0,0,0)              # {0,1}x2 {0}x1 {1}x1: one lease stands before two heads
shared=$(jobs 3 1 1,1,1 1,1,1 6,6,4)            # 6 + 6 > 10
mixed=$(jobs 3 2 3,3,3 1,1,1 6,0,6)             # a share, a whole card, a share, on two cards
child=$(jobs 2 2 3,3 2,1 0,0)

print_line '' kind name expected found states time

world quick 'queue, kill'                $alike $(faults 1 0)
world quick 'queue, stop'                $alike $(faults 0 1)
world long  'queue, kill and stop'       $alike $(faults 1 1)
world quick 'pair, 2 kills, stop'        $pair $in_order $(faults 2 1)
world quick 'pair, kill, pause for quiet' $pair -DSETTLE $(faults 1 0)
world long  'overlap, kill and stop, 1st' $overlap $in_order $(faults 1 1)
world long  'overlap, kill and stop, 2nd' $(jobs 3 3 6,3,5 1,2,1 0,0,0) $in_order $(faults 1 1)
world long  'overlap, kill and stop, 3rd' $(jobs 3 3 6,5,3 1,1,2 0,0,0) $in_order $(faults 1 1)
world quick 'chain, no fault'            $chain $(faults 0 0)
world long  'chain, kill and stop, 1st'  $chain $in_order $(faults 1 1)
world long  'chain, kill and stop, 2nd'  $(jobs 3 4 3,12,6 2,2,1 0,0,0) $in_order $(faults 1 1)
world long  'chain, kill and stop, 3rd'  $(jobs 3 4 6,3,12 1,2,2 0,0,0) $in_order $(faults 1 1)
world long  'star, kill'                 $star $(faults 1 0)
world long  'shared, kill and stop, 1st' $shared $in_order $(faults 1 1)
world long  'shared, kill and stop, 2nd' $(jobs 3 1 1,1,1 1,1,1 6,4,6) $in_order $(faults 1 1)
world long  'shared, kill and stop, 3rd' $(jobs 3 1 1,1,1 1,1,1 4,6,6) $in_order $(faults 1 1)
world quick 'shared, stop'               $shared $(faults 0 1)
world long  'mixed, kill'                $mixed $(faults 1 0)
world long  'mixed, stop'                $mixed $(faults 0 1)
world quick 'child, kill'                $child -DKID $(faults 1 0)
world long  'child, kill and stop'       $child -DKID $(faults 1 1)
world quick 'citizen, kill'              $pair $in_order -DCITIZEN -DHEAD_TICK $(faults 1 0)
world long  'citizen, 3 jobs, stop'      $alike -DCITIZEN -DHEAD_TICK $(faults 0 1)
world quick 'file removed, kill'         $pair $in_order -DREMOVAL $(faults 1 0)
world quick 'file removed, citizen'      $pair $in_order -DREMOVAL -DCITIZEN -DHEAD_TICK $(faults 0 1)
world quick 'forged ID, kill'            $(jobs 2 1 1,1,1 1,1,1 0,0,0) $in_order -DFORGER $(faults 1 0)
no_endless_run quick 'every run ends, kill'  $pair $in_order $(faults 1 0)
no_endless_run long  'every run ends, stop'  $alike $(faults 0 1)

variant quick 'no gate'                    promise   $shared $in_order -DBREAK_NO_GATE $(faults 0 0)
variant long  'no gate, a stopped head'    promise   $shared $in_order -DBREAK_NO_GATE_AT_PLAN $(faults 0 1)
variant quick 'no gate at join'            fifo      $alike -DBREAK_NO_GATE_AT_JOIN $(faults 0 0)
variant long  'gate outlives its holder'   stuck     $alike -DBREAK_GATE_OUTLIVES $(faults 1 0)
variant quick 'ignore the queue'           fifo      $alike -DBREAK_IGNORE_QUEUE $(faults 0 0)
variant quick 'sleep behind the first'     wakes     $alike -DBREAK_BEHIND_FIRST $(faults 0 0)
variant quick 'rescan, forged ID'          order     $(jobs 2 1 1,1,1 1,1,1 0,0,0) -DFORGER -DBREAK_RESCAN $(faults 0 0)
variant long  'no liveness check'          stuck     $pair -DBREAK_NO_LIFE $(faults 1 0)
variant long  'life from the device lock'  exclusive $child -DKID -DBREAK_INFER $(faults 1 0)
variant long  'life from the lock, shared' promise   $shared $in_order -DBREAK_INFER $(faults 1 0)
variant quick 'only the lock, file removed' exclusive $pair -DREMOVAL -DBREAK_ONLY_LOCK $(faults 0 0)
variant long  'only the lock, child'       exclusive $child -DKID -DBREAK_ONLY_LOCK $(faults 1 0)
variant quick 'only the ledger, citizen'   exclusive $pair -DCITIZEN -DHEAD_TICK -DBREAK_ONLY_LEDGER $(faults 0 0)
variant long  'only the ledger, child'     exclusive $child -DKID -DBREAK_ONLY_LEDGER $(faults 1 0)
variant long  'lock, do not compare'       exclusive $pair -DREMOVAL -DCITIZEN -DHEAD_TICK -DBREAK_NO_COMPARE $(faults 0 0)
variant long  'grant seen before rename'   promise   $shared $in_order -DBREAK_EARLY_GRANT $(faults 0 0)
variant quick 'end the ticket first'       promise   $shared $in_order -DBREAK_TICKET_FIRST $(faults 0 0)
variant quick 'watch only the devices'     stuck     $pair -DBREAK_WATCH_ONLY_DEVICES $(faults 1 0)
variant quick 'watch, no second look'      stuck     $pair -DBREAK_LOOK_BEFORE_WATCH $(faults 0 0)
variant long  'read events after the look' stuck     $pair -DBREAK_READ_EVENTS_LATE $(faults 0 0)
variant quick 'no later look'              stuck     $pair -DBREAK_NO_SECOND_LOOK $(faults 1 0)
variant long  'later look at events only'  stuck     $pair -DBREAK_SECOND_LOOK_AT_EVENTS $(faults 1 0)
variant long  'later look spent on an event' stuck  $pair -DBREAK_SETTLE_ONCE $(faults 1 0)
variant quick 'drafted end, stopped'       stuck     $pair -DBREAK_DRAFTED_END $(faults 0 1)
variant long  'drafted end, killed, child' stuck     $child -DKID -DBREAK_DRAFTED_END $(faults 1 0)
variant quick 'wake nobody'                stuck     $child -DKID -DBREAK_DRAFTED_END -DBREAK_NO_RING $(faults 0 0)
variant long  'ring one device'            stuck     $star -DKID -DBREAK_DRAFTED_END -DBREAK_RING_ONE $(faults 0 0)
variant long  'unlink unheard'             stuck     $child -DKID -DBREAK_NO_ATTRIB $(faults 0 0)
variant quick 'no tick'                    stuck     $alike -DBREAK_NO_TICK $(faults 0 1)
variant quick 'single-shot timer'          stuck     $alike -DBREAK_SINGLE_SHOT $(faults 0 1)
variant quick 'no skip'               stuck     $alike -DBREAK_NO_SKIP $(faults 0 1)
variant quick 'skip by an old look'   fifo      $alike -DBREAK_STALE_SKIP $(faults 0 1)
variant quick 'only the nearest is looked at' ends   $alike -DBREAK_PRUNE_NEAREST $(faults 0 1)
variant quick 'no slow look, citizen'      stuck     $pair -DCITIZEN $(faults 0 0)
variant quick 'a try that wakes itself'    ends      $pair -DCITIZEN -DHEAD_TICK -DBREAK_SELF_WAKE $(faults 0 0)

seen quick 'a stopped rival is skipped'      $alike -DSEEN=SKIPPED $(faults 0 1)
seen long  'granted beside a waiting rival'      $overlap -DSEEN=NOT_RIVALRY $(faults 0 0)
seen long  'two shares on one card'              $shared -DSEEN=SHARED $(faults 0 0)
seen long  'the kernel refuses what is free'     $pair -DSEEN=KERNEL_REFUSED $(faults 1 0)
seen quick 'the later look'                      $pair -DSEEN=SECOND_LOOK $(faults 1 0)
seen quick 'the judge sees a rightful wait'      $pair -DSEEN=JUDGED $(faults 0 1)

limit quick 'a process stopped in the gate'      stuck     $pair -DLIMIT_STOPPED_GATE $(faults 0 1)
limit long  'more wake-ups after a skip'    wakes     $alike -DLIMIT_WAKES $(faults 0 1)

# Backfill and bells. Two strangers have the devices: the first stays, so that whoever wants both
# waits on, and the second ends at some time, which is for somebody else than the first in line.
bells() { # JOBS CANDIDATES NEED SHORT: with the leases of the strangers behind them
  local nobody
  nobody=$(printf '0,%.0s' $(seq "$1"))
  echo "-DBELLS -DSTRANGERS -DSTART_IN_ORDER -DJOBS=$1 -DDEVICES=2 -DCANDIDATES=$2,0,0 -DNEED=$3,1,1" \
    "-DMEMORY=${nobody}0,0 -DLEASED_AT_FIRST=${nobody}1,2 -DLOCKED_AT_FIRST=$(($1 + 1)),$(($1 + 2)) -DSHORT=$4"
}
gap=$(bells 2 3,3 2,1 2)            # both, and one short for any
two_gaps=$(bells 3 3,3,3 2,1,1 6)   # and two short ones behind
no_gap=$(bells 2 3,3 2,1 0)         # both, and one that takes long
long_behind=$(bells 3 3,3,3 2,1,1 4) # one that takes long between them

world quick 'gap, kill'                    $gap $(faults 1 0)
world quick 'gap, stop'                    $gap $(faults 0 1)
world long  'gap, kill and stop'           $gap $(faults 1 1)
world quick 'two gaps, no fault'           $two_gaps $(faults 0 0)
world quick 'long behind, no fault'        $long_behind $(faults 0 0)
world quick 'no gap, kill and stop'        $no_gap $(faults 1 1)
world quick 'gap, no bell heard, kill'     $gap -DUNHEARD -DTICKS=2 $(faults 1 0)
world long  'gap, no bell heard, stop'     $gap -DUNHEARD -DTICKS=2 $(faults 0 1)
world long  'two gaps, no bell heard'      $two_gaps -DUNHEARD -DTICKS=2 $(faults 0 0)
no_endless_run quick 'every bell ends, kill' $gap $(faults 1 0)
no_endless_run long  'every bell ends, stop' $gap $(faults 0 1)

variant quick 'ring nobody'                stuck     $gap -DBREAK_RING_NOBODY $(faults 0 0)
variant quick 'deaf to bells'              stuck     $gap -DBREAK_DEAF $(faults 0 0)
variant quick 'no bell heard, no tick'     stuck     $gap -DUNHEARD $(faults 0 0)
variant quick 'the stopped are not rung'    stuck     $gap -DBREAK_RING_NO_STOPPED $(faults 0 1)
variant long  'no look when the stopped goes on' stuck     $long_behind -DHEAD_TICK -DBREAK_FORGET_SKIPPED $(faults 0 1)
variant quick 'bell before the look'       stuck     $gap -DBREAK_RING_BEFORE_LOOK $(faults 0 0)
variant quick 'bell bound, no look'        stuck     $gap -DBREAK_BELL_UNBOUND $(faults 0 0)
variant quick 'no reservation'             fifo      $long_behind -DBREAK_NO_RESERVATION $(faults 0 0)
variant long  'a bell is a grant'          fifo      $long_behind -DHEAD_TICK -DBREAK_TRUST_BELL $(faults 0 1)

seen quick 'started by a bell'             $gap -DSEEN=RUNG $(faults 0 0)
limit long  'ended in front of a head, unheard' stuck   $two_gaps $(faults 0 1)

# Leases that yield: a model of its own. Each yielder has one device.
# shellcheck disable=SC2034 # `run` reads it
model=yields
yields() { # YIELDERS WAITERS NEED YIELDING KILLS
  echo "-DYIELDERS=$1 -DWAITERS=$2 -DNEED=$3 -DYIELDING=$4 -DKILLS=$5"
}
one_of_two=$(yields 2 1 1 0 0)

world quick 'one of two yields, kill'      $(yields 2 1 1 0 1)
world quick 'one of two yields, 2 kills'   $(yields 2 1 1 0 2)
world quick 'two yield for two, kill'      $(yields 2 2 1,1 0 1)
world quick 'two yield for one, kill'      $(yields 2 1 2 0 1)
world quick 'a yielder waits'              $(yields 2 2 1,1 1 0)
world quick 'too few yield'                $(yields 2 2 3,1 0 0)
world quick 'no yielder hears, kill'       $(yields 2 2 1,1 0 1) -DUNHEARD -DTICKS=3

variant quick 'yield to one who yields'    few    $(yields 2 1 1 1 0) -DBREAK_YIELD_TO_YIELDER
variant quick 'two yield for one'          few    $one_of_two -DBREAK_ANYBODY
variant quick 'yield after one look'       few    $one_of_two -DBREAK_ONE_LOOK
variant quick 'seen twice, before a grant and after' few $one_of_two -DBREAK_SEEN_TWICE
variant quick 'yield where that is not enough' few $(yields 2 1 3 0 0) -DBREAK_HALF
variant quick 'no yielder hears, no tick'  stuck  $one_of_two -DUNHEARD
variant quick 'no yielder is rung'         stuck  $one_of_two -DBREAK_RING_NOBODY
variant quick 'bell of a yielder bound, no look' stuck $one_of_two -DBREAK_BELL_UNBOUND

seen quick 'granted what a lease has yielded' $one_of_two -DSEEN

limit quick 'dead during a look'             few $(yields 2 2 1,1 1 1)
limit quick 'two end during two looks of a third' few $(yields 3 2 1,1 0 0)

# A look: a model of its own. What it tells of a lock that no ticket explains.
# shellcheck disable=SC2034 # `run` reads it
model=look
look() { # LEASES KILLS CITIZENS
  echo "-DLEASES=$1 -DKILLS=$2 -DCITIZENS=$3"
}

world quick 'look, a lease and a citizen'  $(look 1 0 2)
world quick 'look, a kill, the lock first' $(look 1 1 2) -DLOCK_FIRST

variant quick 'locks are read once'        stranger $(look 1 0 0) -DBREAK_ONCE
variant quick 'the killed do not count'    stranger $(look 1 1 0) -DLOCK_FIRST -DBREAK_NOT_THE_DEAD
variant quick 'locks are never read'       free     $(look 0 0 1) -DBREAK_NEVER_ASK

seen quick 'locks are read again'          $(look 1 0 0) -DSEEN=AGAIN
seen quick 'a citizen is named'            $(look 1 0 1) -DSEEN=NAMED

limit quick 'a look during a grant'        stranger $(look 1 0 0) -DLIMIT_GRANT
limit quick 'two leases end during a look' stranger $(look 2 0 0)
limit quick 'the life ends before the lock' stranger $(look 1 1 0)

# The order by response ratio: a model of its own. A stranger keeps a device for good, or gives it
# back at any time.
# shellcheck disable=SC2034 # `run` reads it
model=ratio
ratio() { # JOBS DEVICES CANDIDATES NEED LEASED
  echo "-DJOBS=$1 -DDEVICES=$2 -DCANDIDATES=$3 -DNEED=$4 -DLEASED=$5"
}
one=$(ratio 3 1 1,1,1 1,1,1 1)     # three for one device
both=$(ratio 3 2 3,3,3 2,1,1 2)    # the first wants both, and one of the two is free
both_two=$(ratio 2 2 3,3 2,1 2)
chain=$(ratio 3 3 3,6,4 2,2,1 2)  # two want two devices each, of which one is common and leased
stream=$both\ -DAGAIN=6\ -DAGED=1 # two that ask again and again, while the first has waited for the longest wait

world quick 'ratio, three for one'         $one $(faults 0 0)
world long  'ratio, three for one, kill'   $one $(faults 1 0)
world quick 'ratio, the first wants both'  $both $(faults 0 0)
world long  'ratio, the first grows old'   $both -DAGING $(faults 0 0)
world quick 'ratio, two, kill and stop'    $both_two $(faults 1 1)
world quick 'ratio, {0} {0,1}x2 {1}'       $(ratio 3 2 1,3,2 1,2,1 2) $(faults 0 0)
world quick 'ratio, {0} {1} {0,1}'         $(ratio 3 2 1,2,3 1,1,1 2) $(faults 0 0)
world quick 'ratio, {0,1}x2 {1,2}x2 {2}'     $chain $(faults 0 0)
world long  'ratio, {0,1}x2 {1,2}x2 {2}, kill' $chain $(faults 1 0)
world quick 'ratio, {0,1}x2 {0} {1}'       $(ratio 3 2 3,1,2 2,1,1 2) $(faults 0 0)
world long  'ratio, an older program first, stop'   $one -DOLD=1 $(faults 0 1)
world long  'ratio, an older program between, stop' $one -DOLD=2 $(faults 0 1)
world quick 'ratio, an older program last' $one -DOLD=4 $(faults 0 0)
world quick 'ratio, an older program wants both'    $both -DOLD=1 $(faults 0 0)
no_endless_run long  'ratio, every run ends'        $one $(faults 0 0)
no_endless_run quick 'ratio, every run ends, stop'  $both_two $(faults 0 1)
no_endless_run quick 'ratio, every run ends, three devices' $chain $(faults 0 0)
no_endless_run quick 'ratio, a stream ends'         $stream $(faults 0 0)

variant quick 'ratio, no gate'             once  $one -DBREAK_NO_GATE $(faults 0 0)
variant quick 'ratio, forget the crossing' stuck $both -DBREAK_FORGET_THE_CROSSING $(faults 0 0)
variant quick 'ratio, ring nobody'         stuck $one -DBREAK_RING_NOBODY $(faults 0 0)
variant quick 'ratio, deaf to bells'       stuck $one -DBREAK_DEAF $(faults 0 0)
variant quick 'ratio, sleep by rank'       order $one -DBREAK_SLEEP_BY_RANK $(faults 0 0)
variant quick 'ratio, ranks of an old look' turn $one -DBREAK_OLD_RANKS $(faults 0 0)
variant quick 'ratio, later ones unlisted' turn  $one -DBREAK_LATER_UNLISTED $(faults 0 0)
variant quick 'ratio, start as they came'  turn  $one -DBREAK_FRONT_BY_ID $(faults 0 0)
variant quick 'ratio, one reservation'     turn  $chain -DBREAK_ONE_RESERVATION $(faults 0 0)
variant quick 'ratio, past an older program' turn $one -DOLD=1 -DBREAK_PAST_THE_OLD $(faults 0 0)
variant quick 'ratio, no longest wait'     ends  $stream -DBREAK_NO_LONGEST_WAIT $(faults 0 0)

seen quick 'ratio, a later one starts first'  $one -DSEEN=OVERTAKEN $(faults 0 0)
seen quick 'ratio, rung because of the time'  $one -DSEEN=BY_TIME $(faults 0 0)
seen quick 'ratio, the oldest starts first'   $both -DAGING -DSEEN=OLDEST $(faults 0 0)
seen quick 'ratio, the judge sees a rightful wait' $one -DSEEN=JUDGED $(faults 0 0)

# Those that do not answer: a model of its own.
# shellcheck disable=SC2034 # `run` reads it
model=silent
silent() { # JOBS DEVICES NEED FREEZES
  echo "-DJOBS=$1 -DDEVICES=$2 -DNEED=$3 -DFREEZES=$4"
}
one_silent=$(silent 2 1 1,1 1)
three_for_one=$(silent 3 1 1,1,1 2)

world quick 'silent, two for one'          $one_silent
world quick 'silent, two for one, often'   $(silent 2 1 1,1 3)
world long  'silent, three for one'        $three_for_one
world long  'silent, the first wants both' $(silent 3 2 2,1,1 2)
world long  'silent, three for two'        $(silent 3 2 1,1,1 2)

variant quick 'silent, pass nobody'        stuck $one_silent -DBREAK_PASS_NOBODY
variant quick 'silent, no gate'            once  $one_silent -DBREAK_NO_GATE
variant quick 'silent, impatient'          order $(silent 2 1 1,1 0) -DBREAK_IMPATIENT
variant quick 'silent, for ever'           order $(silent 3 1 1,1,1 1) -DBREAK_FOR_EVER
variant quick 'silent, all at once'        order $three_for_one -DBREAK_ALL_AT_ONCE
variant quick 'silent, an old look'        order $three_for_one -DBREAK_OLD_LOOK
variant quick 'silent, an old chance'      order $three_for_one -DBREAK_OLD_CHANCE

seen quick 'silent, one is passed over'    $one_silent -DSEEN=PASSED
seen quick 'silent, two are passed over'   $three_for_one -DSEEN=BOTH
seen quick 'silent, it starts later on'    $one_silent -DSEEN=THAWED

# The queue of a lab that a store orders: a model of its own. Requests of two machines, two hosts
# with a GPU each. With two requests a window of one shows what a window of eight shows with nine.
# shellcheck disable=SC2034 # `run` reads it
model=store
lab() { # REQUESTS HOMES NAMES WINDOW: as the macros of store.pml
  echo "-DREQUESTS=$1 -DHOMES=$2 -DNAMES=$3 -DWINDOW=$4"
}
two=$(lab 2 2 15 1)     # one of each machine, and either could start on both hosts
wide=$(lab 2 2 15 2)    # and both may join at once
wide_one=$(lab 2 2 13 2) # of which one could start on one host only
three=$(lab 3 2 45 1)   # {0} {0,1} {1}: the second, of another machine, shares a host with each
twins=$(lab 2 0 15 1)\ -DTWIN\ -DLONG=3 # two processes with one mark, whose command never ends
for_good=-DLONG=3

world quick 'store, no fault'                $two
world quick 'store, answer lost'             $two -DLOST=1
world long  'store, write made late'         $two -DLATE=1
world quick 'store, request killed'          $two -DKILLS=1
world long  'store, killed, write made late' $two -DKILLS=1 -DLATE=1
world long  'store, request stopped'         $wide_one -DSTOPS=1
world long  'store, agent killed'            $two -DAGENT_KILLS=1
world long  'store, agent and request killed' $two -DAGENT_KILLS=1 -DKILLS=1
world long  'store, machine lost'            $two -DCRASHES=1
world long  'store, all leases lost'         $two -DLEASES=1
world long  'store, agent cut off'           $two -DCUTS=1
world long  'store, wiped'                   $two -DWIPES=1
world long  'store, wiped while one runs'    $two -DWIPES=1 $for_good
world quick 'store, envoy gives up'          $two -DGIVE_UPS=1
world long  'store, envoys give up'          $two -DGIVE_UPS=2
world long  'store, envoy gives up while one runs' $two -DGIVE_UPS=1 $for_good
world long  'store, envoy gives up, answer lost' $two -DGIVE_UPS=1 -DLOST=1
world quick 'store, host lost'               $two -DLOSSES=1
world long  'store, answer and host lost'    $two -DLOST=1 -DLOSSES=1
world quick 'store, twins, agent killed'     $twins -DAGENT_KILLS=1
world long  'store, twins, 2 kills, answer lost' $twins -DAGENT_KILLS=2 -DLOST=1
world long  'store, twins, kill, write late' $twins -DAGENT_KILLS=1 -DLATE=1
world long  'store, three, no fault'         $three
world long  'store, three, answer lost'      $three -DLOST=1
world long  'store, three, request killed'   $three -DKILLS=1
world long  'store, three, machine lost'     $three -DCRASHES=1

variant quick 'store, a start beside a start'      once  $twins -DAGENT_KILLS=1 -DBREAK_START_TWICE
variant long  'store, yes unread'                  once  $twins -DAGENT_KILLS=1 -DLATE=1 -DBREAK_YES_UNREAD
variant quick 'store, yes to any host'             place $two -DLOST=1 -DLOSSES=1 -DBREAK_YES_ANYWHERE
variant long  'store, a start without revision'    place $two -DWIPES=1 -DBREAK_NO_REVISION
variant quick 'store, what is known is trusted'    place $two -DLOST=1 -DBREAK_UNCONDITIONAL
variant quick 'store, opened before others joined' order $wide -DBREAK_OPEN_UNJOINED
variant quick 'store, opened before all is heard'  order $two -DBREAK_OPEN_UNHEARD
variant quick 'store, a lease takes the ticket'    held  $two -DLEASES=1 -DBREAK_TICKET_UNDER_LEASE
variant quick 'store, the missed are removed'      held  $two -DLEASES=1 -DBREAK_REMOVE_MISSED
variant quick 'store, the dead keep their places'  stuck $two -DKILLS=1 -DBREAK_KEEP_THE_DEAD
variant long  'store, no sweep'                    stuck $two -DKILLS=1 -DAGENT_KILLS=1 -DBREAK_NO_SWEEP
variant long  'store, sweep for guests only'       stuck $two -DKILLS=1 -DLATE=1 -DBREAK_SWEEP_FOR_GUESTS
variant quick 'store, no new ticket'               stuck $two -DWIPES=1 -DBREAK_NO_NEW_TICKET
variant long  'store, one that runs is forgotten' counted $two -DWIPES=1 $for_good -DBREAK_FORGET_RUNNING
variant long  'store, a ticket for one that runs'  stuck $two -DWIPES=1 $for_good -DBREAK_RUNNING_GETS_TICKET
variant quick 'store, silent about a start'        stuck $two -DLOST=1 -DLOSSES=1 -DBREAK_SILENT_ABOUT_START
variant long  'store, no skip'                stuck $wide -DSTOPS=1 -DBREAK_NO_SKIP
variant quick 'store, the missed are waited for'   stuck $two -DCRASHES=1 -DBREAK_WAIT_FOR_MISSED
variant quick 'store, the missed keep the window'  stuck $two -DCRASHES=1 -DBREAK_DEAD_KEEP_WINDOW
variant quick 'store, a silent watch is trusted'   stuck $two -DMUTES=1 -DBREAK_TRUST_WATCH
variant quick 'store, a yes is kept'               stuck $two -DLOSSES=1 -DBREAK_KEEP_THE_YES
variant long  'store, skipped for ever'         stuck $wide_one -DSTOPS=1 -DBREAK_SKIPPED_FOR_EVER
variant quick 'store, in line once only'           stuck $two $for_good -DGIVE_UPS=1 -DBREAK_STAND_NO_MORE

seen quick 'store, yes is said again'              $two -DLOST=1 -DSEEN=AGAIN
seen quick 'store, a second host grants'           $two -DSEEN=LET_GO
seen quick 'store, judged while one runs'          $two $for_good -DLOSSES=1 -DSEEN=JUDGED

limit long  'store, a window of the stopped'       stuck $two -DSTOPS=1
limit quick 'store, a twin comes late'             once  $twins -DAGENT_KILLS=1 -DLIMIT_LATE_TWIN
