import { session } from "./session.svelte.ts";

/** The words of the portal that an environment may choose. */
export const words = {
  get title(): string {
    return session.look?.theme.words?.title || "Webhooks";
  },
  get endpoints(): string {
    return session.look?.theme.words?.endpoints || "Endpoints";
  },
  get eventTypes(): string {
    return session.look?.theme.words?.event_types || "Event types";
  },
  get deliveries(): string {
    return session.look?.theme.words?.deliveries || "Deliveries";
  },
  get helpURL(): string | undefined {
    const url = session.look?.theme.words?.help_url;
    return url?.startsWith("https://") ? url : undefined;
  },
};
