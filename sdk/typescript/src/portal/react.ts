/** The portal as a React component, for React 18 and later. */
import { createElement, useEffect, useRef, type CSSProperties, type ReactElement } from "react";
import { defineGodwitPortal, type GodwitPortalElement, type RefreshLink } from "./element.js";

export interface GodwitPortalProps {
  /** The `url` of a portal link. Leave it out to begin with `refreshLink`. */
  link?: string;
  /** Called for a link when there is none, and when the session has ended. */
  refreshLink?: RefreshLink;
  /** Called when the session has ended, before `refreshLink`. */
  onExpired?: () => void;
  /** Called if no link can be opened. */
  onError?: (error: unknown) => void;
  /** The frame's name for screen readers. Defaults to "Webhooks". */
  title?: string;
  className?: string;
  style?: CSSProperties;
}

/** `<GodwitPortal refreshLink={() => api.portalLink()} />` */
export function GodwitPortal(props: GodwitPortalProps): ReactElement {
  const { link, refreshLink, onExpired, onError, title, className, style } = props;
  const element = useRef<GodwitPortalElement>(null);
  // The listeners are added once and call the latest functions.
  const latest = useRef({ refreshLink, onExpired, onError });
  latest.current = { refreshLink, onExpired, onError };

  useEffect(() => {
    const portal = element.current;
    if (!portal) return;
    const expired = (): void => latest.current.onExpired?.();
    const failed = (event: Event): void => latest.current.onError?.((event as CustomEvent<unknown>).detail);
    portal.addEventListener("expired", expired);
    portal.addEventListener("error", failed);
    if (latest.current.refreshLink) {
      portal.refreshLink = () => {
        const refresh = latest.current.refreshLink;
        if (!refresh) throw new Error("refreshLink was taken away");
        return refresh();
      };
    }
    // Registering makes the element; its link and functions are set by now.
    defineGodwitPortal();
    return () => {
      portal.removeEventListener("expired", expired);
      portal.removeEventListener("error", failed);
    };
  }, []);

  return createElement("godwit-portal", { ref: element, link, title, class: className, style });
}
