package config

import "log/slog"

// Config holds all settings. The comment of each field is its help text: the program embeds config.go and reads the comments,
// so that each setting is described in one place. The keys of a configuration file are the names of the flags, with groups nested.
type Config struct {
	Storage `embed:""`

	// Address on which the server serves the API. Port 0 chooses a free port. Defaults to 127.0.0.1:8080.
	Listen string `name:"listen" default:"127.0.0.1:8080" placeholder:"HOST:PORT"`
	// URL under which receivers and producers reach this server. The key directory is signed for its host. Defaults to the listening address.
	PublicURL string `name:"public-url" placeholder:"URL"`
	// Name of this process among those that share a store. Processes that run at the same time must have different names: the second
	// one with a name refuses to start. Defaults to the host's name.
	Node string `name:"node" placeholder:"NAME"`
	// Largest event body that the server accepts. It answers a larger one with 413. Defaults to 1MiB.
	MaxBody Size `name:"max-body" default:"1MiB" placeholder:"SIZE"`
	// How long the server keeps its answer to a request with an Idempotency-Key, and repeats it. Defaults to 24h.
	IdempotencyWindow Duration `name:"idempotency-window" default:"24h" placeholder:"DURATION"`
	// How long a node may be silent before other nodes of the same database take over its deliveries. Defaults to 5s.
	Lease Duration `name:"lease" default:"5s" placeholder:"DURATION"`
	// How long a stop waits for requests in flight before it aborts them. Defaults to 20s.
	DrainTimeout Duration `name:"drain-timeout" default:"20s" placeholder:"DURATION"`
	// How long a stop keeps answering requests while /readyz already answers 503, so that load balancers notice it and send no more. A
	// second signal ends the wait. Choose a little more than the balancer's interval between health checks. Defaults to 0s.
	StopDelay Duration `name:"stop-delay" default:"0s" placeholder:"DURATION"`
	// Serve ordinary posts of events on plain TCP with a fast path of the server's own. All other requests, and all of TLS, are
	// served by net/http. Defaults to true.
	ShortWay bool `name:"short-way" default:"true" negatable:""`
	// Address on which /metrics is served without an API key: keep it private. Defaults to the address of the API, where /metrics
	// needs a key with the scope metrics.
	MetricsListen string `name:"metrics-listen" placeholder:"HOST:PORT"`
	// How many combinations of event type and subscription a metric may have. Further combinations share one series. Defaults to
	// 2000.
	MetricsSeries int `name:"metrics-series" default:"2000" placeholder:"N"`
	// Whether the pattern * selects webhook.* events, which report on deliveries and subscriptions: "wanted" for yes, "explicit" if
	// only patterns that name webhook.* select them. Defaults to wanted.
	MetaEvents string `name:"meta-events" default:"wanted" placeholder:"wanted|explicit"`
	// Address ranges that deliveries come from. /.well-known/webhook-ips shows them to receivers. Set your own ranges: the default is
	// the example of the CYBERCUBE standard. Defaults to 203.0.113.0/24,198.51.100.0/24.
	WebhookIPs []Network `name:"webhook-ips" default:"203.0.113.0/24,198.51.100.0/24" placeholder:"CIDR"`
	// How long a source in pass-through waits for its endpoints before it answers 504, and a source with commands_as for its command
	// before it answers 503. Choose less than the upstreams' own timeout. Defaults to 20s.
	RelayDeadline Duration `name:"relay-deadline" default:"20s" placeholder:"DURATION"`
	// Ask clients for certificates, for sources with the scheme mtls. This server must serve https itself. Defaults to
	// false.
	ClientCertificates bool `name:"client-certificates"`
	// Addresses of proxies in front of this server. The server believes their X-Forwarded-For, which sessions show and by which failed sign-ins are
	// counted. Defaults to none.
	TrustedProxies []Network `name:"trusted-proxies" placeholder:"CIDR"`
	// Address on which Go's profiler (/debug/pprof/) is served. Use loopback or a private network. Defaults to none: off.
	DebugListen string `name:"debug-listen" placeholder:"HOST:PORT"`

	Egress `embed:""`

	TLS       TLS       `embed:"" prefix:"tls-"`
	ACME      ACME      `embed:"" prefix:"acme-"`
	Retention Retention `embed:"" prefix:"retention-"`
	Limits    Limits    `embed:"" prefix:"limits-"`
	Sessions  Sessions  `embed:"" prefix:"sessions-"`
	OIDC      OIDC      `embed:"" prefix:"oidc-"`
	SMTP      SMTP      `embed:"" prefix:"smtp-"`
	Cybercube Cybercube `embed:"" prefix:"cybercube-"`
	Commands  Commands  `embed:"" prefix:"commands-"`
	Log       Log       `embed:"" prefix:"log-"`
}

