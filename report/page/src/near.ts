// Whether a part of the page is near what is seen: only then is it worth drawing.

import type { RefObject } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";

/** Once near, it stays so; on paper everything is. */
export function useNear(): { near: boolean; place: RefObject<HTMLDivElement | null> } {
  const place = useRef<HTMLDivElement>(null);
  const [near, setNear] = useState(false);
  useLayoutEffect(() => {
    if (near || place.current === null) return undefined;
    const reached = (): void => setNear(true);
    const observer = new IntersectionObserver((entries) => entries.some(({ isIntersecting }) => isIntersecting) && reached(), {
      rootMargin: "50%",
    });
    observer.observe(place.current);
    addEventListener("beforeprint", reached);
    return () => {
      observer.disconnect();
      removeEventListener("beforeprint", reached);
    };
  }, [near]);
  return { near, place };
}
