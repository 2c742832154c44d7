// Writes src/client/generated.ts from the server's OpenAPI document: the types of the native API and a thin class with one
// method for each operation. With --check it writes nothing and fails if the file is not current.
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const source = new URL("../../../spec/openapi.json", import.meta.url);
const target = new URL("../src/client/generated.ts", import.meta.url);

export function generate(document) {
  const types = Object.entries(document.components.schemas)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, schema]) => `${comment(schema.description)}export interface ${name} ${objectType(schema, 0)}`);
  const methods = Object.entries(document.paths).flatMap(([path, operations]) =>
    Object.entries(operations).map(([method, operation]) => methodSource(path, method, operation)),
  );
  return [
    "// Made by scripts/generate-client.mjs from spec/openapi.json; do not edit.",
    'import { Transport, type CallOptions, type Payload } from "./transport.js";',
    "",
    types.join("\n\n"),
    "",
    "/** The native API of a Godwit server: one method for each operation. */",
    "export class GodwitClient extends Transport {",
    methods.join("\n\n"),
    "}",
    "",
  ].join("\n");
}

function comment(text, indent = "") {
  if (!text) return "";
  const lines = text.replaceAll("*/", "*\\/").split("\n");
  if (lines.length === 1) return `${indent}/** ${lines[0]} */\n`;
  return `${indent}/**\n${lines.map((line) => `${indent} * ${line}`.trimEnd()).join("\n")}\n${indent} */\n`;
}

function propertyName(name) {
  return /^[A-Za-z_$][\w$]*$/.test(name) ? name : JSON.stringify(name);
}

function objectType(schema, depth) {
  const indent = "  ".repeat(depth + 1);
  const required = new Set(schema.required ?? []);
  const members = Object.entries(schema.properties ?? {}).map(
    ([name, property]) =>
      `${comment(property.description, indent)}${indent}${propertyName(name)}${required.has(name) ? "" : "?"}: ${typeOf(property, depth + 1)};`,
  );
  const extra = schema.additionalProperties;
  if (extra !== undefined && extra !== false) members.push(`${indent}[name: string]: ${extra === true ? "unknown" : typeOf(extra, depth + 1)};`);
  return members.length === 0 ? "{}" : `{\n${members.join("\n")}\n${"  ".repeat(depth)}}`;
}

function typeOf(schema, depth = 0) {
  if (schema.$ref !== undefined) return schema.$ref.split("/").at(-1);
  for (const any of ["oneOf", "anyOf"]) if (schema[any] !== undefined) return schema[any].map((s) => typeOf(s, depth)).join(" | ");
  if (schema.enum !== undefined) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
  const kinds = [schema.type ?? []].flat();
  if (kinds.length === 0) return "unknown";
  return kinds.map((kind) => plainType(kind, schema, depth)).join(" | ");
}

function plainType(kind, schema, depth) {
  switch (kind) {
    case "string":
    case "boolean":
    case "null":
      return kind;
    case "integer":
    case "number":
      return "number";
    case "array": {
      const item = typeOf(schema.items ?? {}, depth);
      return item.includes("|") || item.startsWith("{") ? `Array<${item}>` : `${item}[]`;
    }
    case "object": {
      const extra = schema.additionalProperties;
      if (schema.properties === undefined && extra !== undefined && extra !== false) {
        return `Record<string, ${extra === true ? "unknown" : typeOf(extra, depth)}>`;
      }
      return schema.properties === undefined ? "Record<string, unknown>" : objectType(schema, depth);
    }
    default:
      throw new Error(`no type for ${kind}`);
  }
}

const camel = (name) => name.toLowerCase().replace(/[^a-z0-9]+([a-z0-9])/g, (_, c) => c.toUpperCase());

