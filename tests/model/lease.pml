/* The lease protocol of Berth in Promela. docs/model.md says what is modelled and what each property means; `run`
 * names the configurations and the broken variants, all chosen by macros:
 *   JOBS, DEVICES          how many
 *   CANDIDATES NEED MEMORY one number a ticket: a set of devices, a count, a promise (0 = whole devices)
 *   KILLS STOPS            how many kill -9 and how many SIGSTOP (each with or without SIGCONT) a run may hold
 *   START_IN_ORDER         job 0 joins first, then job 1 …
 *   KID                    job 0 leaves a child that inherited descriptors
 *   CITIZEN REMOVAL FORGER a bare flock(1), a removed device file, a forged early ID
 *   BELLS SHORT STRANGERS  later requests fill gaps, and who may start is rung (line.pml)
 *   HEAD_TICK              the slow periodic look of the first in line; without it, events must do
 *   BREAK_x                a broken variant        SEEN=x   x must be reachable
 */
#include "state.pml"
#include "variants.pml"
#include "line.pml"
#include "job.pml"
#include "world.pml"
