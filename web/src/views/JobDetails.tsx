import { useEffect, useState } from "preact/hooks";
import type { OwnJob } from "../api";
import { askJobLog, askTasks, Refusal } from "../client";
import { endOf, isBad, isOver, numberOf, stateOf, tasksOf, waits } from "../ownJobs";
import { Command, EditCommands } from "./Copy";
import { useFold } from "./fold";
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

/// The tasks of an array; null while they are asked for.
function useTasks(job: OwnJob): readonly OwnJob[] | null {
  const [told, setTold] = useState<{ of: string; tasks: readonly OwnJob[] } | null>(null);
  const isArray = job.tasks !== null;
  useEffect(() => {
    if (!isArray) return;
    const controller = new AbortController();
    const read = async () => {
      try {
        setTold({ of: job.id, tasks: (await askTasks(job.id, controller.signal))?.jobs ?? [] });
      } catch {
        // What was told is shown until the next answer.
      }
    };
    void read();
    const timer = setInterval(() => void read(), kEveryMs);
    return () => {
      clearInterval(timer);
      controller.abort();
    };
  }, [job.id, isArray]);
  return told?.of === job.id ? told.tasks : null;
}

function Log({ job }: { job: OwnJob }) {
  const log = useLog(job);
  if (log === null) return <p class="nothing">Asking …</p>;
  if (log === "") return <p class="nothing">Nothing yet.</p>;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by the keyboard
    <pre class="log" tabIndex={0}>
      {log}
    </pre>
  );
}

/// Each task of an array with its state; one of them shows what it has printed.
function Tasks({ job }: { job: OwnJob }) {
  const tasks = useTasks(job);
  const [open, setOpen] = useState<string | null>(null);
  const { shown, more } = useFold(`tasks ${job.id}`, tasks ?? [], 40);
  const chosen = tasks?.find((task) => task.id === open);
  if (tasks === null) return <p class="nothing">Asking …</p>;
  return (
    <>
      <ul class="tasks" aria-label="Tasks">
        {shown.map((task) => (
          <li key={task.id}>
            <button
              type="button"
              class="chip"
              aria-pressed={task.id === open}
              onClick={() => setOpen(task.id === open ? null : task.id)}
            >
              {task.id}{" "}
              <span class={isBad(task) && task.id !== open ? "warning" : ""}>
                {stateOf(task)}
                {task.devices.length > 0 && `, GPU ${task.devices.join(", ")}`}
              </span>
            </button>
          </li>
        ))}
      </ul>
      {more}
      {chosen ? <Log job={chosen} /> : <p class="nothing">Choose a task to see what it has printed.</p>}
    </>
  );
}

export function JobDetails({ job }: { job: OwnJob }) {
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
      <p class="commands">
        <Command words={`berth log ${job.id}`} />
        {waits(job) && <EditCommands number={numberOf(job)} held={job.held === true} />}
        {!isOver(job) && <Command words={`berth cancel ${job.id}`} />}
      </p>
      <section>
        <h3>What it has printed, the last 200 lines</h3>
        {tasks !== null ? <Tasks job={job} /> : <Log job={job} />}
      </section>
    </>
  );
}
