import { address, environment, lines, literal, named, standardKey, type Settings } from "./settings.ts";

/** A receiver in Go. */
export function goProgram(s: Settings): string {
  const { origin, path } = address(s);
  return lines(
    "// Receives the webhooks of this endpoint and refuses requests that are not authentic.",
    "//",
    "//\tgo get github.com/godwit-hq/godwit/receiver",
    `//\t${environment(s)}go run .`,
    "package main",
    "",
    "import (",
    '\t"cmp"',
    '\t"context"',
    '\t"log"',
    '\t"net"',
    '\t"net/http"',
    '\t"os"',
    '\t"time"',
    "",
    '\t"github.com/godwit-hq/godwit/receiver"',
    ")",
    "",
    "func main() {",
    "\thooks, err := receiver.New(receiver.Options{",
    `\t\tScheme: ${scheme(s)},`,
    "\t\t// The scheme and host that the sender uses, also behind a proxy.",
    `\t\tPublicOrigin: ${literal(origin)},`,
    "\t\tHandler: func(ctx context.Context, d *receiver.Delivery) (receiver.Result, error) {",
    '\t\t\tlog.Printf("%s %s: %s", d.EventType, d.EventID, d.Body)',
    "\t\t\treturn receiver.Accepted{}, nil",
    "\t\t},",
    "\t})",
    "\tif err != nil {",
    "\t\tlog.Fatal(err)",
    "\t}",
    `\thttp.Handle(${literal(path.endsWith("/") ? `${path}{$}` : path)}, hooks)`,
    '\tlistener, err := net.Listen("tcp", "127.0.0.1:"+cmp.Or(os.Getenv("PORT"), "8080"))',
    "\tif err != nil {",
    "\t\tlog.Fatal(err)",
    "\t}",
    '\tlog.Println("listening on", listener.Addr())',
    "\tserver := &http.Server{ReadTimeout: 30 * time.Second}",
    "\tlog.Fatal(server.Serve(listener))",
    "}",
  );
}

function scheme(s: Settings): string {
  const keys = named(s);
  const secret = (variable: string): string => `os.Getenv("${variable}")`;
  switch (s.profile) {
    case "eds": {
      const list = keys.map((key) => {
        const id = key.id === undefined ? secret("WEBHOOK_KEY_ID") : literal(key.id);
        const value = key.variable ? `Secret: ${secret(key.variable)}` : `PublicKey: ${literal(key.publicKey)}`;
        return `\t\t\t\t{ID: ${id}, Principal: "sender", ${value}},\n`;
      });
      const put = s.method === "PUT" ? '\n\t\t\tPutAgreement: "registered with the method PUT",' : "";
      return `receiver.EDS{\n\t\t\tKeys: []receiver.EDSKey{\n${list.join("")}\t\t\t},${put}\n\t\t}`;
    }
    case "standard-webhooks":
      return `receiver.StandardWebhooks{Keys: []string{${keys.map((key) => (key.variable ? secret(key.variable) : literal(standardKey(key.publicKey)))).join(", ")}}}`;
    default:
      return `receiver.${s.profile === "ojs" ? "OJS" : "Cybercube"}{Secrets: []string{${keys.map((key) => secret(key.variable ?? "WEBHOOK_SECRET")).join(", ")}}}`;
  }
}
