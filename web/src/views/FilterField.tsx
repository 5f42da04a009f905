import { useComputed } from "@preact/signals";
import { fleet, hostView, order } from "../fleet";
import {
  filter,
  filterError,
  isHostShown,
  isNarrowed,
  isShown,
  quick,
  setFilter,
  setQuick,
} from "../narrowing";
import { counted } from "../words";

/// The first line says what is wrong, with the column; the others mark the place.
function FilterError({ text }: { text: string }) {
  const [said, ...marked] = text.split("\n");
  return (
    <div class="filter-error" id="filter-error" role="alert">
      {said}
      {marked.length > 0 && <pre>{marked.join("\n")}</pre>}
    </div>
  );
}

export function FilterField() {
  const error = filterError.value;
  return (
    <search class="filter">
      <input
        type="search"
        aria-label="Filter the GPUs"
        placeholder="Filter: ada, train.py, or name~A100 and free>=20G"
        title="Words that a machine, model, user, note or command has; or an expression as for berth pick --where: name, free, used, util, temp, power, index …"
        spellcheck={false}
        autocomplete="off"
        autocapitalize="off"
        value={filter.value}
        aria-invalid={error !== null}
        aria-describedby={error === null ? undefined : "filter-error"}
        onInput={(event) => setFilter(event.currentTarget.value)}
      />
      {error !== null && <FilterError text={error} />}
    </search>
  );
}

/// How many are shown of how many, where not all are.
export function Narrowed() {
  const count = useComputed(() => {
    // Counted anew when anything has changed.
    void fleet.value;
    const hosts = order.value.map((name) => hostView(name).peek()).filter(isHostShown);
    return { hosts: hosts.length, devices: hosts.flatMap((host) => host.devices.filter(isShown)).length };
  });
  const isOn = isNarrowed.value;
  const wanted = quick.value;
  return (
    <div class="narrowed" role="status">
      {isOn && (
        <>
          <span>
            Shown: {counted(count.value.devices, "GPU")} of {fleet.value.devices.toLocaleString("en")} on{" "}
            {counted(count.value.hosts, "machine")}
            {wanted && "user" in wanted && `, ${wanted.user}'s`}
          </span>
          <button
            type="button"
            class="link"
            onClick={() => {
              setQuick(null);
              setFilter("");
            }}
          >
            Show all
          </button>
        </>
      )}
    </div>
  );
}
