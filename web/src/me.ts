// Who looks. The server does not know: people choose their name, and this browser keeps it.
import { signal } from "@preact/signals";

const kKey = "berth-me";

// A browser that is to keep nothing throws at the mere name of its storage: then the name lasts as long as the page.
let kept: string | null = null;
try {
  kept = localStorage.getItem(kKey);
} catch {}

/// null: nobody has said.
export const me = signal(kept);

export function isMe(owner: { user: string | null }): boolean {
  return me.value !== null && owner.user === me.value;
}

export function setMe(user: string | null): void {
  me.value = user;
  try {
    if (user === null) localStorage.removeItem(kKey);
    else localStorage.setItem(kKey, user);
  } catch {}
}