// Storage selects the database and the key ring that encrypts the secrets in it.
type Storage struct {
	// Directory for the embedded database, the key ring and certificates. Defaults to godwit-data.
	Data string `name:"data" default:"godwit-data" placeholder:"DIR"`
	// Database: "sqlite" for a file in the data directory, or the URL of a PostgreSQL database
	// (postgres://user:password@host/name). Several hosts may be named with commas: the server uses the one that takes writes.
	// Defaults to sqlite.
	Store string `name:"store" default:"sqlite" placeholder:"sqlite|URL" secret:"url"`
	// Largest number of connections to PostgreSQL that this server opens, at least 5. All nodes together must stay below the server's
	// max_connections. Defaults to 14.
	StoreConnections int `name:"store-connections" default:"14" placeholder:"N"`
	// Key ring that encrypts signing keys and credentials at rest: lines of id:base64. The first key encrypts, all of them decrypt. It
	// is not a flag, because every user of the machine can read a command line. Defaults to the key ring file.
	Keyring string `name:"keyring" placeholder:"ID:BASE64" secret:"all"`
	// File with the key ring; `godwit keys ring` makes one. With SQLite, the server creates a missing file. With PostgreSQL, the
	// setting is required, because all nodes need the same key ring. Defaults to keyring in the data directory.
	KeyringFile string `name:"keyring-file" placeholder:"FILE"`
}

// TLS serves https with certificates from files.
type TLS struct {
	// File with the certificate chain in PEM. The server reads it again when it changes. Defaults to none: plain http.
	Cert string `name:"cert" placeholder:"FILE"`
	// File with the private key of the certificate in PEM. Defaults to none.
	Key string `name:"key" placeholder:"FILE"`
}

// ACME serves https with certificates obtained by the ACME protocol, such as Let's Encrypt's. The server must be reachable
// on port 443 under these names (TLS-ALPN challenge).
type ACME struct {
	// Names to obtain certificates for. Defaults to none: ACME is off.
	Domains []string `name:"domains" placeholder:"NAME"`
	// E-mail address to which the authority reports problems with a certificate. Defaults to none.
	Email string `name:"email" placeholder:"ADDRESS"`
	// Directory URL of the authority. Defaults to Let's Encrypt's.
	Directory string `name:"directory" placeholder:"URL"`
}

// Egress limits where deliveries may go.
type Egress struct {
	// Permit endpoints with http:// URLs. Defaults to false: https only.
	AllowHTTP bool `name:"allow-http"`
	// Private address ranges that endpoints may be in, such as 10.20.0.0/16. Defaults to none.
	AllowAddress []Network `name:"allow-address" placeholder:"CIDR"`
	// Public address ranges that endpoints must not be in, such as your own. Defaults to none.
	DenyAddress []Network `name:"deny-address" placeholder:"CIDR"`
	// Hosts that a redirect from another host may lead to: a name, *.name, or *. Defaults to none.
	AllowRedirectHost []string `name:"allow-redirect-host" placeholder:"HOST"`
	// Proxy for all deliveries (http, https, socks5, socks5h). It must refuse private addresses itself. Defaults to none.
	Proxy string `name:"proxy" placeholder:"URL" secret:"url"`
	// File with certificate authorities in PEM that are trusted in addition to those of the system. Defaults to none.
	CAFile string `name:"ca-file" placeholder:"FILE"`
}

