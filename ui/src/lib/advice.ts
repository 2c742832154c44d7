import { GodwitError } from "@godwit/client";

export interface Said {
  readonly what: string;
  readonly fields: readonly { readonly field: string; readonly detail: string }[];
  readonly request?: string | undefined;
}

/** What went wrong, in one sentence. */
export function sentence(error: unknown): Said {
  if (error instanceof GodwitError) {
    const what = error.message.replace(/^\d{3} /, "");
    return { what: what.charAt(0).toUpperCase() + what.slice(1), fields: error.fields.filter((f) => !what.includes(f.detail)), request: error.requestId };
  }
  if (error instanceof DOMException && error.name === "TimeoutError") return { what: "The server did not answer in time", fields: [] };
  if (error instanceof TypeError) return { what: "The server could not be reached", fields: [] };
  return { what: error instanceof Error ? error.message : String(error), fields: [] };
}

let customers = false;

/** Speaks to people who know nothing of keys, tenants and the server: those of the portal. */
export function forCustomers(): void {
  customers = true;
}

const toCustomers: Readonly<Record<number, string>> = {
  401: "Open the page again from the application that it belongs to.",
  403: "The link that opened this page does not allow it.",
  404: "It may have been deleted, or be past the time that it is kept.",
  503: "Try again in a moment.",
};

/** What the reader can do about it. */
export function advice(error: unknown): string {
  if (customers) {
    if (!(error instanceof GodwitError)) return "Check your connection, then try again.";
    const text = toCustomers[Math.min(error.status, 503)];
    if (text !== undefined) return text;
  }
  if (!(error instanceof GodwitError)) return "Check that the server runs and that this machine reaches it, then try again.";
  switch (error.status) {
    case 400:
    case 413:
    case 422:
      if (error.fields.some((f) => f.field === "Godwit-Tenant")) return "Choose a tenant at the top of the page.";
      return "Correct the value and try again. Nothing was changed.";
    case 401:
      return "Sign in again.";
    case 403:
      return "The key that you signed in with may not do this. Sign in with a key that has the scope, or ask an administrator for one.";
    case 404:
      return "It may have been deleted, be past its retention, or belong to another tenant. Check the tenant at the top of the page.";
    case 409:
      return "Something else changed it meanwhile. Load the page again to see the present state.";
    case 412:
      return "It was changed since this page was loaded. Load the page again and repeat your change.";
    case 429:
      return error.retryAfter ? `Too much at once. Try again in ${error.retryAfter} s.` : "Too much at once. Wait a little and try again.";
    case 503:
      return "The server is starting, stopping or cannot reach its database. Try again in a moment; /readyz says more.";
    default:
      return error.status >= 500 ? "The server has the details in its log under the request's id." : "Nothing was changed.";
  }
}
