// Numbers and names as people read them.

const kNumerals = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"];

export function counted(count: number, noun: string): string {
  return `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
}

/// "two hosts", "12 hosts".
export function spelled(count: number, noun: string): string {
  return `${kNumerals[count] ?? count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
}

/// "a, b or c".
export function eitherOf(names: readonly string[]): string {
  if (names.length < 2) return names.join();
  return `${names.slice(0, -1).join(", ")} or ${names[names.length - 1]}`;
}

/// "45 s", "26 min", "2 h", "3 d": as `berth list` says it.
export function age(seconds: number): string {
  const rest = Math.max(0, Math.floor(seconds));
  if (rest < 60) return `${rest} s`;
  if (rest < 3600) return `${Math.floor(rest / 60)} min`;
  if (rest < 48 * 3600) return `${Math.floor(rest / 3600)} h`;
  return `${Math.floor(rest / 86400)} d`;
}

const kGib = 1024 ** 3;

export function gib(bytes: number | null): string {
  if (bytes === null) return "–";
  const amount = bytes / kGib;
  return amount >= 100 ? amount.toFixed(0) : amount.toFixed(1);
}

export function percent(value: number | null): string {
  return value === null ? "–" : `${value}%`;
}

export function degrees(value: number | null): string {
  return value === null ? "–" : `${value} °C`;
}

export function watts(milliwatts: number | null): string {
  return milliwatts === null ? "–" : `${Math.round(milliwatts / 1000)} W`;
}

const kUnits: Record<string, string> = { percent: "%", celsius: " °C", megahertz: " MHz" };

/// A value of a device, by its kind (docs/readings.md).
export function reading(kind: string, value: number | string | boolean | null): string {
  if (value === null) return "–";
  if (kind === "watts") return watts(Number(value));
  if (kind === "bytes") return `${gib(Number(value))} GiB`;
  if (kind === "truth") return value ? "yes" : "no";
  return `${value}${kUnits[kind] ?? ""}`;
}

export function hours(value: number | null | undefined): string {
  if (value == null) return "–";
  return value >= 100 ? Math.round(value).toLocaleString("en") : value.toFixed(1);
}

/// "NVIDIA A100-SXM4-80GB" is the A100-80 to those who share it.
export function shortModel(name: string, totalBytes: number | null): string {
  const words = name
    .replace(/\b(NVIDIA|Tesla|GeForce|Quadro|Generation)\b/gi, " ")
    .split(/[\s-]+/)
    .filter((word) => word !== "" && !/^(SXM\d*|PCIe|HBM\w*|NVL|\d+GB)$/i.test(word))
    .join(" ");
  if (/\bMIG\b/.test(name)) return words;
  const said = /(\d+)GB\b/i.exec(name)?.[1];
  const amount = said ?? (totalBytes === null ? null : Math.round(totalBytes / kGib).toString());
  return said === undefined || amount === null ? words || name : `${words}-${amount}`;
}

/// null: no date is so far off. Times are also what others wrote into their tickets.
export function dateOf(epochSeconds: number): Date | null {
  const date = new Date(epochSeconds * 1000);
  return Number.isNaN(date.getTime()) ? null : date;
}

/// The time of day, with the date when it is another day's.
export function moment(epochSeconds: number, nowSeconds: number): string {
  const then = new Date(epochSeconds * 1000);
  const time = then.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
  const isToday = then.toDateString() === new Date(nowSeconds * 1000).toDateString();
  return isToday ? time : `${then.toLocaleDateString("en-GB", { day: "numeric", month: "short" })} ${time}`;
}
