import { useLayoutEffect, useRef } from "preact/hooks";
import { subject } from "../details";
import { fleet, hostView, isKnown, order } from "../fleet";
import { ownJobs } from "../ownJobs";
import { DeviceDetails } from "./DeviceDetails";
import { Fence } from "./Fence";
import { JobDetails } from "./JobDetails";
import { UserDetails } from "./UserDetails";

function Content() {
  const about = subject.value;
  if (about?.kind === "device" && order.value.includes(about.host) && isKnown(about.host)) {
    const host = hostView(about.host).value;
    const view = host.devices.find((each) => each.key === about.key);
    if (view) return <DeviceDetails view={view} host={host} />;
  }
  if (about?.kind === "job") {
    const job = ownJobs.value?.find((each) => each.id === about.id);
    if (job) return <JobDetails job={job} />;
  }
  if (about?.kind === "user") {
    const view = fleet.value.users.find((each) => each.user === about.user);
    return <UserDetails user={about.user} view={view} />;
  }
  return <p class="nothing">It is not there any more.</p>;
}

/// A drawer beside what it is about. The browser keeps the focus in it, and gives it back.
export function Details() {
  const ref = useRef<HTMLDialogElement>(null);
  const isOpen = subject.value !== null;
  // At once: what takes its place may want the focus, which an open dialog keeps.
  useLayoutEffect(() => {
    const dialog = ref.current;
    if (isOpen && !dialog?.open) dialog?.showModal();
    if (!isOpen && dialog?.open) dialog?.close();
  }, [isOpen]);
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the Escape key closes a dialog by itself
    <dialog
      ref={ref}
      class="details"
      aria-labelledby="details-title"
      onClose={() => {
        subject.value = null;
      }}
      onClick={(event) => {
        if (event.target === ref.current) ref.current?.close();
      }}
    >
      {isOpen && (
        <div class="details-inside">
          <button type="button" class="plain close" aria-label="Close" onClick={() => ref.current?.close()}>
            <svg viewBox="0 0 12 12" aria-hidden="true">
              <path d="M2 2l8 8M10 2l-8 8" stroke="currentColor" stroke-width="1.6" />
            </svg>
          </button>
          <Fence>
            <Content />
          </Fence>
        </div>
      )}
    </dialog>
  );
}
