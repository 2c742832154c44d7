import { address, environment, lines, literal, named, standardKey, type Settings } from "./settings.ts";

const functions = { eds: "eds", ojs: "ojs", cybercube: "cybercube", "standard-webhooks": "standardWebhooks" } as const;

const variable = [
  "function variable(name: string): string {",
  "  const value = process.env[name];",
  "  if (!value) throw new Error(`set the environment variable ${name}`);",
  "  return value;",
  "}",
  "",
].join("\n");

/** A receiver in TypeScript, for Node. */
export function typescriptProgram(s: Settings): string {
  const { origin, path } = address(s);
  return lines(
    "// Receives the webhooks of this endpoint and refuses requests that are not authentic.",
    "//",
    "//   npm install @godwit/receiver",
    `//   ${environment(s)}npx tsx receive.ts`,
    'import { createServer } from "node:http";',
    'import type { AddressInfo } from "node:net";',
    `import { ${functions[s.profile]}, receiver } from "@godwit/receiver";`,
    'import { nodeListener } from "@godwit/receiver/node";',
    "",
    profile(s).includes("variable(") && variable,
    "const hooks = receiver({",
    `  profile: ${profile(s)},`,
    "  // The scheme and host that the sender uses, also behind a proxy.",
    `  publicOrigin: ${literal(origin)},`,
    "  async handler(delivery) {",
    "    console.log(delivery.eventType, delivery.eventId, delivery.json());",
    "  },",
    "});",
    "",
    "const listener = nodeListener(hooks);",
    "const server = createServer((request, response) => {",
    `  if (request.url?.split("?")[0] === ${literal(path)}) listener(request, response);`,
    "  else response.writeHead(404).end();",
    "});",
    'server.listen(Number(process.env["PORT"] ?? 3000), "127.0.0.1", () => {',
    '  console.log("listening on", (server.address() as AddressInfo).port);',
    "});",
  );
}

function profile(s: Settings): string {
  const keys = named(s);
  const secret = (variable: string): string => `variable("${variable}")`;
  switch (s.profile) {
    case "eds": {
      const list = keys.map((key) => {
        const id = key.id === undefined ? secret("WEBHOOK_KEY_ID") : literal(key.id);
        const value = key.variable ? `secret: ${secret(key.variable)}` : `publicKey: ${literal(key.publicKey)}`;
        return `      { id: ${id}, principal: "sender", ${value} },\n`;
      });
      const put = s.method === "PUT" ? '\n    putAgreement: "registered with the method PUT",' : "";
      return `eds({\n    keys: [\n${list.join("")}    ],${put}\n  })`;
    }
    case "standard-webhooks":
      return `standardWebhooks({ keys: [${keys.map((key) => (key.variable ? secret(key.variable) : literal(standardKey(key.publicKey)))).join(", ")}] })`;
    default:
      return `${functions[s.profile]}({ secrets: [${keys.map((key) => secret(key.variable ?? "WEBHOOK_SECRET")).join(", ")}] })`;
  }
}
