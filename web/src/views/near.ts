import type { RefObject } from "preact";
import { useEffect, useState } from "preact/hooks";

const listeners = new WeakMap<Element, (isNear: boolean) => void>();
// Well before it is seen, so that whoever scrolls finds it there.
const observer = new IntersectionObserver(
  (entries) => {
    for (const entry of entries) listeners.get(entry.target)?.(entry.isIntersecting);
  },
  { rootMargin: "400px 0px" },
);

/// Whether an element is in view or will soon be. What is not need not be drawn: a hub may have a thousand hosts.
export function useNear(ref: RefObject<HTMLElement | null>, atFirst: boolean): boolean {
  const [isNear, setNear] = useState(atFirst);
  useEffect(() => {
    const element = ref.current;
    if (!element) return;
    // Never taken away from under the focus.
    listeners.set(element, (near) => setNear(near || element.contains(document.activeElement)));
    observer.observe(element);
    return () => observer.unobserve(element);
  }, [ref]);
  return isNear;
}
