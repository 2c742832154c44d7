/**
 * `<godwit-portal>` shows the customers' portal in a page of yours.
 *
 * The portal runs in a frame, so that neither page can read the other. The two exchange messages about the height of the
 * portal's page and the end of its session; no message holds a secret. The environment must list your page's origin
 * among its `allowed_origins`, or the browser shows an empty frame.
 *
 * ```html
 * <godwit-portal link="https://hooks.example.com/portal/…#code=…"></godwit-portal>
 * ```
 *
 * A link opens once and its session ends. With `refreshLink` the element asks your server for the next link by itself:
 *
 * ```js
 * document.querySelector("godwit-portal").refreshLink = async () =>
 *   (await fetch("/my/portal-link", { method: "POST" })).text();
 * ```
 */

/** Returns the `url` of a new portal link. Your server makes it with `POST /v1/portal-links`. */
export type RefreshLink = () => string | Promise<string>;

/** What the portal's page tells the page around it. */
export type PortalMessage =
  | { godwit: "portal"; type: "ready" }
  | { godwit: "portal"; type: "height"; height: number }
  | { godwit: "portal"; type: "expired" };

/** The element's interface, for code that sets its properties. */
export interface GodwitPortalElement extends HTMLElement {
  /** The `url` of a portal link. Each link opens once. */
  link: string;
  /** Called for a link when there is none, and when the session has ended. */
  refreshLink: RefreshLink | undefined;
}

/** Links that may be refused one after the other before the element stops asking for more. */
const maxRefused = 2;

/** Pages cannot make the frame higher than this, in pixels. */
const maxHeight = 20_000;

/** Reads a message of the portal's page; undefined if it is none. */
export function portalMessage(data: unknown): PortalMessage | undefined {
  if (typeof data !== "object" || data === null) return undefined;
  const { godwit, type, height } = data as Record<string, unknown>;
  if (godwit !== "portal") return undefined;
  if (type === "ready" || type === "expired") return { godwit, type };
  if (type !== "height" || typeof height !== "number" || !(height > 0)) return undefined;
  return { godwit, type, height: Math.min(Math.ceil(height), maxHeight) };
}

/** The origin of a link, or undefined if it is not a link that may be opened. */
export function linkOrigin(link: string): string | undefined {
  if (!URL.canParse(link)) return undefined;
  const url = new URL(link);
  return url.protocol === "https:" || url.protocol === "http:" ? url.origin : undefined;
}

/**
 * Registers the element, by default as `godwit-portal`. It does nothing where there are no custom elements, such as on a
 * server that renders pages, or if the name is taken.
 */
export function defineGodwitPortal(name = "godwit-portal"): void {
  if (typeof customElements === "undefined" || customElements.get(name)) return;
  customElements.define(name, elementClass());
}

/** The class extends HTMLElement, which exists in browsers only; so it is made when it is needed. */
function elementClass(): CustomElementConstructor {
  return class extends HTMLElement implements GodwitPortalElement {
    static readonly observedAttributes = ["link", "title"];

    #refreshLink: RefreshLink | undefined;
    readonly #frame = document.createElement("iframe");
    #origin: string | undefined;
    #refused = 0;
    #asking = false;

    constructor() {
      super();
      const frame = this.#frame;
      frame.referrerPolicy = "no-referrer";
      frame.allow = "clipboard-write";
      for (const [property, value] of [["display", "block"], ["width", "100%"], ["border", "0"], ["height", "480px"]] as const) {
        frame.style.setProperty(property, value);
      }
      this.attachShadow({ mode: "open" }).append(frame);
      // A property that was set before the element was registered hides the accessor of its name.
      const early: { refreshLink?: RefreshLink | undefined } = this;
      if (Object.hasOwn(this, "refreshLink")) {
        const refresh = early.refreshLink;
        delete early.refreshLink;
        this.#refreshLink = refresh;
      }
    }

    get refreshLink(): RefreshLink | undefined {
      return this.#refreshLink;
    }

    set refreshLink(refresh: RefreshLink | undefined) {
      this.#refreshLink = refresh;
      if (this.isConnected && !this.link) void this.#refresh();
    }

    get link(): string {
      return this.getAttribute("link") ?? "";
    }

    set link(url: string) {
      this.setAttribute("link", url);
    }

    connectedCallback(): void {
      this.style.setProperty("display", "block");
      window.addEventListener("message", this.#receive);
      if (this.link) this.#open(this.link);
      else void this.#refresh();
    }

    disconnectedCallback(): void {
      window.removeEventListener("message", this.#receive);
      this.#frame.removeAttribute("src");
      this.#origin = undefined;
    }

    attributeChangedCallback(name: string, before: string | null, value: string | null): void {
      if (name === "title" || !this.#frame.title) this.#frame.title = this.getAttribute("title") ?? "Webhooks";
      if (name === "link" && this.isConnected && value && value !== before) this.#open(value);
    }

    #open(link: string): void {
      this.#origin = linkOrigin(link);
      if (this.#origin === undefined) return this.#fail(new TypeError("link must be the url of a portal link, beginning with https://"));
      this.#frame.title ||= "Webhooks";
      // The links of a portal differ after the # alone, which would not load the page again.
      const url = new URL(link);
      url.searchParams.set("opened", String(Date.now()));
      this.#frame.src = url.href;
    }

    readonly #receive = (event: MessageEvent): void => {
      if (event.source !== this.#frame.contentWindow || event.origin !== this.#origin) return;
      const message = portalMessage(event.data);
      if (message?.type === "ready") this.#refused = 0;
      if (message?.type === "height") this.#frame.style.setProperty("height", `${message.height}px`);
      if (message?.type === "expired") {
        this.dispatchEvent(new CustomEvent("expired"));
        void this.#refresh();
      }
    };

    /** Asks for a link. Without refreshLink the portal's page says itself that its session has ended. */
    async #refresh(): Promise<void> {
      if (this.#asking || !this.isConnected || !this.#refreshLink) return;
      if (++this.#refused > maxRefused) return this.#fail(new Error("the last links of refreshLink were refused; each link opens once"));
      this.#asking = true;
      try {
        const link = await this.#refreshLink();
        if (link === this.link) this.#open(link);
        else this.link = link;
      } catch (error) {
        this.#fail(error);
      } finally {
        this.#asking = false;
      }
    }

    #fail(error: unknown): void {
      this.dispatchEvent(new CustomEvent("error", { detail: error }));
    }
  };
}
