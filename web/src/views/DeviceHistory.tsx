import { useEffect, useState } from "preact/hooks";
import type { History } from "../api";
import { askHistory, Refusal } from "../client";
import { Charts } from "./Charts";
import { Fence } from "./Fence";

const kSpans = [
  { since: "1h", words: "1 hour" },
  { since: "24h", words: "24 hours" },
  { since: "7d", words: "7 days" },
  { since: "30d", words: "30 days" },
];
const kRefreshMs = 30_000;

function sentenceFor(error: unknown): string {
  const said = error instanceof Refusal ? error.message : "the server does not answer";
  return `${said.charAt(0).toUpperCase()}${said.slice(1)}.`;
}

/// null while it is asked for.
function useHistory(host: string, uuid: string, since: string): History | string | null {
  const [answer, setAnswer] = useState<{ of: string; history: History | string } | null>(null);
  const question = `${host} ${uuid} ${since}`;
  useEffect(() => {
    const controller = new AbortController();
    const read = async () => {
      try {
        setAnswer({ of: question, history: await askHistory(host, uuid, since, controller.signal) });
      } catch (error) {
        if (!controller.signal.aborted) setAnswer({ of: question, history: sentenceFor(error) });
      }
    };
    void read();
    const timer = setInterval(() => void read(), kRefreshMs);
    return () => {
      clearInterval(timer);
      controller.abort();
    };
  }, [host, uuid, since, question]);
  return answer?.of === question ? answer.history : null;
}

export function DeviceHistory({
  host,
  uuid,
  totalBytes,
  powerLimit,
}: {
  host: string;
  uuid: string;
  totalBytes: number | null;
  /// In watts.
  powerLimit: number | null;
}) {
  const [since, setSince] = useState("24h");
  const history = useHistory(host, uuid, since);
  return (
    <section class="history">
      <div class="section-head">
        <h3>History</h3>
        {typeof history !== "string" && (
          // biome-ignore lint/a11y/useSemanticElements: a fieldset is for what is sent
          <div class="spans" role="group" aria-label="How far back">
            {kSpans.map((span) => (
              <button
                key={span.since}
                type="button"
                class="chip"
                aria-pressed={span.since === since}
                onClick={() => setSince(span.since)}
              >
                {span.words}
              </button>
            ))}
          </div>
        )}
      </div>
      {history === null && <p class="nothing">Asking …</p>}
      {typeof history === "string" && <p class="nothing">{history}</p>}
      {history !== null && typeof history === "object" && (
        <Fence key={history.to_s}>
          <Charts history={history} totalBytes={totalBytes} powerLimit={powerLimit} />
        </Fence>
      )}
    </section>
  );
}