/** How a parameter is called in the options: headers lose the server's name, `attr.NAME` is a record. */
function optionName({ name, in: place }) {
  if (place === "header") return camel(name.replace(/^Godwit-/, ""));
  // Header fields name the tenant and the environment of every request; a parameter of the same name gets another.
  if (name === "tenant" || name === "environment") return `${name}Id`;
  return camel(name.replace(/\.NAME$/, ""));
}

function methodSource(path, method, operation) {
  const params = operation.parameters ?? [];
  const inPath = params.filter((p) => p.in === "path");
  const others = params.filter((p) => p.in !== "path");
  const args = inPath.map((p) => `${camel(p.name)}: string`);
  const body = bodyArgument(operation);
  if (body !== undefined) args.push(body.argument);
  const members = others.map((p) => {
    const type = p.name.endsWith(".NAME") ? "Record<string, string>" : typeOf(p.schema ?? {}, 1);
    return `${comment(p.description, "      ")}      ${optionName(p)}?: ${type} | undefined;`;
  });
  args.push(`options: CallOptions${members.length === 0 ? "" : ` & {\n${members.join("\n")}\n    }`} = {}`);
  const response = responseOf(operation);
  const call = {
    method: method.toUpperCase(),
    path: path.replace(/\{(\w+)\}/g, (_, name) => `\${encodeURIComponent(${camel(name)})}`),
  };
  const query = others.filter((p) => p.in === "query").map((p) => `${JSON.stringify(p.name)}: options.${optionName(p)}`);
  const headers = others.filter((p) => p.in === "header").map((p) => `${JSON.stringify(p.name)}: options.${optionName(p)}`);
  const lines = [
    `method: ${JSON.stringify(call.method)}`,
    `path: \`${call.path}\``,
    ...(query.length === 0 ? [] : [`query: { ${query.join(", ")} }`]),
    ...(headers.length === 0 ? [] : [`headers: { ${headers.join(", ")} }`]),
    ...(body === undefined ? [] : ["body"]),
    "options",
  ];
  const text = [operation.summary, operation.description].filter(Boolean).join(".\n\n");
  return `${comment(text, "  ")}  ${camel(operation.operationId)}(
    ${args.join(",\n    ")},
  ): ${response.type} {
    return this.${response.call}({ ${lines.join(", ")} });
  }`;
}

function bodyArgument(operation) {
  const content = operation.requestBody?.content;
  if (content === undefined) return undefined;
  const types = Object.entries(content).map(([type, { schema }]) => (type === "application/json" ? typeOf(schema) : "Payload"));
  const optional = operation.requestBody.required ? "" : " | undefined";
  return { argument: `body: ${types.sort().join(" | ")}${optional}` };
}

function responseOf(operation) {
  const good = Object.entries(operation.responses).filter(([status]) => status.startsWith("2")).map(([, response]) => response);
  if (good.length > 1) { // what is asked first, and what was done then
    const types = good.map((r) => (r.content ? typeOf(r.content["application/json"].schema) : "undefined")).join(" | ");
    return { call: `json<${types}>`, type: `Promise<${types}>` };
  }
  const [type, media] = Object.entries(good[0]?.content ?? {})[0] ?? [];
  switch (type) {
    case undefined:
      return { call: "nothing", type: "Promise<void>" };
    case "application/json":
      return { call: `json<${typeOf(media.schema)}>`, type: `Promise<${typeOf(media.schema)}>` };
    case "application/x-ndjson":
      return { call: `lines<${typeOf(media.schema)}>`, type: `AsyncGenerator<${typeOf(media.schema)}>` };
    case "text/event-stream":
      return { call: `events<${typeOf(media.schema)}>`, type: `AsyncGenerator<${typeOf(media.schema)}>` };
    default:
      return { call: "raw", type: "Promise<Response>" };
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const made = generate(JSON.parse(readFileSync(source, "utf8")));
  if (!process.argv.includes("--check")) {
    writeFileSync(target, made);
  } else if (readFileSync(target, "utf8") !== made) {
    console.error("src/client/generated.ts is not current: run npm run generate");
    process.exit(1);
  }
}
