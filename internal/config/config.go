package config

import "log/slog"

// Config is everything an operator can set. The comment of each field is its help text: config.go is embedded and read,
// so that a setting is described in one place only. The file's keys are the flags' names, with groups nested.
type Config struct {
	Storage `embed:""`

	// Address the API is served on. Port 0 takes a free one. Defaults to 127.0.0.1:8080.
	Listen string `name:"listen" default:"127.0.0.1:8080" placeholder:"HOST:PORT"`
	// Where this server is reached from outside, as receivers and producers see it. Defaults to the listening address.
	PublicURL string `name:"public-url" placeholder:"URL"`
	// Name of this process among those that share a store. Two that run at once must differ. Defaults to the host's name.
	Node string `name:"node" placeholder:"NAME"`
	// Largest event body that is taken in; a larger one is answered with 413. Defaults to 1MiB.
	MaxBody Size `name:"max-body" default:"1MiB" placeholder:"SIZE"`
	// How long the answer to a request with an Idempotency-Key is replayed. Defaults to 24h.
	IdempotencyWindow Duration `name:"idempotency-window" default:"24h" placeholder:"DURATION"`
	// How long a stop waits for requests in flight before it cuts them off. Defaults to 20s.
	DrainTimeout Duration `name:"drain-timeout" default:"20s" placeholder:"DURATION"`
	// Answer ordinary posts of events on plain TCP by a short way that costs less; everything else, and all of TLS, is
	// net/http's anyhow. Defaults to true.
	ShortWay bool `name:"short-way" default:"true" negatable:""`
	// Address /metrics is served on instead of the API's, without an API key: keep it private. Defaults to the API's, where it needs
	// a key with the scope metrics.
	MetricsListen string `name:"metrics-listen" placeholder:"HOST:PORT"`
	// How many combinations of event type and subscription a metric may have; what comes after is counted together.
	// Defaults to 2000.
	MetricsSeries int `name:"metrics-series" default:"2000" placeholder:"N"`
	// Whether the pattern * selects webhook.* events, which tell of deliveries and subscriptions: "wanted" for yes,
	// "explicit" for patterns that name them only. Defaults to wanted.
	MetaEvents string `name:"meta-events" default:"wanted" placeholder:"wanted|explicit"`
	// Ranges that deliveries come from, as /.well-known/webhook-ips tells receivers. Set your own: the default is the
	// CYBERCUBE standard's, networks that exist in documentation only. Defaults to 203.0.113.0/24,198.51.100.0/24.
	WebhookIPs []Network `name:"webhook-ips" default:"203.0.113.0/24,198.51.100.0/24" placeholder:"CIDR"`
	// How long a source in pass-through waits for its endpoints before it answers 504, and one with commands_as for a command
	// before it answers 503. Shorter than upstreams wait. Defaults to 20s.
	RelayDeadline Duration `name:"relay-deadline" default:"20s" placeholder:"DURATION"`
	// Ask clients for certificates, for sources of the scheme mtls. Needs https that this server serves itself. Defaults to
	// false.
	ClientCertificates bool `name:"client-certificates"`
	// Address for Go's profiler (/debug/pprof/), for loopback or a private network only. Defaults to none: off.
	DebugListen string `name:"debug-listen" placeholder:"HOST:PORT"`

	Egress `embed:""`

	TLS       TLS       `embed:"" prefix:"tls-"`
	ACME      ACME      `embed:"" prefix:"acme-"`
	Retention Retention `embed:"" prefix:"retention-"`
	Limits    Limits    `embed:"" prefix:"limits-"`
	SMTP      SMTP      `embed:"" prefix:"smtp-"`
	Cybercube Cybercube `embed:"" prefix:"cybercube-"`
	Commands  Commands  `embed:"" prefix:"commands-"`
	Log       Log       `embed:"" prefix:"log-"`
}

