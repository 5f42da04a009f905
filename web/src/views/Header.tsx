import { useComputed } from "@preact/signals";
import { now } from "../clock";
import { connection, lastWordMs } from "../connection";
import { fleet, isOne, order, overview } from "../fleet";
import { switchTheme, theme } from "../theme";
import { age, counted } from "../words";
import { FilterField } from "./FilterField";

function Mark() {
  return (
    <svg class="mark" viewBox="0 0 16 16" aria-hidden="true">
      <path d="M2 2v8a4 4 0 0 0 4 4h4a4 4 0 0 0 4-4V2" />
      <rect x="5.6" y="4" width="4.8" height="6" rx="1.2" />
    </svg>
  );
}

// The server breaks a silence of 15 s with a comment: less than that is no sign.
const kUsualSeconds = 20;

/// A silence that is longer than usual is told before the connection is given up.
function useDataAge() {
  return useComputed(() => {
    const seconds = now.value === 0 ? 0 : (Date.now() - lastWordMs) / 1000;
    return { seconds, isOld: seconds > Math.max(kUsualSeconds, 3 * (overview.value?.everySeconds ?? 1)) };
  });
}

function Connection() {
  const dataAge = useDataAge();
  const { phase } = connection.value;
  if (phase === "token") return null;
  if (phase === "connecting") return <span class="connection">connecting …</span>;
  const { seconds, isOld } = dataAge.value;
  if (phase === "lost" && overview.value === null)
    return (
      <span class="connection is-lost" title={connection.value.reason}>
        no connection
      </span>
    );
  if (phase === "lost" || isOld)
    return (
      <span class="connection is-lost">
        connection lost, last data <span class="age">{age(seconds)}</span> old
      </span>
    );
  const { stale } = fleet.value;
  // The server answers, and yet nothing that it tells of a machine is of now.
  if (stale > 0 && stale === order.value.length)
    return (
      <span class="connection is-lost">{isOne.value ? "no news from the driver" : "no machine answers"}</span>
    );
  return (
    <span class={`connection ${stale > 0 ? "is-partly" : "is-live"}`} title={`data ${age(seconds)} old`}>
      {stale > 0 ? `live, but for ${counted(stale, "machine")}` : "live"}
    </span>
  );
}

/// For those who hear the page: only what changes seldom.
function Announcement() {
  const { phase } = connection.value;
  const text = phase === "lost" ? "Connection lost." : phase === "live" ? "Connected." : "";
  return (
    <span class="unseen" role="status">
      {text}
    </span>
  );
}

function Scope() {
  if (overview.value === null) return null;
  const name = isOne.value ? order.value[0] : counted(order.value.length, "machine");
  return <span class="scope">{name}</span>;
}

export function Header() {
  const other = theme.value === "dark" ? "light" : "dark";
  return (
    <header class="top">
      <h1>
        <Mark />
        Berth
      </h1>
      <Scope />
      {overview.value && <FilterField />}
      <a class="docs" href="docs/">
        Docs
      </a>
      <Connection />
      <Announcement />
      <button
        type="button"
        class="plain theme"
        onClick={switchTheme}
        title={`${other} colours`}
        aria-label={`Use ${other} colours`}
      >
        <svg viewBox="0 0 16 16" aria-hidden="true">
          <circle cx="8" cy="8" r="6" fill="none" stroke="currentColor" stroke-width="1.5" />
          <path d="M8 2a6 6 0 0 1 0 12z" fill="currentColor" />
        </svg>
      </button>
    </header>
  );
}
