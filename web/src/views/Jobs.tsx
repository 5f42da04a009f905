import type { OwnJob } from "../api";
import { subject } from "../details";
import { fleet, isOne } from "../fleet";
import { type JobView, jobsOf, numberOf, sinceOf } from "../jobs";
import { isJobShown, isOwnJobShown } from "../narrowing";
import * as own from "../ownJobs";
import { counted } from "../words";
import { Age } from "./Age";
import { Command } from "./Copy";
import { useFold } from "./fold";
import { useWhileLive } from "./whileLive";

const kOwnEveryMs = 5000;

/// A job once: as its user's server tells it, also when it waits or is over; else as the tickets of its tasks do.
type Known =
  | { readonly key: string; readonly own: OwnJob; readonly told: JobView | undefined }
  | { readonly key: string; readonly own?: undefined; readonly told: JobView };

function useJobs(): { all: Known[]; user: string | null } {
  useWhileLive(own.readOwnJobs, kOwnEveryMs);
  const told = jobsOf(fleet.value.users);
  const mine = own.ownJobs.value ?? [];
  const user = own.userOfOwn(mine, told);
  const byNumber = new Map(told.filter((each) => each.user === user).map((each) => [`${each.number}`, each]));
  const numbers = new Set(mine.map(({ id }) => id.split(".")[0]));
  return {
    user,
    all: [
      ...mine.map((job) => ({
        key: `own ${job.id}`,
        own: job,
        told: byNumber.get(job.id.split(".")[0] ?? ""),
      })),
      ...told
        .filter((each) => each.user !== user || !numbers.has(`${each.number}`))
        .map((each) => ({ key: each.key, told: each })),
    ],
  };
}

/// Where none runs, waits or is shown, there is no such list: many sites have none.
export function Jobs() {
  const { all, user } = useJobs();
  const wanted = all.filter((job) => (job.own ? isOwnJobShown(job.own, user) : isJobShown(job.told)));
  const { shown, more } = useFold("jobs", wanted, 8);
  if (all.length === 0) return null;
  return (
    <section aria-labelledby="jobs">
      <h2 id="jobs">
        Jobs <span class="count">{all.length.toLocaleString("en")}</span>
      </h2>
      <ol class="waiters">
        {shown.map((job) =>
          job.own ? (
            <Submitted key={job.key} job={job.own} told={job.told} />
          ) : (
            <Job key={job.key} job={job.told} />
          ),
        )}
      </ol>
      {more}
      <p class="nothing">
        Each user sees the rest of their own jobs with <Command words="berth jobs" />
      </p>
    </section>
  );
}

function Job({ job }: { job: JobView }) {
  const number = `job ${numberOf(job)}`;
  return (
    <li>
      <span class="line">
        <b>{job.name ?? number}</b>
        {job.name !== null && <span class="place">{number}</span>}
        <span class="place">{job.user}</span>
        {!isOne.value && <span class="place">{job.host}</span>}
        <span class="end">
          <Age since={sinceOf(job)} />
        </span>
      </span>
      <span class="wish" title={titleOf(job)}>
        {stateOf(job)}
      </span>
    </li>
  );
}

function Submitted({ job, told }: { job: OwnJob; told: JobView | undefined }) {
  return (
    <li>
      <span class="line">
        <button
          type="button"
          class="link"
          aria-haspopup="dialog"
          aria-label={`${own.titleOf(job)}, job ${job.id}`}
          onClick={() => {
            subject.value = { kind: "job", id: job.id };
          }}
        >
          {own.titleOf(job)}
        </button>
        <span class="place">job {job.id}</span>
        <span class={own.isBad(job) ? "warning" : "place"}>{own.stateOf(job)}</span>
        <span class="end">
          <Age since={own.sinceOf(job)} />
        </span>
      </span>
      {told && told.running.length > 0 && (
        <span class="wish" title={titleOf(told)}>
          {stateOf(told)}
        </span>
      )}
    </li>
  );
}

function stateOf(job: JobView): string {
  const parts = [];
  if (job.running.length > 0) parts.push(runningOf(job));
  if (job.inLine.length > 0) parts.push(job.inLine.length === 1 ? "in line" : `${job.inLine.length} in line`);
  return parts.join("; ");
}

function runningOf({ running }: JobView): string {
  const gpus = [...new Set(running.flatMap((each) => each.devices.map(({ device }) => device.label)))];
  const where = gpus.length > 0 ? ` on GPU ${gpus.join(", ")}` : "";
  return running.length === 1 ? `running${where}` : `${counted(running.length, "task")} running${where}`;
}

/// Which task has which GPU.
function titleOf({ running }: JobView): string | undefined {
  const told = running.flatMap(({ lease, devices }) => {
    const index = lease.job?.index;
    return index == null
      ? []
      : [`task ${index}: GPU ${devices.map(({ device }) => device.label).join(", ")}`];
  });
  return told.length > 0 ? told.join("\n") : undefined;
}
