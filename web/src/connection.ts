// Follows the server: all hosts once, then their news, and from the start again whenever that ends.
import { signal } from "@preact/signals";
import type { ChangeEvent, Host, LineEvent, SummaryEvent } from "./api";
import { ask, askHosts, forgetToken, keepToken, Refusal } from "./client";
import { subject } from "./details";
import { overview, takeChange, takeHost, takeHosts, takeLine, takeSummary } from "./fleet";
import { events } from "./stream";

export type Connection =
  | { readonly phase: "connecting" }
  | { readonly phase: "live" }
  | { readonly phase: "lost"; readonly reason: string }
  | { readonly phase: "token"; readonly wasWrong: boolean };

export const connection = signal<Connection>({ phase: "connecting" });

/// When something last came, by Date.now().
export let lastWordMs = Date.now();

const kShortestPauseMs = 1000;
const kLongestPauseMs = 15_000;
// The server breaks a silence of 15 s with a comment.
const kSilenceMs = 35_000;

/// Ends the connection when nothing has come for a while: a peer that is gone says nothing.
class Patience {
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly controller: AbortController) {
    this.renew();
  }

  renew(): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.controller.abort(new Error("the server says nothing")), kSilenceMs);
  }

  end(): void {
    clearTimeout(this.timer);
  }
}

const kLongestSliceMs = 12;

/// Lets the page do something else when this has taken a while.
class Slices {
  private startedAt = performance.now();

  async breathe(): Promise<void> {
    if (performance.now() - this.startedAt < kLongestSliceMs) return;
    await new Promise((resolve) => setTimeout(resolve));
    this.startedAt = performance.now();
  }
}

async function follow(onNews: () => void): Promise<void> {
  const controller = new AbortController();
  const patience = new Patience(controller);
  const alive = () => {
    lastWordMs = Date.now();
    patience.renew();
  };
  try {
    const hosts = await askHosts(controller.signal);
    alive();
    takeHosts(hosts);
    onNews();
    const stream = await ask(`hosts/changes?since=${hosts.number}`, controller.signal);
    const slices = new Slices();
    for await (const { name, data } of events(stream, alive)) {
      await slices.breathe();
      if (name === "host") takeHost(JSON.parse(data) as Host);
      else if (name === "change") takeChange(JSON.parse(data) as ChangeEvent);
      else if (name === "line") takeLine((JSON.parse(data) as LineEvent).line);
      else if (name === "summary") takeSummary(JSON.parse(data) as SummaryEvent);
    }
    throw new Error("the server has ended the connection");
  } finally {
    patience.end();
    controller.abort();
  }
}

let onToken: (() => void) | undefined;

export function giveToken(token: string): void {
  keepToken(token);
  onToken?.();
}

async function askPerson(wasWrong: boolean): Promise<void> {
  forgetToken();
  // A drawer would keep the focus from the question.
  subject.value = null;
  connection.value = { phase: "token", wasWrong };
  await new Promise<void>((resolve) => {
    onToken = resolve;
  });
}

function reasonOf(error: unknown): string {
  // What a browser says where nothing answers is different in each of them.
  if (error instanceof TypeError) return "the server does not answer";
  return error instanceof Error ? error.message : String(error);
}

async function pause(milliseconds: number): Promise<void> {
  await new Promise<void>((resolve) => {
    const end = () => {
      clearTimeout(timer);
      removeEventListener("online", end);
      resolve();
    };
    const timer = setTimeout(end, milliseconds);
    addEventListener("online", end);
  });
}

/// For as long as the page is there.
export async function followForEver(): Promise<never> {
  let pauseMs = kShortestPauseMs;
  let asked = false;
  for (;;) {
    try {
      await follow(() => {
        connection.value = { phase: "live" };
        pauseMs = kShortestPauseMs;
        asked = false;
      });
    } catch (error) {
      if (error instanceof Refusal && error.status === 401) {
        await askPerson(asked);
        asked = true;
        continue;
      }
      connection.value = { phase: "lost", reason: reasonOf(error) };
    }
    await pause(pauseMs * (0.75 + Math.random() / 2));
    pauseMs = Math.min(kLongestPauseMs, pauseMs * 2);
  }
}

export const hasData = () => overview.value !== null;
