import { fleet, isOne } from "../fleet";
import { type JobView, jobsOf, numberOf, sinceOf } from "../jobs";
import { isJobShown } from "../narrowing";
import { counted } from "../words";
import { Age } from "./Age";
import { useFold } from "./fold";

/// Jobs that run or stand in line. Where none does, there is no such list: many sites have none.
export function Jobs() {
  const all = jobsOf(fleet.value.users);
  const { shown, more } = useFold("jobs", all.filter(isJobShown), 8);
  if (all.length === 0) return null;
  return (
    <section aria-labelledby="jobs">
      <h2 id="jobs">
        Jobs <span class="count">{all.length}</span>
      </h2>
      <ol class="waiters">
        {shown.map((each) => (
          <Job key={each.key} job={each} />
        ))}
      </ol>
      {more}
      <p class="nothing">
        Other jobs only their user knows: <code>berth jobs</code>.
      </p>
    </section>
  );
}

function Job({ job }: { job: JobView }) {
  const number = `job ${numberOf(job)}`;
  const parts = [];
  if (job.running.length > 0) parts.push(runningOf(job));
  if (job.inLine.length > 0) parts.push(job.inLine.length === 1 ? "in line" : `${job.inLine.length} in line`);
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
        {parts.join("; ")}
      </span>
    </li>
  );
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