// Storage is where things are kept, and the key ring that the secrets among them are encrypted with.
type Storage struct {
	// Directory for the embedded database, the key ring and certificates. Defaults to godwit-data.
	Data string `name:"data" default:"godwit-data" placeholder:"DIR"`
	// Where events are kept: "sqlite" for a file in the data directory, or the URL of a PostgreSQL database
	// (postgres://user:password@host/name). Defaults to sqlite.
	Store string `name:"store" default:"sqlite" placeholder:"sqlite|URL" secret:"url"`
	// Key ring that encrypts signing keys and credentials at rest: lines of id:base64, the first one seals. Environment or
	// file only, since a command line is open to every user of the machine. Defaults to the key ring file.
	Keyring string `name:"keyring" placeholder:"ID:BASE64" secret:"all"`
	// File with the key ring; `godwit keys ring` makes one. With SQLite it is generated when it does not exist, with
	// PostgreSQL it must be given, since all nodes need the same. Defaults to keyring in the data directory.
	KeyringFile string `name:"keyring-file" placeholder:"FILE"`
}

// TLS serves https with certificates from files.
type TLS struct {
	// Certificate chain in PEM; read again when it changes. Defaults to none: plain http.
	Cert string `name:"cert" placeholder:"FILE"`
	// Private key of the certificate in PEM. Defaults to none.
	Key string `name:"key" placeholder:"FILE"`
}

// ACME serves https with certificates obtained by the ACME protocol, such as Let's Encrypt's. The server must be reachable
// on port 443 under these names (TLS-ALPN challenge).
type ACME struct {
	// Names to obtain certificates for. Defaults to none: ACME is off.
	Domains []string `name:"domains" placeholder:"NAME"`
	// Address the authority writes to when something is wrong with a certificate. Defaults to none.
	Email string `name:"email" placeholder:"ADDRESS"`
	// Directory URL of the authority. Defaults to Let's Encrypt's.
	Directory string `name:"directory" placeholder:"URL"`
}

// Egress bounds where deliveries may go.
type Egress struct {
	// Permit endpoints with http:// URLs. Defaults to false: https only.
	AllowHTTP bool `name:"allow-http"`
	// Private ranges that may be delivered to all the same, such as 10.20.0.0/16. Defaults to none.
	AllowAddress []Network `name:"allow-address" placeholder:"CIDR"`
	// Public ranges that must not be delivered to, such as your own. Defaults to none.
	DenyAddress []Network `name:"deny-address" placeholder:"CIDR"`
	// Hosts that a redirect from another host may lead to: a name, *.name, or *. Defaults to none.
	AllowRedirectHost []string `name:"allow-redirect-host" placeholder:"HOST"`
	// Proxy for all deliveries (http, https, socks5, socks5h). It must refuse private addresses itself. Defaults to none.
	Proxy string `name:"proxy" placeholder:"URL" secret:"url"`
	// Certificate authorities in PEM that are trusted beside the system's. Defaults to none.
	CAFile string `name:"ca-file" placeholder:"FILE"`
}

// Retention is how long things are kept.
type Retention struct {
	// Events and finished deliveries. Defaults to 30d.
	Events Duration `name:"events" default:"30d" placeholder:"DURATION"`
	// Records of single attempts. Those of a dead letter are shown with it, so that less than its time and two days has no
	// effect. Defaults to 30d.
	Attempts Duration `name:"attempts" default:"30d" placeholder:"DURATION"`
	// Dead letters, each with a copy of its event. Defaults to 30d.
	DeadLetters Duration `name:"dead-letters" default:"30d" placeholder:"DURATION"`
}

// Limits bound what one process and one tenant may use.
type Limits struct {
	// Endpoints a tenant may have. Defaults to 1000.
	Endpoints int `name:"endpoints" default:"1000" placeholder:"N"`
	// Deliveries of one endpoint that may be in memory; the rest waits in the store. Defaults to 1024.
	Window int `name:"window" default:"1024" placeholder:"N"`
	// Requests to endpoints that may be on the wire at once. Defaults to 2048.
	InFlight int `name:"in-flight" default:"2048" placeholder:"N"`
	// Payloads that may be in memory over all endpoints. Defaults to 64MiB.
	Held Size `name:"held" default:"64MiB" placeholder:"SIZE"`
}