// Retention sets how long the server keeps stored data.
type Retention struct {
	// Events and finished deliveries. Defaults to 30d.
	Events Duration `name:"events" default:"30d" placeholder:"DURATION"`
	// Records of attempts. A dead letter shows its attempts, so a value below the retention of dead letters plus two days has no
	// effect. Defaults to 30d.
	Attempts Duration `name:"attempts" default:"30d" placeholder:"DURATION"`
	// Dead letters, each with a copy of its event. Defaults to 30d.
	DeadLetters Duration `name:"dead-letters" default:"30d" placeholder:"DURATION"`
	// The history for charts by minute. Defaults to 2d.
	StatsMinutes Duration `name:"stats-minutes" default:"2d" placeholder:"DURATION"`
	// The history for charts by hour. Defaults to 31d.
	StatsHours Duration `name:"stats-hours" default:"31d" placeholder:"DURATION"`
	// The history for charts by day. Defaults to 400d.
	StatsDays Duration `name:"stats-days" default:"400d" placeholder:"DURATION"`
}

// Limits limits what a process and a tenant may use.
type Limits struct {
	// Endpoints that a tenant may have. Defaults to 1000.
	Endpoints int `name:"endpoints" default:"1000" placeholder:"N"`
	// Endpoints that a tenant's own keys may create in a minute, unless the tenant has a limit of its own. Defaults to 60.
	EndpointCreations int `name:"endpoint-creations" default:"60" placeholder:"N"`
	// Events that a tenant may bring in a second, unless the tenant has a limit of its own. Further ones get 429. 0 means no limit. Defaults to 0.
	EventsPerSecond int `name:"events-per-second" default:"0" placeholder:"N"`
	// Events that such a tenant may bring at once. 0 means those of a second. Defaults to 0.
	Burst int `name:"burst" default:"0" placeholder:"N"`
	// Deliveries of a tenant that may wait, unless the tenant has a limit of its own. While so many do, its events get 429. 0 means no limit. Defaults to 0.
	WaitingDeliveries int `name:"waiting-deliveries" default:"0" placeholder:"N"`
	// Deliveries of one endpoint that may be in memory. Further ones wait in the store. Defaults to 1024.
	Window int `name:"window" default:"1024" placeholder:"N"`
	// Requests to endpoints that may be in flight at once. Defaults to 2048.
	InFlight int `name:"in-flight" default:"2048" placeholder:"N"`
	// Size of the payloads that may be in memory, of all endpoints together. Defaults to 64MiB.
	Held Size `name:"held" default:"64MiB" placeholder:"SIZE"`
}

// Sessions configures the sessions of browsers that sign in to the dashboard and to portals.
type Sessions struct {
	// How long a session lives without a request. Defaults to 12h.
	Idle Duration `name:"idle" default:"12h" placeholder:"DURATION"`
	// How long a session of the dashboard lives at most. A portal link says it for its own. Defaults to 7d.
	Lifetime Duration `name:"lifetime" default:"7d" placeholder:"DURATION"`
	// Sign-ins from one address, with keys or codes that begin alike, that may fail within a minute on a node. Further ones get 429. 0 means no limit. Defaults to 10.
	FailuresPerMinute int `name:"failures-per-minute" default:"10" placeholder:"N"`
}

// OIDC lets people sign in to the dashboard with an identity provider, by OpenID Connect (docs/oidc.md).
type OIDC struct {
	// URL of the identity provider, exactly as it names itself: /.well-known/openid-configuration is read below it. Defaults to none: people sign
	// in with API keys alone.
	Issuer string `name:"issuer" placeholder:"URL"`
	// Id of this server at the provider. Defaults to none.
	ClientID string `name:"client-id" placeholder:"ID"`
	// Secret of this server at the provider. It is not a flag, because every user of the machine can read a command line. Defaults to the secret
	// file; without either, the server is a public client.
	ClientSecret string `name:"client-secret" placeholder:"SECRET" secret:"all"`
	// File with the secret of this server at the provider. Defaults to none.
	ClientSecretFile string `name:"client-secret-file" placeholder:"FILE"`
	// Scopes that are asked for. They must contain openid. Defaults to openid,profile,email.
	Scopes []string `name:"scopes" default:"openid,profile,email" placeholder:"SCOPE"`
	// Claim that holds the groups of a person: a text or a list of texts. Dots lead into objects, as in realm_access.roles. Defaults to groups.
	GroupsClaim string `name:"groups-claim" default:"groups" placeholder:"CLAIM"`
	// Name of the provider on the button of the sign-in page. Defaults to SSO.
	Name string `name:"name" default:"SSO" placeholder:"NAME"`
	// YAML file that says what the members of each group may do; docs/oidc.md describes it. Defaults to none.
	Grants string `name:"grants" placeholder:"FILE"`
	// How long the session of a person lives at most. A change of the person's groups takes effect at the next sign-in, so within this
	// time. Defaults to 8h.
	SessionLifetime Duration `name:"session-lifetime" default:"8h" placeholder:"DURATION"`
}

