import { nextEnd, nextSentence, ownSentence, queueSentence, wasteSentence } from "../answers";
import { slowNow } from "../clock";
import { fleet, hostView, isOne, order, overview } from "../fleet";
import { me, setMe } from "../me";
import { kStateWords, quick, setQuick } from "../narrowing";
import type { DeviceState } from "../state";
import { eitherOf, shortModel, spelled } from "../words";
import { Command } from "./Copy";
import { Glyph } from "./Glyph";

/// "3 × A100-80 free on two hosts", and in one line what has none.
function Models() {
  const models = fleet.value.models
    .map((model) => ({ ...model, short: shortModel(model.name, model.memory_total_bytes) }))
    .sort((a, b) => b.free - a.free || b.devices - a.devices);
  // A lost GPU says no name.
  const without = new Set(
    models.filter((model) => model.free === 0 && model.short).map((model) => model.short),
  );
  return (
    <ul class="models">
      {models
        .filter((model) => model.free > 0)
        .map(({ name, memory_total_bytes, short, free, devices, hosts_with_free }) => (
          <li key={`${name} ${memory_total_bytes}`} title={`${name}: ${free} of ${devices} free`}>
            <b>
              {free} × {short}
            </b>{" "}
            free{overview.value?.hub && ` on ${spelled(hosts_with_free, "host")}`}
          </li>
        ))}
      {without.size > 0 && <li class="none">no {eitherOf([...without])} free</li>}
    </ul>
  );
}

const kAlwaysShown: readonly DeviceState[] = ["free", "leased", "idle"];
const kShownIfAny: readonly DeviceState[] = ["kept", "outsider", "hidden", "draining", "closed", "trouble"];
const kChipWords: Partial<Record<DeviceState, string>> = {
  outsider: "outsiders",
  leased: "in use",
  trouble: "in trouble",
};
const kTitles: Partial<Record<DeviceState, string>> = {
  kept: "free, and somebody who asked earlier is to have them first",
  idle: "leased, and nothing of the lease computes on them",
  outsider: "used by processes that belong to no lease",
  trouble: "GPUs that do not work, and machines that are down",
};

function Chip({ state, words, count }: { state: DeviceState; words: string; count: number }) {
  const wanted = quick.value;
  const isOn = wanted !== null && "state" in wanted && wanted.state === state;
  return (
    <button
      type="button"
      class={`chip ${count === 0 ? "zero" : ""}`}
      aria-pressed={isOn}
      title={kTitles[state]}
      onClick={() => {
        setQuick(isOn ? null : { state });
      }}
    >
      <Glyph state={state} />
      <b>{count.toLocaleString("en")}</b> {words}
    </button>
  );
}

function goToWaiting(): void {
  const heading = document.getElementById("waiting");
  heading?.scrollIntoView({ block: "start" });
  heading?.focus({ preventScroll: true });
}

/// Where the one who looks is; the server does not know who that is.
function Own() {
  const names = fleet.value.users.map((each) => each.user);
  const name = me.value;
  return (
    <li class="own">
      {name !== null && <span>{ownSentence(name, fleet.value, isOne.value)} </span>}
      <label>
        {name === null ? "Where are you? " : "You: "}
        <select
          value={name ?? ""}
          onChange={(event) => setMe(event.currentTarget.value || null)}
          aria-label="Your name"
        >
          <option value="">choose your name</option>
          {[...new Set(name === null ? names : [name, ...names])].sort().map((each) => (
            <option key={each} value={each}>
              {each}
            </option>
          ))}
        </select>
      </label>
    </li>
  );
}

/// The answers to the first questions, a sentence each.
function Answers() {
  void slowNow.value;
  const views = order.value.map((name) => hostView(name).peek());
  return (
    <ul class="answers">
      <li>{nextSentence(nextEnd(views), fleet.value, isOne.value)}</li>
      <li>{queueSentence(fleet.value.waiters)}</li>
      <li>{wasteSentence(views, isOne.value)}</li>
      <li class="take">
        {fleet.value.free > 0 ? "To take one, type" : "To stand in line, type"}{" "}
        <Command words="berth run -- COMMAND" />
      </li>
      <Own />
    </ul>
  );
}

export function Summary() {
  if (!overview.value) return null;
  const { counts, devices, down, free, waiters } = fleet.value;
  const count = (state: DeviceState) => (counts.get(state) ?? 0) + (state === "trouble" ? down : 0);
  const chips = [...kAlwaysShown, ...kShownIfAny.filter((state) => count(state) > 0)];
  return (
    <section class="summary" aria-label="Answers">
      <p class="figure">
        <b class={free === 0 ? "zero" : ""}>{free.toLocaleString("en")}</b> of {devices.toLocaleString("en")}{" "}
        free
      </p>
      <Models />
      <Answers />
      {/* biome-ignore lint/a11y/useSemanticElements: a fieldset is for what is sent */}
      <div class="chips" role="group" aria-label="Show only the GPUs that are">
        {chips.map((state) => (
          <Chip
            key={state}
            state={state}
            words={kChipWords[state] ?? kStateWords[state]}
            count={count(state)}
          />
        ))}
        {waiters.length > 0 && (
          <button type="button" class="chip" onClick={goToWaiting}>
            <b>{waiters.length.toLocaleString("en")}</b> waiting
          </button>
        )}
      </div>
    </section>
  );
}
