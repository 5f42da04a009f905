import type { History, Hosts, Match, OwnJobs, Timeline, Usage } from "./api";

const kTokenKey = "berth-token";
// What a header can carry: fetch throws at anything else, as if nobody answered.
const kTokenPattern = /^[\x21-\x7e]+$/;

// A browser that is to keep nothing throws at the mere name of its storage: then the token lasts as long as the page.
let token: string | null = null;
try {
  token = sessionStorage.getItem(kTokenKey);
} catch {}

/// An answer that is none, with what the server says of it.
export class Refusal extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

/// Kept for this tab alone, and never in an address.
export function keepToken(given: string): void {
  token = given;
  try {
    sessionStorage.setItem(kTokenKey, given);
  } catch {}
}

export function forgetToken(): void {
  token = null;
  try {
    sessionStorage.removeItem(kTokenKey);
  } catch {}
}

async function refusalOf(response: Response): Promise<Refusal> {
  const text = await response.text().catch(() => "");
  try {
    const document = JSON.parse(text);
    return new Refusal(response.status, document.message ?? text);
  } catch {
    return new Refusal(response.status, text.slice(0, 200) || response.statusText);
  }
}

/// The paths are relative, so that the page works behind a proxy that gives it a folder.
export async function ask(path: string, signal?: AbortSignal): Promise<Response> {
  if (token !== null && !kTokenPattern.test(token)) throw new Refusal(401, "that is no token");
  const response = await fetch(`api/v1/${path}`, {
    headers: token === null ? {} : { Authorization: `Bearer ${token}` },
    ...(signal && { signal }),
  });
  if (!response.ok) throw await refusalOf(response);
  return response;
}

async function askFor<T>(path: string, signal?: AbortSignal): Promise<T> {
  return (await ask(path, signal)).json();
}

export const askHosts = (signal: AbortSignal) => askFor<Hosts>("hosts", signal);

export const askMatch = (filter: string, signal: AbortSignal) =>
  askFor<Match>(`match?filter=${encodeURIComponent(filter)}`, signal);

/// null: the server shows none.
export const askOwnJobs = () => askFor<OwnJobs | null>("jobs");

/// Each task of an array.
export const askTasks = (id: string, signal: AbortSignal) =>
  askFor<OwnJobs | null>(`jobs?job=${encodeURIComponent(id)}`, signal);

export const askJobLog = async (id: string, signal: AbortSignal): Promise<string> =>
  (await ask(`job-log?job=${encodeURIComponent(id)}`, signal)).text();

/// `isOwn`: the machine of the server itself.
export const askTimeline = (host: string, isOwn: boolean, signal: AbortSignal) =>
  askFor<Timeline>(isOwn ? "timeline" : `hosts/${encodeURIComponent(host)}/timeline`, signal);

export const askUsage = () => askFor<Usage>("usage?since=7d&by=user");

export function askHistory(host: string, uuid: string, since: string, signal: AbortSignal): Promise<History> {
  const query = new URLSearchParams({ device: uuid, since, points: "300" });
  return askFor<History>(`hosts/${encodeURIComponent(host)}/history?${query}`, signal);
}