// Cybercube configures the CYBERCUBE API under /api/v1/webhooks. Its limits apply to an account within any hour; 0 means no limit.
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
	// Accept events with well-formed types that the standard does not list. Defaults to true.
	UnknownTypes bool `name:"unknown-types" default:"true" negatable:""`
}

// Commands configures the command executor under /ids/v1 and the evidence that it records.
type Commands struct {
	// JSON file that declares the commands that services of the tenants execute: {"commands":[…]}. docs/commands.md describes a
	// declaration. Defaults to none.
	File string `name:"file" placeholder:"FILE"`
	// How long a destructive command waits for its confirmation, at most 15m. Defaults to 5m.
	ConfirmWithin Duration `name:"confirm-within" default:"5m" placeholder:"DURATION"`
	// Repeats of one command that are answered within a minute. Further ones get 429. 0 means no limit. Defaults to 30.
	RepeatsPerKey int `name:"repeats-per-key" default:"30" placeholder:"N"`
	// Repeated and refused commands of one API key that are answered within a minute. Further ones get 429. 0 means no limit. Defaults to 300.
	RepeatsPerActor int `name:"repeats-per-actor" default:"300" placeholder:"N"`
	// How long the executor of a command may be silent before another node continues the command. Defaults to 60s.
	Lease Duration `name:"lease" default:"60s" placeholder:"DURATION"`
	// File with the private key (Ed25519, PEM) that signs evidence. Every node of a store needs the same key, and a container must keep
	// it: a server with another key refuses to start. The server creates the default file if it is missing. Defaults to evidence.key
	// in the data directory.
	EvidenceKey string `name:"evidence-key" placeholder:"FILE"`
	// How often the server signs new evidence. Defaults to 5m.
	CheckpointEvery Duration `name:"checkpoint-every" default:"5m" placeholder:"DURATION"`
	// Register the commands probe.touch, probe.delete and probe.echo for conformance suites. Defaults to false.
	Probe bool `name:"probe"`
}

// SMTP configures the mail server for alerts about dead letters, degraded and disabled endpoints. Tenants name the addresses.
// Without a mail server, alerts are notices and log lines.
type SMTP struct {
	// Mail server: smtp://user:password@host:587, which must offer STARTTLS unless it is on this machine, or
	// smtps://user:password@host:465. Defaults to none: no mail is sent.
	URL string `name:"url" placeholder:"URL" secret:"url"`
	// Sender address of the mails, such as Godwit <godwit@example.com>. Defaults to none.
	From string `name:"from" placeholder:"ADDRESS"`
	// Largest number of mails to a tenant within a minute. The next mail sums up further alerts. Defaults to 5.
	PerMinute int `name:"per-minute" default:"5" placeholder:"N"`
}

// Log configures the log, which goes to standard error.
type Log struct {
	// Lowest level that is written: debug, info, warn or error. Every attempt is a line at debug level, a failed one at
	// info. Defaults to info.
	Level slog.Level `name:"level" default:"info" placeholder:"LEVEL"`
	// Format of the lines: text or json. Defaults to text.
	Format string `name:"format" default:"text" placeholder:"text|json"`
}

// FileFlag is the flag that names the configuration file. Commands that read the configuration embed it.
type FileFlag struct {
	// YAML file with settings. Flags and environment variables take precedence over it. Defaults to none.
	Config string `name:"config" placeholder:"FILE"`
}
