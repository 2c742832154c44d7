/** The portal's element without a browser. What it does in a page is tested with a real browser and server, in internal/ui/browsertest. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createElement } from "react";
import { renderToString } from "react-dom/server";
import { linkOrigin, portalMessage } from "../dist/portal/element.js";
import * as portal from "../dist/portal/index.js";
import { GodwitPortal } from "../dist/portal/react.js";

test("messages of the portal are read, all others are left alone", () => {
  assert.deepEqual(portalMessage({ godwit: "portal", type: "ready", more: 1 }), { godwit: "portal", type: "ready" });
  assert.deepEqual(portalMessage({ godwit: "portal", type: "expired" }), { godwit: "portal", type: "expired" });
  assert.deepEqual(portalMessage({ godwit: "portal", type: "height", height: 700.2 }), { godwit: "portal", type: "height", height: 701 });
  for (const other of [
    undefined,
    null,
    "height",
    17,
    [],
    { type: "height", height: 700 },
    { godwit: "other", type: "ready" },
    { godwit: "portal" },
    { godwit: "portal", type: "link", link: "https://evil.example" },
    { godwit: "portal", type: "height" },
    { godwit: "portal", type: "height", height: "700" },
    { godwit: "portal", type: "height", height: -1 },
    { godwit: "portal", type: "height", height: Number.NaN },
  ]) {
    assert.equal(portalMessage(other), undefined, JSON.stringify(other));
  }
});

test("a page cannot make the frame endlessly high", () => {
  const message = portalMessage({ godwit: "portal", type: "height", height: Infinity });
  assert.deepEqual(message, { godwit: "portal", type: "height", height: 20_000 });
});

test("only links of the Web are opened", () => {
  assert.equal(linkOrigin("https://hooks.example.com/portal/x#code=1"), "https://hooks.example.com");
  assert.equal(linkOrigin("http://127.0.0.1:8080/portal/x"), "http://127.0.0.1:8080");
  for (const link of ["", "/portal/x", "javascript:alert(1)", "data:text/html,x", "file:///etc/passwd", "blob:https://a.example/1"]) {
    assert.equal(linkOrigin(link), undefined, link);
  }
});

test("a server that renders pages may import the element", () => {
  assert.equal(typeof portal.defineGodwitPortal, "function");
  portal.defineGodwitPortal("other-name");
});

test("the React component renders the element on a server", () => {
  const html = renderToString(
    createElement(GodwitPortal, { link: "https://hooks.example.com/portal/x#code=1", title: "Events", className: "wide", refreshLink: () => "x" }),
  );
  assert.equal(html, '<godwit-portal link="https://hooks.example.com/portal/x#code=1" title="Events" class="wide"></godwit-portal>');
});
