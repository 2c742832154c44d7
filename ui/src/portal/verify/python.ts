import { address, environment, lines, literal, named, standardKey, type Settings } from "./settings.ts";

const classes = { eds: "Eds, EdsKey", ojs: "Ojs", cybercube: "Cybercube", "standard-webhooks": "StandardWebhooks" } as const;

/** A receiver in Python, as a WSGI application. */
export function pythonProgram(s: Settings): string {
  const { origin, path } = address(s);
  const names = [...classes[s.profile].split(", "), "Receiver"].sort().join(", ");
  return lines(
    "# Receives the webhooks of this endpoint and refuses requests that are not authentic.",
    "#",
    "#   pip install godwit",
    `#   ${environment(s)}python receive.py`,
    "import os",
    "from wsgiref.simple_server import make_server",
    "",
    `from godwit import ${names}`,
    "from godwit.wsgi import WebhookApp",
    "",
    "",
    "def handle(delivery, context):",
    "    print(delivery.event_type, delivery.event_id, delivery.json())",
    "",
    "",
    "receiver = Receiver(",
    `    ${profile(s)},`,
    "    handle,",
    "    # The scheme and host that the sender uses, also behind a proxy.",
    `    public_origin=${literal(origin)},`,
    ")",
    `application = WebhookApp(receiver, path=${literal(decoded(path))})`,
    "",
    'if __name__ == "__main__":',
    '    server = make_server("127.0.0.1", int(os.environ.get("PORT", "8000")), application)',
    '    print("listening on", server.server_port, flush=True)',
    "    server.serve_forever()",
  );
}

function profile(s: Settings): string {
  const keys = named(s);
  const secret = (variable: string): string => `os.environ["${variable}"]`;
  switch (s.profile) {
    case "eds": {
      const list = keys.map((key) => {
        const id = key.id === undefined ? secret("WEBHOOK_KEY_ID") : literal(key.id);
        const value = key.variable ? `secret=${secret(key.variable)}` : `public_key=${literal(key.publicKey)}`;
        return `            EdsKey(id=${id}, principal="sender", ${value}),\n`;
      });
      const put = s.method === "PUT" ? '\n        put_agreement="registered with the method PUT",' : "";
      return `Eds(\n        [\n${list.join("")}        ],${put}\n    )`;
    }
    case "standard-webhooks":
      return `StandardWebhooks([${keys.map((key) => (key.variable ? secret(key.variable) : literal(standardKey(key.publicKey)))).join(", ")}])`;
    default:
      return `${classes[s.profile]}([${keys.map((key) => secret(key.variable ?? "WEBHOOK_SECRET")).join(", ")}])`;
  }
}

/** WSGI servers show the path without escapes, its bytes as Latin-1. */
function decoded(path: string): string {
  return path.replace(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(parseInt(hex, 16)));
}
