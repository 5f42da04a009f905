import { useEffect, useState } from "preact/hooks";
import type { OwnJob } from "../api";
import { askJobLog, Refusal } from "../client";
import { endOf, stateOf, tasksOf } from "../ownJobs";
import { Moment } from "./Moment";

const kEveryMs = 3000;

/// null while it is asked for. It is asked for again as long as the job runs.
function useLog(job: OwnJob): string | null {
  const [log, setLog] = useState<{ of: string; text: string } | null>(null);
  const isRunning = job.state === "running";
  useEffect(() => {
    if (job.output === null) return;
    const controller = new AbortController();
    const read = async () => {
      try {
        setLog({ of: job.id, text: await askJobLog(job.id, controller.signal) });
      } catch (error) {
        if (!controller.signal.aborted && error instanceof Refusal)
          setLog({ of: job.id, text: error.message });
      }
    };
    void read();
    const timer = isRunning ? setInterval(() => void read(), kEveryMs) : undefined;
    return () => {
      clearInterval(timer);
      controller.abort();
    };
  }, [job.id, job.output, isRunning]);
  return log?.of === job.id ? log.text : null;
}

export function JobDetails({ job }: { job: OwnJob }) {
  const log = useLog(job);
  const tasks = tasksOf(job);
  return (
    <>
      <h2 id="details-title">
        Job {job.id}
        {job.name !== null && `: ${job.name}`}
      </h2>
      <code class="whole">{job.words.join(" ")}</code>
      <p class="gist">in {job.folder}</p>
      <dl class="facts">
        <div>
          <dt>State</dt>
          <dd>{stateOf(job)}</dd>
        </div>
        <div>
          <dt>Times</dt>
          <dd>
            <Moment word="submitted" at={job.submitted_s} />
            <br />
            <Moment word="started" at={job.started_s} />
            <br />
            <Moment word="ended" at={job.ended_s} />
          </dd>
        </div>
        {job.devices.length > 0 && (
          <div>
            <dt>GPU</dt>
            <dd>{job.devices.join(", ")}</dd>
          </div>
        )}
        {job.state === "ended" && tasks === null && (
          <div>
            <dt>End</dt>
            <dd>{endOf(job)}</dd>
          </div>
        )}
      </dl>
      {job.reason !== null && <p>{job.reason}</p>}
      <section>
        <h3>What it has printed, the last 200 lines</h3>
        {tasks !== null ? (
          <p class="nothing">
            It is an array of {tasks}: <code>berth log {job.id}</code> shows what they have printed.
          </p>
        ) : log === null ? (
          <p class="nothing">Asking …</p>
        ) : log === "" ? (
          <p class="nothing">Nothing yet.</p>
        ) : (
          // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by the keyboard
          <pre class="log" tabIndex={0}>
            {log}
          </pre>
        )}
      </section>
    </>
  );
}
