import { signal } from "@preact/signals";

/// What the open dialog is about.
export type Subject =
  | { readonly kind: "device"; readonly host: string; readonly key: string }
  | { readonly kind: "user"; readonly user: string }
  | { readonly kind: "job"; readonly id: string };

export const openDevice = (host: string, key: string) => {
  subject.value = { kind: "device", host, key };
};

export const subject = signal<Subject | null>(null);
