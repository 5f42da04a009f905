import type { History } from "../api";
import { moment } from "../words";

type Column = (number | null)[];

const kWidth = 500;
const kHeight = 96;

function columnOf(history: History, name: string): Column {
  const place = history.columns.indexOf(name);
  return history.rows.map((row) => (place < 0 ? null : (row[place] ?? null)));
}

function isUnknown(row: readonly (number | null)[]): boolean {
  return row.slice(1).every((value) => value === null);
}

/// Where something is known first: what is before that would only be empty.
function knownSince(history: History): number {
  const first = history.rows.find((row) => !isUnknown(row));
  return Math.min(first?.[0] ?? history.from_s, history.to_s - 6 * history.step_s);
}

function mean(values: Column): number | null {
  const known = values.filter((value) => value !== null);
  return known.length === 0 ? null : known.reduce((sum, value) => sum + value, 0) / known.length;
}

function peak(values: Column): number | null {
  const known = values.filter((value) => value !== null);
  return known.length === 0 ? null : Math.max(...known);
}

function rounded(value: number | null, unit: string): string {
  return value === null ? "not known" : `${Math.round(value)}${unit}`;
}

interface Curve {
  readonly label: string;
  readonly unit: string;
  /// The value at the top.
  readonly most: number;
  readonly values: Column;
}

/// One curve has a chart of its own: none hides another, and each has its unit.
function Chart({ history, curve }: { history: History; curve: Curve }) {
  const from = knownSince(history);
  const times = columnOf(history, "time_s");
  const leased = columnOf(history, "leased");
  const x = (time: number) => (kWidth * (time - from)) / (history.to_s - from);
  const y = (value: number) => kHeight - (kHeight * Math.min(value, curve.most)) / curve.most;
  const shades: string[] = [];
  const lines: string[] = [];
  let isDrawing = false;
  times.forEach((time, i) => {
    if (time === null || time + history.step_s < from) return;
    const [left, right] = [x(time).toFixed(1), x(time + history.step_s).toFixed(1)];
    if (leased[i]) shades.push(`M${left} 0H${right}V${kHeight}H${left}z`);
    const value = curve.values[i] ?? null;
    if (value !== null) lines.push(`${isDrawing ? "L" : "M"}${left} ${y(value).toFixed(1)}H${right}`);
    isDrawing = value !== null;
  });
  return (
    <figure class="chart">
      <figcaption>
        {curve.label}: {rounded(mean(curve.values), curve.unit)} on average,{" "}
        {rounded(peak(curve.values), curve.unit)} at most
      </figcaption>
      <svg viewBox={`0 0 ${kWidth} ${kHeight}`} preserveAspectRatio="none" aria-hidden="true">
        <path class="shade" d={shades.join("")} />
        <path class="grid" d={`M0 .5H${kWidth}M0 ${kHeight / 2}H${kWidth}M0 ${kHeight - 0.5}H${kWidth}`} />
        <path class="curve" d={lines.join("")} />
      </svg>
      <span class="most" aria-hidden="true">
        {Math.round(curve.most)}
        {curve.unit}
      </span>
      <span class="times" aria-hidden="true">
        <span>{moment(from, history.to_s)}</span>
        <span>{moment((from + history.to_s) / 2, history.to_s)}</span>
        <span>{moment(history.to_s, history.to_s)}</span>
      </span>
    </figure>
  );
}

export function Charts({
  history,
  totalBytes,
  powerLimit,
}: {
  history: History;
  totalBytes: number | null;
  powerLimit: number | null;
}) {
  if (history.rows.every(isUnknown)) return <p class="nothing">Nothing is on record for this time.</p>;
  const totalMib = totalBytes === null ? null : totalBytes / 1024 ** 2;
  const power = columnOf(history, "power_w");
  const heat = columnOf(history, "temperature_c");
  const memory = columnOf(history, "memory_used_mib").map((used) =>
    used === null || !totalMib ? null : (100 * used) / totalMib,
  );
  const leased = mean(columnOf(history, "leased"));
  const curves: Curve[] = [
    { label: "Load", unit: "%", most: 100, values: columnOf(history, "utilization_percent") },
    { label: "Memory", unit: "%", most: 100, values: memory },
    { label: "Temperature", unit: " °C", most: Math.max(100, peak(heat) ?? 0), values: heat },
    { label: "Power", unit: " W", most: Math.max(powerLimit ?? 0, peak(power) ?? 0, 1), values: power },
  ];
  return (
    <>
      {leased !== null && <p class="gist">Leased {rounded(100 * leased, "%")} of the time (shaded).</p>}
      <div class="charts">
        {curves.map((curve) => (
          <Chart key={curve.label} history={history} curve={curve} />
        ))}
      </div>
    </>
  );
}
