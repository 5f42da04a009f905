import type { OwnJob } from "../api";
import { subject } from "../details";
import { isOwnJobShown } from "../narrowing";
import { isBad, ownJobs, readOwnJobs, sinceOf, stateOf, titleOf } from "../ownJobs";
import { Age } from "./Age";
import { useFold } from "./fold";
import { useWhileLive } from "./whileLive";

const kEveryMs = 5000;

/// What the user who runs the server has submitted, also what is over. Others are shown no such list.
export function OwnJobs() {
  useWhileLive(readOwnJobs, kEveryMs);
  const all = ownJobs.value ?? [];
  const { shown, more } = useFold("own jobs", all.filter(isOwnJobShown), 8);
  if (all.length === 0) return null;
  return (
    <section aria-labelledby="own-jobs">
      <h2 id="own-jobs">
        Submitted <span class="count">{all.length.toLocaleString("en")}</span>
      </h2>
      <ol class="waiters">
        {shown.map((each) => (
          <Submitted key={each.id} job={each} />
        ))}
      </ol>
      {more}
    </section>
  );
}

function Submitted({ job }: { job: OwnJob }) {
  return (
    <li>
      <span class="line">
        <button
          type="button"
          class="link"
          aria-haspopup="dialog"
          onClick={() => {
            subject.value = { kind: "job", id: job.id };
          }}
        >
          job {job.id}
        </button>
        <span class={isBad(job) ? "warning" : "place"}>{stateOf(job)}</span>
        <span class="end">
          <Age since={sinceOf(job)} />
        </span>
      </span>
      <span class="what" title={job.words.join(" ")}>
        {job.name === null ? <code>{titleOf(job)}</code> : <b>{job.name}</b>}
      </span>
    </li>
  );
}