// Cybercube is about the CYBERCUBE API under /api/v1/webhooks. Its limits are per account, in any hour; 0 lifts one.
type Cybercube struct {
	// Endpoints that may be created. Defaults to 10.
	CreatesPerHour int `name:"creates-per-hour" default:"10" placeholder:"N"`
	// Changes of endpoints. Defaults to 60.
	UpdatesPerHour int `name:"updates-per-hour" default:"60" placeholder:"N"`
	// Endpoints that may be deleted. Defaults to 10.
	DeletesPerHour int `name:"deletes-per-hour" default:"10" placeholder:"N"`
	// Tests of endpoints. Defaults to 30.
	TestsPerHour int `name:"tests-per-hour" default:"30" placeholder:"N"`
	// Replays, of one event or of a range. Defaults to 10.
	ReplaysPerHour int `name:"replays-per-hour" default:"10" placeholder:"N"`
	// Take in events of well-formed types that the standard does not list. Defaults to true.
	UnknownTypes bool `name:"unknown-types" default:"true" negatable:""`
}

// Commands is about the command executor under /ids/v1 and the evidence that it leaves.
type Commands struct {
	// JSON file with the commands that tenants' own services execute: {"commands":[…]}; docs/commands.md tells what a declaration
	// holds. Defaults to none.
	File string `name:"file" placeholder:"FILE"`
	// How long a destructive command waits for its confirmation, 15m at most. Defaults to 5m.
	ConfirmWithin Duration `name:"confirm-within" default:"5m" placeholder:"DURATION"`
	// Repeats of one command that are answered in a minute; more get 429. 0 lifts it. Defaults to 30.
	RepeatsPerKey int `name:"repeats-per-key" default:"30" placeholder:"N"`
	// Repeats and refusals of one API key that are answered in a minute; more get 429. 0 lifts it. Defaults to 300.
	RepeatsPerActor int `name:"repeats-per-actor" default:"300" placeholder:"N"`
	// After how long another node goes on with a command whose executor was not heard of. Defaults to 60s.
	Lease Duration `name:"lease" default:"60s" placeholder:"DURATION"`
	// File with the private key (Ed25519, PEM) that evidence is signed with. With SQLite it is generated when it does not exist,
	// with PostgreSQL it must be given once commands are used by several nodes. Defaults to evidence.key in the data directory.
	EvidenceKey string `name:"evidence-key" placeholder:"FILE"`
	// How often what was added to the evidence is signed. Defaults to 5m.
	CheckpointEvery Duration `name:"checkpoint-every" default:"5m" placeholder:"DURATION"`
	// Register the commands probe.touch, probe.delete and probe.echo, which a conformance suite tries. Defaults to false.
	Probe bool `name:"probe"`
}

// SMTP is how alerts about dead letters, degraded and disabled endpoints reach the addresses that tenants name. Without it
// they are notices and lines of the log.
type SMTP struct {
	// Mail server: smtp://user:password@host:587, which must offer STARTTLS unless it is on this machine, or
	// smtps://user:password@host:465. Defaults to none: no mail is sent.
	URL string `name:"url" placeholder:"URL" secret:"url"`
	// Address that mail comes from, as in Godwit <godwit@example.com>. Defaults to none.
	From string `name:"from" placeholder:"ADDRESS"`
	// Mails that a tenant gets in a minute at most; what comes beyond is summed up in the next one. Defaults to 5.
	PerMinute int `name:"per-minute" default:"5" placeholder:"N"`
}

// Log is about what the process says of itself, on standard error.
type Log struct {
	// Least level that is written: debug, info, warn or error. Every attempt is a line at debug level, a failed one at
	// info. Defaults to info.
	Level slog.Level `name:"level" default:"info" placeholder:"LEVEL"`
	// Form of the lines: text or json. Defaults to text.
	Format string `name:"format" default:"text" placeholder:"text|json"`
}

// FileFlag is the flag that names the file; commands that read the configuration embed it.
type FileFlag struct {
	// YAML file with settings. Flags and environment go before it. Defaults to none.
	Config string `name:"config" placeholder:"FILE"`
}
